"""The columns of a table as Spark shows them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from metastore.adapters.refusals import reason_for_counts_only
from metastore.format.table_column import Column, encoding_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.types import StructType


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
