"""Histograms as the format means them: edges, the values of each bin, joining bins, the value at a rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Longs = NDArray[np.int64]

EQUI_HEIGHT, EQUI_WIDTH = "equi_height", "equi_width"


@dataclass(frozen=True)
class Histogram:
    """A histogram of one column.

    Attributes:
        kind: `equi_height` or `equi_width`.
        edges: One more than there are bins, ascending, as the format stores them.
        counts: Values of each bin.
        distincts: How many values have their first rank in each bin; None where not known.
        single: Whether every bin holds its upper edge alone.
        finer: There are so many times more bins than ranks of values are known to.
    """

    kind: str
    edges: Sequence[Any]
    counts: Longs
    distincts: Longs | None = None
    single: bool = False
    finer: int = 1


def implied_counts(number: int, bins: int) -> Longs:
    """The counts of an equi-height histogram: of bin i, floor((i + 1) n / b) - floor(i n / b).

    Example:
        >>> implied_counts(10, 4)
        array([2, 3, 2, 3])
    """
    return np.diff(last_ranks(number, bins))


def equal_edges(lo: float, hi: float, bins: int, encoding: str) -> list[Any]:
    """The edges of equi-width bins.

    Example:
        >>> equal_edges(0, 10, 4, "long")
        [0, 2, 5, 7, 10]
    """
    if encoding == "long":
        return [int(lo) + (int(hi) - int(lo)) * i // bins for i in range(bins + 1)]
    inner = [lo + (hi / bins - lo / bins) * i for i in range(1, bins)]
    return [lo, *inner, hi]


def last_ranks(number: int, bins: int) -> Longs:
    """The last rank of each bin of equal height, and 0 before them.

    Example:
        >>> last_ranks(10, 4)
        array([ 0,  2,  5,  7, 10])
    """
    if number * bins < 1 << 63:
        found: Longs = np.arange(bins + 1, dtype=np.int64) * number // bins
        return found
    return np.array([i * number // bins for i in range(bins + 1)], np.int64)


def coarser(histogram: Histogram, bins: int) -> Histogram:
    """The same with fewer bins, each made of neighbours.

    Args:
        histogram: The histogram.
        bins: How many bins, at least one; not more than there are.

    Example:
        >>> found = coarser(Histogram("equi_height", [1, 2, 4, 9], np.array([3, 3, 3])), 2)
        >>> found.edges, found.counts
        ([1, 4, 9], array([6, 3]))
    """
    if bins >= len(histogram.counts):
        return histogram
    starts = last_ranks(len(histogram.counts), bins)
    if histogram.kind == EQUI_HEIGHT:
        sums = np.concatenate([[0], np.cumsum(histogram.counts)])
        starts = np.searchsorted(sums, last_ranks(int(sums[-1]), bins), side="left")
        starts[-1] = len(histogram.counts)
        starts = np.unique(starts)
    edges = histogram.edges
    edges = edges[starts] if isinstance(edges, np.ndarray) else [edges[at] for at in starts.tolist()]
    counts = np.add.reduceat(histogram.counts, starts[:-1])
    distincts = None if histogram.distincts is None else np.add.reduceat(histogram.distincts, starts[:-1])
    finer = max(1, round(histogram.finer * len(counts) / len(histogram.counts)))
    return Histogram(histogram.kind, edges, counts, distincts, finer=finer)


def at_rank(histogram: Histogram, rank: int, encoding: str) -> Any:
    """The value at a rank, about: numbers are taken to be spread evenly over their bin.

    Args:
        histogram: A histogram of at least one value.
        rank: From 1 to the number of values.
        encoding: How the values are stored.

    Example:
        >>> at_rank(Histogram("equi_height", [0, 10, 30], np.array([5, 5])), 6, "long")
        14
    """
    sums = np.cumsum(histogram.counts)
    place = int(np.searchsorted(sums, rank, side="left"))
    lo, hi = histogram.edges[place], histogram.edges[place + 1]
    before = int(sums[place] - histogram.counts[place])
    if histogram.single or encoding == "binary" or rank == int(sums[place]):
        return hi
    share = (rank - before) / int(histogram.counts[place])
    if encoding == "long":
        return int(lo) + round((int(hi) - int(lo)) * share)
    return float(lo) + (float(hi) - float(lo)) * share if np.isfinite(float(hi) - float(lo)) else float(hi)
