"""Histograms: bins of equal height, or one bin for each value where there are few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore._format.histogram import EQUI_HEIGHT, EQUI_WIDTH, choose_bin_ends, derive_counts

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ColumnHistogram:
    """How values spread over bins; bin i holds what is greater than edge i, up to edge i + 1 (bin 0: edge 0 too).

    Attributes:
        kind: `equi_height` or `equi_width`.
        edges: One more than bins, as the format stores values; None where they follow from the bounds.
        number: How many values there are.
        counts: The values of each bin; None where bin i of b holds the ranks from floor(i n / b) + 1 to
            floor((i + 1) n / b).
        distincts: How many values have their first rank in each bin, so that they add up; None where not known. A bin
            of equal height with one holds its upper edge alone.
    """

    kind: str
    edges: pa.Array | None
    number: int
    counts: Counts | None = None
    distincts: Counts | None = None

    def __eq__(self, other: object) -> bool:
        """Whether it is the same histogram."""
        return isinstance(other, ColumnHistogram) and self._parts() == other._parts()

    __hash__ = None  # type: ignore[assignment] # histograms are not keys

    def _parts(self) -> tuple[Any, ...]:
        lists = (None if one is None else one.tolist() for one in (self.counts, self.distincts))
        return self.kind, self.edges, self.number, *lists

    @property
    def bins(self) -> int:
        """How many bins there are."""
        if self.edges is not None:
            return len(self.edges) - 1
        return 0 if self.counts is None else len(self.counts)

    @property
    def size(self) -> int:
        """About as many bytes as it takes when it is stored, or more."""
        edges = 0 if self.edges is None else self.edges.nbytes
        return edges + 2 * sum(len(one) for one in (self.counts, self.distincts) if one is not None)

    def coarser(self, bins: int) -> ColumnHistogram:
        """The same with about so many bins, or fewer of equal width: each made of neighbours."""
        if self.bins <= bins:
            return self
        if self.kind == EQUI_WIDTH:  # stay as wide as each other
            times = next(more for more in range(-(-self.bins // bins), self.bins + 1) if self.bins % more == 0)
            places = np.arange(0, self.bins + 1, times)
        else:
            heights = self.heights()
            lone = np.zeros_like(heights) if self.distincts is None else np.where(self.distincts == 1, heights, 0)
            places = np.append(0, choose_bin_ends(np.cumsum(heights), lone, bins) + 1)
        counts = np.add.reduceat(self.heights(), places[:-1])
        distincts = None if self.distincts is None else np.add.reduceat(self.distincts, places[:-1])
        edges = None if self.edges is None else self.edges.take(pa.array(places))
        return ColumnHistogram(self.kind, edges, self.number, counts, distincts)

    def heights(self) -> Counts:
        """The values of each bin."""
        return derive_counts(self.number, self.bins) if self.counts is None else self.counts


def make_equal_height_histogram(
    counts: Counts, last_ranks: Counts, bins: int, values: Callable[[Counts], pa.Array]
) -> ColumnHistogram:
    """The histogram of runs."""
    distinct, number = len(counts), int(last_ranks[-1])
    places = np.arange(distinct) if distinct <= bins else choose_bin_ends(last_ranks, counts, bins)
    heights, distincts = np.diff(last_ranks[places], prepend=0), np.diff(places, prepend=-1)
    return ColumnHistogram(EQUI_HEIGHT, values(np.append(0, places)), number, heights, distincts)
