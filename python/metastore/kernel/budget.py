"""Keeps the statistics of a data file small against the file: sketches, value lists and histograms shrink."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.format.bloom_filter import choose_filter_size
from metastore.format.histogram_bins import EQUI_HEIGHT, Histogram
from metastore.kernel.column_bloom import resize_bloom_filter
from metastore.kernel.column_histogram import merge_bins
from metastore.kernel.hyperloglog import Registers
from metastore.kernel.theta_sketch import ThetaSketch
from metastore.kernel.value_counts import COMPLETE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from metastore.kernel.column_statistics import ColumnStatistics

    Statistics = list[tuple[int, ColumnStatistics]]


LONGEST_LIST = 1 << 18
SMALL_LIST = 256
"""Lists of so many values, and histograms with one bin for each of them, are kept whole."""
_SMALL_TABLE = 100 << 20


@dataclass(frozen=True)
class Allowance:
    """What the statistics of a data file may take, which the size of its table decides.

    Attributes:
        whole: Lists of so many values are not cut, and take what they take.
        share: All else takes one in so many of the data file's bytes.
        keeps_sketches: Whether a sketch is kept of every column, though it takes more.
    """

    whole: int = SMALL_LIST
    share: int = 10
    keeps_sketches: bool = False


LARGE_TABLE = Allowance()


def choose_allowance(size: int) -> Allowance:
    """What statistics may take in a table of so many bytes.

    Examples:
        >>> choose_allowance(10 << 20).whole, choose_allowance(1 << 30).whole
        (4096, 256)
    """
    return Allowance(4_096, 3) if size <= _SMALL_TABLE else LARGE_TABLE


@dataclass(frozen=True)
class DetailLimits:
    """What lists of values and histograms may hold.

    Attributes:
        bins: Most bins of a histogram, 2 to 10,000.
        top: Most frequent values kept where not all are.
        list_bytes: Bytes that the longest list of values may take.
        kind: Of histograms, `equi_height` or `equi_width`.
        whole: Lists of so many values hold all of them, however often each occurs.
    """

    bins: int = 1_000
    top: int = 1_000
    list_bytes: int = 64 << 20
    kind: str = EQUI_HEIGHT
    whole: int = 0

    @property
    def longest_list(self) -> int:
        """How many values a list that is not cut may hold."""
        return max(min(LONGEST_LIST, self.list_bytes), self.shortest_list)

    @property
    def shortest_list(self) -> int:
        """How many values are listed, though hardly any of them occurs twice."""
        return max(self.top, self.whole)


DEFAULT_DETAIL_LIMITS = DetailLimits()
BUDGET = 1 << 30
"""Bytes that a task may hold."""

_PREFIX = 8


def estimate_values_between(lo: Any, hi: Any) -> int:
    """About how many values of its type lie between two bounds; 0 where a bound is not known."""
    if lo is None or hi is None:
        return 0
    if isinstance(lo, bytes):
        return _texts_between(lo, hi)
    return _place(hi) - _place(lo) if isinstance(lo, float) else int(hi) - int(lo)


def _texts_between(lo: bytes, hi: bytes) -> int:
    """The difference of the first bytes in which they differ."""
    ends = (place for place, (a, b) in enumerate(zip(lo, hi, strict=False)) if a != b)
    common = next(ends, min(len(lo), len(hi)))
    length = min(max(len(lo), len(hi)) - common, _PREFIX)
    low, high = (int.from_bytes(one[common : common + length].ljust(length, b"\0"), "big") for one in (lo, hi))
    return abs(high - low)


def _place(value: float) -> int:
    """The place of a double among all doubles."""
    bits = int(np.float64(value).view(np.int64))
    return bits if bits >= 0 else -(bits & ((1 << 63) - 1))


_SKETCHES = 25
_LISTS = _HISTOGRAMS = 40  # so that all of them and the summaries stay below a tenth of the file
_COLUMN = 1 << 10  # what a column may take of a file, though that is more than a tenth of it
_SUMMARY, _PERCENTILES = 200, 800  # about
_LEAST = 4 << 10  # for all lists, and for all filters, of a small file
_CUT_LISTS = 2  # a share of the lists' room is for those that are cut
_SPARE = 6  # sizes are estimates
_FEWEST_BINS = 64
_FEWEST_LISTED = 10
_WIDE_BITS = 16  # one in so many values within the bounds: bounds tell nothing


def budget_for_lists(size: int) -> int:
    """Bytes that all value lists of a data file may take."""
    return max(size // _LISTS, _LEAST)


def fit_to_file_size(
    statistics: Iterable[tuple[int, ColumnStatistics]], size: int, top: int, allowance: Allowance = LARGE_TABLE
) -> Statistics:
    """Fit what is known of a data file into its share of the file's size."""
    whole = allowance.whole
    found = _with_lists(list(statistics), budget_for_lists(size), top, whole)
    found = [(ordinal, _with_bins(known)) for ordinal, known in _with_histograms(found, size // _HISTOGRAMS)]
    room = max(size // allowance.share, _COLUMN * len(found))
    room -= room // _SPARE
    room += sum(
        known.values.size
        for _, known in found
        if known.values and len(known.values) > SMALL_LIST and known.values.is_whole(whole)
    )
    others = sum(_size(known) - len(known.theta or b"") for _, known in found)
    if allowance.keeps_sketches:
        room += sum(len(known.theta or b"") for _, known in found)
    else:
        found = _with_sketches(found, min(max(size // _SKETCHES, room // 4), room - others))
    left = room - sum(_size(known) for _, known in found)
    return _with_filters(found, max(left, min(size // allowance.share, _LEAST)))


def _with_lists(found: Statistics, room: int, top: int, whole_list: int) -> Statistics:
    lists = {place: known.values for place, (_, known) in enumerate(found) if known.values is not None}
    sizes = {place: values.size for place, values in lists.items() if not values.is_whole(whole_list)}
    if sum(sizes.values()) > room:  # as many as possible stay complete
        whole = sorted((place for place in sizes if lists[place].kind == COMPLETE), key=lambda place: sizes[place])
        sums, most = accumulate(sizes[place] for place in whole), room - room // _CUT_LISTS
        room -= sum(sizes.pop(place) for place, used in zip(whole, [*sums], strict=True) if used <= most)
    total = sum(sizes.values())
    longest = sorted(sizes, key=lambda place: sizes[place], reverse=True)
    while total > room:
        for place in longest:
            if total > room and len(lists[place]) > top:
                lists[place] = lists[place].keep_most_frequent(top)
                total -= sizes[place]
                sizes[place] = lists[place].size
                total += sizes[place]
        if top <= _FEWEST_LISTED:
            break
        top = max(top // 2, _FEWEST_LISTED)
    return [
        (ordinal, known if lists.get(place) is known.values else known.with_value_counts(lists[place]))
        for place, (ordinal, known) in enumerate(found)
    ]


def _with_histograms(found: Statistics, room: int) -> Statistics:
    """The columns with as many bins as there is room for."""
    large = [
        known.histogram
        for _, known in found
        if known.histogram is not None and len(known.histogram.counts) > SMALL_LIST
    ]
    times = -(-sum(map(_histogram_size, large)) // max(room, 1))
    if times <= 1:
        return found
    return [
        (ordinal, replace(known, histogram=_merge_bins(known.histogram, times)) if known.histogram else known)
        for ordinal, known in found
    ]


def _merge_bins(histogram: Histogram, times: int) -> Histogram:
    """So many bins made one, as far as ranks of the table remain known to half a hundredth."""
    bins = len(histogram.counts)
    is_by_value = bins <= SMALL_LIST and histogram.distincts is not None and (histogram.distincts == 1).all()
    rows = int(histogram.counts.sum())
    fewest = max(_FEWEST_BINS, min(rows // 8, 2 * _FEWEST_BINS), min(rows // 32, 4 * _FEWEST_BINS))
    return histogram if is_by_value else merge_bins(histogram, max(bins // times, fewest))


def _with_bins(known: ColumnStatistics) -> ColumnStatistics:
    """Without percentiles where a histogram tells them: there are no two answers to one question."""
    has_ranks = known.histogram is not None and known.histogram.kind == EQUI_HEIGHT
    return replace(known, percentiles=None) if has_ranks else known


def _with_sketches(found: Statistics, left: int) -> Statistics:
    """The columns with the theta sketches that fit, the small ones first, and with registers of the others."""
    lengths = sorted(len(known.theta) for _, known in found if known.theta is not None)
    largest = next((length for length, sums in zip(lengths, accumulate(lengths), strict=True) if sums > left), None)
    return [(ordinal, known if largest is None else _cut(known, largest)) for ordinal, known in found]


def _with_filters(found: Statistics, left: int) -> Statistics:
    """All filters with fewer bits before one is left out: of columns whose bounds tell most the large ones."""
    wanted = [place for place, (_, known) in enumerate(found) if known.bloom and known.frequencies != COMPLETE]
    full = {place: len(found[place][1].bloom or b"") for place in sorted(wanted, key=lambda at: _worth(found[at][1]))}
    over, sizes = sum(full.values()) - left, dict(full)
    for place in sorted(sizes, key=lambda at: sizes[at], reverse=True):
        less = choose_filter_size(found[place][1].distinct or 0, sizes[place] - 1)
        if over > 0 and less is not None:
            over -= sizes[place] - less
            sizes[place] = less
    while over > 0 and sizes:
        over -= sizes.popitem()[1]
    for place, size in sizes.items():
        if full[place] - size <= -over:  # there is room again
            over += full[place] - size
            sizes[place] = full[place]
    return [(ordinal, _filtered(known, sizes.get(place))) for place, (ordinal, known) in enumerate(found)]


def _filtered(known: ColumnStatistics, size: int | None) -> ColumnStatistics:
    """A column with a filter of so many bytes, if any."""
    if known.bloom is None:
        return known
    return replace(known, bloom=None if size is None else resize_bloom_filter(known.bloom, size))


def _worth(known: ColumnStatistics) -> tuple[int, int]:
    between = estimate_values_between(known.lo, known.hi) // max(known.distinct or 0, 1)
    return -min(between.bit_length(), _WIDE_BITS), len(known.bloom or b"")


def _size(known: ColumnStatistics) -> int:
    summary = _SUMMARY + (0 if known.percentiles is None else _PERCENTILES)
    sketches = sum(len(one) for one in (known.theta, known.registers) if one is not None)
    lists = 0 if known.values is None else known.values.size
    return summary + sketches + lists + (0 if known.histogram is None else _histogram_size(known.histogram))


def _histogram_size(histogram: Histogram) -> int:
    """About as many bytes as it takes when it is stored, or more."""
    edges = 0 if histogram.edges is None else int(histogram.edges.nbytes)
    return edges + 2 * len(histogram.counts) * (1 if histogram.distincts is None else 2)


def _cut(known: ColumnStatistics, largest: int) -> ColumnStatistics:
    """A column with registers in the place of a sketch that is as large; none where a list tells all values."""
    if known.theta is None or len(known.theta) < largest or len(known.theta) <= _COLUMN // 2:
        return known
    if known.frequencies == COMPLETE:
        return replace(known, theta=None, registers=None)
    registers = known.registers or Registers.of(ThetaSketch.from_bytes(known.theta).hashes).to_bytes()
    return replace(known, theta=None, registers=registers)
