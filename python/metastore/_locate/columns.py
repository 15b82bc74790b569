"""The columns of a table as Spark shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore._format.columns import Column, encoding_of
from metastore._tables.refusals import only_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.types import StructType

_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
"""Spark's own mark of a column of CHAR or VARCHAR, whose type it shows as string."""


def leaves(schema: StructType, above: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """The leaves of a schema, without keys.

    Example:
        >>> from pyspark.sql.types import IntegerType, StringType, StructType
        >>> schema = StructType().add("a", IntegerType()).add("s", StructType().add("b", StringType()))
        >>> [column.name for column in leaves(schema)]
        ['a', 's.b']
    """
    found: list[Column] = []
    for field in schema.fields:
        path, inner = (*above, field.name), _struct(field.dataType)
        if inner is not None:
            found += leaves(inner, path)
        else:
            kind = field.dataType.simpleString()
            found.append(Column("", path, kind, None if only_counts(kind) else encoding_of(kind)))
    return tuple(found)


def is_padded(schema: StructType, columns: Sequence[Column]) -> bool:
    """Whether a column is of CHAR or VARCHAR: in comparisons with them Spark pads.

    Example:
        >>> from pyspark.sql.types import StringType, StructType
        >>> schema = StructType().add("a", StringType())
        >>> is_padded(schema, leaves(schema))
        False
    """
    names = {column.path[0] for column in columns}
    return any(_PADDED in str(field.jsonValue()) for field in schema.fields if field.name in names)


def _struct(kind: Any) -> StructType | None:
    return kind if kind.typeName() == "struct" else None
