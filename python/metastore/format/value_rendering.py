"""Values: how bounds are cut, how wide decimals are stored, how stored values look to people and programs."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.contract import read_contract
from metastore.format import calendar
from metastore.format.binary_text import render_binary
from metastore.format.table_column import Column, decimal_type
from metastore.format.time_zones import parse_time_zone

if TYPE_CHECKING:
    from collections.abc import Callable


CUT_BYTES: int = read_contract("limits")["cut_bytes"]
DECIMAL_BYTES = 16
ELLIPSIS = "…"

_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7


def cut_lower(value: bytes) -> tuple[bytes, bool]:
    """A lower bound of at most 64 bytes, and whether it is the value itself."""
    return (value, True) if len(value) <= CUT_BYTES else (value[:CUT_BYTES], False)


def cut_upper(value: bytes) -> tuple[bytes | None, bool]:
    r"""An upper bound of at most 64 bytes (None: there is none so short), and whether it is the value itself."""
    if len(value) <= CUT_BYTES:
        return value, True
    prefix = value[:CUT_BYTES].rstrip(b"\xff")
    return (prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None), False


def may_be_cut(value: Any, *, are_bounds_exact: bool) -> bool:
    """Whether a text or byte string within a column's values may be the beginning of longer ones."""
    return not are_bounds_exact and isinstance(value, bytes) and len(value) >= CUT_BYTES


def decimal_to_bytes(unscaled: int) -> bytes:
    """A wide decimal's unscaled value as 16 bytes, big-endian two's complement."""
    return unscaled.to_bytes(DECIMAL_BYTES, "big", signed=True)


def decimal_from_bytes(value: bytes) -> int:
    """The unscaled value of a wide decimal."""
    return int.from_bytes(value, "big", signed=True)


def to_python_value(value: Any, column: Column) -> Any:
    """A stored value as the Python value of its Spark type.

    Dates and timestamps outside the years 1 to 9999 come as `numpy.datetime64` (the least timestamp of all, which
    numpy takes for null, as its number); day-time intervals as `timedelta`, year-month intervals as a number of
    months; null as None.
    """
    return None if value is None else _TYPED[_family(column)](value, column)


def render_value(value: Any, column: Column, *, exact: bool = True, zone: str = "UTC") -> str | None:
    """A stored value as Spark's `CAST(x AS STRING)` renders it, bytes as `X'00FF'`; null as None.

    Java 17 shows a few floating-point numbers with a digit more than is needed; here, as from Java 19 on, they are
    shown with the fewest that tell them apart.
    """
    if value is None:
        return None
    family = _family(column)
    if not exact and family == "text":
        return _without_torn_character(bytes(value)).decode("utf-8", "replace") + ELLIPSIS
    text = make_renderer(column, zone)(value)
    return text + ELLIPSIS if family == "bytes" and not exact else text


TIMES = ("date", "timestamp", "timestamp_ntz")
"""Types whose averages are numbers of days or microseconds."""


def render_average_time(average: float, column_type: str, zone: str = "UTC") -> str | None:
    """The average of dates or times as one of them.

    Example:
        >>> render_average_time(19737.5, "date")
        '2024-01-15'
    """
    return render_value(math.floor(average), Column("", ("",), column_type, "long"), zone=zone)


def make_renderer(column: Column, zone: str = "UTC") -> Callable[[Any], str]:
    """What renders many values of a column, as `render` does one that is exact and not null."""
    family = _family(column)
    if family == "timestamp":
        shown_in = parse_time_zone(zone)
        return lambda value: calendar.render_timestamp(int(value), shown_in)
    rendered = _RENDERED[family]
    return lambda value: rendered(value, column)


def _family(column: Column) -> str:
    if decimal_type(column.type):
        return "decimal"
    if column.type.startswith("interval "):
        return "interval"
    if column.encoding == "binary":
        return "bytes" if column.type == "binary" else "text"
    return column.type if column.type in _TYPED else "integer"


def _decimal(value: Any, column: Column) -> Decimal:
    unscaled = decimal_from_bytes(value) if column.encoding == "binary" else int(value)
    precision_and_scale = decimal_type(column.type)
    return Decimal(f"{unscaled}E{-precision_and_scale[1]}" if precision_and_scale else unscaled)


def _text(value: Any, _: Column) -> str:
    return bytes(value).decode("utf-8", "replace")


_TYPED: dict[str, Callable[[Any, Column], Any]] = {
    "boolean": lambda value, _: bool(value),
    "integer": lambda value, _: int(value),
    "float": lambda value, _: float(value),
    "double": lambda value, _: float(value),
    "decimal": _decimal,
    "date": lambda value, _: calendar.to_date(int(value)),
    "timestamp": lambda value, _: calendar.to_datetime(int(value), utc=True),
    "timestamp_ntz": lambda value, _: calendar.to_datetime(int(value), utc=False),
    "interval": lambda value, column: calendar.to_interval(int(value), column.type),
    "text": _text,
    "bytes": lambda value, _: bytes(value),
}


def _without_torn_character(value: bytes) -> bytes:
    for tail in range(1, min(4, len(value) + 1)):
        lead = value[-tail]
        if lead >= 0xC0:  # a lead byte: does the cut leave all bytes of its character?
            length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return value if tail >= length else value[:-tail]
        if lead < 0x80:
            return value
    return value


def _render_double(value: float | np.float32) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    magnitude = abs(value)
    digits, exponent = np.format_float_scientific(magnitude, unique=True, trim="0").split("e")
    sign = "-" if value < 0 else ""
    if _PLAIN_FROM <= magnitude < _PLAIN_BELOW:
        return sign + np.format_float_positional(magnitude, unique=True, trim="0")
    return f"{sign}{digits}E{int(exponent)}"


_RENDERED: dict[str, Callable[[Any, Column], str]] = {
    "boolean": lambda value, _: "true" if value else "false",
    "integer": lambda value, _: str(int(value)),
    "float": lambda value, _: _render_double(np.float32(value)),
    "double": lambda value, _: _render_double(float(value)),
    "decimal": lambda value, column: f"{_decimal(value, column):f}",
    "date": lambda value, _: calendar.render_date(int(value)),
    "timestamp_ntz": lambda value, _: calendar.render_timestamp(int(value), None),
    "interval": lambda value, column: calendar.render_interval(int(value), column.type),
    "text": _text,
    "bytes": lambda value, _: render_binary(bytes(value)),
}
