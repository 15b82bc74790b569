"""Arrow values as they are stored in statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore._format.columns import decimal_type
from metastore._format.values import decimal_to_bytes

if TYPE_CHECKING:
    from metastore._format.columns import Column


def stored_values(values: pa.Array, column: Column) -> list[Any]:
    """Turn values of a column's type into what statistics hold.

    Args:
        values: Booleans, numbers, dates, timestamps, decimals, strings or bytes.
        column: The column.

    Returns:
        Integers, floats or bytes by the column's encoding; None for null, and for columns with counts only True.

    Example:
        >>> import datetime, pyarrow as pa
        >>> from metastore._format.columns import Column
        >>> stored_values(pa.array([datetime.date(1970, 1, 2), None]), Column("1", ("d",), "date", "long"))
        [1, None]
    """
    decimal = decimal_type(column.type)
    if column.encoding is None:
        return [True if valid else None for valid in values.is_valid().to_pylist()]
    if decimal is not None:
        wide = column.encoding == "binary"
        return [_unscaled(value, decimal[1], wide=wide) for value in values.to_pylist()]
    if column.encoding == "double":
        return list(values.cast(pa.float64()).to_pylist())
    if column.encoding == "binary":
        return list(values.cast(pa.binary()).to_pylist())
    if column.type == "date":
        values = values.cast(pa.int32())
    elif pa.types.is_date(values.type):
        # A date promoted to a timestamp.
        values = values.cast(pa.timestamp("us"))
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz))
    return list(values.cast(pa.int64()).to_pylist())


def _unscaled(value: Any, scale: int, *, wide: bool) -> int | bytes | None:
    if value is None:
        return None
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    number = -number if sign else number
    return decimal_to_bytes(number) if wide else number
