"""Computes statistics of a part of a column's values, and combines those of several parts."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format import sortable_values
from metastore.format.histogram_bins import Histogram, derive_counts, target_ranks
from metastore.format.value_rendering import CUT_BYTES
from metastore.kernel import quantiles, theta_sketch
from metastore.kernel.binary_values import BinaryValues, ValueRepeats, find_repeats
from metastore.kernel.built_in_statistics import FixedWidthInput, TextInput, compute_numbers, merge_part_numbers
from metastore.kernel.column_histogram import make_equal_height_histogram, merge_bins
from metastore.kernel.distinct_sketch import DistinctSketch, make_sketch, union_sketches
from metastore.kernel.moments import Moments, add_sums, compute_moments, pool_moments
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

    from metastore.format.table_column import Column
    from metastore.kernel.detail_limits import DetailLimits
    from metastore.kernel.value_runs import ValueRuns


@dataclass(frozen=True, kw_only=True)
class PartialAggregate:
    """Statistics of at least one value; null and NaN are counted elsewhere.

    Attributes:
        number: The number of values.
        lo: The least value, as stored; text is cut after 65 bytes.
        hi: The greatest value.
        distinct: The number of distinct values.
        error: The relative standard error of `distinct`; 0 if it is exact.
        sketch: The sketch of their hashes.
        points: Quantile points: a numpy array, or a list of bytes for text.
        length: The bytes of all values.
        numbers: The built-in statistics that descriptors compute, by name.
        total: The exact sum of unscaled integers, else None.
        sum: The sum of the finite values; None for texts and without finite values, like `mean` and `m2`.
        m2: The sum of squared distances from the mean.
        singles: The number of values that occur once, or None if unknown.
        frequencies: The list of values with counts, or None.
        histogram: The histogram of the finite values; None without any.
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
        """The number of values that are -Infinity, and that are Infinity."""
        return self.numbers.get("negative_infinities", 0), self.numbers.get("positive_infinities", 0)

    @property
    def finite(self) -> int:
        """The number of finite values."""
        return self.number - sum(self.infinities)

    @property
    def finite_ends(self) -> tuple[Any, Any] | None:
        """The least and the greatest finite value, or None."""
        if not any(self.infinities):
            return self.lo, self.hi
        if self.histogram is None:
            return None
        return self.histogram.edges[0].as_py(), self.histogram.edges[-1].as_py()


def aggregate_numbers(runs: ValueRuns, column: Column, steps: int, detail: DetailLimits) -> PartialAggregate:
    """Aggregate the values of a fixed-width column."""
    last_ranks = np.cumsum(runs.counts)
    number = int(last_ranks[-1])
    moments = compute_moments(runs, column)
    kind, floor, counted = choose_counted_values(runs.counts, detail)
    counted_values = sortable_values.sortable_to_arrow(runs.values[counted], column)
    return PartialAggregate(
        number=number,
        lo=sortable_values.sortable_to_stored(runs.values[0], column),
        hi=sortable_values.sortable_to_stored(runs.values[-1], column),
        distinct=len(runs.values),
        error=0.0,
        sketch=make_sketch(theta_sketch.theta_hashes(runs.values, column)),
        points=runs.values[np.searchsorted(last_ranks, quantiles.quantile_ranks(number, steps), side="left")],
        length=number * sortable_values.value_width(column),
        numbers=compute_numbers(FixedWidthInput(runs, column)),
        total=moments.total,
        sum=moments.sum,
        mean=moments.mean,
        m2=moments.m2,
        singles=int(np.count_nonzero(runs.counts == 1)),
        frequencies=make_value_counts(kind, floor, counted_values, runs.counts[counted]),
        histogram=_make_number_histogram(runs.finite, column, detail),
    )


def _make_number_histogram(finite: ValueRuns, column: Column, detail: DetailLimits) -> Histogram | None:
    if not len(finite.values):
        return None
    return make_equal_height_histogram(
        finite.counts,
        np.cumsum(finite.counts),
        detail.bins,
        lambda ends: sortable_values.sortable_to_arrow(finite.values[ends], column),
    )


def aggregate_texts(values: pa.Array, counts: NDArray[np.int64], steps: int, detail: DetailLimits) -> PartialAggregate:
    """Aggregate distinct strings or binary values with their counts."""
    texts = BinaryValues(values)
    order = texts.order()
    ordered_counts = counts[order]
    last_ranks = np.cumsum(ordered_counts)
    number = int(last_ranks[-1])
    rows = order[np.searchsorted(last_ranks, quantiles.quantile_ranks(number, steps), side="left")]
    points = [texts.value(row) for row in rows.tolist()]
    kind, floor, counted = choose_counted_values(ordered_counts, detail)
    frequencies = make_value_counts(kind, floor, values.take(pa.array(order[counted])), ordered_counts[counted])

    def take_edges(positions: NDArray[np.int64]) -> pa.Array:
        return _edges(values.take(pa.array(order[positions])))

    return PartialAggregate(
        number=number,
        lo=points[0],
        hi=points[-1],
        distinct=len(values),
        error=0.0,
        sketch=make_sketch(texts.hashes()),
        points=points,
        length=int(np.dot(texts.lengths[order], ordered_counts)),
        numbers=compute_numbers(TextInput(texts.lengths, counts)),
        singles=int(np.count_nonzero(ordered_counts == 1)),
        frequencies=frequencies.limit(detail),
        histogram=make_equal_height_histogram(ordered_counts, last_ranks, detail.bins, take_edges),
    )


def aggregate_unique_texts(values: pa.Array, steps: int, detail: DetailLimits) -> PartialAggregate:
    """Aggregate strings or binary values of which most occur once.

    Values with the same 63-bit hash count as equal: with ten million values, one count in 180,000 is too small by one.
    """
    texts = BinaryValues(values)
    number = len(values)
    hashes = texts.hashes()
    ordered = np.sort(hashes)
    repeats = find_repeats(hashes, ordered)
    sketch = make_sketch(ordered, is_sorted=True)
    del hashes, ordered
    ends = target_ranks(number, min(detail.bins, number))
    ranks, positions = np.unique(
        np.concatenate([quantiles.quantile_ranks(number, steps), [1], ends]), return_inverse=True
    )
    selected = select_ranks(texts, ranks, repeats.again)
    selected_values = [selected.values[position] for position in positions.tolist()]
    points = selected_values[: steps + 1]
    edges = selected_values[steps + 1 :]
    distincts = None
    if selected.distinct is not None:
        distincts = np.diff(selected.distinct[positions[steps + 2 :]], prepend=0)
    return PartialAggregate(
        number=number,
        lo=points[0],
        hi=points[-1],
        distinct=repeats.distinct,
        error=0.0,
        sketch=sketch,
        points=points,
        length=int(texts.lengths.sum()),
        numbers=compute_numbers(TextInput(texts.lengths)),
        singles=repeats.distinct - len(repeats.rows),
        frequencies=_count_repeats(values, texts, repeats, detail),
        histogram=Histogram(edges=_cut(edges), counts=np.diff(ends, prepend=0), distincts=distincts),
    )


def _count_repeats(values: pa.Array, texts: BinaryValues, repeats: ValueRepeats, detail: DetailLimits) -> ValueCounts:
    """List the values that occur more than once, or the most frequent of them if there are too many."""
    rows = repeats.rows
    counts = repeats.counts
    floor = 1
    if len(rows) > detail.top and int(texts.lengths[rows].sum()) > detail.list_bytes:
        rank = len(counts) - detail.top
        least = np.partition(counts, rank)[rank]
        is_listed = counts >= least
        floor = int(counts[~is_listed].max(initial=1))
        rows = rows[is_listed]
        counts = counts[is_listed]
    candidates = values.take(pa.array(rows))
    if len(rows):
        order = BinaryValues(candidates).order()
        candidates = candidates.take(pa.array(order))
        counts = counts[order]
    kind = DUPLICATES if floor == 1 else TOP
    return make_value_counts(kind, floor, candidates, counts).limit(detail)


def _edges(values: pa.Array) -> pa.Array:
    return pc.binary_slice(values, 0, CUT_BYTES).cast(pa.binary())


def _cut(values: list[bytes]) -> pa.Array:
    return pa.array([value[:CUT_BYTES] for value in values], pa.binary())


def combine_aggregates(parts: Sequence[PartialAggregate], column: Column, detail: DetailLimits) -> PartialAggregate:
    """Combine one or more parts; with several, distinct values, points and histogram are approximate."""
    if len(parts) == 1:
        return parts[0]
    numbers = np.array([part.number for part in parts])
    sketch = union_sketches([part.sketch for part in parts])
    assert sketch is not None  # noqa: S101 - every part has one
    lo, hi = _merge_bounds(parts, column)
    moments = _merge_moments(parts, column)
    points = _merge_points([part.points for part in parts], numbers)
    return PartialAggregate(
        number=int(numbers.sum()),
        lo=lo,
        hi=hi,
        distinct=_limit_distinct(parts, sketch),
        error=sketch.error,
        sketch=sketch,
        points=points,
        length=sum(part.length for part in parts),
        numbers=merge_part_numbers([part.numbers for part in parts]),
        total=moments.total,
        sum=moments.sum,
        mean=moments.mean,
        m2=moments.m2,
        frequencies=_merge_frequencies(parts, column, detail),
        histogram=_merge_part_histograms(parts, points, column, detail),
    )


def _merge_bounds(parts: Sequence[PartialAggregate], column: Column) -> tuple[Any, Any]:
    key = sortable_values.make_comparison_key(column)
    lowest = min(parts, key=lambda part: key(part.lo))
    highest = max(parts, key=lambda part: key(part.hi))
    return lowest.lo, highest.hi


def _merge_moments(parts: Sequence[PartialAggregate], column: Column) -> Moments:
    """Return the sums of the finite values of all parts."""
    finite_parts = [part for part in parts if part.mean is not None]
    if not finite_parts:
        return Moments(total=None, sum=None, mean=None, m2=None)
    totals = _list_totals(finite_parts)
    numbers = _to_array(finite_parts, "finite")
    means = _to_array(finite_parts, "mean")
    m2s = _to_array(finite_parts, "m2")
    sums = _to_array(finite_parts, "sum")
    mean, m2 = pool_moments(column, numbers, m2s, means, totals)
    return Moments(
        total=None if totals is None else sum(totals),
        sum=add_sums(sums.tolist()),
        mean=mean,
        m2=m2,
    )


def _list_totals(parts: Sequence[PartialAggregate]) -> list[int] | None:
    """Return the exact sum of each part; None if sums of the column are not exact."""
    if parts[0].total is None:
        return None
    return [part.total or 0 for part in parts]


def _to_array(parts: Sequence[PartialAggregate], field: str) -> NDArray[Any]:
    """Return the values of a field, one for each part."""
    return np.array([getattr(part, field) for part in parts])


def _merge_frequencies(parts: Sequence[PartialAggregate], column: Column, detail: DetailLimits) -> ValueCounts | None:
    if sortable_values.is_wide_decimal(column):
        return None
    return merge_value_counts([part.frequencies for part in parts], detail.top)


def _merge_part_histograms(
    parts: Sequence[PartialAggregate], points: Any, column: Column, detail: DetailLimits
) -> Histogram | None:
    """Make the histogram of the finite values of parts from the merged quantile points, with approximate counts."""
    number = sum(part.number for part in parts)
    below, above = np.sum([part.infinities for part in parts], axis=0).tolist()
    if below + above > 0:
        return _merge_finite_histograms(parts, points, detail, below=below, finite=number - below - above)
    edges = _to_edges(points, column)
    histogram = Histogram(edges=edges, counts=derive_counts(number, len(edges) - 1))
    return merge_bins(histogram, detail.bins)


def _to_edges(points: Any, column: Column) -> pa.Array:
    if isinstance(points, list):
        return _cut(points)
    return sortable_values.sortable_to_arrow(points, column)


def _merge_finite_histograms(
    parts: Sequence[PartialAggregate],
    points: NDArray[np.float64],
    detail: DetailLimits,
    *,
    below: int,
    finite: int,
) -> Histogram | None:
    """Return the histogram of parts with infinite values; `below` values are -Infinity, `finite` ones are finite."""
    finite_ends = list(filter(None, map(attrgetter("finite_ends"), parts)))
    if not finite_ends:
        return None
    lows, highs = zip(*finite_ends, strict=True)
    lo = min(lows)
    hi = max(highs)
    number = sum(part.number for part in parts)
    is_finite = np.isfinite(points)
    ranks = quantiles.quantile_ranks(number, len(points) - 1)[is_finite] - below
    edges = np.concatenate([[lo], points[is_finite], [hi]])
    last_ranks = np.concatenate([[0], np.clip(ranks, 0, finite), [finite]])
    is_last_of_rank = np.append(np.diff(last_ranks) > 0, True)
    is_edge = is_last_of_rank & (last_ranks > 0)
    is_edge[0] = True
    histogram = Histogram(edges=pa.array(edges[is_edge]), counts=np.diff(last_ranks[is_edge]))
    return merge_bins(histogram, detail.bins)


def _limit_distinct(parts: Sequence[PartialAggregate], sketch: DistinctSketch) -> int:
    """Limit the estimate of distinct values by the exact counts of parts."""
    exact_counts = [part.distinct for part in parts if part.error == 0]
    least = max(exact_counts, default=0)
    most = sum(exact_counts)
    if len(exact_counts) < len(parts):
        most = sum(part.number for part in parts)
    return min(max(round(sketch.estimate), least), most)


def _merge_points(points: Sequence[Any], numbers: NDArray[np.int64]) -> Any:
    """Merge the quantile points of parts."""
    steps = len(points[0]) - 1
    if isinstance(points[0], list):
        return quantiles.merge_text_points(points, numbers, steps)
    return quantiles.merge_number_points(np.stack(points), numbers, steps)
