"""Writes a few keys as an SQL condition, by which the planner skips data files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from metastore.adapters.identifiers import quote_name
from metastore.adapters.refusals import reason_for_counts_only
from metastore.errors import InvalidArgument
from metastore.format.table_column import Column, decimal_type, encoding_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql.types import StructType


MOST_KEYS = 1_000
"""The planner compares at most this many values with value lists and bloom filters."""
MOST_BYTES = 1 << 16
"""A condition with more bytes of keys takes long to parse."""
PLANNED_KEYS = 100
"""With more keys, comparing each row with them takes longer than choosing the files without the planner."""

_INTEGERS = {"date": pa.int32(), "timestamp": pa.int64()}


def build_condition(keys: pa.Table, columns: Sequence[Column], max_keys: int) -> str | None:
    """Write an SQL condition that every row with one of the keys meets; None if it would be too long."""
    if not _is_short(keys, max_keys) or not all(map(_has_literals, columns)):
        return None
    names = [quote_name(column.path) for column in columns]
    literals = list(map(_write_literals, keys, columns))
    if len(columns) == 1:
        return _write_in(names[0], literals[0])
    rows = [_write_row(names, row) for row in zip(*literals, strict=True)]
    return f"({' OR '.join(rows)})"


def _is_short(keys: pa.Table, max_keys: int) -> bool:
    """Return whether there are few enough keys for a condition: fewer if a key has several columns."""
    planner_limit = MOST_KEYS if keys.num_columns == 1 else MOST_KEYS // 32
    if not 0 < keys.num_rows <= min(max_keys, planner_limit):
        return False
    return bool(keys.nbytes <= MOST_BYTES)


def _write_row(names: Sequence[str], literals: Sequence[str | None]) -> str:
    """Write the condition that each column has its value of a key."""
    conditions = map(_write_equality, names, literals)
    return f"({' AND '.join(conditions)})"


def _write_equality(name: str, literal: str | None) -> str:
    return _write_in(name, [literal])


def text_literal(value: str) -> str:
    """Write a text in SQL as bytes: no setting of Spark changes how these are parsed."""
    return f"CAST(X'{value.encode().hex()}' AS STRING)"


def _has_literals(column: Column) -> bool:
    return column.type in _LITERALS or decimal_type(column.type) is not None


def _write_literals(values: pa.ChunkedArray, column: Column) -> list[str | None]:
    """Write values in SQL; None stands for NULL."""
    numbers = values.cast(_INTEGERS.get(column.type, values.type))
    write_decimal = f"CAST('{{:f}}' AS {column.type})".format
    write = _LITERALS.get(column.type, write_decimal)
    return [None if value is None else write(value) for value in numbers.to_pylist()]


def _write_in(name: str, literals: Sequence[str | None]) -> str:
    """Write the condition that a column has one of these values; None stands for NULL."""
    values = list(filter(None, literals))
    if not values:
        return f"{name} IS NULL"
    condition = f"{name} IN ({', '.join(values)})"
    if len(values) == len(literals):
        return condition
    return f"({condition} OR {name} IS NULL)"


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

_FAMILIES = {
    "tinyint": "number",
    "smallint": "number",
    "int": "number",
    "bigint": "number",
    "float": "fraction",
    "double": "fraction",
    "string": "text",
}
NULL_TYPE = "void"


def convert_key(name: str, key_type: str, column: Column) -> tuple[str, str | None]:
    """Write SQL that casts a key to the column's type, and SQL of whether the cast is exact; None if it always is.

    A key that no value of the column's type equals, such as 3000000000 for an int, is in no row.
    """
    column_type = column.type
    if key_type == column_type:
        return name, None
    value = f"try_cast({name} AS {column_type})"
    if key_type == NULL_TYPE:
        return value, None
    family = _family(column_type)
    if _family(key_type) != family:
        message = f"{column.name} is {key_type}, the table's column is {column_type}"
        raise InvalidArgument("keys", message, "Cast one of the two.")
    if family in ("text", column_type):
        return value, None
    return value, f"{name} <=> try_cast({value} AS {key_type})"


def pad_char(value: str, length: int) -> str:
    """Write SQL that pads a text with blanks to the length of CHAR; a longer text stays."""
    return f"rpad({value}, greatest({length}, length({value})), ' ')"


def list_stored_forms(keys: pa.Table, length: int) -> pa.Table:
    """List all stored forms of CHAR values that Spark pads to one of the keys: some writers do not pad."""
    values = keys[0]
    texts = pc.utf8_rtrim(values.drop_null(), characters=" ").unique()
    forms: list[str | None] = []
    for text in sorted(texts.to_pylist()):
        longest = max(length, len(text))
        sizes = range(len(text), longest + 1)
        forms += map(text.ljust, sizes)
    if values.null_count:
        forms.append(None)
    return pa.table({keys.column_names[0]: pa.array(forms, values.type)})


def _family(spark_type: str) -> str:
    """Return the kind of a type; values of different kinds are not compared."""
    if decimal_type(spark_type):
        return "number"
    if spark_type.startswith(("char(", "varchar(")):
        return "text"
    return _FAMILIES.get(spark_type, spark_type)


_DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""The key of the metadata in which Spark keeps CHAR and VARCHAR; the type itself is string."""


def read_spark_columns(schema: StructType, parent: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Return the columns of a schema; fields of structs are columns of their own."""
    columns: list[Column] = []
    for field in schema.fields:
        path = (*parent, field.name)
        data_type: Any = field.dataType
        if data_type.typeName() == "struct":
            columns += read_spark_columns(data_type, path)
            continue
        spark_type = data_type.simpleString()
        encoding = None if reason_for_counts_only(spark_type) else encoding_of(spark_type)
        columns.append(Column(key="", path=path, type=spark_type, encoding=encoding))
    return tuple(columns)


def has_char_column(schema: StructType, columns: Sequence[Column]) -> bool:
    """Return whether a column is of CHAR or VARCHAR, whose values Spark pads before it compares them."""
    return any(_DECLARED_TYPE in schema[column.path[0]].json() for column in columns)


def find_char_length(schema: StructType, column: Column) -> int | None:
    """Return the length to which Spark pads values of a CHAR column; None for other types."""
    from pyspark.sql.types import CharType  # noqa: PLC0415 - not needed to import this module

    root, *names = column.path
    column_type = _declared_type(schema, root)
    for name in names:
        column_type = _field_type(column_type, name)
    if not isinstance(column_type, CharType):
        return None
    return column_type.length


def _field_type(data_type: Any, name: str) -> Any:
    """Return the type of a field of a struct; None if there is no such field."""
    fields = {field.name: field.dataType for field in getattr(data_type, "fields", ())}
    return fields.get(name)


def _declared_type(schema: StructType, name: str) -> Any:
    """Return the type that a column was declared with if Spark marks it as CHAR or VARCHAR, else None."""
    declared_type = schema[name].metadata.get(_DECLARED_TYPE)
    return _parse_type(declared_type) if declared_type else None


def _parse_type(declared: str) -> Any:
    from pyspark.sql.types import CharType, DataType, _parse_datatype_string  # noqa: PLC0415 - not needed to import this

    match = re.fullmatch(r"char\((\d+)\)", declared)
    if match is not None:
        return CharType(int(match[1]))
    parse = getattr(DataType, "fromDDL", _parse_datatype_string)  # Spark 3.5 has no public one
    return parse(declared)
