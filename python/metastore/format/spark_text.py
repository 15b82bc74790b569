"""Typed values of the texts that Spark renders."""

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
    """The Python value of a text that `render_value` made; the text itself where there is none."""
    reader = _reader(spark_type, zone)
    if text is None or reader is None:
        return text
    with suppress(ValueError, ArithmeticError):  # years that Python's types do not reach
        return reader(text)
    return text


def _reader(spark_type: str, zone: str) -> Callable[[str], Any] | None:
    if spark_type in _INTEGERS:
        return int
    if spark_type in _FLOATS:
        return float
    if spark_type.startswith("decimal("):
        return Decimal
    readers: dict[str, Callable[[str], Any]] = {
        "boolean": lambda text: text == "true",
        "date": date.fromisoformat,
        "timestamp": lambda text: _datetime(text).replace(tzinfo=parse_time_zone(zone)),
        "timestamp_ntz": _datetime,
        "binary": _bytes,
    }
    return readers.get(spark_type)


def _bytes(text: str) -> bytes:
    value = parse_binary(text)
    if value is None:
        raise ValueError(f"{text!r} is no binary value")
    return value


def _datetime(text: str) -> datetime:
    whole, _, fraction = text.partition(".")
    moment = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - the caller knows the zone
    return moment.replace(microsecond=int(fraction.ljust(6, "0"))) if fraction else moment
