"""Histograms as the format means them: edges, the values of each bin, joining bins, the value at a rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Longs = NDArray[np.int64]


FINE = 100
"""From so many bins on the ends of the distribution have finer ones, and a heavy value has a bin for itself."""
_TAILS = (1, 5, 10, 15, 30)  # ten-thousandths


@dataclass(frozen=True, eq=False, kw_only=True)
class Histogram:
    """A histogram of one column: a bin holds the values greater than its lower edge, up to its upper one.

    The first bin holds its lower edge too. A bin with one distinct value holds its upper edge alone.
    Infinite values are in no bin.

    Attributes:
        edges: One more than there are bins, ascending, as the format stores them: numbers, bytes, or an Arrow array of
            them.
        counts: Number of values of each bin.
        distincts: Number of distinct values with their first rank in each bin, so that they add up; None if unknown.
        errors: By how many values the rank of each edge may be off; None if unknown.
        below: Number of values -Infinity: they have the first ranks.
        above: Number of values Infinity: they have the last ranks.
    """

    edges: Any
    counts: Longs
    distincts: Longs | None = None
    errors: Longs | None = None
    below: int = 0
    above: int = 0

    def __eq__(self, other: object) -> bool:
        """Return whether two histograms are equal, whatever their errors."""
        return isinstance(other, Histogram) and self._compared() == other._compared()

    __hash__ = None  # type: ignore[assignment] # histograms are not keys

    def _compared(self) -> tuple[Any, ...]:
        return (list(self.edges), list(self.counts), self.list_distincts(), self.below, self.above)

    def list_distincts(self) -> list[int] | None:
        """List the distinct values of each bin, or None if unknown."""
        if self.distincts is None:
            return None
        distincts: list[int] = self.distincts.tolist()
        return distincts

    @property
    def number(self) -> int:
        """Number of values, including infinite ones."""
        return self.below + int(self.counts.sum()) + self.above

    @property
    def upper_ends(self) -> list[tuple[Any, int]]:
        """The upper edge of each bin with its count, in order; infinite values make bins of their own."""
        ends: list[tuple[Any, int]] = []
        if self.below:
            ends.append((-np.inf, self.below))
        for bin_number, count in enumerate(self.counts.tolist()):
            upper_edge = plain_number(self.edges[bin_number + 1])
            ends.append((upper_edge, count))
        if self.above:
            ends.append((np.inf, self.above))
        return ends

    def upper_end(self, number: int) -> Any:
        """Return the upper edge of a bin, counted from 1; the bins before the first and after the last are infinite."""
        if number == 0:
            return -np.inf
        if number > len(self.counts):
            return np.inf
        return plain_number(self.edges[number])

    @property
    def single_value_bins(self) -> NDArray[np.bool_]:
        """A mask of the bins that hold their upper edge alone."""
        if isinstance(self.edges, np.ndarray):
            is_single: NDArray[np.bool_] = self.edges[1:] == self.edges[:-1]
        else:
            is_single = np.array([lo == hi for lo, hi in pairwise(self.edges)], np.bool_)
        if self.distincts is not None:
            is_single |= self.distincts == 1
        return is_single

    @property
    def exact_bins(self) -> NDArray[np.bool_]:
        """A mask of the bins whose counts are certain."""
        if self.errors is None:
            return np.zeros(len(self.counts), np.bool_)
        is_exact: NDArray[np.bool_] = (self.errors[:-1] == 0) & (self.errors[1:] == 0)
        return is_exact


def derive_counts(number: int, bins: int) -> Longs:
    """Compute the counts of an equi-height histogram: of bin i, floor((i + 1) n / b) - floor(i n / b)."""
    return np.diff(last_ranks(number, bins))


def last_ranks(number: int, bins: int) -> Longs:
    """Compute the last rank of each bin of equal height, and 0 before them."""
    if number * bins < 1 << 63:
        ranks: Longs = np.arange(bins + 1, dtype=np.int64) * number // bins
        return ranks
    return np.array([i * number // bins for i in range(bins + 1)], np.int64)


def target_ranks(number: int, bins: int) -> Longs:
    """Compute the ranks at which bins of equal height end; the first and last of many are divided further."""
    ranks = last_ranks(number, bins)[1:]
    if bins >= FINE:
        tails = np.array(_TAILS, np.int64)
        lower_ranks = -(-number * tails // 10_000)
        upper_ranks = number - number * tails // 10_000
        ranks = np.concatenate([[1], lower_ranks, ranks, upper_ranks])
    return np.unique(ranks)


def choose_bin_ends(sums: Longs, single_counts: Longs, bins: int) -> Longs:
    """Choose the positions of the upper edges of bins in an ascending sequence of values and ranges of values.

    Args:
        sums: The last rank of each position.
        single_counts: Rows of the value at a position; 0 at a range of several values.
        bins: Number of bins of equal height.
    """
    number = int(sums[-1])
    positions_of_ranks = np.searchsorted(sums, target_ranks(number, bins), side="left")
    positions, ranks_at_position = np.unique(positions_of_ranks, return_counts=True)
    is_heavy = ranks_at_position > 1
    if bins >= FINE:
        is_heavy |= single_counts[positions] * bins >= number
    # A heavy value has a bin for itself: the bin before it ends at the previous position.
    previous = positions[is_heavy & (single_counts[positions] > 0)] - 1
    return np.unique(np.concatenate([positions, previous[previous >= 0]]))


def coarsen(histogram: Histogram, bins: int) -> Histogram:
    """Join neighbouring bins until so many remain."""
    if bins >= len(histogram.counts):
        return histogram
    sums = np.concatenate([[0], np.cumsum(histogram.counts)])
    starts = np.searchsorted(sums, last_ranks(int(sums[-1]), bins), side="left")
    starts[-1] = len(histogram.counts)
    return join_bins(histogram, np.unique(starts))


def join_bins(histogram: Histogram, positions: Longs) -> Histogram:
    """Join bins so that the edges at these positions remain, including the first and the last."""
    edges = _take_edges(histogram.edges, positions)
    counts = np.add.reduceat(histogram.counts, positions[:-1])
    distincts = histogram.distincts
    if distincts is not None:
        distincts = np.add.reduceat(distincts, positions[:-1])
    errors = histogram.errors
    if errors is not None:
        errors = errors[positions]
    return replace(histogram, edges=edges, counts=counts, distincts=distincts, errors=errors)


def _take_edges(edges: Any, positions: Longs) -> Any:
    if isinstance(edges, pa.Array):
        return edges.take(pa.array(positions))
    if isinstance(edges, np.ndarray):
        return edges[positions]
    return list(map(edges.__getitem__, positions.tolist()))


@dataclass(frozen=True)
class Quantile:
    """The value at a rank.

    Attributes:
        value: The value as the format stores it.
        error: By how many values its rank may be off; None if unknown.
    """

    value: Any
    error: int | None


def find_quantiles(histogram: Histogram, ranks: Sequence[int], encoding: str) -> list[Quantile]:
    """Find the values at ranks, including infinite ones.

    Numbers are taken to be spread evenly over their bin; of other values the nearer edge is taken.
    """
    last_finite = histogram.below + int(histogram.counts.sum())
    finite_ranks = [rank - histogram.below for rank in ranks if histogram.below < rank <= last_finite]
    finite_quantiles = iter(_find_finite_quantiles(histogram, finite_ranks, encoding))
    quantiles = []
    for rank in ranks:
        if rank <= histogram.below:
            quantiles.append(Quantile(-np.inf, 0))
        elif rank > last_finite:
            quantiles.append(Quantile(np.inf, 0))
        else:
            quantiles.append(next(finite_quantiles))
    return quantiles


def _find_finite_quantiles(histogram: Histogram, ranks: Sequence[int], encoding: str) -> list[Quantile]:
    """Find the values at ranks that count finite values alone."""
    sums = np.cumsum(histogram.counts)
    is_single = histogram.single_value_bins
    bins = np.searchsorted(sums, ranks, side="left").tolist()
    quantiles = []
    for rank, bin_number in zip(ranks, bins, strict=True):
        if rank == 1:
            quantiles.append(_find_first(histogram, bin_number))
            continue
        count = int(histogram.counts[bin_number])
        rank_in_bin = _RankInBin(
            rank=rank - int(sums[bin_number]) + count,
            bin_size=count,
            is_single=bool(is_single[bin_number]),
            encoding=encoding,
        )
        quantiles.append(_find_in_bin(histogram, bin_number, rank_in_bin))
    return quantiles


def _find_first(histogram: Histogram, bin_number: int) -> Quantile:
    value = plain_number(histogram.edges[bin_number])
    if histogram.errors is None:
        return Quantile(value, None)
    return Quantile(value, int(histogram.errors[0]))


def _find_in_bin(histogram: Histogram, bin_number: int, rank: _RankInBin) -> Quantile:
    lo = plain_number(histogram.edges[bin_number])
    hi = plain_number(histogram.edges[bin_number + 1])
    value = rank.interpolate(lo, hi)
    if histogram.errors is None:
        return Quantile(value, None)
    lower_error, upper_error = histogram.errors[bin_number : bin_number + 2].tolist()
    return Quantile(value, rank.estimate_error(lower_error, upper_error))


class _RankInBin(NamedTuple):
    """The rank of a value in its bin.

    Attributes:
        rank: The rank among the values of the bin, from 1.
        bin_size: Number of values of the bin.
        is_single: Whether the bin holds its upper edge alone.
        encoding: The encoding of the values.
    """

    rank: int
    bin_size: int
    is_single: bool
    encoding: str

    def interpolate(self, lo: Any, hi: Any) -> Any:
        """Estimate the value at the rank from the edges of the bin."""
        if self.is_single or self.rank == self.bin_size:
            return hi
        if self.encoding == "binary":
            return hi if self._is_nearer_to_upper_edge() else lo
        if self.encoding == "long":
            return lo - (lo - hi) * self.rank // self.bin_size
        if not np.isfinite(hi - lo):
            return hi
        return lo + (hi - lo) * (self.rank / self.bin_size)

    def estimate_error(self, lower_error: int, upper_error: int) -> int:
        """Estimate by how much the value's rank may be off, from the errors of the edges' ranks."""
        remaining = self.bin_size - self.rank
        if self.is_single:
            return max(lower_error - self.rank + 1, upper_error - remaining, 0)
        if remaining == 0:
            return upper_error
        from_lower = self.rank + lower_error
        from_upper = remaining + upper_error
        if self.encoding != "binary":
            return max(from_lower, from_upper)
        return from_upper if self._is_nearer_to_upper_edge() else from_lower

    def _is_nearer_to_upper_edge(self) -> bool:
        return 2 * self.rank > self.bin_size


def compute_percentiles(histogram: Histogram, encoding: str) -> list[Any]:
    """Compute the values at each hundredth of a histogram's ranks: for n values those of max(1, ceil(i n / 100))."""
    ranks = percentile_ranks(histogram.number)
    return [quantile.value for quantile in find_quantiles(histogram, ranks, encoding)]


def percentile_ranks(number: int) -> list[int]:
    """Compute the ranks of the 101 percentiles of so many values."""
    return [max(-(-i * number // 100), 1) for i in range(101)]


def plain_number(value: Any) -> Any:
    """Convert numpy's numbers to Python's, and return other values as they are."""
    if isinstance(value, np.generic):
        return value.item()
    return value
