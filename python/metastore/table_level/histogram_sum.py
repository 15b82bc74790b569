"""Histograms of many data files made into one, by adding their distribution functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format import sortable_values
from metastore.format.histogram_bins import EQUI_HEIGHT, EQUI_WIDTH, Histogram, choose_bin_ends, coarsen
from metastore.format.value_rendering import CUT_BYTES
from metastore.kernel.binary_values import rank_values
from metastore.kernel.column_histogram import make_equal_height_histogram, merge_equal_width_bins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column

    Longs = NDArray[np.int64]


_MOST_NUMBERS, _MOST_TEXTS = 4_000_000, 500_000
_ROUNDS = 20


def merge_histograms(
    histograms: Sequence[Histogram], column: Column, bins: int, distinct: int | None = None
) -> Histogram | None:
    """The histogram of the whole.

    Equi-width histograms with the same edges add up. All others add their distribution functions at each other's edges:
    how many values of a part are not greater than one of its own edges is known, of a value inside one of its bins to
    half of the bin. What that leaves open is added up for each edge.
    """
    parts = [part for part in histograms if int(part.counts.sum())]
    if not parts:
        return None
    first = parts[0]
    if len(parts) == 1 and len(first.counts) <= bins and _has(first, distinct):
        return first if first.errors is not None else replace(first, errors=np.zeros(len(first.edges), np.int64))
    if len(first.counts) <= bins and all(
        part.kind == EQUI_WIDTH and list(part.edges) == list(first.edges) for part in parts
    ):
        counts = sum((part.counts for part in parts[1:]), first.counts)
        return Histogram(EQUI_WIDTH, first.edges, counts, errors=np.zeros(len(first.edges), np.int64))
    most = (_MOST_TEXTS if column.encoding == "binary" else _MOST_NUMBERS) // len(parts)
    edges = _Edges([coarsen(part, max(most, 1)) for part in parts], column)
    return edges.histogram(bins, distinct)


def _has(histogram: Histogram, distinct: int | None) -> bool:
    """Whether its bins have so many distinct values: those of groups are estimates."""
    return distinct is None or histogram.distincts is None or int(histogram.distincts.sum()) == distinct


def merge_to_equal_width(histograms: Sequence[Histogram], column: Column, bins: int) -> Histogram | None:
    """The histogram of the whole with bins of equal width, off by what one bin of every part leaves open."""
    parts = [part for part in histograms if int(part.counts.sum())]
    if len(parts) == 1 and parts[0].kind == EQUI_WIDTH and len(parts[0].counts) <= bins:
        return parts[0]
    found = merge_equal_width_bins(parts, column, bins) if parts else None
    return None if found is None else Histogram(EQUI_WIDTH, *found)


def make_histogram_of_counts(rows: pa.Table, column: Column, bins: int) -> Histogram:
    """The histogram of a column of which all values are listed, one of them finite: nothing in it is near."""
    values, counts = rows[f"value_{column.encoding}"].combine_chunks(), rows["frequency"].to_numpy()
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
    found = make_equal_height_histogram(counts, np.cumsum(counts), bins, lambda at: ordered.take(pa.array(at)))
    edges = [] if found.edges is None else found.edges.to_pylist()
    return Histogram(found.kind, edges, found.counts, found.distincts, np.zeros(len(edges), np.int64))


class _Edges:
    """The edges of all parts, each distinct value once and in order, and what the parts tell of it.

    Half of the values of a bin are taken to follow its lower edge (in the first bin, which has it, to be at it), half
    to be at its upper one; in a bin that holds its upper edge alone all are there. Sums are doubled: halves are whole.
    """

    def __init__(self, parts: Sequence[Histogram], column: Column) -> None:
        self._parts, self._column = parts, column
        self._values, places = _values_of(parts, column)
        firsts = np.cumsum([0, *(len(part.edges) for part in parts)])
        self._lo, self._hi = np.delete(places, firsts[1:] - 1), np.delete(places, firsts[:-1])
        self._is_first = np.zeros(len(self._lo), np.bool_)
        self._is_first[firsts[:-1] - np.arange(len(parts))] = True
        self._lone = np.concatenate([part.single_value_bins for part in parts]) | (self._lo == self._hi)
        counts = np.concatenate([part.counts for part in parts])
        errors = [np.zeros(len(part.edges), np.int64) if part.errors is None else part.errors for part in parts]
        inside = np.where(self._lone, 0, counts) + 2 * np.concatenate([np.maximum(e[1:], e[:-1]) for e in errors])
        inside[self._lo == self._hi] = 0
        self._exact = _at(self._hi, np.where(self._lone, 2 * counts, 0), len(self._values))
        self._sums = self._spread(counts)
        self._errors = self._up_to(inside, -inside) + _at(places, 2 * np.concatenate(errors), len(self._values))

    def histogram(self, bins: int, distinct: int | None) -> Histogram:
        """The histogram of about so many bins."""
        is_short = len(self._values) <= bins
        chosen = np.arange(len(self._values)) if is_short else choose_bin_ends(self._sums, self._exact, bins)
        ranks, errors, exact = self._sums[chosen], self._errors[chosen], self._exact[chosen]
        # What little may lie between a frequent value and its neighbour goes to the bin before: the value stays alone.
        others = np.diff(ranks, prepend=0) - exact
        lone = (np.diff(chosen, prepend=-1) == 1) & (exact > others)
        moved = np.where(lone[1:], others[1:], 0)
        ranks[:-1] += moved
        errors[:-1] += moved
        holds = np.diff(ranks, append=ranks[-1] + 1) > 0  # of edges of one rank the last
        holds &= ranks > 0
        chosen, ranks, errors, lone = chosen[holds], ranks[holds], errors[holds], lone[holds]
        counts = np.diff(ranks // 2, prepend=0)
        places = np.append(0, chosen)
        kept = [0, *(-(-errors // 2) + ranks % 2).tolist()]
        distincts = self._distincts(places, counts, lone, distinct)
        return Histogram(EQUI_HEIGHT, self._edges(places), counts, distincts, np.array(kept, np.int64))

    def _edges(self, places: Longs) -> Sequence[Any]:
        if isinstance(self._values, pa.Array):
            return list(self._values.take(pa.array(places)).to_pylist())
        if sortable_values.is_wide_decimal(self._column):
            return [sortable_values.sortable_to_stored(value, self._column) for value in self._values[places]]
        numbers: Sequence[Any] = self._values[places]
        return numbers

    def _distincts(self, places: Longs, counts: Longs, lone: NDArray[np.bool_], distinct: int | None) -> Longs | None:
        """The distinct values of bins; those of several parts are counted several times before they are fitted."""
        if all(part.distincts is None for part in self._parts):
            return None
        of_parts = [part.counts if part.distincts is None else part.distincts for part in self._parts]
        estimates = np.diff(self._spread(np.concatenate(of_parts))[places[1:]], prepend=0) / 2
        return _fitted(estimates, lone, counts, distinct)

    def _spread(self, of_bins: Longs) -> Longs:
        """Twice how much of what is counted in bins lies up to each value."""
        return self._up_to(np.where(self._lone, 0, of_bins), np.where(self._lone, 2 * of_bins, of_bins))

    def _up_to(self, after: Longs, at: Longs) -> Longs:
        """The sums of what follows the lower edges of bins before each value, and of what is at their upper edges."""
        number = len(self._values)
        begun = _at(self._lo, np.where(self._is_first, 0, after), number)
        inclusive = _at(self._hi, at, number) + _at(self._lo, np.where(self._is_first, after, 0), number)
        found: Longs = np.cumsum(begun) - begun + np.cumsum(inclusive)
        return found


def _values_of(parts: Sequence[Histogram], column: Column) -> tuple[Any, Longs]:
    """The distinct edges of all parts in order, and the place of each edge of each part among them."""
    if sortable_values.is_text(column):
        places, values = rank_values(pa.array([edge for part in parts for edge in part.edges], pa.large_binary()))
        return values, places
    flat = np.concatenate([sortable_values.stored_to_sortable(part.edges, column) for part in parts])
    values, codes = np.unique(flat, return_inverse=True)
    return values, codes.astype(np.int64)


def _at(places: Longs, amounts: Longs, number: int) -> Longs:
    """What is added at each of so many places."""
    found = np.zeros(number, np.int64)
    np.add.at(found, places, amounts)
    return found


def _fitted(estimates: NDArray[np.float64], lone: NDArray[np.bool_], counts: Longs, distinct: int | None) -> Longs:
    """Distinct values of each bin: their sum that of the whole where that is known, none more than there are values.

    One is said of bins that hold a single value and of no others that can hold two.
    """
    most = np.where(lone, 1, counts)
    least = np.minimum(most, 2)
    fitted = np.clip(estimates, least, most)
    for _ in range(_ROUNDS if distinct is not None else 0):
        short = min(max(distinct or 0, int(least.sum())), int(most.sum())) - fitted.sum()
        room = fitted < most if short > 0 else fitted > least
        share = fitted[room].sum()
        if abs(short) < 0.5 or not share:
            break
        fitted[room] *= 1 + short / share
        fitted = np.clip(fitted, least, most)
    whole: Longs = np.diff(np.rint(np.cumsum(np.concatenate([[0], fitted])))).astype(np.int64)
    return whole
