"""Keeps the statistics of a data file small against the file: sketches, value lists and histograms shrink."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metastore._analyze.kernel.filters import smaller
from metastore._analyze.kernel.frequencies import COMPLETE
from metastore._analyze.kernel.spread import values_between
from metastore._analyze.kernel.theta import Theta
from metastore._format.bloom import size_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from metastore._analyze.kernel import ColumnStatistics

    Statistics = list[tuple[int, ColumnStatistics]]

_SKETCHES = 25
_LISTS = _HISTOGRAMS = 40  # so that all of them and the summaries stay below a tenth of the file
_ALL = 10
_SUMMARY = 1 << 10  # about
_ALWAYS = 8 << 10
_HEADER = 24
_HASH = 8
_FEWEST = 64
_FEWEST_LISTED = 10
_WIDE_BITS = 16  # one in so many values within the bounds: bounds tell nothing


def room_for_lists(size: int) -> int:
    """Bytes that all value lists of a data file may take.

    Args:
        size: Bytes of the data file.

    Example:
        >>> room_for_lists(400 << 20) >> 20
        10
    """
    return max(size // _LISTS, _ALWAYS)


def fitted(statistics: Iterable[tuple[int, ColumnStatistics]], size: int, top: int) -> Statistics:
    """Fit what is known of a data file into a tenth of its size.

    Args:
        statistics: Statistics by ordinal of the column.
        size: Bytes of the data file.
        top: How many values are kept of a column of which not all are.

    Returns:
        The same with sketches cut to one common number of hashes (those that would keep too few are left out), the
        longest lists of values cut to the most frequent ones, and as many bins made one as is needed. Bloom filters
        of columns without a complete list take what is left, and in small files some room of their own.

    Example:
        >>> fitted([], 1000, 10)
        []
    """
    found = _with_lists(list(statistics), room_for_lists(size), top)
    found = _with_sketches(_with_histograms(found, max(size // _HISTOGRAMS, _ALWAYS)), max(size // _SKETCHES, _ALWAYS))
    left = size // _ALL - sum(_size(known) for _, known in found)
    return _with_filters(found, max(left, min(size // _ALL, _ALWAYS)))


def _with_lists(found: Statistics, room: int, top: int) -> Statistics:
    lists = {place: known.values for place, (_, known) in enumerate(found) if known.values is not None}
    sizes = {place: values.size for place, values in lists.items()}
    total = sum(sizes.values())
    longest = sorted(sizes, key=lambda place: sizes[place], reverse=True)
    while total > room:
        for place in longest:
            if total > room and len(lists[place]) > top:
                lists[place] = lists[place].cut(top)
                total -= sizes[place]
                sizes[place] = lists[place].size
                total += sizes[place]
        if top <= _FEWEST_LISTED:
            break
        top = max(top // 2, _FEWEST_LISTED)
    return [
        (ordinal, known if lists.get(place) is known.values else known.listing(lists[place]))
        for place, (ordinal, known) in enumerate(found)
    ]


def _with_histograms(found: Statistics, room: int) -> Statistics:
    total = sum(known.histogram.size for _, known in found if known.histogram is not None)
    times = -(-total // room)
    if times <= 1:
        return found
    return [
        (ordinal, replace(known, histogram=known.histogram.coarser(times)) if known.histogram else known)
        for ordinal, known in found
    ]


def _with_sketches(found: Statistics, left: int) -> Statistics:
    lengths = sorted(len(known.theta) for _, known in found if known.theta is not None)
    if sum(lengths) <= left:
        return found
    share = 0
    for place, length in enumerate(lengths):
        share = left // (len(lengths) - place)
        if length > share:
            break
        left -= length
    return [(ordinal, _cut(known, share)) for ordinal, known in found]


def _with_filters(found: Statistics, left: int) -> Statistics:
    """First the filters of columns whose bounds tell least, of these the small ones; large ones are cut to fit."""
    wanted = [place for place, (_, known) in enumerate(found) if known.bloom and known.frequencies != COMPLETE]
    kept: dict[int, ColumnStatistics] = {}
    for place in sorted(wanted, key=lambda place: _worth(found[place][1])):
        known = found[place][1]
        size = size_for(known.distinct or 0, min(left, len(known.bloom or b"")))
        if size is not None:
            kept[place] = replace(known, bloom=smaller(known.bloom, size)) if known.bloom else known
            left -= size
    return [
        (ordinal, kept.get(place) or (known if known.bloom is None else replace(known, bloom=None)))
        for place, (ordinal, known) in enumerate(found)
    ]


def _worth(known: ColumnStatistics) -> tuple[int, int]:
    between = values_between(known.lo, known.hi) // max(known.distinct or 0, 1)
    return -min(between.bit_length(), _WIDE_BITS), len(known.bloom or b"")


def _size(known: ColumnStatistics) -> int:
    return _SUMMARY + sum(
        (
            0 if known.theta is None else len(known.theta),
            0 if known.values is None else known.values.size,
            0 if known.histogram is None else known.histogram.size,
        )
    )


def _cut(known: ColumnStatistics, share: int) -> ColumnStatistics:
    if known.theta is None or len(known.theta) <= share:
        return known
    hashes = (share - _HEADER) // _HASH
    if hashes < _FEWEST:
        return replace(known, theta=None)
    return replace(known, theta=Theta.from_bytes(known.theta).trimmed(hashes).to_bytes())
