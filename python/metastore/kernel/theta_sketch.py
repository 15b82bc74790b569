"""Theta sketches: the smallest hashes of a column, from which distinct values of many files are counted together.

Serialised as Apache DataSketches' compact theta sketch (version 3, ordered, default seed), which its libraries in any
language read. A sketch of at most 4,096 distinct values holds all their hashes and counts exactly.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from metastore.format.hashing import pad_buffer
from metastore.format.murmur import murmur_bytes, murmur_words
from metastore.format.object_layout import find_run_starts
from metastore.format.sortable_values import decimal_halves, is_wide_decimal, stored_to_sortable
from metastore.format.table_column import Column, decimal_type
from metastore.format.value_rendering import DECIMAL_BYTES
from metastore.kernel.binary_values import BinaryValues

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array


_WORD_BYTES = {"boolean": 1, "tinyint": 4, "smallint": 4, "int": 4, "date": 4}
_LOW_WORD = np.uint64(0xFFFFFFFF)


def theta_hashes(values: NDArray[Any], column: Column) -> UInt64Array:
    """Return theta hashes of stored values, of the bytes that Iceberg serialises them to."""
    if is_wide_decimal(column):
        return _hash_wide(values)
    if column.type == "float":
        return murmur_words(values.astype(np.float32).view(np.uint32).astype(np.uint64), 4)
    words = values.view(np.uint64)
    if decimal_type(column.type):
        lengths = _shortest(values)
        return murmur_words(words.byteswap() >> (64 - 8 * lengths).astype(np.uint64), lengths)
    if column.type in _WORD_BYTES:
        return murmur_words(words & _LOW_WORD, _WORD_BYTES[column.type])
    return murmur_words(words, 8)


def theta_hashes_of_stored(values: pa.Array, column: Column) -> UInt64Array:
    """Return theta hashes of values as the format stores them."""
    if is_wide_decimal(column):
        return theta_hashes(stored_to_sortable(values.to_pylist(), column), column)
    if column.encoding == "binary":
        return BinaryValues(values.cast(pa.large_binary())).hashes()
    return theta_hashes(values.to_numpy(zero_copy_only=False), column)


def _hash_wide(values: NDArray[Any]) -> UInt64Array:
    high, low = decimal_halves(values)
    data = np.empty((len(values), 2), dtype=">u8")
    data[:, 0] = high.view(np.uint64)
    data[:, 1] = low
    in_low = high == (low.view(np.int64) >> 63)
    lengths = np.where(in_low, _shortest(low.view(np.int64)), 8 + _shortest(high))
    starts = np.arange(1, len(values) + 1) * DECIMAL_BYTES - lengths
    return murmur_bytes(pad_buffer(data.view(np.uint8).reshape(-1)), starts, lengths)


def _shortest(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bytes of the shortest two's complement of each value."""
    magnitude = values ^ (values >> 63)
    lengths = np.ones(len(values), dtype=np.int64)
    for size in range(1, 8):
        lengths += magnitude >= 1 << (8 * size - 1)
    return lengths


LG_K = 12
NOMINAL = 1 << LG_K
ALL = 1 << 63  # a sketch with this threshold holds the hash of every value

_VERSION = 3
_FAMILY = 3
_SEED_HASH = 0x93CC  # of seed 9001
_EMPTY, _ORDERED, _FLAGS = 0x04, 0x10, 0x1A  # the last: compact, ordered, read-only
_HEAD = struct.Struct("<BBBBBBH")
_ENOUGH = 9 * NOMINAL // 8  # seven standard deviations above the nominal number
_AT_ONCE = 1_024


class _Header(NamedTuple):
    """The first fields of a serialised sketch.

    Attributes:
        longs: The number of 8-byte words before the hashes.
    """

    longs: int
    version: int = _VERSION
    family: int = _FAMILY
    lg_nominal: int = 0
    lg_array: int = 0
    flags: int = _FLAGS
    seed_hash: int = _SEED_HASH

    @property
    def is_empty(self) -> bool:
        """Whether the sketch is that of no values."""
        return bool(self.flags & _EMPTY)


_CUT_SHORT = "a theta sketch that is cut short"


def _require_length(data: bytes, length: int) -> None:
    if len(data) < length:
        raise ValueError(_CUT_SHORT)


def _read_header(data: bytes) -> _Header:
    if len(data) < _HEAD.size:
        raise ValueError("a theta sketch has at least 8 bytes")
    header = _Header._make(_HEAD.unpack_from(data))
    header = header._replace(longs=header.longs & 0x3F)
    seed_hashes = [_SEED_HASH]
    if header.is_empty:
        seed_hashes.append(0)  # which Java writes
    is_compact = (header.version, header.family) == (_VERSION, _FAMILY) and 1 <= header.longs <= 3
    if not is_compact or header.seed_hash not in seed_hashes:
        raise ValueError("not a compact theta sketch of version 3 with the default seed")
    return header


@dataclass(frozen=True)
class ThetaSketch:
    """A theta sketch.

    Attributes:
        hashes: The distinct hashes below the threshold, ascending.
        threshold: Hashes from here on were left out; `ALL` if none was.
    """

    hashes: UInt64Array
    threshold: int = ALL

    @property
    def is_exact(self) -> bool:
        """Whether the sketch counts rather than estimates."""
        return self.threshold == ALL

    @property
    def estimate(self) -> float:
        """The number of distinct values."""
        return len(self.hashes) * (ALL / self.threshold)

    @property
    def error(self) -> float:
        """The relative standard error of the estimate; 0 when it is exact."""
        if self.is_exact:
            return 0.0
        share = self.threshold / ALL
        return math.sqrt((1 - share) / max(len(self.hashes) - 1, 1))

    def to_bytes(self) -> bytes:
        """Return the sketch as Apache DataSketches serialises it."""
        count = len(self.hashes)
        hashes = self.hashes.astype("<u8").tobytes()
        if not self.is_exact:
            return _HEAD.pack(*_Header(longs=3)) + struct.pack("<IIQ", count, 0, self.threshold) + hashes
        if count > 1:
            return _HEAD.pack(*_Header(longs=2)) + struct.pack("<II", count, 0) + hashes
        if count == 1:
            return _HEAD.pack(*_Header(longs=1)) + hashes
        return _HEAD.pack(*_Header(longs=1, flags=_FLAGS | _EMPTY))

    @classmethod
    def from_bytes(cls, data: bytes) -> ThetaSketch:
        """Return the sketch that DataSketches or `to_bytes` wrote."""
        header = _read_header(data)
        if header.is_empty:
            return EMPTY
        start = 8 * header.longs
        _require_length(data, start)
        count = 1
        threshold = ALL
        if header.longs > 1:
            (count,) = struct.unpack_from("<I", data, 8)
        if header.longs > 2:
            (threshold,) = struct.unpack_from("<Q", data, 16)
        _require_length(data, start + 8 * count)
        if not 0 < threshold <= ALL:
            raise ValueError(_CUT_SHORT)
        hashes = np.frombuffer(data, dtype="<u8", count=count, offset=start).astype(np.uint64, copy=False)
        if not header.flags & _ORDERED:
            hashes = np.sort(hashes)
        return cls(hashes, threshold)


EMPTY = ThetaSketch(np.empty(0, dtype=np.uint64))
"""The sketch of no values."""


def make_theta(hashes: UInt64Array, *, is_sorted: bool = False) -> ThetaSketch:
    """Make the sketch of hashes, which need not be distinct.

    Hashes are spread evenly: a limit below which enough of them lie is known at once, unless they repeat a lot.
    """
    number = _ENOUGH
    while True:
        smallest = hashes[:number] if is_sorted else np.sort(_about_smallest(hashes, number))
        distinct = _without_zero(_distinct(smallest))
        if len(distinct) > NOMINAL or number >= len(hashes):
            return _cut_to_nominal(distinct, ALL)
        number *= 8


def _about_smallest(hashes: UInt64Array, number: int) -> UInt64Array:
    """Return about this number of the smallest hashes."""
    if number >= len(hashes):
        return hashes
    smallest: UInt64Array = hashes[hashes < np.uint64(ALL // len(hashes) * number)]
    return smallest


def _cut_to_nominal(hashes: UInt64Array, threshold: int) -> ThetaSketch:
    """Return the sketch of distinct hashes, ascending, of which those from the threshold on are missing."""
    if len(hashes) <= NOMINAL:
        return ThetaSketch(hashes, threshold)
    return ThetaSketch(hashes[:NOMINAL], int(hashes[NOMINAL]))


def union_thetas(sketches: Iterable[ThetaSketch]) -> ThetaSketch:
    """Return the sketch of the values of all sketches."""
    different = _select_different(sketches)
    if not different:
        return EMPTY
    if len(different) > _AT_ONCE:
        starts = range(0, len(different), _AT_ONCE)
        different = [_union_different(different[start : start + _AT_ONCE]) for start in starts]
    return _union_different(different)


def _union_different(different: Sequence[ThetaSketch]) -> ThetaSketch:
    threshold = min(sketch.threshold for sketch in different)
    density = sum(len(sketch.hashes) / sketch.threshold for sketch in different)
    number = _ENOUGH
    while True:
        # Hashes ascend and are spread evenly: a few of each sketch are enough, unless sketches share many.
        limit = threshold
        if density:
            limit = min(threshold, int(number / density) + 1)
        hashes = _merge_below(different, limit)
        if len(hashes) > NOMINAL or limit == threshold:
            return _cut_to_nominal(hashes, threshold)
        number *= max(-(-_ENOUGH // max(len(hashes), 1)), 2)  # as often as sketches share a hash


def _merge_below(sketches: Sequence[ThetaSketch], limit: int) -> UInt64Array:
    """Return the distinct hashes below a limit, ascending."""
    lowest = np.concatenate([_lowest_hashes(sketch, limit) for sketch in sketches])
    return _distinct(np.sort(lowest[lowest < np.uint64(limit)]))


def _select_different(sketches: Iterable[ThetaSketch]) -> list[ThetaSketch]:
    """Select sketches of all values once: many files, and groups of them, have the same few values."""
    firsts: dict[tuple[int, bytes], ThetaSketch] = {}
    further = []
    for sketch in sketches:
        if not sketch.is_exact:
            further.append(sketch)
            continue
        first = firsts.setdefault((len(sketch.hashes), sketch.hashes[:4].tobytes()), sketch)
        if first is not sketch and not np.array_equal(first.hashes, sketch.hashes):
            further.append(sketch)
    return [*firsts.values(), *further]


def _lowest_hashes(sketch: ThetaSketch, limit: int) -> UInt64Array:
    """Return the hashes below a limit, and perhaps more: about where they end is known without looking at many."""
    expected = len(sketch.hashes) * limit / sketch.threshold
    end = int(expected + 4 * math.sqrt(expected)) + 4
    if end < len(sketch.hashes) and sketch.hashes[end] < limit:
        end = int(sketch.hashes.searchsorted(np.uint64(limit)))
    return sketch.hashes[:end]


def _distinct(ascending: UInt64Array) -> UInt64Array:
    """Return the distinct hashes (as `numpy.unique`, which is slower)."""
    distinct: UInt64Array = ascending[find_run_starts(ascending)]
    return distinct


def _without_zero(hashes: UInt64Array) -> UInt64Array:
    """Return ascending hashes but for 0, which is "no hash" in DataSketches."""
    if len(hashes) and hashes[0] == 0:
        return hashes[1:]
    return hashes
