"""Constants of a filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metastore.format.table_column import INTEGERS

INTEGER = "integer"
DECIMAL = "decimal"
DOUBLE = "double"
FLOAT = "float"
STRING = "string"
BOOLEAN = "boolean"
DATE = "date"
TIMESTAMP = "timestamp"
TIMESTAMP_NTZ = "timestamp_ntz"
BINARY = "binary"
NULL = "null"

NUMBERS = (INTEGER, DECIMAL, DOUBLE, FLOAT)
MOST_DIGITS = 38
"""The digits of the longest decimal."""
NOT_UTF8 = "\ufffd"
"""A character for bytes that are not UTF-8: Spark and Python may treat them in different ways."""


@dataclass(frozen=True)
class Literal:
    """A constant of a filter.

    Attributes:
        kind: Its type in Spark, one of the names above.
        value: An `int`, `Decimal`, `float`, `str`, `bool` or `bytes`; times and dates as text; None for NULL.
    """

    kind: str
    value: Any


def is_of_other_type(literal: Literal, type_: str) -> bool:
    """Return whether a literal is a text that cannot be a value of the type, which is a number or a time.

    Example:
        >>> is_of_other_type(Literal(STRING, "x"), "bigint"), is_of_other_type(Literal(STRING, " 7"), "bigint")
        (True, False)
    """
    if literal.kind != STRING:
        return False
    if type_ in INTEGERS:
        return any(map(str.isalpha, literal.value))
    if type_.startswith(("date", "timestamp", "decimal")):
        return not any(map(str.isdigit, literal.value))
    return False
