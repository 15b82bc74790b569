"""A few keys as a condition in SQL, by which the planner itself leaves data files out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.adapters.identifiers import quote_name
from metastore.adapters.refusals import reason_for_counts_only
from metastore.errors import InvalidArgument
from metastore.format.table_column import Column, decimal_type, encoding_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql.types import StructType


MOST_KEYS, MOST_BYTES = 1_000, 1 << 16
"""Of more single values the planner asks no list and no filter; long texts take long to parse."""
PLANNED_KEYS = 100
"""More take longer to compare with every row that is left than it takes to choose files without the planner."""

_NUMBERS = {"date": pa.int32(), "timestamp": pa.int64()}


def build_condition(keys: pa.Table, columns: Sequence[Column], most: int) -> str | None:
    """What every row meets that has one of some keys, and as few others as can be said shortly."""
    most = min(most, MOST_KEYS if len(columns) == 1 else MOST_KEYS // 32)
    if not 0 < keys.num_rows <= most or keys.nbytes > MOST_BYTES or not all(map(_is_plain, columns)):
        return None
    values = [
        [_literal(value, column) for value in one.cast(_NUMBERS.get(column.type, one.type)).to_pylist()]
        for one, column in zip(keys, columns, strict=True)
    ]
    names = [quote_name(column.path) for column in columns]
    if len(columns) == 1:
        return _one_of(names[0], values[0])
    rows = (
        " AND ".join(_one_of(name, [value]) for name, value in zip(names, row, strict=True))
        for row in zip(*values, strict=True)
    )
    return "(" + " OR ".join(f"({row})" for row in rows) + ")"


def text_literal(value: str) -> str:
    """A text in SQL, in bytes: no setting changes how that is read."""
    return f"CAST(X'{value.encode().hex()}' AS STRING)"


def _is_plain(column: Column) -> bool:
    return column.type in _LITERALS or decimal_type(column.type) is not None


def _one_of(name: str, values: Sequence[str | None]) -> str:
    present = [value for value in values if value is not None]
    within = f"{name} IN ({', '.join(present)})"
    if len(present) == len(values):
        return within
    return f"({within} OR {name} IS NULL)" if present else f"{name} IS NULL"


def _literal(value: Any, column: Column) -> str | None:
    write = _LITERALS.get(column.type) or (lambda value: f"CAST('{value:f}' AS {column.type})")
    return None if value is None else write(value)


_LITERALS: dict[str, Callable[[Any], str]] = {
    "tinyint": "{}Y".format,
    "smallint": "{}S".format,
    "int": str,
    "bigint": "{}L".format,
    "boolean": lambda value: str(value).lower(),
    "date": "date_from_unix_date({})".format,
    "timestamp": "timestamp_micros({}L)".format,
    "string": text_literal,
    "binary": lambda value: f"X'{value.hex()}'",
}

_NUMBER_TYPES = {"tinyint", "smallint", "int", "bigint"}
_FRACTIONS = {"float", "double"}
NOTHING = "void"


def convert_key(name: str, given: str, column: Column) -> tuple[str, str]:
    """SQL of a key as a value of the column, and of whether it is one.

    A key that no value of the column's type equals, such as 3000000000 for an int, is in no row.
    """
    wanted = column.type
    if _family(given) != _family(wanted) and given != NOTHING:
        raise InvalidArgument(
            "keys", f"{column.name} is {given}, the table's column is {wanted}", "Cast one of the two."
        )
    if given == wanted:
        return name, "true"
    value = f"try_cast({name} AS {wanted})"
    if given == NOTHING or _family(wanted) in ("text", wanted):
        return value, "true"
    return value, f"{name} <=> try_cast({value} AS {given})"


def pad_char(value: str, length: int) -> str:
    """SQL of a text with blanks up to the length of CHAR; one that is longer stays."""
    return f"rpad({value}, greatest({length}, length({value})), ' ')"


def list_stored_forms(keys: pa.Table, length: int) -> pa.Table:
    """All that data files may hold where a column of CHAR shows one of some keys: writers pad it or do not."""
    shortest = {None if key is None else key.rstrip(" ") for key in keys[0].to_pylist()}
    texts = sorted(text for text in shortest if text is not None)
    forms: list[str | None] = [
        text.ljust(size) for text in texts for size in range(len(text), max(length, len(text)) + 1)
    ]
    return pa.table({keys.column_names[0]: pa.array(forms + [None] * (None in shortest), keys.schema.field(0).type)})


def _family(spark_type: str) -> str:
    if spark_type in _NUMBER_TYPES or decimal_type(spark_type):
        return "number"
    if spark_type in _FRACTIONS:
        return "fraction"
    return "text" if spark_type == "string" or spark_type.startswith(("char(", "varchar(")) else spark_type


_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
"""Spark's own mark of a column of CHAR or VARCHAR, whose type it shows as string."""


def read_spark_columns(schema: StructType, above: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """The leaves of a schema, without keys."""
    found: list[Column] = []
    for field in schema.fields:
        path, inner = (*above, field.name), _struct(field.dataType)
        if inner is not None:
            found += read_spark_columns(inner, path)
        else:
            kind = field.dataType.simpleString()
            found.append(Column("", path, kind, None if reason_for_counts_only(kind) else encoding_of(kind)))
    return tuple(found)


def has_char_column(schema: StructType, columns: Sequence[Column]) -> bool:
    """Whether a column is of CHAR or VARCHAR: in comparisons with them Spark pads."""
    names = {column.path[0] for column in columns}
    return any(_PADDED in str(field.jsonValue()) for field in schema.fields if field.name in names)


def find_char_length(schema: StructType, column: Column) -> int | None:
    """The length of CHAR, to which Spark pads values of a column where it reads and compares them; None of others."""
    field = next((one for one in schema.fields if one.name == column.path[0]), None)
    raw = field.metadata.get(_PADDED) if field is not None else None
    kind = _declared(raw) if raw else None
    for name in column.path[1:]:
        kind = next((one.dataType for one in getattr(kind, "fields", ()) if one.name == name), None)
    return kind.length if kind is not None and kind.typeName() == "char" else None


def _declared(raw: str) -> Any:
    """The type that a mark names, which only Spark reads where it is not CHAR itself."""
    from pyspark.sql.types import CharType, DataType, _parse_datatype_string  # noqa: PLC0415 - not needed to import this

    if char := re.fullmatch(r"char\((\d+)\)", raw):
        return CharType(int(char[1]))
    parse = getattr(DataType, "fromDDL", _parse_datatype_string)  # Spark 3.5 has no public one
    return parse(raw)


def _struct(kind: Any) -> StructType | None:
    return kind if kind.typeName() == "struct" else None
