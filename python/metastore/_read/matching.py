"""Which stored statistics may speak for a column of a snapshot."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from metastore._format.columns import decimal_type
from metastore.errors import ColumnNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore._format.columns import Column

_WIDER = {"tinyint": ("smallint", "int", "bigint"), "smallint": ("int", "bigint"), "int": ("bigint",)}


def serves(stored: Column, wanted: Column) -> bool:
    """Whether values stored for one column are values of another: the same column, its type equal or widened.

    Example:
        >>> from metastore._format.columns import Column
        >>> serves(Column("1", ("a",), "int", "long"), Column("1", ("b",), "bigint", "long"))
        True
    """
    if stored.key != wanted.key or stored.encoding != wanted.encoding or stored.collation != wanted.collation:
        return False
    old, new = decimal_type(stored.type), decimal_type(wanted.type)
    if old and new:
        return old[1] == new[1] and old[0] <= new[0]
    widened = wanted.type in _WIDER.get(stored.type, ()) or (stored.type, wanted.type) == ("float", "double")
    return stored.type == wanted.type or widened


def named(columns: Sequence[Column], name: str, table: str) -> Column:
    """The column of that name, as Spark finds it: case does not matter where that leaves one.

    Raises:
        ColumnNotFound: There is none, or only the case tells several apart.
    """
    exact = [column for column in columns if column.name == name]
    folded = [column for column in columns if column.name.lower() == name.lower()]
    if exact or len(folded) == 1:
        return (exact or folded)[0]
    names = {column.name.lower(): column.name for column in columns}
    near = [column.name for column in folded] or get_close_matches(name.lower(), names, n=3)
    raise ColumnNotFound(name, table, near=[names.get(one.lower(), one) for one in near])
