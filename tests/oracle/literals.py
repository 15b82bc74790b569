"""Python values of the oracle as SQL that Spark folds to a literal of exactly one type."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from oracle.columns import DAY, FIRST_DAY, FLOATS, INTEGER_BITS, LAST_DAY, TIMES, is_nan

if TYPE_CHECKING:
    from random import Random

EPOCH = date(1970, 1, 1)
SUFFIX = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}


def quoted(text: str) -> str:
    """Returns a text as a SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\x00", "\\0") + "'"


def text(value: bytes) -> str:
    """Returns the bytes of a string as SQL; bytes that are not UTF-8 go through a cast."""
    try:
        return quoted(value.decode())
    except UnicodeDecodeError:
        return f"CAST(X'{value.hex()}' AS STRING)"


def day(value: int) -> str:
    """Returns a day since the epoch as yyyy-mm-dd."""
    return (EPOCH + timedelta(days=value)).isoformat()


def instant(value: int) -> str:
    """Returns microseconds since the epoch as `yyyy-mm-dd hh:mm:ss.ffffff`."""
    return (datetime(1970, 1, 1) + timedelta(microseconds=value)).isoformat(sep=" ", timespec="microseconds")  # noqa: DTZ001


def literal(name: str, value: Any) -> str:
    """Returns SQL for a value of a column type.

    >>> literal("bigint", 5), literal("date", 0), literal("double", float("nan"))
    ('5L', "DATE '1970-01-01'", "double('NaN')")
    """
    if value is None:
        return f"CAST(NULL AS {name})"
    if name == "boolean":
        return "true" if value else "false"
    if name in INTEGER_BITS:
        least = value == -(1 << (INTEGER_BITS[name] - 1))
        return f"CAST('{value}' AS {name})" if least else f"{value}{SUFFIX[name]}"
    if name in FLOATS:
        written = "NaN" if is_nan(value) else ("-" * (value < 0) + "Infinity" if math.isinf(value) else repr(value))
        return f"{name}('{written}')"
    if name.startswith("decimal"):
        return f"CAST('{value:f}' AS {name})"
    if name == "date":
        assert FIRST_DAY <= value <= LAST_DAY, value
        return f"DATE '{day(value)}'"
    if name in TIMES:
        assert FIRST_DAY * DAY <= value < (LAST_DAY + 1) * DAY, value
        return f"TIMESTAMP '{instant(value)}Z'" if name == "timestamp" else f"TIMESTAMP_NTZ '{instant(value)}'"
    return text(value) if name == "string" else f"X'{value.hex()}'"


def loose(name: str, value: Any, rng: Random) -> str:
    """Returns SQL near a value but often of another type, as people write it: Spark then inserts the casts."""
    if value is None:
        return "NULL"
    if name in INTEGER_BITS:
        return rng.choice([f"{value}", f"{value}.5", f"{value}e0", f"'{value}'", f"CAST({value} AS decimal(38,2))"])
    if name in FLOATS:
        plain = f"{value!r}" if math.isfinite(value) else literal(name, value)
        return rng.choice([f"double({plain})", f"float({plain})", literal(name, value)])
    if name.startswith("decimal"):
        return rng.choice(
            [f"{value:f}", f"double('{value:f}')", f"'{value:f}'", f"CAST('{value:f}' AS decimal(38,10))"]
        )
    if name == "date":
        return rng.choice(
            [f"'{day(value)}'", f"TIMESTAMP '{day(value)} 00:00:00'", f"TIMESTAMP_NTZ '{day(value)} 12:00:00'"]
        )
    if name in TIMES:
        rendered = instant(value)
        return rng.choice(
            [f"TIMESTAMP '{rendered}'", f"TIMESTAMP_NTZ '{rendered}'", f"'{rendered}'", f"DATE '{rendered[:10]}'"]
        )
    if name == "boolean":
        return rng.choice(["'true'", "'false'"])
    return text(value) if name == "string" else f"CAST(X'{value.hex()}' AS STRING)"
