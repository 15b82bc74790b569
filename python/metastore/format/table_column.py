"""Columns as the format knows them: leaves of a table's schema with a key, a path and a Spark type."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from metastore.contract import format_names
from metastore.format.documents import UNSTORED

_LONG_TYPES = {"boolean", "tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz"}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_TEXT = re.compile(r"string(?: collate .+)?|(?:char|varchar)\(\d+\)")
_INTERVAL = re.compile(r"interval (?:year|month|day|hour|minute|second)(?: to (?:month|hour|minute|second))?")

LONG_DECIMAL_DIGITS = 18
CASTING = format_names("casts")
"""Table formats whose readers cast a float to a double through its text: 0.1 stays 0.1."""
INTEGERS = ("tinyint", "smallint", "int", "bigint")
FROM_INTEGERS = ("float", "double", "string")
"""To what integers are cast alike everywhere."""
EXPRESSION = "expression:"
"""The beginning of the keys of expressions over columns, which are no columns of a table's schema."""
_WIDER = {"tinyint": ("smallint", "int", "bigint"), "smallint": ("int", "bigint"), "int": ("bigint",)}


def decimal_type(spark_type: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type, None of any other type."""
    match = _DECIMAL.fullmatch(spark_type)
    return (int(match[1]), int(match[2])) if match else None


def encoding_of(spark_type: str) -> str | None:
    """How values of a Spark type are stored: "long", "double", "binary", or None (counts only)."""
    decimal = decimal_type(spark_type)
    if decimal:
        return "long" if decimal[0] <= LONG_DECIMAL_DIGITS else "binary"
    if spark_type in _LONG_TYPES or _INTERVAL.fullmatch(spark_type):
        return "long"
    if spark_type in ("float", "double"):
        return "double"
    return "binary" if spark_type == "binary" or _TEXT.fullmatch(spark_type) else None


@dataclass(frozen=True)
class Column:
    """A leaf of a table's schema.

    Attributes:
        key: What identifies it: Iceberg's field id as text, or the JSON array of (physical) names. Of an expression
            over columns what the shim identifies it by.
        path: Its names from the root of the schema; of an expression its SQL alone.
        type: Spark's `simpleString` at the time of writing.
        encoding: "long", "double", "binary", or None where only counts are kept.
        collation: The collation of a string column where it is not the binary one.
        casts: Whether readers of the table cast what a file holds in another type, a float through its text, as Hudi
            does; the table's format decides.
        mapped_key: The key under which it is stored, where that says how data files without field ids name it.
    """

    key: str
    path: tuple[str, ...]
    type: str
    encoding: str | None
    collation: str | None = None
    casts: bool = field(default=False, compare=False, metadata=UNSTORED)
    mapped_key: str | None = field(default=None, compare=False, metadata=UNSTORED)

    @property
    def name(self) -> str:
        """The dotted name; parts that hold a dot or a back-quote are back-quoted. Of an expression its SQL."""
        return self.path[0] if self.is_expression else ".".join(_quoted(part) for part in self.path)

    @property
    def is_expression(self) -> bool:
        """Whether it is an expression over columns."""
        return self.key.startswith(EXPRESSION)

    def check(self) -> None:
        """Refuses what is no column of a manifest."""
        if not self.path or self.encoding not in (None, "long", "double", "binary"):
            raise TypeError(f"a column {self.path} of encoding {self.encoding}")


def is_compatible(stored: Column, wanted: Column) -> bool:
    """Whether values stored for one column are values of another: the same column, its type equal or widened."""
    if stored.key != wanted.key or stored.encoding != wanted.encoding or stored.collation != wanted.collation:
        return False
    old, new = decimal_type(stored.type), decimal_type(wanted.type)
    if old and new:
        return old[1] == new[1] and old[0] <= new[0]
    if (stored.type, wanted.type) == ("float", "double"):
        return not (stored.casts or wanted.casts)
    return stored.type == wanted.type or wanted.type in _WIDER.get(stored.type, ())


def is_exact_cast(held: str, wanted: str) -> bool:
    """Whether a cast to another type has one answer everywhere; spellings of numbers are none."""
    if held in INTEGERS:
        return wanted in FROM_INTEGERS
    narrow, wide = decimal_type(held), decimal_type(wanted)
    return bool(narrow and wide and narrow[1] <= wide[1] and narrow[0] - narrow[1] <= wide[0] - wide[1])


def _quoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`" if not part or "." in part or "`" in part else part
