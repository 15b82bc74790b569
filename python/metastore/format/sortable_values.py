"""Arrow arrays as the stored values of the format: 64-bit integers, doubles, or 16 bytes for wide decimals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.format.table_column import Column, decimal_type
from metastore.format.value_rendering import DECIMAL_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array
    from metastore.format.table_column import Column


_SIGN = np.uint64(1 << 63)
_WIDTHS = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "date": 4}


def value_width(column: Column) -> int:
    """Bytes of a value of a fixed-width type, as Spark counts them."""
    if column.type.startswith("interval"):
        return 4 if is_year_month(column) else 8
    return DECIMAL_BYTES if is_wide_decimal(column) else _WIDTHS.get(column.type, 8)


def is_wide_decimal(column: Column) -> bool:
    """Whether values are decimals of more than 18 digits."""
    return column.encoding == "binary" and decimal_type(column.type) is not None


def is_text(column: Column) -> bool:
    """Whether values are texts or bytes of any length."""
    return column.encoding == "binary" and decimal_type(column.type) is None


def unify_doubles(values: pa.ChunkedArray) -> pa.Array:
    """Stored values, of doubles one NaN and one zero; other values as they are."""
    whole = values.combine_chunks()
    if not pa.types.is_float64(whole.type):
        return whole
    numbers = whole.to_numpy() + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return pa.array(numbers)


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


def sortable_to_stored(value: Any, column: Column) -> Any:
    """One value of `sortable_array` as the format stores it: int, float or 16 bytes."""
    if not is_wide_decimal(column):
        return value.item()
    raw = bytes(value).ljust(DECIMAL_BYTES, b"\0")  # numpy drops trailing zeros
    return bytes([raw[0] ^ 0x80]) + raw[1:]


def sortable_to_arrow(values: NDArray[Any], column: Column) -> pa.Array:
    """Values of `sortable_array` as an Arrow array of what the format stores: int64, double or binary."""
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
    """Values as the format stores them, as `sortable_array` returns them: the inverse of `sortable_to_stored`."""
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


def make_comparison_key(column: Column) -> Any:
    """The function that maps a stored value to what compares as it does."""
    if is_wide_decimal(column):
        return lambda value: int.from_bytes(value, "big", signed=True)
    return identity_key


def identity_key(value: Any) -> Any:
    """The value as it is."""
    return value
