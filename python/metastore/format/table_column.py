"""Columns as the format knows them: leaves of a table's schema with a key, a path and a Spark type."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from metastore.contract import formats_with
from metastore.format.documents import UNSTORED

_ENCODINGS_BY_TYPE = {
    "boolean": "long",
    "tinyint": "long",
    "smallint": "long",
    "int": "long",
    "bigint": "long",
    "date": "long",
    "timestamp": "long",
    "timestamp_ntz": "long",
    "float": "double",
    "double": "double",
    "binary": "binary",
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_TEXT = re.compile(r"string(?: collate .+)?|(?:char|varchar)\(\d+\)")
_INTERVAL = re.compile(r"interval (?:year|month|day|hour|minute|second)(?: to (?:month|hour|minute|second))?")

LONG_DECIMAL_DIGITS = 18
CASTING = formats_with("casts")
"""Table formats whose readers cast a float to a double through its text: 0.1 stays 0.1."""
INTEGERS = ("tinyint", "smallint", "int", "bigint")
FROM_INTEGERS = ("float", "double", "string")
"""Types to which integers are cast with one result everywhere."""
EXPRESSION = "expression:"
"""The beginning of the keys of expressions over columns, which are no columns of a table's schema."""
_ENCODINGS = (None, "long", "double", "binary")
_WIDER = {"tinyint": ("smallint", "int", "bigint"), "smallint": ("int", "bigint"), "int": ("bigint",)}


def decimal_type(spark_type: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal type; None for any other type."""
    match = _DECIMAL.fullmatch(spark_type)
    if match is None:
        return None
    return int(match[1]), int(match[2])


def encoding_of(spark_type: str) -> str | None:
    """Return the encoding of stored values of a Spark type: "long", "double", "binary", or None (counts only)."""
    precision, _ = decimal_type(spark_type) or (0, 0)
    if precision > LONG_DECIMAL_DIGITS or _TEXT.fullmatch(spark_type):
        return "binary"
    if precision > 0 or _INTERVAL.fullmatch(spark_type):
        return "long"
    return _ENCODINGS_BY_TYPE.get(spark_type)


@dataclass(frozen=True, kw_only=True)
class Column:
    """A leaf of a table's schema.

    Attributes:
        key: Its identity: Iceberg's field id as text, the JSON array of (physical) names, or the shim's key of an
            expression over columns.
        path: Its names from the root of the schema; for an expression, only its SQL.
        type: Spark's `simpleString` at the time of writing.
        encoding: "long", "double", "binary", or None if it has counts only.
        collation: The collation of a string column, if it is not the binary one.
        casts: Whether readers of the table cast the values of a file with another type, and floats by their texts, as
            in Hudi; the table's format decides this.
        mapped_key: The key under which it is stored, if that contains its names in data files without field ids.
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
        """The dotted name, with parts in back-quotes that have a dot or a back-quote; for an expression, its SQL."""
        if self.is_expression:
            return self.path[0]
        return ".".join(map(_quote_if_needed, self.path))

    @property
    def is_expression(self) -> bool:
        """Whether it is an expression over columns."""
        return self.key.startswith(EXPRESSION)

    def check(self) -> None:
        """Raise a TypeError if a manifest cannot have this column."""
        if not self.path or self.encoding not in _ENCODINGS:
            raise TypeError(f"a column {self.path} of encoding {self.encoding}")


def is_compatible(stored: Column, current: Column) -> bool:
    """Return whether values stored for a column are valid for another: the same, with an equal or wider type."""
    if stored.key != current.key:
        return False
    if (stored.encoding, stored.collation) != (current.encoding, current.collation):
        return False
    if stored.type == current.type:
        return True
    if (stored.type, current.type) == ("float", "double"):
        return not stored.casts and not current.casts
    return current.type in _WIDER.get(stored.type, ()) or _is_wider_decimal(stored.type, current.type)


def _is_wider_decimal(stored_type: str, current_type: str) -> bool:
    """Return whether both types are decimals of the same scale, and the current one has at least as many digits."""
    stored = decimal_type(stored_type)
    current = decimal_type(current_type)
    if stored is None or current is None:
        return False
    return stored[1] == current[1] and stored[0] <= current[0]


def is_exact_cast(file_type: str, table_type: str) -> bool:
    """Return whether a cast to another type has the same result everywhere; texts of fractional numbers differ."""
    if file_type in INTEGERS:
        return table_type in FROM_INTEGERS
    file_decimal = decimal_type(file_type)
    table_decimal = decimal_type(table_type)
    if file_decimal is None or table_decimal is None:
        return False
    file_precision, file_scale = file_decimal
    table_precision, table_scale = table_decimal
    return file_scale <= table_scale and file_precision - file_scale <= table_precision - table_scale


def _quote_if_needed(part: str) -> str:
    if part and "." not in part and "`" not in part:
        return part
    return "`" + part.replace("`", "``") + "`"
