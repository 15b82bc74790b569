"""The column that a user names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore._texts import near
from metastore.errors import ColumnNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore._format.columns import Column


def named(columns: Sequence[Column], name: str, table: str) -> Column:
    """The column of that name, as Spark finds it: case does not matter where that leaves one.

    Raises:
        ColumnNotFound: There is none, or only the case tells several apart.
    """
    if "." not in name and "`" not in name:  # the usual case, without writing out a thousand names
        top = next((column for column in columns if column.path == (name,)), None)
        if top is not None:
            return top
    exact = [column for column in columns if column.name == name]
    folded = [column for column in columns if column.name.lower() == name.lower()]
    if exact or len(folded) == 1:
        return (exact or folded)[0]
    raise ColumnNotFound(name, table, near=near(name, [column.name for column in columns]))
