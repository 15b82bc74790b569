"""Cuts bounds, encodes wide decimals, and converts stored values to Python values and texts."""

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

_PLAIN_FROM = 1e-3
_PLAIN_BELOW = 1e7
"""Java writes numbers in this range without an exponent."""


def cut_lower(value: bytes) -> tuple[bytes, bool]:
    """Return a lower bound of at most 64 bytes, and whether it is the value itself."""
    return value[:CUT_BYTES], len(value) <= CUT_BYTES


def cut_upper(value: bytes) -> tuple[bytes | None, bool]:
    r"""Return an upper bound of at most 64 bytes, or None if there is none, and whether it is the value itself."""
    if len(value) <= CUT_BYTES:
        return value, True
    prefix = value[:CUT_BYTES].rstrip(b"\xff")
    if not prefix:
        return None, False
    return prefix[:-1] + bytes([prefix[-1] + 1]), False


def may_be_cut(value: Any, *, are_bounds_exact: bool) -> bool:
    """Return whether a text or byte string may be only the beginning of a value."""
    return not are_bounds_exact and isinstance(value, bytes) and len(value) >= CUT_BYTES


def decimal_to_bytes(unscaled: int) -> bytes:
    """Write a wide decimal's unscaled value as 16 bytes, big-endian two's complement."""
    return unscaled.to_bytes(DECIMAL_BYTES, "big", signed=True)


def decimal_from_bytes(value: bytes) -> int:
    """Read the unscaled value of a wide decimal."""
    return int.from_bytes(value, "big", signed=True)


def to_python_value(value: Any, column: Column) -> Any:
    """Convert a stored value to the Python value of its Spark type.

    Dates and timestamps outside the years 1 to 9999 come as `numpy.datetime64` (the least timestamp of all, which
    numpy takes for null, as its number); day-time intervals as `timedelta`, year-month intervals as a number of
    months; null as None.
    """
    if value is None:
        return None
    convert = _CONVERTERS[_family(column)]
    return convert(value, column)


def render_value(value: Any, column: Column, *, exact: bool = True, zone: str = "UTC") -> str | None:
    """Render a stored value as Spark's `CAST(x AS STRING)` does, bytes as `X'00FF'`; null as None.

    Java 17 writes a few floating-point numbers with one digit more than necessary; this function writes the shortest
    form, as Java 19 does.
    """
    if value is None:
        return None
    render = make_renderer(column, zone)
    family = _family(column)
    if exact or family not in ("text", "bytes"):
        return render(value)
    if family == "text":
        value = _without_torn_character(bytes(value))
    return render(value) + ELLIPSIS


TIMES = ("date", "timestamp", "timestamp_ntz")
"""Types whose averages are numbers of days or microseconds."""


def render_average_time(average: float, column_type: str, zone: str = "UTC") -> str | None:
    """Render the average of dates or times as one of them.

    Example:
        >>> render_average_time(19737.5, "date")
        '2024-01-15'
    """
    return render_value(math.floor(average), Column(key="", path=("",), type=column_type, encoding="long"), zone=zone)


def make_renderer(column: Column, zone: str = "UTC") -> Callable[[Any], str]:
    """Make a function that renders exact values of a column, not null, as `render_value` does."""
    family = _family(column)
    if family == "timestamp":
        time_zone = parse_time_zone(zone)
        return lambda value: calendar.render_timestamp(int(value), time_zone)
    render = _RENDERERS[family]
    return lambda value: render(value, column)


def _family(column: Column) -> str:
    """Return the key of a column's type in the tables of converters and renderers."""
    if decimal_type(column.type):
        return "decimal"
    if column.type.startswith("interval "):
        return "interval"
    if column.type == "binary":
        return "bytes"
    if column.encoding == "binary":
        return "text"
    if column.type in _CONVERTERS:
        return column.type
    return "integer"


def _to_decimal(value: Any, column: Column) -> Decimal:
    unscaled = decimal_from_bytes(value) if column.encoding == "binary" else int(value)
    decimal = decimal_type(column.type)
    if decimal is None:
        return Decimal(unscaled)
    _, scale = decimal
    return Decimal(f"{unscaled}E{-scale}")


def _render_text(value: Any, _: Column) -> str:
    return bytes(value).decode("utf-8", "replace")


_CONVERTERS: dict[str, Callable[[Any, Column], Any]] = {
    "boolean": lambda value, _: bool(value),
    "integer": lambda value, _: int(value),
    "float": lambda value, _: float(value),
    "double": lambda value, _: float(value),
    "decimal": _to_decimal,
    "date": lambda value, _: calendar.to_date(int(value)),
    "timestamp": lambda value, _: calendar.to_datetime(int(value), utc=True),
    "timestamp_ntz": lambda value, _: calendar.to_datetime(int(value), utc=False),
    "interval": lambda value, column: calendar.to_interval(int(value), column.type),
    "text": _render_text,
    "bytes": lambda value, _: bytes(value),
}


def _without_torn_character(value: bytes) -> bytes:
    """Remove the last character of a text in UTF-8 if some of its bytes are missing."""
    for tail in range(1, min(4, len(value) + 1)):
        byte = value[-tail]
        if byte < 0x80:
            return value
        if byte >= 0xC0:  # the first byte of a character
            is_complete = tail >= _character_length(byte)
            return value if is_complete else value[:-tail]
    return value


def _character_length(first_byte: int) -> int:
    if first_byte < 0xE0:
        return 2
    if first_byte < 0xF0:
        return 3
    return 4


def _render_double(value: float | np.float32) -> str:
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    return sign + _render_magnitude(abs(value))


def _render_magnitude(magnitude: float | np.float32) -> str:
    if math.isinf(magnitude):
        return "Infinity"
    if magnitude == 0:
        return "0.0"
    if _PLAIN_FROM <= magnitude < _PLAIN_BELOW:
        return np.format_float_positional(magnitude, unique=True, trim="0")
    digits, exponent = np.format_float_scientific(magnitude, unique=True, trim="0").split("e")
    return f"{digits}E{int(exponent)}"


_RENDERERS: dict[str, Callable[[Any, Column], str]] = {
    "boolean": lambda value, _: "true" if value else "false",
    "integer": lambda value, _: str(int(value)),
    "float": lambda value, _: _render_double(np.float32(value)),
    "double": lambda value, _: _render_double(float(value)),
    "decimal": lambda value, column: f"{_to_decimal(value, column):f}",
    "date": lambda value, _: calendar.render_date(int(value)),
    "timestamp_ntz": lambda value, _: calendar.render_timestamp(int(value), None),
    "interval": lambda value, column: calendar.render_interval(int(value), column.type),
    "text": _render_text,
    "bytes": lambda value, _: render_binary(bytes(value)),
}
