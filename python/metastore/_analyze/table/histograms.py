"""Histograms of many data files made into one, by adding their distribution functions."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore._analyze.kernel import stored
from metastore._analyze.kernel.parts import order_key
from metastore._analyze.kernel.widths import merged_widths
from metastore._format.histogram import EQUI_HEIGHT, EQUI_WIDTH, Histogram, coarser, last_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore._format.columns import Column

    Longs = NDArray[np.int64]

_MOST_NUMBERS, _MOST_TEXTS = 4_000_000, 500_000
_ROUNDS = 20


def merged(
    histograms: Sequence[Histogram], column: Column, bins: int, distinct: int | None = None, *, finer: int = 1
) -> Histogram | None:
    """The histogram of the whole.

    Equi-width histograms with the same edges add up. All others add their distribution functions: a value's rank in
    the whole is the sum of its ranks in the parts, each known to half a bin, so the rank of an edge is off by at most
    half a bin of the whole, which has no more bins than that.

    Args:
        histograms: Of parts that have no values in common places.
        column: Their column.
        bins: How many bins the result has at most.
        distinct: Distinct values of the whole, if known.
        finer: How many times as many bins are made, to be merged again.

    Returns:
        The histogram, None where no part holds a value.
    """
    parts = [part for part in histograms if int(part.counts.sum())]
    if not parts:
        return None
    first = parts[0]
    fits = len(first.counts) <= bins * finer
    if len(parts) == 1 and fits and (first.kind == EQUI_WIDTH or first.finer <= finer):
        return first
    if fits and all(part.kind == EQUI_WIDTH and list(part.edges) == list(first.edges) for part in parts):
        return Histogram(EQUI_WIDTH, first.edges, sum((part.counts for part in parts[1:]), first.counts))
    if all(part.single for part in parts) and (found := _by_value(parts, column, bins * finer)) is not None:
        return found
    most = (_MOST_TEXTS if column.encoding == "binary" else _MOST_NUMBERS) // len(parts)
    parts = [coarser(part, max(most, 1)) for part in parts]
    number = sum(int(part.counts.sum()) for part in parts)
    ranks = last_ranks(number, min(finer * _told_apart(parts, bins), number))
    points = _Points(parts, column)
    places = points.at(ranks)
    edges, counts = points.values(places), np.diff(ranks)
    if any(part.distincts is None for part in parts):
        return Histogram(EQUI_HEIGHT, edges, counts, finer=finer)
    distincts = _fitted(points.distincts(places), edges, counts, distinct)
    return Histogram(EQUI_HEIGHT, edges, counts, distincts, finer=finer)


def _told_apart(parts: Sequence[Histogram], bins: int) -> int:
    """How many bins the parts tell apart, at most so many: ranks in a part are known to half a bin of it.

    Bins of equal width say nothing of ranks, and where each bin has one value they are known.
    """
    vague = [part for part in parts if part.kind == EQUI_HEIGHT and not part.single]
    unknown = sum(int(part.counts.sum()) * part.finer / len(part.counts) for part in vague)
    number = sum(int(part.counts.sum()) for part in parts)
    return max(1, min(bins, round(number / unknown))) if unknown else bins


def widths_of(histograms: Sequence[Histogram], column: Column, bins: int) -> Histogram | None:
    """The histogram of the whole with bins of equal width, off by what one bin of every part leaves open.

    Args:
        histograms: Of parts that have no values in common places.
        column: Their column.
        bins: How many bins the result has at most.

    Returns:
        None where no part holds a value, or infinity is one.
    """
    parts = [part for part in histograms if int(part.counts.sum())]
    if len(parts) == 1 and parts[0].kind == EQUI_WIDTH and len(parts[0].counts) <= bins:
        return parts[0]
    found = merged_widths(parts, column, bins) if parts else None
    return None if found is None else Histogram(EQUI_WIDTH, *found)


def _by_value(parts: Sequence[Histogram], column: Column, bins: int) -> Histogram | None:
    """One bin for each value, None where there are more values than bins."""
    counts: Counter[Any] = Counter()
    for part in parts:
        counts.update(dict(zip(list(part.edges)[1:], part.counts.tolist(), strict=True)))
    if len(counts) > bins:
        return None
    values = sorted(counts, key=order_key(column))
    sums = np.array([counts[value] for value in values], np.int64)
    return Histogram(EQUI_HEIGHT, [values[0], *values], sums, np.ones(len(values), np.int64), single=True)


class _Points:
    """The edges of all parts in order, each with half of the values of the bins at its sides.

    Where every bin holds its upper edge alone, that has them all.
    """

    def __init__(self, parts: Sequence[Histogram], column: Column) -> None:
        self._parts = parts
        self._column = column
        if column.encoding == "binary" and not stored.is_wide(column):
            self._flat: Any = pa.array([edge for part in parts for edge in part.edges], pa.large_binary())
            self._order = pc.sort_indices(self._flat).to_numpy()
        else:
            self._flat = np.concatenate([stored.as_numbers(part.edges, column) for part in parts])
            self._order = np.argsort(self._flat, kind="stable")
        self._sums = np.cumsum(self._doubled([part.counts for part in parts])[self._order])

    def at(self, ranks: Longs) -> Longs:
        """The places of the edges with these ranks in the whole."""
        found: Longs = np.searchsorted(self._sums, np.maximum(2 * ranks, 1), side="left")
        return found

    def values(self, places: Longs) -> Sequence[Any]:
        chosen = self._order[places]
        if isinstance(self._flat, pa.Array):
            return list(self._flat.take(pa.array(chosen)).to_pylist())
        if stored.is_wide(self._column):
            return [stored.stored(value, self._column) for value in self._flat[chosen]]
        numbers: Sequence[Any] = self._flat[chosen]
        return numbers

    def distincts(self, places: Longs) -> NDArray[np.float64]:
        """The distinct values of the parts between these places, those of several parts counted several times."""
        doubled = self._doubled([part.distincts for part in self._parts if part.distincts is not None])
        sums = np.cumsum(doubled[self._order])[places]
        sums[0] = 0
        return np.asarray(np.diff(sums) / 2)

    def _doubled(self, bins: Sequence[Longs]) -> Longs:
        """Twice the share of each edge of each part."""
        lone = [part.single for part in self._parts]
        zero = np.zeros(1, np.int64)
        return np.concatenate(
            [
                np.concatenate([zero, 2 * one]) if single else np.concatenate([one, zero]) + np.concatenate([zero, one])
                for one, single in zip(bins, lone, strict=True)
            ]
        )


def _alone(edges: Sequence[Any]) -> NDArray[np.bool_]:
    """Which bins hold a single value."""
    if isinstance(edges, np.ndarray):
        return np.asarray(edges[1:] == edges[:-1])
    return np.array([lo == hi for lo, hi in itertools.pairwise(edges)], np.bool_)


def _fitted(estimates: NDArray[np.float64], edges: Sequence[Any], counts: Longs, distinct: int | None) -> Longs:
    """Distinct values of each bin: their sum that of the whole where that is known, none more than there are values."""
    alone = _alone(edges)
    most = np.where(alone, 0, counts)  # the value of such a bin began in the one before
    most[0] = 1 if alone[0] else counts[0]
    least = np.minimum(most, 1)
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
