"""Merges the histograms of many data files into one, by adding their distribution functions."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format import sortable_values
from metastore.format.histogram_bins import Histogram, choose_bin_ends, coarsen
from metastore.format.value_rendering import CUT_BYTES
from metastore.kernel.binary_values import rank_values
from metastore.kernel.column_histogram import make_equal_height_histogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column

    Longs = NDArray[np.int64]


_MOST_NUMBERS = 4_000_000
_MOST_TEXTS = 500_000
_ROUNDS = 20


def merge_histograms(
    histograms: Sequence[Histogram], column: Column, bins: int, distinct: int | None = None
) -> Histogram | None:
    """Merge histograms; None if none of them has values.

    Their distribution functions are added at each other's edges. A part knows how many of its values are not greater
    than one of its own edges; for a value inside one of its bins it knows the number up to half of the bin. These
    errors are added up for each edge.
    """
    parts = [histogram for histogram in histograms if histogram.counts.any()]
    if not parts:
        return None
    if len(parts) == 1 and _is_final(parts[0], bins, distinct):
        return _with_errors(parts[0])
    most_edges = _MOST_TEXTS if column.encoding == "binary" else _MOST_NUMBERS
    most_bins = max(most_edges // len(parts), 1)
    edges = _Edges([coarsen(part, most_bins) for part in parts], column)
    return edges.make_histogram(bins, distinct)


def _is_final(histogram: Histogram, bins: int, distinct: int | None) -> bool:
    """Return whether a histogram is short, and has this number of distinct values: those of groups are estimates."""
    if len(histogram.counts) > bins:
        return False
    if distinct is None or histogram.distincts is None:
        return True
    return int(histogram.distincts.sum()) == distinct


def _with_errors(histogram: Histogram) -> Histogram:
    return replace(histogram, errors=_list_errors(histogram))


def _list_errors(histogram: Histogram) -> Longs:
    """Return the errors of the ranks of edges; without errors the ranks are exact."""
    if histogram.errors is None:
        return _zeros(len(histogram.edges))
    return histogram.errors


def _zeros(number: int) -> Longs:
    return np.zeros(number, np.int64)


def make_histogram_of_counts(rows: pa.Table, column: Column, bins: int) -> Histogram:
    """Return the exact histogram of a column whose values are all listed; at least one of them is finite."""
    values = rows[f"value_{column.encoding}"].combine_chunks()
    counts = rows["frequency"].to_numpy()
    if sortable_values.is_text(column):
        order = pc.sort_indices(values).to_numpy()
        ordered = pc.binary_slice(values.take(pa.array(order)), 0, CUT_BYTES)
    else:
        numbers = sortable_values.stored_to_sortable(values.to_pylist(), column)
        order = np.argsort(numbers, kind="stable")
        if column.encoding == "double":
            order = order[np.isfinite(numbers[order])]
        ordered = sortable_values.sortable_to_arrow(numbers[order], column)
    counts = counts[order]
    histogram = make_equal_height_histogram(
        counts, np.cumsum(counts), bins, lambda positions: ordered.take(pa.array(positions))
    )
    return _with_errors(replace(histogram, edges=histogram.edges.to_pylist()))


class _Edges:
    """The distinct edges of all parts in order, and the sums of the parts up to each edge.

    Half of the values of a bin count as behind its lower edge (in a first bin, which includes this edge, as at it),
    half as at its upper edge. In a bin that holds its upper edge alone all values are at it. Sums are doubled, so that
    halves are integers.
    """

    def __init__(self, parts: Sequence[Histogram], column: Column) -> None:
        self._parts = parts
        self._column = column
        self._values, positions = _merge_edges(parts, column)
        numbers_of_edges = [len(part.edges) for part in parts]
        firsts = np.cumsum([0, *numbers_of_edges])
        self._lo = np.delete(positions, firsts[1:] - 1)
        self._hi = np.delete(positions, firsts[:-1])
        self._is_first = np.zeros(len(self._lo), np.bool_)
        self._is_first[firsts[:-1] - np.arange(len(parts))] = True
        is_point = self._lo == self._hi
        self._is_single = np.concatenate([part.single_value_bins for part in parts]) | is_point
        counts = np.concatenate([part.counts for part in parts])
        errors = [_list_errors(part) for part in parts]
        bin_errors = np.concatenate([np.maximum(of_part[1:], of_part[:-1]) for of_part in errors])
        inside = np.where(self._is_single, 0, counts) + 2 * bin_errors
        inside[is_point] = 0
        self._exact = self._add_at(self._hi, np.where(self._is_single, 2 * counts, 0))
        self._sums = self._spread(counts)
        self._errors = self._sum_up(inside, -inside) + self._add_at(positions, 2 * np.concatenate(errors))

    def make_histogram(self, bins: int, distinct: int | None) -> Histogram:
        """Make a histogram of about this number of bins."""
        ends = np.arange(len(self._values))
        if len(ends) > bins:
            ends = choose_bin_ends(self._sums, self._exact, bins)
        ranks = self._sums[ends]
        errors = self._errors[ends]
        exact = self._exact[ends]
        # Values that may lie between a frequent value and its neighbour go to the bin before: the value stays alone.
        beside = np.diff(ranks, prepend=0) - exact
        is_single = (np.diff(ends, prepend=-1) == 1) & (exact > beside)
        moved = np.where(is_single[1:], beside[1:], 0)
        ranks[:-1] += moved
        errors[:-1] += moved
        has_values = np.diff(ranks, append=ranks[-1] + 1) > 0  # the last of several edges with one rank
        has_values &= ranks > 0
        ends = ends[has_values]
        ranks = ranks[has_values]
        errors = errors[has_values]
        is_single = is_single[has_values]
        counts = np.diff(ranks // 2, prepend=0)
        edges = np.append(0, ends)
        edge_errors = np.append(0, -(-errors // 2) + ranks % 2).astype(np.int64)
        distincts = self._count_distinct(edges, counts, is_single, distinct)
        return Histogram(edges=self._take_values(edges), counts=counts, distincts=distincts, errors=edge_errors)

    def _take_values(self, positions: Longs) -> Sequence[Any]:
        if isinstance(self._values, pa.Array):
            return list(self._values.take(pa.array(positions)).to_pylist())
        if sortable_values.is_wide_decimal(self._column):
            return [sortable_values.sortable_to_stored(value, self._column) for value in self._values[positions]]
        numbers: Sequence[Any] = self._values[positions]
        return numbers

    def _count_distinct(
        self, edges: Longs, counts: Longs, is_single: NDArray[np.bool_], distinct: int | None
    ) -> Longs | None:
        """Estimate the distinct values of bins; a value of several parts counts several times before the fit."""
        if all(part.distincts is None for part in self._parts):
            return None
        of_parts = [part.counts if part.distincts is None else part.distincts for part in self._parts]
        sums = self._spread(np.concatenate(of_parts))
        estimates = np.diff(sums[edges[1:]], prepend=0) / 2
        return _fit_distincts(estimates, is_single, counts, distinct)

    def _spread(self, of_bins: Longs) -> Longs:
        """Twice the sum, up to each value, of an amount in each bin."""
        behind_lower = np.where(self._is_single, 0, of_bins)
        at_upper = np.where(self._is_single, 2 * of_bins, of_bins)
        return self._sum_up(behind_lower, at_upper)

    def _sum_up(self, behind_lower: Longs, at_upper: Longs) -> Longs:
        """Return the sums up to each value of amounts behind the lower edges of bins and at their upper edges."""
        behind = self._add_at(self._lo, np.where(self._is_first, 0, behind_lower))
        at_first = self._add_at(self._lo, np.where(self._is_first, behind_lower, 0))
        inclusive = self._add_at(self._hi, at_upper) + at_first
        sums: Longs = np.cumsum(behind) - behind + np.cumsum(inclusive)
        return sums

    def _add_at(self, positions: Longs, amounts: Longs) -> Longs:
        """Add up amounts by the positions of their values."""
        sums = _zeros(len(self._values))
        np.add.at(sums, positions, amounts)
        return sums


def _merge_edges(parts: Sequence[Histogram], column: Column) -> tuple[Any, Longs]:
    """Return the distinct edges of all parts in order, and the position of each part's edges among them."""
    if sortable_values.is_text(column):
        edges = list(chain.from_iterable(part.edges for part in parts))
        positions, values = rank_values(pa.array(edges, pa.large_binary()))
        return values, positions
    numbers = np.concatenate([sortable_values.stored_to_sortable(part.edges, column) for part in parts])
    values, codes = np.unique(numbers, return_inverse=True)
    return values, codes.astype(np.int64)


def _fit_distincts(
    estimates: NDArray[np.float64], is_single: NDArray[np.bool_], counts: Longs, distinct: int | None
) -> Longs:
    """Fit estimates to the number of values in each bin, and their sum to the table's distinct values if known.

    Bins of a single value have one distinct value; bins of several values have at least two.
    """
    most = np.where(is_single, 1, counts)
    least = np.minimum(most, 2)
    fitted = np.clip(estimates, least, most)
    if distinct is not None:
        target = min(max(distinct, int(least.sum())), int(most.sum()))
        fitted = _scale_to(fitted, target, least, most)
    rounded: Longs = np.diff(np.rint(np.cumsum(np.append(0, fitted)))).astype(np.int64)
    return rounded


def _scale_to(fitted: NDArray[np.float64], target: int, least: Longs, most: Longs) -> NDArray[np.float64]:
    """Scale values until their sum is the target, within their limits."""
    for _ in range(_ROUNDS):
        missing = target - fitted.sum()
        has_room = np.where(missing > 0, fitted < most, fitted > least)
        share = fitted[has_room].sum()
        if abs(missing) < 0.5 or not share:
            break
        fitted[has_room] *= 1 + missing / share
        fitted = np.clip(fitted, least, most)
    return fitted
