"""Theta sketches: the smallest hashes of a column, from which distinct values of many files are counted together.

Serialised as Apache DataSketches' compact theta sketch (version 3, ordered, default seed), which its libraries in any
language read. A sketch of at most 4,096 distinct values holds all their hashes and counts exactly.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array


_FOUR_BYTES = {"tinyint", "smallint", "int", "date"}


def theta_hashes(values: NDArray[Any], column: Column) -> UInt64Array:
    """Theta hashes of stored values, of the bytes that Iceberg serialises them to."""
    if is_wide_decimal(column):
        return _hash_wide(values)
    if column.type == "float":
        return murmur_words(values.astype(np.float32).view(np.uint32).astype(np.uint64), 4)
    words = values.view(np.uint64)
    if column.type == "boolean":
        return murmur_words(words, 1)
    if column.type in _FOUR_BYTES:
        return murmur_words(words & np.uint64(0xFFFFFFFF), 4)
    if decimal_type(column.type):
        lengths = _shortest(values)
        return murmur_words(words.byteswap() >> (64 - 8 * lengths).astype(np.uint64), lengths)
    return murmur_words(words, 8)


def theta_hashes_of_stored(values: pa.Array, column: Column) -> UInt64Array:
    """Theta hashes of values as the format stores them."""
    if is_wide_decimal(column):
        return theta_hashes(stored_to_sortable(values.to_pylist(), column), column)
    if column.encoding == "binary":
        return BinaryValues(values.cast(pa.large_binary())).hashes()
    return theta_hashes(values.to_numpy(zero_copy_only=False), column)


def _hash_wide(values: NDArray[Any]) -> UInt64Array:
    high, low = decimal_halves(values)
    data = np.empty((len(values), 2), dtype=">u8")
    data[:, 0], data[:, 1] = high.view(np.uint64), low
    in_low = high == (low.view(np.int64) >> 63)
    lengths = np.where(in_low, _shortest(low.view(np.int64)), 8 + _shortest(high))
    starts = np.arange(1, len(values) + 1) * DECIMAL_BYTES - lengths
    return murmur_bytes(pad_buffer(data.view(np.uint8).reshape(-1)), starts, lengths)


def _shortest(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes of the shortest two's complement of each value."""
    magnitude = values ^ (values >> 63)
    lengths = np.ones(len(values), dtype=np.int64)
    for size in range(1, 8):
        lengths += magnitude >= 1 << (8 * size - 1)
    return lengths


LG_K = 12
NOMINAL = 1 << LG_K
ALL = 1 << 63  # a sketch with this threshold holds the hash of every value

_VERSION, _FAMILY = 3, 3
_SEED_HASH = 0x93CC  # of seed 9001
_EMPTY, _ORDERED, _FLAGS = 0x04, 0x10, 0x1A  # the last: compact, ordered, read-only
_HEAD = struct.Struct("<BBBBBBH")
_WANTED = 9 * NOMINAL // 8  # seven standard deviations above what is needed
_AT_ONCE = 1_024


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
        share = self.threshold / ALL
        return 0.0 if self.is_exact else math.sqrt((1 - share) / max(len(self.hashes) - 1, 1))

    def to_bytes(self) -> bytes:
        """The sketch as Apache DataSketches serialises it."""
        count = len(self.hashes)
        longs = 3 if not self.is_exact else 2 if count > 1 else 1
        empty = count == 0 and self.is_exact
        head = _HEAD.pack(longs, _VERSION, _FAMILY, 0, 0, _FLAGS | (_EMPTY if empty else 0), _SEED_HASH)
        if longs > 1:
            head += struct.pack("<II", count, 0)
        if longs > 2:
            head += struct.pack("<Q", self.threshold)
        return head + self.hashes.astype("<u8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> ThetaSketch:
        """The sketch that DataSketches or `to_bytes` wrote."""
        if len(data) < _HEAD.size:
            raise ValueError("a theta sketch has at least 8 bytes")
        longs, version, family, _, _, flags, seed_hash = _HEAD.unpack_from(data)
        longs &= 0x3F
        seeds = (0, _SEED_HASH) if flags & _EMPTY else (_SEED_HASH,)  # Java writes none where there is no hash
        if (version, family) != (_VERSION, _FAMILY) or seed_hash not in seeds or not 1 <= longs <= 3:
            raise ValueError("not a compact theta sketch of version 3 with the default seed")
        if flags & _EMPTY:
            return EMPTY
        if len(data) < 8 * longs:
            raise ValueError("a theta sketch that is cut short")
        count = struct.unpack_from("<I", data, 8)[0] if longs > 1 else 1
        threshold = struct.unpack_from("<Q", data, 16)[0] if longs > 2 else ALL
        if len(data) < 8 * (longs + count) or not 0 < threshold <= ALL:
            raise ValueError("a theta sketch that is cut short")
        hashes = np.frombuffer(data, dtype="<u8", count=count, offset=8 * longs).astype(np.uint64, copy=False)
        return cls(hashes if flags & _ORDERED else np.sort(hashes), threshold)


EMPTY = ThetaSketch(np.empty(0, dtype=np.uint64))
"""The sketch of no values."""


def make_theta(hashes: UInt64Array, *, is_sorted: bool = False) -> ThetaSketch:
    """The sketch of hashes, not necessarily distinct.

    Hashes are spread evenly, so about how far the wanted ones reach is known without looking, unless they repeat a lot.
    """
    wanted = _WANTED
    while True:
        some = hashes[:wanted] if is_sorted else np.sort(_about_smallest(hashes, wanted))
        found = _without_zero(_once(some))
        if len(found) > NOMINAL or wanted >= len(hashes):
            return _cut_to_nominal(found, ALL)
        wanted *= 8


def _about_smallest(hashes: UInt64Array, wanted: int) -> UInt64Array:
    """About so many of the smallest hashes."""
    return hashes if wanted >= len(hashes) else hashes[hashes < np.uint64(ALL // len(hashes) * wanted)]


def _cut_to_nominal(hashes: UInt64Array, threshold: int) -> ThetaSketch:
    """The sketch of distinct hashes, ascending, of which those from the threshold on are not known."""
    return ThetaSketch(hashes[:NOMINAL], int(hashes[NOMINAL]) if len(hashes) > NOMINAL else threshold)


def union_thetas(sketches: Iterable[ThetaSketch]) -> ThetaSketch:
    """The sketch of the values of all sketches."""
    given = _different(sketches)
    if len(given) > _AT_ONCE:
        given = [union_thetas(given[start : start + _AT_ONCE]) for start in range(0, len(given), _AT_ONCE)]
    if not given:
        return EMPTY
    threshold = min(sketch.threshold for sketch in given)
    density = sum(len(sketch.hashes) / sketch.threshold for sketch in given)
    wanted = _WANTED
    while True:
        # Hashes ascend and are spread evenly: a few of each sketch are enough, unless sketches share many.
        below = min(threshold, int(wanted / density) + 1) if density else threshold
        limit = np.uint64(below)
        lowest = np.concatenate([_least(one, below) for one in given])
        hashes = _once(np.sort(lowest[lowest < limit]))
        if len(hashes) > NOMINAL or below == threshold:
            return _cut_to_nominal(hashes, threshold)
        wanted *= max(-(-_WANTED // max(len(hashes), 1)), 2)  # as often as sketches share a hash


def _different(sketches: Iterable[ThetaSketch]) -> list[ThetaSketch]:
    """Sketches of all values once: many files with the same few values have the same, and so have groups of files."""
    found: dict[tuple[int, bytes], ThetaSketch] = {}
    others = []
    for one in sketches:
        if not one.is_exact:
            others.append(one)
            continue
        first = found.setdefault((len(one.hashes), one.hashes[:4].tobytes()), one)
        if first is not one and not np.array_equal(first.hashes, one.hashes):
            others.append(one)
    return [*found.values(), *others]


def _least(sketch: ThetaSketch, limit: int) -> UInt64Array:
    """The hashes below a limit, and perhaps some more: about where they end is known without looking at many."""
    expected = len(sketch.hashes) * limit / sketch.threshold
    end = int(expected + 4 * math.sqrt(expected)) + 4
    if end < len(sketch.hashes) and sketch.hashes[end] < limit:
        end = int(sketch.hashes.searchsorted(np.uint64(limit)))
    return sketch.hashes[:end]


def _once(ascending: UInt64Array) -> UInt64Array:
    """The distinct hashes (as `numpy.unique`, which is slower)."""
    found: UInt64Array = ascending[find_run_starts(ascending)]
    return found


def _without_zero(hashes: UInt64Array) -> UInt64Array:
    """Ascending hashes but for 0, which is "no hash" in DataSketches."""
    return hashes[1:] if len(hashes) and hashes[0] == 0 else hashes
