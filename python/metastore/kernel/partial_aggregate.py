"""What is known of the values of a column, or of a part of them, and how parts become the whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format import sortable_values
from metastore.format.histogram_bins import EQUI_HEIGHT, EQUI_WIDTH, Histogram, derive_counts, target_ranks
from metastore.format.table_column import Column
from metastore.format.value_rendering import CUT_BYTES
from metastore.kernel import quantiles, theta_sketch
from metastore.kernel.binary_values import BinaryValues, ValueRepeats, find_repeats
from metastore.kernel.built_in_statistics import FixedWidthInput, TextInput, compute_numbers, merge_part_numbers
from metastore.kernel.column_histogram import (
    ValueScale,
    make_equal_height_histogram,
    make_equal_width_histogram,
    merge_bins,
    merge_equal_width_bins,
)
from metastore.kernel.distinct_sketch import DistinctSketch, make_sketch, union_sketches
from metastore.kernel.moments import add_sums, compute_moments, pool_moments
from metastore.kernel.quantiles import select_ranks
from metastore.kernel.value_counts import (
    DUPLICATES,
    TOP,
    ValueCounts,
    choose_counted_values,
    make_value_counts,
    merge_value_counts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.kernel.budget import DetailLimits
    from metastore.kernel.value_runs import ValueRuns


_TEXT = Column("", (), "binary", "binary")


@dataclass(frozen=True)
class PartialAggregate:
    """Statistics of at least one value; null and NaN are counted elsewhere.

    Attributes:
        number: How many values.
        lo: The least value, as stored; text is cut after 65 bytes.
        hi: The greatest.
        distinct: How many distinct values.
        error: The relative standard error of `distinct`; 0 when it is exact.
        sketch: That of their hashes.
        points: Quantile points: a numpy array, or a list of bytes for text.
        length: Bytes of all values.
        numbers: The built-in statistics that descriptors compute, by name.
        total: The exact sum of unscaled integers, else None.
        sum: The sum as a number; None for text, as `mean` and `m2`.
        m2: The sum of squared distances from it.
        singles: How many values occur once; None where not known.
        frequencies: Its list of values, if there is one.
    """

    number: int
    lo: Any
    hi: Any
    distinct: int
    error: float
    sketch: DistinctSketch
    points: NDArray[Any] | list[bytes]
    length: int
    numbers: Mapping[str, int]
    total: int | None = None
    sum: float | None = None
    mean: float | None = None
    m2: float | None = None
    singles: int | None = None
    frequencies: ValueCounts | None = None
    histogram: Histogram | None = None


def aggregate_numbers(runs: ValueRuns, column: Column, steps: int, detail: DetailLimits) -> PartialAggregate:
    """What is known of the values of a fixed-width column."""
    last_ranks = np.cumsum(runs.counts)
    number, width = int(last_ranks[-1]), sortable_values.value_width(column)
    found = compute_moments(runs, column)
    kind, floor, places = choose_counted_values(runs.counts, detail)
    part = PartialAggregate(
        number,
        sortable_values.sortable_to_stored(runs.values[0], column),
        sortable_values.sortable_to_stored(runs.values[-1], column),
        len(runs.values),
        0.0,
        make_sketch(theta_sketch.theta_hashes(runs.values, column)),
        runs.values[np.searchsorted(last_ranks, quantiles.quantile_ranks(number, steps), side="left")],
        number * width,
        compute_numbers(FixedWidthInput(runs, column)),
        found.total,
        found.sum,
        found.mean,
        found.m2,
        singles=int(np.count_nonzero(runs.counts == 1)),
        frequencies=make_value_counts(
            kind, floor, sortable_values.sortable_to_arrow(runs.values[places], column), runs.counts[places]
        ),
        histogram=make_equal_height_histogram(
            runs.counts, last_ranks, detail.bins, lambda at: sortable_values.sortable_to_arrow(runs.values[at], column)
        ),
    )
    return _with_widths(part, runs.values, runs.counts, column, detail)


def aggregate_texts(values: pa.Array, counts: NDArray[np.int64], steps: int, detail: DetailLimits) -> PartialAggregate:
    """What is known of distinct strings or binary values."""
    texts = BinaryValues(values)
    order = texts.order()
    given, counts = counts, counts[order]
    last_ranks = np.cumsum(counts)
    number = int(last_ranks[-1])
    rows = order[np.searchsorted(last_ranks, quantiles.quantile_ranks(number, steps), side="left")]
    chosen = [texts.value(row) for row in rows.tolist()]
    kind, floor, places = choose_counted_values(counts, detail)
    found = make_value_counts(kind, floor, values.take(pa.array(order[places])), counts[places])
    part = PartialAggregate(
        number,
        chosen[0],
        chosen[-1],
        len(values),
        0.0,
        make_sketch(texts.hashes()),
        chosen,
        int(np.dot(texts.lengths[order], counts)),
        compute_numbers(TextInput(texts.lengths, given)),
        singles=int(np.count_nonzero(counts == 1)),
        frequencies=found.limit(detail),
        histogram=make_equal_height_histogram(
            counts, last_ranks, detail.bins, lambda at: _edges(values.take(pa.array(order[at])))
        ),
    )
    return _with_widths(part, values, given, _TEXT, detail)


def aggregate_unique_texts(values: pa.Array, steps: int, detail: DetailLimits) -> PartialAggregate:
    """What is known of strings or binary values of which most occur once.

    Equal values are told by their 63-bit hashes: among ten million, one count in 180,000 is short by one.
    """
    texts, number = BinaryValues(values), len(values)
    hashes = texts.hashes()
    ordered = np.sort(hashes)
    repeats, sketch = find_repeats(hashes, ordered), make_sketch(ordered, is_sorted=True)
    del hashes, ordered
    ends = target_ranks(number, min(detail.bins, number))
    wanted = np.concatenate([quantiles.quantile_ranks(number, steps), [1], ends])
    ranks, place = np.unique(wanted, return_inverse=True)
    selected = select_ranks(texts, ranks, repeats.again)
    chosen = [selected.values[at] for at in place.tolist()]
    distinct = selected.distinct
    part = PartialAggregate(
        number,
        chosen[0],
        chosen[steps],
        repeats.distinct,
        0.0,
        sketch,
        chosen[: steps + 1],
        int(texts.lengths.sum()),
        compute_numbers(TextInput(texts.lengths)),
        singles=repeats.distinct - len(repeats.rows),
        frequencies=_of_repeats(values, texts, repeats, detail),
        histogram=Histogram(
            EQUI_HEIGHT,
            _cut(chosen[steps + 1 :]),
            np.diff(ends, prepend=0),
            None if distinct is None else np.diff(distinct[place[steps + 2 :]], prepend=0),
        ),
    )
    return _with_widths(part, values, np.ones(number, np.int64), _TEXT, detail, repeated=True)


def _with_widths(
    part: PartialAggregate,
    values: Any,
    counts: NDArray[np.int64],
    column: Column,
    detail: DetailLimits,
    *,
    repeated: bool = False,
) -> PartialAggregate:
    """The part with bins of equal width, where those are asked for and no bound is infinite."""
    if detail.kind != EQUI_WIDTH:
        return part
    bars = make_equal_width_histogram(ValueScale(column, part.lo, part.hi), values, counts, detail.bins)
    if bars is None:
        return part
    return replace(part, histogram=replace(bars, distincts=None) if repeated else bars)


def _of_repeats(values: pa.Array, texts: BinaryValues, repeats: ValueRepeats, detail: DetailLimits) -> ValueCounts:
    """The list of the values that occur more than once; where that takes too much room, of the most frequent ones."""
    rows, counts = repeats.rows, repeats.counts
    if int(texts.lengths[rows].sum()) > detail.list_bytes and len(rows) > detail.top:
        least = np.partition(counts, len(counts) - detail.top)[len(counts) - detail.top]
        beyond = counts < least
        floor = int(counts[beyond].max(initial=1))
        rows, counts = rows[~beyond], counts[~beyond]
    else:
        floor = 1
    candidates = values.take(pa.array(rows))
    order = BinaryValues(candidates).order() if len(rows) else rows
    kind = DUPLICATES if floor == 1 else TOP
    found = make_value_counts(kind, floor, candidates.take(pa.array(order)), counts[order])
    return found.limit(detail)


def _edges(values: pa.Array) -> pa.Array:
    return pc.binary_slice(values, 0, CUT_BYTES).cast(pa.binary())


def _cut(values: list[bytes]) -> pa.Array:
    return pa.array([value[:CUT_BYTES] for value in values], pa.binary())


def combine_aggregates(parts: Sequence[PartialAggregate], column: Column, detail: DetailLimits) -> PartialAggregate:
    """The whole of at least one part; with several, distinct values, points and histogram are approximate."""
    if len(parts) == 1:
        return parts[0]
    numbers = np.array([part.number for part in parts])
    sketch = union_sketches([part.sketch for part in parts])
    assert sketch is not None  # noqa: S101 - every part has one
    key = sortable_values.make_comparison_key(column)
    totals = None if parts[0].total is None else [part.total or 0 for part in parts]
    mean = m2 = None
    if parts[0].mean is not None:
        means, m2s = (np.array([getattr(part, name) for part in parts]) for name in ("mean", "m2"))
        mean, m2 = pool_moments(column, numbers, m2s, means, totals)
    steps = _merged_points([part.points for part in parts], numbers)
    return PartialAggregate(
        int(numbers.sum()),
        min((part.lo for part in parts), key=key),
        max((part.hi for part in parts), key=key),
        _between(parts, sketch),
        sketch.error,
        sketch,
        steps,
        sum(part.length for part in parts),
        merge_part_numbers([part.numbers for part in parts]),
        None if totals is None else sum(totals),
        None if parts[0].sum is None else add_sums([part.sum or 0.0 for part in parts]),
        mean,
        m2,
        frequencies=None
        if sortable_values.is_wide_decimal(column)
        else merge_value_counts([part.frequencies for part in parts], detail.top),
        histogram=_of_points(steps, int(numbers.sum()), column, detail),
    )


def _of_points(steps: Any, number: int, column: Column, detail: DetailLimits) -> Histogram:
    """The histogram of merged points, whose counts are no more than near."""
    edges = _cut(steps) if isinstance(steps, list) else sortable_values.sortable_to_arrow(steps, column)
    heights = derive_counts(number, len(edges) - 1)
    if detail.kind == EQUI_WIDTH:
        widths = merge_equal_width_bins([Histogram(EQUI_HEIGHT, edges.to_pylist(), heights)], column, detail.bins)
        if widths is not None:
            kept_edges = pa.array(widths[0], pa.binary()) if column.encoding == "binary" else None
            return Histogram(EQUI_WIDTH, kept_edges, widths[1])
    return merge_bins(Histogram(EQUI_HEIGHT, edges, heights), detail.bins)


def _between(parts: Sequence[PartialAggregate], sketch: DistinctSketch) -> int:
    """The estimate, within what the parts' own counts leave possible."""
    counts = [part.distinct for part in parts if part.error == 0]
    most = sum(counts) if len(counts) == len(parts) else sum(part.number for part in parts)
    return min(max(round(sketch.estimate), *counts, 0), most)


def _merged_points(rows: Sequence[Any], numbers: NDArray[np.int64]) -> Any:
    """The quantile points of the whole from those of its parts."""
    steps = len(rows[0]) - 1
    if isinstance(rows[0], list):
        return quantiles.merge_text_points(rows, numbers, steps)
    return quantiles.merge_number_points(np.stack(rows), numbers, steps)
