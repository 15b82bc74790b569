"""Histograms as the format means them: edges, the values of each bin, joining bins, the value at a rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Longs = NDArray[np.int64]


EQUI_HEIGHT, EQUI_WIDTH = "equi_height", "equi_width"
FINE = 100
"""From so many bins on the ends of the distribution have finer ones, and a heavy value has one for itself."""
_TAILS = (1, 5, 10, 15, 30)  # ten-thousandths


@dataclass(frozen=True, eq=False)
class Histogram:
    """A histogram of one column: a bin holds what is greater than its lower edge, up to its upper one.

    The first bin holds its lower edge too. A bin of equal height with one distinct value holds its upper edge alone.
    Infinite values are in no bin.

    Attributes:
        kind: `equi_height` or `equi_width`.
        edges: One more than there are bins, ascending, as the format stores them: numbers, bytes, or an Arrow array of
            them; None where they follow from the bounds.
        counts: Values of each bin.
        distincts: How many values have their first rank in each bin, so that they add up; None where not known.
        errors: By how many values the rank of each edge may be off; None where that is not known.
        below: How many values are -Infinity: they have the first ranks.
        above: How many values are Infinity: they have the last ranks.
    """

    kind: str
    edges: Any
    counts: Longs
    distincts: Longs | None = None
    errors: Longs | None = None
    below: int = 0
    above: int = 0

    def __eq__(self, other: object) -> bool:
        """Whether it is the same histogram."""
        return isinstance(other, Histogram) and self._parts() == other._parts()

    __hash__ = None  # type: ignore[assignment] # histograms are not keys

    def _parts(self) -> tuple[Any, ...]:
        lists = (None if one is None else list(one) for one in (self.edges, self.counts, self.distincts))
        return (self.kind, *lists, self.below, self.above)

    @property
    def number(self) -> int:
        """How many values there are, infinite ones among them."""
        return self.below + int(self.counts.sum()) + self.above

    @property
    def upper_ends(self) -> list[tuple[Any, int]]:
        """The upper edge of each bin with its count, in order; infinite values make bins of their own."""
        ends = [plain_number(self.edges[place + 1]) for place in range(len(self.counts))]
        found = list(zip(ends, self.counts.tolist(), strict=True))
        if self.below:
            found.insert(0, (-np.inf, self.below))
        if self.above:
            found.append((np.inf, self.above))
        return found

    @property
    def single_value_bins(self) -> NDArray[np.bool_]:
        """Which bins hold their upper edge alone."""
        if self.kind != EQUI_HEIGHT:
            return np.zeros(len(self.counts), np.bool_)
        if isinstance(self.edges, np.ndarray):
            found: NDArray[np.bool_] = self.edges[1:] == self.edges[:-1]
        else:
            found = np.array([lo == hi for lo, hi in pairwise(self.edges)], np.bool_)
        return found if self.distincts is None else found | (self.distincts == 1)

    @property
    def exact_bins(self) -> NDArray[np.bool_]:
        """Which bins are known to hold as many values as they say."""
        if self.errors is None:
            return np.zeros(len(self.counts), np.bool_)
        found: NDArray[np.bool_] = (self.errors[:-1] == 0) & (self.errors[1:] == 0)
        return found


def derive_counts(number: int, bins: int) -> Longs:
    """The counts of an equi-height histogram: of bin i, floor((i + 1) n / b) - floor(i n / b)."""
    return np.diff(last_ranks(number, bins))


def restore_bins(
    edges: Any, counts: Any, bounds: tuple[Any, Any], number: int, encoding: str | None
) -> tuple[Any, Longs] | None:
    """Edges and counts of a stored histogram with what the format leaves out; None where they are not known."""
    if edges is None and counts is not None and None not in bounds:
        edges = divide_range(*bounds, len(counts), str(encoding))
    if edges is None:
        return None
    return edges, derive_counts(number, len(edges) - 1) if counts is None else np.asarray(counts, np.int64)


def divide_range(lo: float, hi: float, bins: int, encoding: str) -> list[Any]:
    """The edges of equi-width bins."""
    if encoding == "long":
        return [int(lo) + (int(hi) - int(lo)) * i // bins for i in range(bins + 1)]
    inner = [lo + (hi / bins - lo / bins) * i for i in range(1, bins)]
    return [lo, *inner, hi]


def last_ranks(number: int, bins: int) -> Longs:
    """The last rank of each bin of equal height, and 0 before them."""
    if number * bins < 1 << 63:
        found: Longs = np.arange(bins + 1, dtype=np.int64) * number // bins
        return found
    return np.array([i * number // bins for i in range(bins + 1)], np.int64)


def target_ranks(number: int, bins: int) -> Longs:
    """The ranks at which bins of equal height end; the first and last of many are divided further."""
    found = last_ranks(number, bins)[1:]
    if bins >= FINE:
        tails = np.array(_TAILS, np.int64)
        lower, upper = -(-number * tails // 10_000), number - number * tails // 10_000
        found = np.concatenate([[1], lower, found, upper])
    return np.unique(found)


def choose_bin_ends(sums: Longs, lone: Longs, bins: int) -> Longs:
    """The places of values that are the upper edges of bins."""
    number = int(sums[-1])
    places, ended = np.unique(np.searchsorted(sums, target_ranks(number, bins), side="left"), return_counts=True)
    is_heavy = (ended > 1) | (lone[places] * bins >= number) if bins >= FINE else ended > 1
    before = places[is_heavy & (lone[places] > 0)] - 1
    return np.unique(np.concatenate([places, before[before >= 0]]))


def coarsen(histogram: Histogram, bins: int) -> Histogram:
    """The same with fewer bins, each made of neighbours."""
    if bins >= len(histogram.counts):
        return histogram
    starts = last_ranks(len(histogram.counts), bins)
    if histogram.kind == EQUI_HEIGHT:
        sums = np.concatenate([[0], np.cumsum(histogram.counts)])
        starts = np.searchsorted(sums, last_ranks(int(sums[-1]), bins), side="left")
        starts[-1] = len(histogram.counts)
        starts = np.unique(starts)
    return join_bins(histogram, starts)


def join_bins(histogram: Histogram, places: Longs) -> Histogram:
    """The same with the edges at some places alone, the first and the last among them."""
    edges = histogram.edges
    if isinstance(edges, pa.Array):
        edges = edges.take(pa.array(places))
    elif edges is not None:
        edges = edges[places] if isinstance(edges, np.ndarray) else [edges[at] for at in places.tolist()]
    counts = np.add.reduceat(histogram.counts, places[:-1])
    distincts = None if histogram.distincts is None else np.add.reduceat(histogram.distincts, places[:-1])
    errors = None if histogram.errors is None else histogram.errors[places]
    return replace(histogram, edges=edges, counts=counts, distincts=distincts, errors=errors)


@dataclass(frozen=True)
class Quantile:
    """The value at a rank.

    Attributes:
        value: As the format stores it.
        error: By how many values its rank may be off; None where that is not known.
    """

    value: Any
    error: int | None


def find_quantiles(histogram: Histogram, ranks: Sequence[int], encoding: str) -> list[Quantile]:
    """The values at ranks, infinite values among them.

    Numbers are taken to be spread evenly over their bin, of others the nearer edge is taken.
    """
    last_finite = histogram.below + int(histogram.counts.sum())
    inner = [rank - histogram.below for rank in ranks if histogram.below < rank <= last_finite]
    inside = iter(_find_finite_quantiles(histogram, inner, encoding))
    found = []
    for rank in ranks:
        if rank <= histogram.below:
            found.append(Quantile(-np.inf, 0))
        elif rank > last_finite:
            found.append(Quantile(np.inf, 0))
        else:
            found.append(next(inside))
    return found


def _find_finite_quantiles(histogram: Histogram, ranks: Sequence[int], encoding: str) -> list[Quantile]:
    sums, lone = np.cumsum(histogram.counts), histogram.single_value_bins
    found = []
    for rank, place in zip(ranks, np.searchsorted(sums, ranks, side="left").tolist(), strict=True):
        after, count = int(sums[place]), int(histogram.counts[place])
        ends = (plain_number(histogram.edges[place]), plain_number(histogram.edges[place + 1]))
        inside = rank - after + count
        if rank == 1:
            found.append(Quantile(ends[0], None if histogram.errors is None else int(histogram.errors[0])))
            continue
        alone = bool(lone[place])
        value = ends[1] if alone or inside == count else _within(*ends, inside, count, encoding)
        errors = None if histogram.errors is None else histogram.errors[place : place + 2].tolist()
        error = None if errors is None else _error(inside, count, *errors, alone=alone, between=encoding != "binary")
        found.append(Quantile(value, error))
    return found


def _error(inside: int, count: int, below: int, above: int, *, alone: bool, between: bool) -> int:
    """By how much the rank `inside` of a bin may be off, where those of its edges are by `below` and `above`."""
    if alone:
        return max(below - inside + 1, above - (count - inside), 0)
    if inside == count:
        return above
    of_lower, of_upper = inside + below, count - inside + above
    if between:
        return max(of_lower, of_upper)
    return of_upper if 2 * inside > count else of_lower


def compute_percentiles(histogram: Histogram, encoding: str) -> list[Any]:
    """The values at each hundredth of a histogram's ranks: of n values those of rank max(1, ceil(i n / 100))."""
    ranks = percentile_ranks(histogram.number)
    return [found.value for found in find_quantiles(histogram, ranks, encoding)]


def percentile_ranks(number: int) -> list[int]:
    """The ranks of the 101 percentiles of so many values."""
    return [max(-(-i * number // 100), 1) for i in range(101)]


def _within(lo: Any, hi: Any, inside: int, count: int, encoding: str) -> Any:
    """The value of the rank `inside` among the `count` values of a bin."""
    if encoding == "binary":
        return hi if 2 * inside > count else lo
    if encoding == "long":
        return lo - (lo - hi) * inside // count
    return lo + (hi - lo) * (inside / count) if np.isfinite(hi - lo) else hi


def plain_number(value: Any) -> Any:
    """A value that is not numpy's."""
    return value.item() if isinstance(value, np.generic) else value
