"""Strings and binary values in numpy: hashes, their order, and the values at given ranks without sorting all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.hashing import BLOCK, MASKS, WORD, pad_buffer, split_batches, view_unaligned
from metastore.format.murmur import murmur_bytes
from metastore.format.sortable_values import is_wide_decimal, stored_to_sortable
from metastore.format.value_rendering import CUT_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array
    from metastore.format.table_column import Column

    Rows = NDArray[np.int64]
    Flags = NDArray[np.bool_]


_TEXT_TYPES = (pa.binary(), pa.string(), pa.large_binary(), pa.large_string())


def is_text_type(data_type: pa.DataType) -> bool:
    """Return whether values are texts or bytes of any length."""
    return data_type in _TEXT_TYPES


def list_chunks(values: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """Return the arrays that values consist of."""
    if isinstance(values, pa.ChunkedArray):
        return list(values.chunks)
    return [values]


def to_large_binary(values: pa.Array) -> pa.Array:
    """Return the bytes of texts or binary values."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return values.cast(pa.large_string()).view(pa.large_binary())
    return values.cast(pa.large_binary())


def rank_values(values: pa.Array, column: Column | None = None) -> tuple[Rows, pa.Array]:
    """Rank stored values among the distinct ones, and return these in their order, which a column may decide."""
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    if column is not None and is_wide_decimal(column):
        order = np.argsort(stored_to_sortable(distinct.to_pylist(), column))
    else:
        order = pc.sort_indices(distinct).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks[encoded.indices.to_numpy()], distinct.take(pa.array(order))


class BinaryBuffer:
    """The values of arrays, one behind the other."""

    def __init__(self, values: int = 0, data: int = 0) -> None:
        self._data = _Growing(np.uint8, data)
        self._ends = _Growing(np.int64, values)
        self._ends.add(np.zeros(1, np.int64))

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._ends) - 1

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self._data.nbytes + self._ends.nbytes

    def add(self, values: pa.Array) -> None:
        """Add the values of a `large_binary` array without nulls."""
        if not len(values):
            return
        _, offsets, data = values.buffers()
        bounds = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
        self._ends.add(bounds[1:] + (len(self._data) - bounds[0]))
        if data is not None:
            self._data.add(np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]])

    def finish(self) -> pa.Array:
        """Return all values as a `large_binary` array, with a block of readable bytes behind; no more can be added."""
        self._data.add(np.zeros(BLOCK, np.uint8))
        buffers = [None, pa.py_buffer(self._ends.values), pa.py_buffer(self._data.values)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)


class _Growing:
    """An array that grows in place: the system moves the pages of a large one, and copies nothing."""

    def __init__(self, kind: Any, expected: int) -> None:
        self._kind = kind
        self._expected = expected
        self._room: NDArray[Any] = np.empty(0, kind)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        return self._length * self._room.itemsize

    @property
    def values(self) -> NDArray[Any]:
        return self._room[: self._length]

    def add(self, more: NDArray[Any]) -> None:
        end = self._length + len(more)
        if not len(self._room):
            self._room = np.empty(max(self._expected, end), self._kind)  # pages that nobody writes take no memory
        elif end > len(self._room):
            self._room.resize(end + end // 8, refcheck=False)  # nothing else refers to it
        self._room[self._length : end] = more
        self._length = end


LONGEST_COUNTED_VALUE = 1_024
LEFT_BITS = 3
LEFT = np.uint64((1 << LEFT_BITS) - 1)
"""The bits of a key that say how many of its bytes the value has; fewer than count where it ends."""

_SLOT_BITS = 22
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class BinaryValues:
    """The values of a `large_binary` array without nulls.

    Attributes:
        lengths: The bytes of each value.
    """

    def __init__(self, values: pa.Array) -> None:
        _, offsets, data = values.buffers()
        bounds = np.frombuffer(offsets, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
        raw = np.frombuffer(data or b"", dtype=np.uint8)
        starts = bounds[:-1]
        if len(raw) < bounds[-1] + BLOCK:
            raw = pad_buffer(raw[bounds[0] : bounds[-1]])
            starts = starts - bounds[0]
        self._starts = starts
        self._data = raw
        self._words = view_unaligned(self._data)
        self.lengths: Rows = np.diff(bounds)

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self.lengths)

    def hashes(self) -> UInt64Array:
        """Return the theta hash of every value."""
        return murmur_bytes(self._data, self._starts, self.lengths)

    def value(self, row: int) -> bytes:
        """Return one value, cut after 65 bytes: the format cuts longer ones after 64."""
        start = int(self._starts[row])
        return self._data[start : start + min(int(self.lengths[row]), CUT_BYTES + 1)].tobytes()

    def order(self) -> Rows:
        """Return the rows in the order of unsigned bytes, as far as the first 1,024 bytes decide it."""
        order = np.arange(len(self))
        is_new = np.zeros(len(self), np.bool_)
        is_new[:1] = True
        active = order.copy()
        depth = 0
        while len(active) and depth <= LONGEST_COUNTED_VALUE:
            level = self.sort_within_groups(order[active], np.cumsum(is_new[active]) - 1, depth)
            order[active] = level.rows
            is_new[active] = level.is_new
            active = active[~(level.ended | _alone(level.is_new))]
            depth += level.step
        return order

    def sort_within_groups(self, rows: Rows, groups: Rows, depth: int) -> SortLevel:
        """Order rows by group, and those of a group, which agree in their first `depth` bytes, by what follows."""
        last = int(groups.max())
        step = choose_key_bytes(last)
        keys = self.sort_keys(rows, groups, depth, step) if last else self._keys(rows, depth, step)
        if not (keys[1:] >= keys[:-1]).all():
            order = np.argsort(keys)
            rows = rows[order]
            keys = keys[order]
        is_new = np.ones(len(rows), np.bool_)
        np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
        return SortLevel(rows, is_new, (keys & LEFT) < np.uint64(step), step)

    def sort_keys(self, rows: Rows, groups: Rows, depth: int, step: int) -> UInt64Array:
        """Return numbers that order rows by group, and those of a group by some bytes."""
        keys = self._keys(rows, depth, step)
        keys |= groups.astype(np.uint64) << np.uint64(8 * step + LEFT_BITS)
        return keys

    def prefix_keys(self) -> UInt64Array:
        """Return the first seven bytes of all values as numbers that order as they do."""
        return self._keys(None, 0, WORD - 1)

    def _keys(self, rows: Rows | None, depth: int, step: int) -> UInt64Array:
        """Return the next bytes of values, and their number: of values that begin alike the shorter comes first."""
        all_keys: UInt64Array = np.empty(len(self) if rows is None else len(rows), np.uint64)
        shift = np.uint64(64 - 8 * step - LEFT_BITS)
        for batch in split_batches(len(all_keys)):
            batch_rows = batch if rows is None else rows[batch]
            lengths = self.lengths[batch_rows]
            starts = self._starts[batch_rows]
            if depth:
                starts = starts + np.minimum(lengths, depth)
                lengths = np.maximum(lengths - depth, 0)
            remaining = np.minimum(lengths, step)
            keys = self._words[starts]
            keys &= MASKS[remaining]
            keys.byteswap(inplace=True)
            keys >>= shift
            np.bitwise_or(keys, remaining.view(np.uint64), out=all_keys[batch])
        return all_keys


@dataclass(frozen=True)
class SortLevel:
    """Rows in the order of some more of their bytes.

    Attributes:
        is_new: Whether a row differs from the one before.
        ended: Whether a row has no further bytes.
        step: The number of bytes that were compared.
    """

    rows: Rows
    is_new: Flags
    ended: Flags
    step: int


@dataclass(frozen=True)
class ValueRepeats:
    """The equal ones of many values, by their 63-bit hashes.

    Attributes:
        distinct: The number of distinct values.
        rows: One row of each value that occurs more than once, in no order.
        counts: The number of times that each of these occurs.
        again: The other rows of these values are set.
    """

    distinct: int
    rows: Rows
    counts: Rows
    again: Flags


def find_repeats(hashes: UInt64Array, ordered: UInt64Array) -> ValueRepeats:
    """Find equal values."""
    is_same = ordered[1:] == ordered[:-1]
    distinct = len(hashes) - int(np.count_nonzero(is_same))
    rows = _rows_among(hashes, ordered[1:][is_same])
    rows = rows[np.argsort(hashes[rows])]
    ordered = hashes[rows]
    is_new = np.ones(len(rows), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    again = np.zeros(len(hashes), np.bool_)
    again[rows[~is_new]] = True
    starts = np.flatnonzero(is_new)
    counts = np.diff(starts, append=len(rows))
    return ValueRepeats(distinct, rows[starts[counts > 1]], counts[counts > 1], again)


def count_common_bytes(first: bytes, second: bytes) -> int:
    """Count the bytes with which both begin."""
    common = 0
    for byte, other in zip(first, second, strict=False):
        if byte != other:
            break
        common += 1
    return common


def choose_key_bytes(last: int) -> int:
    """Return the number of bytes that fit a key beside the number of a group, up to the last."""
    return min((64 - LEFT_BITS - last.bit_length()) // 8, WORD - 1)


def _rows_among(keys: UInt64Array, searched: UInt64Array) -> Rows:
    """Return the rows whose keys are searched, and a few more.

    Sorting keys alone takes a fifth of the time of sorting rows by them: this leaves few rows to be sorted.
    """
    is_taken = np.zeros(1 << _SLOT_BITS, np.bool_)
    is_taken[hash_slots(searched, _SLOT_BITS)] = True
    may_match = np.empty(len(keys), np.bool_)
    for batch in split_batches(len(keys)):
        np.take(is_taken, hash_slots(keys[batch], _SLOT_BITS), out=may_match[batch], mode="clip")
    return np.flatnonzero(may_match)


def hash_slots(keys: UInt64Array, bits: int) -> Rows:
    """Return the slot of each key in a table of 2^bits slots."""
    slots: UInt64Array = keys * _SPREAD
    slots >>= np.uint64(64 - bits)
    return slots.view(np.int64)


def _alone(is_new: Flags) -> Flags:
    alone: Flags = is_new & np.append(is_new[1:], True)
    return alone
