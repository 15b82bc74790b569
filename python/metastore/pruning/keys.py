"""Values as keys: integers or byte strings whose order is that of the values in Spark.

The keys of integers, dates, timestamps and booleans are their stored values; those of decimals are unscaled integers,
and those of texts are their bytes. The key of a double is an integer in the order of IEEE 754, with a single zero, and
a single NaN above all numbers.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.format.object_schemas import ENCODED_TYPES
from metastore.format.sortable_values import is_wide_decimal
from metastore.format.value_rendering import decimal_from_bytes, decimal_to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.pruning.value_sets import Key

NAN = 0x7FF8 << 48
_GREATEST_LONG = (1 << 63) - 1


def key_of_double(value: float) -> int:
    """Return the key of a double.

    Example:
        >>> key_of_double(-1.5) < key_of_double(-0.0) == key_of_double(0.0) < key_of_double(float("inf")) < NAN
        True
    """
    if value != value:  # noqa: PLR0124 - NaN
        return NAN
    bits: int = struct.unpack(">q", struct.pack(">d", value + 0.0))[0]
    if bits >= 0:
        return bits
    return -(bits & _GREATEST_LONG)


def double_of_key(key: int) -> float:
    """Return the double of a key: the inverse of `key_of_double`."""
    bits = key if key >= 0 else -key | 1 << 63
    (value,) = struct.unpack(">d", struct.pack(">Q", bits))
    return float(value)


def keys_of_doubles(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the keys of doubles other than NaN."""
    bits = (values + 0.0).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & _GREATEST_LONG))


def key_of_stored(value: Any, column: Column) -> Key:
    """Return the key of a value as the format stores it."""
    if column.encoding == "double":
        return key_of_double(value)
    if is_wide_decimal(column):
        return decimal_from_bytes(value)
    key: Key = value
    return key


def encode_keys(keys: Sequence[Key], column: Column) -> pa.Array:
    """Convert keys, of which none is NaN, to values as the format stores them."""
    values: Iterable[Any] = keys
    if column.encoding == "double":
        values = map(double_of_key, map(int, keys))
    elif is_wide_decimal(column):
        values = map(decimal_to_bytes, map(int, keys))
    return pa.array(list(values), ENCODED_TYPES[str(column.encoding)])
