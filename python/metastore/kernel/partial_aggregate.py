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
        sum: The sum of the finite values as a number; None for text and of no finite value, as `mean` and `m2`.
        m2: The sum of squared distances from it.
        singles: How many values occur once; None where not known.
        frequencies: Its list of values, if there is one.
        histogram: That of the finite values; None of none.
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

    @property
    def infinities(self) -> tuple[int, int]:
        """How many values are -Infinity, and how many Infinity."""
        return self.numbers.get("negative_infinities", 0), self.numbers.get("positive_infinities", 0)

    @property
    def finite(self) -> int:
        """How many values are finite."""
        return self.number - sum(self.infinities)

    @property
    def finite_ends(self) -> tuple[Any, Any] | None:
        """The least and the greatest finite value; None where there is none."""
        if not any(self.infinities):
            return self.lo, self.hi
        if self.histogram is None:
            return None
        return self.histogram.edges[0].as_py(), self.histogram.edges[-1].as_py()


def aggregate_numbers(runs: ValueRuns, column: Column, steps: int, detail: DetailLimits) -> PartialAggregate:
    """What is known of the values of a fixed-width column."""
    last_ranks, finite = np.cumsum(runs.counts), runs.finite
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
        histogram=_make_number_histogram(finite, column, detail),
    )
    if not len(finite.values):
        return part
    ends = [sortable_values.sortable_to_stored(finite.values[place], column) for place in (0, -1)]
    return _with_widths(part, finite.values, finite.counts, ValueScale(column, *ends), detail)


def _make_number_histogram(finite: ValueRuns, column: Column, detail: DetailLimits) -> Histogram | None:
    if not len(finite.values):
        return None
    return make_equal_height_histogram(
        finite.counts,
        np.cumsum(finite.counts),
        detail.bins,
        lambda places: sortable_values.sortable_to_arrow(finite.values[places], column),
    )


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
    return _with_widths(part, values, given, ValueScale(_TEXT, part.lo, part.hi), detail)


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
    scale = ValueScale(_TEXT, part.lo, part.hi)
    return _with_widths(part, values, np.ones(number, np.int64), scale, detail, repeated=True)


def _with_widths(
    part: PartialAggregate,
    values: Any,
    counts: NDArray[np.int64],
    scale: ValueScale,
    detail: DetailLimits,
    *,
    repeated: bool = False,
) -> PartialAggregate:
    """The part with bins of equal width, where those are asked for and the range has a width."""
    if detail.kind != EQUI_WIDTH:
        return part
    bars = make_equal_width_histogram(scale, values, counts, detail.bins)
    if bars is None:
        return part
    if any(part.infinities):  # edges do not follow from the bounds
        bars = replace(bars, edges=pa.array(scale.edges(detail.bins), pa.float64()))
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
    computed = merge_part_numbers([part.numbers for part in parts])
    sketch = union_sketches([part.sketch for part in parts])
    assert sketch is not None  # noqa: S101 - every part has one
    key = sortable_values.make_comparison_key(column)
    totals = None if parts[0].total is None else [part.total or 0 for part in parts]
    mean = m2 = None
    summed = [part for part in parts if part.mean is not None]
    if summed:
        means, m2s = (np.array([getattr(part, name) for part in summed]) for name in ("mean", "m2"))
        mean, m2 = pool_moments(column, np.array([part.finite for part in summed]), m2s, means, totals)
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
        computed,
        None if totals is None else sum(totals),
        add_sums([part.sum or 0.0 for part in summed]) if summed else None,
        mean,
        m2,
        frequencies=None
        if sortable_values.is_wide_decimal(column)
        else merge_value_counts([part.frequencies for part in parts], detail.top),
        histogram=_merge_part_histograms(parts, steps, column, detail),
    )


def _merge_part_histograms(
    parts: Sequence[PartialAggregate], points: Any, column: Column, detail: DetailLimits
) -> Histogram | None:
    """The histogram of the finite values of parts, from the merged quantile points of all their values.

    Its counts are no more than near.
    """
    number = sum(part.number for part in parts)
    below, above = (sum(part.infinities[side] for part in parts) for side in (0, 1))
    if not below and not above:
        edges = _cut(points) if isinstance(points, list) else sortable_values.sortable_to_arrow(points, column)
        heights = Histogram(EQUI_HEIGHT, edges, derive_counts(number, len(edges) - 1))
        return _fit_bins(heights, column, detail, follow_from_bounds=column.encoding != "binary")
    ends = [part.finite_ends for part in parts if part.finite_ends is not None]
    if not ends:
        return None
    finite = number - below - above
    is_finite = np.isfinite(points)
    ranks = quantiles.quantile_ranks(number, len(points) - 1)[is_finite] - below
    edges = np.concatenate([[min(lo for lo, _ in ends)], points[is_finite], [max(hi for _, hi in ends)]])
    last_ranks = np.concatenate([[0], np.clip(ranks, 0, finite), [finite]])
    is_edge = np.append(np.diff(last_ranks) > 0, True) & (last_ranks > 0)  # of places with one rank the last
    is_edge[0] = True
    heights = Histogram(EQUI_HEIGHT, pa.array(edges[is_edge]), np.diff(last_ranks[is_edge]))
    return _fit_bins(heights, column, detail, follow_from_bounds=False)


def _fit_bins(heights: Histogram, column: Column, detail: DetailLimits, *, follow_from_bounds: bool) -> Histogram:
    """A histogram of equal height with as many bins as are wanted, or as one of equal width."""
    if detail.kind != EQUI_WIDTH:
        return merge_bins(heights, detail.bins)
    as_stored = replace(heights, edges=heights.edges.to_pylist())
    widths = merge_equal_width_bins([as_stored], column, detail.bins)
    if widths is None:
        return merge_bins(heights, detail.bins)
    edges = None if follow_from_bounds else pa.array(widths[0], heights.edges.type)
    return Histogram(EQUI_WIDTH, edges, widths[1])


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
