"""Sortable values: stored values as NumPy integers, doubles, or 16 bytes for wide decimals, in the right order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.format.table_column import Column, decimal_type
from metastore.format.value_rendering import DECIMAL_BYTES, decimal_from_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array
    from metastore.format.table_column import Column


_SIGN = np.uint64(1 << 63)
_WIDTHS = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "date": 4}


def value_width(column: Column) -> int:
    """Return the bytes of a value of a fixed-width type, as Spark counts them."""
    if is_year_month(column):
        return 4
    if is_wide_decimal(column):
        return DECIMAL_BYTES
    return _WIDTHS.get(column.type, 8)


def is_wide_decimal(column: Column) -> bool:
    """Return whether values are decimals of more than 18 digits."""
    return column.encoding == "binary" and decimal_type(column.type) is not None


def is_text(column: Column) -> bool:
    """Return whether values are texts or bytes of any length."""
    return column.encoding == "binary" and decimal_type(column.type) is None


def unify_doubles(values: pa.ChunkedArray) -> pa.Array:
    """Combine stored values into one array, in which doubles have one NaN and one zero."""
    array = values.combine_chunks()
    if not pa.types.is_float64(array.type):
        return array
    numbers = array.to_numpy() + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return pa.array(numbers)


def is_year_month(column: Column) -> bool:
    """Return whether values are intervals of months."""
    return column.type.startswith(("interval year", "interval month"))


def sortable_array(array: pa.Array, column: Column) -> NDArray[Any]:
    """Convert values of a fixed-width column to numpy values in the same order."""
    values = narrow_sortable_array(array, column)
    if values.dtype == np.int32:
        return values.astype(np.int64)
    return values


def narrow_sortable_array(array: pa.Array, column: Column) -> NDArray[Any]:
    """Convert values as `sortable_array` does, but leave int32 as it is."""
    if column.encoding == "double":
        doubles: NDArray[np.float64] = array.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        return doubles
    if decimal_type(column.type):
        limbs = _view_limbs(array)
        if column.encoding == "binary":
            return _limbs_to_sortable(limbs)
        return np.ascontiguousarray(limbs[:, 0]).view(np.int64)
    integers: NDArray[Any] = _to_integers(array).to_numpy()
    if integers.dtype == np.int32:
        return integers
    return integers.astype(np.int64, copy=False)


def _to_integers(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_integer(kind):
        return array
    if pa.types.is_boolean(kind):
        return array.cast(pa.uint8())
    if pa.types.is_timestamp(kind):
        return array.cast(pa.timestamp("us", kind.tz)).view(pa.int64())
    if pa.types.is_duration(kind):
        return array.cast(pa.duration("us")).view(pa.int64())
    return array.view(pa.int32())  # dates and months


def sortable_to_stored(value: Any, column: Column) -> Any:
    """Convert one value of `sortable_array` to the stored one: int, float or 16 bytes."""
    if not is_wide_decimal(column):
        return value.item()
    raw = bytes(value).ljust(DECIMAL_BYTES, b"\0")  # numpy drops trailing zeros
    return bytes([raw[0] ^ 0x80]) + raw[1:]


def sortable_to_arrow(values: NDArray[Any], column: Column) -> pa.Array:
    """Convert values of `sortable_array` to an Arrow array of stored ones: int64, double or binary."""
    if not is_wide_decimal(column):
        return pa.array(values)
    raw = np.frombuffer(values.astype("S16").tobytes(), np.uint8).reshape(-1, DECIMAL_BYTES).copy()
    raw[:, 0] ^= 0x80
    offsets = np.arange(len(values) + 1, dtype=np.int32) * DECIMAL_BYTES
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(raw)])


def decimal_halves(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Split wide decimals into their high (signed) and low halves."""
    limbs = values.view(">u8").reshape(-1, 2).astype(np.uint64)
    return (limbs[:, 0] ^ _SIGN).view(np.int64), limbs[:, 1]


def stored_to_sortable(values: Sequence[Any], column: Column) -> NDArray[Any]:
    """Convert stored values to those of `sortable_array`: the inverse of `sortable_to_stored`."""
    if is_wide_decimal(column):
        limbs = np.frombuffer(b"".join(values), dtype=">u8").reshape(-1, 2).astype(np.uint64)
        return _limbs_to_sortable(limbs[:, ::-1])
    if column.encoding == "double":
        return np.array(values, dtype=np.float64) + 0.0
    return np.array(values, np.int64)


def _view_limbs(array: pa.Array) -> UInt64Array:
    """View decimals as pairs of 64 bits, the low ones first."""
    if array.type.bit_width != 8 * DECIMAL_BYTES:
        array = array.cast(pa.decimal128(min(array.type.precision, 38), array.type.scale))
    if not len(array):
        return np.empty((0, 2), dtype=np.uint64)
    limbs = np.frombuffer(array.buffers()[1], dtype=np.uint64)
    return limbs[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)


def _limbs_to_sortable(limbs: UInt64Array) -> NDArray[Any]:
    """Write pairs of 64 bits as 16 bytes that sort as the numbers do."""
    out = np.empty((len(limbs), 2), dtype=">u8")
    out[:, 0] = limbs[:, 1] ^ _SIGN
    out[:, 1] = limbs[:, 0]
    return out.view("S16").reshape(-1)


def make_comparison_key(column: Column) -> Any:
    """Make a function that returns a sort key of a stored value."""
    if is_wide_decimal(column):
        return decimal_from_bytes
    return identity_key


def identity_key(value: Any) -> Any:
    """Return the value as it is."""
    return value
