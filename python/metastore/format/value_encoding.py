"""Converts Arrow and Python values to stored values."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Context
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.format.binary_text import parse_binary
from metastore.format.object_schemas import ENCODED_TYPES
from metastore.format.table_column import decimal_type
from metastore.format.time_zones import parse_time_zone
from metastore.format.value_rendering import decimal_to_bytes

if TYPE_CHECKING:
    from metastore.format.table_column import Column


ARROW_TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}
"""The Arrow types of Spark types without parameters, except texts."""
_EXACT = Context(prec=76)


def to_stored_values(values: pa.Array, column: Column) -> list[Any]:
    """Turn values of a column's type into stored values."""
    if column.encoding is None:
        return [valid or None for valid in values.is_valid().to_pylist()]
    decimal = decimal_type(column.type)
    if decimal is not None:
        _, scale = decimal
        is_wide = column.encoding == "binary"
        return [_to_unscaled(value, scale, wide=is_wide) for value in values.to_pylist()]
    if column.encoding == "long":
        return list(_to_longs(values, column).to_pylist())
    return list(values.cast(ENCODED_TYPES[column.encoding]).to_pylist())


def _to_longs(values: pa.Array, column: Column) -> pa.Array:
    """Turn numbers, dates and times into 64-bit integers."""
    if column.type == "date":
        values = values.cast(pa.int32())
    elif pa.types.is_date(values.type):  # a date promoted to a timestamp
        values = values.cast(pa.timestamp("us"))
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz))
    return values.cast(pa.int64())


def to_stored_value(value: Any, column: Column, zone: str = "UTC") -> Any:
    """Turn one Python value into a stored value; a text may stand for bytes as `X'00FF'`."""
    if value is None:
        return None
    if column.type.startswith("interval"):
        raise ValueError(f"values of {column.type} are not looked up")
    arrow_type = _arrow_type(column)
    try:
        if column.type == "timestamp":
            value = _to_instant(value, zone)
        if column.type == "binary":
            value = _to_bytes(value)
        array = pa.array([value]).cast(arrow_type)
    except (pa.ArrowException, TypeError) as e:
        raise ValueError(f"{value!r} is no {column.type}") from e
    (stored,) = to_stored_values(array, column)
    if column.encoding == "double":
        return stored + 0.0  # -0.0 is stored as 0.0
    return stored


def _arrow_type(column: Column) -> pa.DataType:
    decimal = decimal_type(column.type)
    if decimal:
        return pa.decimal128(*decimal)
    return ARROW_TYPES.get(column.type, pa.string())


def _to_instant(value: Any, zone: str) -> Any:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.replace("Z", "+00:00"))
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        value = value.replace(tzinfo=parse_time_zone(zone))
    return value.astimezone(timezone.utc)


def _to_bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    parsed = parse_binary(value)
    if parsed is None:
        return value
    return parsed


def _to_unscaled(value: Any, scale: int, *, wide: bool) -> int | bytes | None:
    if value is None:
        return None
    number = int(value.scaleb(scale, _EXACT))
    if wide:
        return decimal_to_bytes(number)
    return number
