"""Parses the texts with which Spark renders values."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from metastore.format.binary_text import parse_binary
from metastore.format.time_zones import parse_time_zone

if TYPE_CHECKING:
    from collections.abc import Callable


_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_FLOATS = ("float", "double")


def parse_spark_text(text: str | None, spark_type: str, zone: str = "UTC") -> Any:
    """Parse a text of `render_value` into a Python value; return the text if Python has no such value."""
    parse = _make_parser(spark_type, zone)
    if text is None or parse is None:
        return text
    with suppress(ValueError, ArithmeticError):  # years that Python's types do not reach
        return parse(text)
    return text


def _make_parser(spark_type: str, zone: str) -> Callable[[str], Any] | None:
    if spark_type in _INTEGERS:
        return int
    if spark_type in _FLOATS:
        return float
    if spark_type.startswith("decimal("):
        return Decimal
    parsers: dict[str, Callable[[str], Any]] = {
        "boolean": lambda text: text == "true",
        "date": date.fromisoformat,
        "timestamp": lambda text: _parse_datetime(text).replace(tzinfo=parse_time_zone(zone)),
        "timestamp_ntz": _parse_datetime,
        "binary": _parse_bytes,
    }
    return parsers.get(spark_type)


def _parse_bytes(text: str) -> bytes:
    value = parse_binary(text)
    if value is None:
        raise ValueError(f"{text!r} is no binary value")
    return value


def _parse_datetime(text: str) -> datetime:
    seconds, _, fraction = text.partition(".")
    moment = datetime.strptime(seconds, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - the caller knows the zone
    if not fraction:
        return moment
    return moment.replace(microsecond=int(fraction.ljust(6, "0")))
