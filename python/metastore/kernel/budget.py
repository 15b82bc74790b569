"""Keeps the statistics of a data file small against the file: sketches, value lists and histograms shrink."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.format.bloom_filter import choose_filter_size
from metastore.kernel.binary_values import count_common_bytes
from metastore.kernel.column_bloom import resize_bloom_filter
from metastore.kernel.column_histogram import merge_bins
from metastore.kernel.hyperloglog import Registers
from metastore.kernel.theta_sketch import ThetaSketch
from metastore.kernel.value_counts import COMPLETE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from metastore.format.histogram_bins import Histogram
    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.kernel.value_counts import ValueCounts

    Statistics = list[ColumnStatistics]


SMALL_LIST = 256
"""The longest list of values, and the most single-value bins of a histogram, that are never cut."""
_SMALL_TABLE = 100 << 20


@dataclass(frozen=True)
class Allowance:
    """Room for the statistics of a data file, which the size of its table decides.

    Attributes:
        longest_uncut: The most values of a list that is not cut, however many bytes it takes.
        share: The data file's bytes divided by those of all other statistics.
        keeps_sketches: Whether a sketch is kept of every column, though it takes more.
    """

    longest_uncut: int = SMALL_LIST
    share: int = 10
    keeps_sketches: bool = False


LARGE_TABLE = Allowance()


def choose_allowance(size: int) -> Allowance:
    """Return the allowance of each data file in a table of this size in bytes.

    Examples:
        >>> choose_allowance(10 << 20).longest_uncut, choose_allowance(1 << 30).longest_uncut
        (4096, 256)
    """
    if size > _SMALL_TABLE:
        return LARGE_TABLE
    return Allowance(longest_uncut=4_096, share=3)


BUDGET = 1 << 30
"""The bytes of memory of a task."""

_PREFIX = 8


def estimate_values_between(lo: Any, hi: Any) -> int:
    """Estimate how many values of its type lie between two bounds; 0 if a bound is unknown."""
    if None in (lo, hi):
        return 0
    if isinstance(lo, bytes):
        return _texts_between(lo, hi)
    if isinstance(lo, float):
        return _rank_of_double(hi) - _rank_of_double(lo)
    return int(hi) - int(lo)


def _texts_between(lo: bytes, hi: bytes) -> int:
    """Return the difference of the first bytes in which two texts differ."""
    common = count_common_bytes(lo, hi)
    length = min(max(len(lo), len(hi)) - common, _PREFIX)
    return abs(_read_bytes(hi, common, length) - _read_bytes(lo, common, length))


def _read_bytes(text: bytes, start: int, length: int) -> int:
    return int.from_bytes(text[start : start + length].ljust(length, b"\0"), "big")


def _rank_of_double(value: float) -> int:
    """Return the rank of a double among all doubles."""
    magnitude = int(np.float64(abs(value)).view(np.int64))
    return int(math.copysign(1, value)) * magnitude


_SKETCHES = 25
_LISTS = _HISTOGRAMS = 40  # so that all of them and the summaries stay below a tenth of the file
_COLUMN = 1 << 10  # what a column may take of a file, though that is more than a tenth of it
_SUMMARY, _PERCENTILES, _COUNT_BYTES = 200, 800, 2  # about
_LEAST = 4 << 10  # for all lists, and for all filters, of a small file
_CUT_LISTS = 2  # a share of the lists' room is for those that are cut
_SPARE = 6  # sizes are estimates
_FEWEST_BINS = 64
_FEWEST_LISTED = 10
_WIDE_BITS = 16  # of wider bounds, per value, none tells more than another


def budget_for_lists(size: int) -> int:
    """Return the most bytes of all value lists of a data file."""
    return max(size // _LISTS, _LEAST)


def fit_to_file_size(
    statistics: Iterable[tuple[int, ColumnStatistics]], size: int, top: int, allowance: Allowance = LARGE_TABLE
) -> list[tuple[int, ColumnStatistics]]:
    """Fit the statistics of a data file, each with its column's ordinal, into their share of the file's size."""
    by_ordinal = dict(statistics)
    columns = list(by_ordinal.values())
    columns = _fit_lists(columns, budget_for_lists(size), top, allowance.longest_uncut)
    columns = _fit_histograms(columns, size // _HISTOGRAMS)
    columns = list(map(_drop_percentiles, columns))
    room = max(size // allowance.share, _COLUMN * len(columns))
    room -= room // _SPARE
    room += _uncut_bytes(columns, allowance.longest_uncut)
    sketches = sum(map(_sketch_bytes, columns))
    if allowance.keeps_sketches:
        room += sketches
    else:
        further = sum(map(_size, columns)) - sketches
        columns = _fit_sketches(columns, min(max(size // _SKETCHES, room // 4), room - further))
    remaining = room - sum(map(_size, columns))
    columns = _fit_filters(columns, max(remaining, min(size // allowance.share, _LEAST)))
    return list(zip(by_ordinal, columns, strict=True))


def _sketch_bytes(column: ColumnStatistics) -> int:
    return len(column.theta or b"")


def _uncut_bytes(columns: Statistics, longest_uncut: int) -> int:
    """Return the bytes of all lists that are not cut, without the small ones."""
    total = 0
    for values in _list_values(columns).values():
        if len(values) > SMALL_LIST and values.is_uncut(longest_uncut):
            total += values.size
    return total


def _fit_lists(columns: Statistics, room: int, top: int, longest_uncut: int) -> Statistics:
    lists = _list_values(columns)
    sizes = {number: values.size for number, values in lists.items() if not values.is_uncut(longest_uncut)}
    if sum(sizes.values()) <= room:
        return columns
    room -= _take_complete_lists(lists, sizes, room - room // _CUT_LISTS)
    _cut_lists(lists, sizes, room, top)
    return [_replace_list(column, lists.get(number)) for number, column in enumerate(columns)]


def _list_values(columns: Statistics) -> dict[int, ValueCounts]:
    """Return the value lists by the numbers of their columns."""
    return {number: column.values for number, column in enumerate(columns) if column.values is not None}


def _take_complete_lists(lists: Mapping[int, ValueCounts], sizes: dict[int, int], room: int) -> int:
    """Take as many complete lists as fit from those to be cut; return their bytes."""
    complete = [number for number in sizes if lists[number].kind == COMPLETE]
    used = 0
    for number in sorted(complete, key=sizes.__getitem__):
        if used + sizes[number] > room:
            break
        used += sizes.pop(number)
    return used


def _cut_lists(lists: dict[int, ValueCounts], sizes: dict[int, int], room: int, top: int) -> None:
    """Cut the lists that have sizes, the longest first, to fewer and fewer values until all of them fit."""
    longest_first = sorted(sizes, key=sizes.__getitem__, reverse=True)
    while sum(sizes.values()) > room:
        _cut_lists_to(top, lists, sizes, longest_first, room)
        if top <= _FEWEST_LISTED:
            break
        top = max(top // 2, _FEWEST_LISTED)


def _cut_lists_to(
    top: int, lists: dict[int, ValueCounts], sizes: dict[int, int], numbers: Iterable[int], room: int
) -> None:
    """Cut lists to a number of values, one after the other, until all of them fit."""
    excess = sum(sizes.values()) - room
    for number in numbers:
        if excess > 0 and len(lists[number]) > top:
            lists[number] = lists[number].keep_most_frequent(top)
            excess -= sizes[number] - lists[number].size
            sizes[number] = lists[number].size


def _replace_list(column: ColumnStatistics, values: ValueCounts | None) -> ColumnStatistics:
    if values is column.values:
        return column
    return column.with_value_counts(values)


def _fit_histograms(columns: Statistics, room: int) -> Statistics:
    """Merge bins until the histograms fit, all by the same factor."""
    size = sum(_histogram_size(column) for column in columns if _count_bins(column) > SMALL_LIST)
    factor = -(-size // max(room, 1))
    if factor <= 1:
        return columns
    return [_merge_bins(column, factor) for column in columns]


def _count_bins(column: ColumnStatistics) -> int:
    if column.histogram is None:
        return 0
    return len(column.histogram.counts)


def _merge_bins(column: ColumnStatistics, factor: int) -> ColumnStatistics:
    """Merge bins by a factor, as far as ranks of the table stay known to half a hundredth."""
    histogram = column.histogram
    if histogram is None or _is_small_by_value(histogram):
        return column
    rows = int(histogram.counts.sum())
    fewest = max(_FEWEST_BINS, min(rows // 8, 2 * _FEWEST_BINS), min(rows // 32, 4 * _FEWEST_BINS))
    bins = max(_count_bins(column) // factor, fewest)
    return replace(column, histogram=merge_bins(histogram, bins))


def _is_small_by_value(histogram: Histogram) -> bool:
    """Return whether a small histogram has one bin for each value."""
    if histogram.distincts is None or len(histogram.counts) > SMALL_LIST:
        return False
    return bool((histogram.distincts == 1).all())


def _drop_percentiles(column: ColumnStatistics) -> ColumnStatistics:
    """Drop percentiles if a histogram says them, too: one question has one answer."""
    if column.histogram is None:
        return column
    return replace(column, percentiles=None)


def _fit_sketches(columns: Statistics, room: int) -> Statistics:
    """Keep the theta sketches that fit, the small ones first, and registers of the other columns."""
    used = 0
    for length in sorted(filter(None, map(_sketch_bytes, columns))):
        used += length
        if used > room:
            return [_replace_large_sketch(column, length) for column in columns]
    return columns


def _replace_large_sketch(column: ColumnStatistics, length: int) -> ColumnStatistics:
    """Replace a sketch of at least this length by registers, or by nothing if a list has all values."""
    if column.theta is None or len(column.theta) < max(length, _COLUMN // 2 + 1):
        return column
    if column.frequencies == COMPLETE:
        return replace(column, theta=None, registers=None)
    registers = column.registers or Registers.of(ThetaSketch.from_bytes(column.theta).hashes).to_bytes()
    return replace(column, theta=None, registers=registers)


def _fit_filters(columns: Statistics, room: int) -> Statistics:
    """Shrink all filters before one is dropped: first that of a column whose bounds say most."""
    full_sizes = _list_filters(columns)
    sizes = dict(full_sizes)
    _shrink_filters(columns, sizes, room)
    while sizes and sum(sizes.values()) > room:
        sizes.popitem()
    _restore_filters(sizes, full_sizes, room)
    return [_resize_filter(column, sizes.get(number)) for number, column in enumerate(columns)]


def _list_filters(columns: Statistics) -> dict[int, int]:
    """List the sizes of the filters that say more than a list, by the numbers of their columns, the best first."""
    filtered = []
    for number, column in enumerate(columns):
        if column.bloom and column.frequencies != COMPLETE:
            filtered.append((_rank_by_worth(column), number, len(column.bloom)))
    return {number: size for _, number, size in sorted(filtered)}


def _shrink_filters(columns: Statistics, sizes: dict[int, int], room: int) -> None:
    """Choose smaller sizes, of the largest filters first, until all of them fit."""
    excess = sum(sizes.values()) - room
    for number in sorted(sizes, key=sizes.__getitem__, reverse=True):
        smaller = choose_filter_size(columns[number].distinct or 0, sizes[number] - 1)
        if excess > 0 and smaller is not None:
            excess -= sizes[number] - smaller
            sizes[number] = smaller


def _restore_filters(sizes: dict[int, int], full_sizes: Mapping[int, int], room: int) -> None:
    """Give filters their full sizes again if there is room, because others were dropped."""
    free = room - sum(sizes.values())
    for number, size in sizes.items():
        more = full_sizes[number] - size
        if more <= free:
            free -= more
            sizes[number] = full_sizes[number]


def _resize_filter(column: ColumnStatistics, size: int | None) -> ColumnStatistics:
    """Give a column's filter this size; without a size, drop it."""
    if column.bloom is None:
        return column
    if size is None:
        return replace(column, bloom=None)
    return replace(column, bloom=resize_bloom_filter(column.bloom, size))


def _rank_by_worth(column: ColumnStatistics) -> tuple[int, int]:
    """Return a key that sorts filters: those of columns with wide bounds come first, then the short ones."""
    per_value = estimate_values_between(column.lo, column.hi) // max(column.distinct or 0, 1)
    return -min(per_value.bit_length(), _WIDE_BITS), len(column.bloom or b"")


def _size(column: ColumnStatistics) -> int:
    size = _SUMMARY + _sketch_bytes(column) + len(column.registers or b"")
    if column.percentiles is not None:
        size += _PERCENTILES
    if column.values is not None:
        size += column.values.size
    return size + _histogram_size(column)


def _histogram_size(column: ColumnStatistics) -> int:
    """Return about as many bytes as a column's histogram takes when it is stored, or more."""
    histogram = column.histogram
    if histogram is None:
        return 0
    size = int(histogram.edges.nbytes) + _COUNT_BYTES * len(histogram.counts)
    if histogram.distincts is not None:
        size += _COUNT_BYTES * len(histogram.counts)
    return size
