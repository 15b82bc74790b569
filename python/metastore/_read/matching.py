"""The column that a user names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore._tables.names import split_name
from metastore._texts import find_similar_names
from metastore.errors import ColumnNotFound, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore._format.columns import Column


def find_column(columns: Sequence[Column], name: str, table: str) -> Column:
    """The column of that name, as Spark finds it: case does not matter where that leaves one."""
    if "." not in name and "`" not in name:  # the usual case, without writing out a thousand names
        top = next((column for column in columns if column.path == (name,)), None)
        if top is not None:
            return top
    parts = _parts(name)
    exact = next((column for column in columns if name == column.name or parts == column.path), None)
    if exact is not None:
        return exact
    written, path = name.lower(), _lower(parts)
    folded = [column for column in columns if _lower(column.path) == path or column.name.lower() == written]
    if len(folded) == 1:
        return folded[0]
    fields = (column for column in columns if _lower(column.path[: len(path)]) == path != _lower(column.path))
    field = next(fields, None)
    if field is not None:
        raise InvalidArgument("column", f"{name} is a struct", f"Name a field of it, such as {field.name}.")
    names = [column.name for column in columns]
    raise ColumnNotFound(name, table, near=find_similar_names(name, names), known=names)


def _parts(name: str) -> tuple[str, ...]:
    try:
        return split_name(name)
    except InvalidArgument:
        return (name,)


def _lower(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in path)
