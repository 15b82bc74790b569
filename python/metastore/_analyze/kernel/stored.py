"""Arrow arrays as the stored values of the format: 64-bit integers, doubles, or 16 bytes for wide decimals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore._analyze.kernel.murmur import murmur_bytes, murmur_words
from metastore._analyze.kernel.text import BinaryValues
from metastore._format.columns import decimal_type
from metastore._format.values import DECIMAL_BYTES
from metastore._format.words import pad_buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore._format.columns import Column
    from metastore._format.words import UInt64Array

_SIGN = np.uint64(1 << 63)
_FOUR_BYTES = {"tinyint", "smallint", "int", "date"}
_WIDTHS = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "date": 4}


def value_width(column: Column) -> int:
    """Bytes of a value of a fixed-width type, as Spark counts them."""
    if column.type.startswith("interval"):
        return 4 if is_year_month(column) else 8
    return DECIMAL_BYTES if is_wide_decimal(column) else _WIDTHS.get(column.type, 8)


def is_wide_decimal(column: Column) -> bool:
    """Whether values are decimals of more than 18 digits."""
    return column.encoding == "binary" and decimal_type(column.type) is not None


def is_year_month(column: Column) -> bool:
    """Whether values are intervals of months."""
    return column.type.startswith(("interval year", "interval month"))


def sortable_array(array: pa.Array, column: Column) -> NDArray[Any]:
    """Values of a fixed-width column in an order-preserving numpy form."""
    values = narrow_sortable_array(array, column)
    return values.astype(np.int64) if values.dtype == np.int32 else values


def narrow_sortable_array(array: pa.Array, column: Column) -> NDArray[Any]:
    """The same, but for int32 where Arrow has that."""
    if column.encoding == "double":
        doubles: NDArray[np.float64] = array.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        return doubles
    if decimal_type(column.type):
        limbs = _limbs(array)
        return _wide(limbs) if column.encoding == "binary" else np.ascontiguousarray(limbs[:, 0]).view(np.int64)
    kind = array.type
    if pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    elif pa.types.is_timestamp(kind):
        array = array.cast(pa.timestamp("us", kind.tz)).view(pa.int64())
    elif pa.types.is_duration(kind):
        array = array.cast(pa.duration("us")).view(pa.int64())
    elif not pa.types.is_integer(kind):  # dates and months
        array = array.view(pa.int32())
    longs: NDArray[Any] = array.to_numpy()
    return longs if longs.dtype == np.int32 else longs.astype(np.int64, copy=False)


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


def sortable_to_stored(value: Any, column: Column) -> Any:
    """One value of `numbers` as the format stores it: int, float or 16 bytes."""
    if not is_wide_decimal(column):
        return value.item()
    raw = bytes(value).ljust(DECIMAL_BYTES, b"\0")  # numpy drops trailing zeros
    return bytes([raw[0] ^ 0x80]) + raw[1:]


def sortable_to_arrow(values: NDArray[Any], column: Column) -> pa.Array:
    """Values of `numbers` as an Arrow array of what the format stores: int64, double or binary."""
    if not is_wide_decimal(column):
        return pa.array(values)
    raw = np.frombuffer(values.astype("S16").tobytes(), np.uint8).reshape(-1, DECIMAL_BYTES).copy()
    raw[:, 0] ^= 0x80
    offsets = np.arange(len(values) + 1, dtype=np.int32) * DECIMAL_BYTES
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(raw)])


def decimal_halves(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The high (signed) and low halves of wide decimals."""
    limbs = values.view(">u8").reshape(-1, 2).astype(np.uint64)
    return (limbs[:, 0] ^ _SIGN).view(np.int64), limbs[:, 1]


def stored_to_sortable(values: Sequence[Any], column: Column) -> NDArray[Any]:
    """Values as the format stores them, as `numbers` returns them: the inverse of `stored`."""
    if not is_wide_decimal(column):
        return np.array(values, dtype=np.float64) + 0.0 if column.encoding == "double" else np.array(values, np.int64)
    limbs = np.frombuffer(b"".join(values), dtype=">u8").reshape(-1, 2).astype(np.uint64)
    return _wide(limbs[:, ::-1])


def _limbs(array: pa.Array) -> UInt64Array:
    if array.type.bit_width != 8 * DECIMAL_BYTES:
        array = array.cast(pa.decimal128(min(array.type.precision, 38), array.type.scale))
    raw = np.frombuffer(array.buffers()[1], dtype=np.uint64) if len(array) else np.empty(0, dtype=np.uint64)
    return raw[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)


def _wide(limbs: UInt64Array) -> NDArray[Any]:
    out = np.empty((len(limbs), 2), dtype=">u8")
    out[:, 0] = limbs[:, 1] ^ _SIGN
    out[:, 1] = limbs[:, 0]
    return out.view("S16").reshape(-1)


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
