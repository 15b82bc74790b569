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
"""Stands for bytes that are no text: Spark and Python may disagree about them."""


@dataclass(frozen=True)
class Literal:
    """A constant of a filter.

    Attributes:
        kind: The type that Spark gives it: one of the names above.
        value: An `int`, `Decimal`, `float`, `str`, `bool` or `bytes`; times and dates as text; None of NULL.
    """

    kind: str
    value: Any


def is_of_other_type(literal: Literal, type_: str) -> bool:
    """Return whether a literal is a text that is certainly no number or time, as the type it is compared with.

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
