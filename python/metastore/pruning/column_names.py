"""Names in a filter, and the columns of the table that they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from metastore.adapters.identifiers import find_column
from metastore.format.table_column import Column
from metastore.pruning.conditions import Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

_METADATA = "_metadata"


class ColumnNames:
    """The columns of a table, by the names that filters call them."""

    def __init__(self, columns: Sequence[Column], table: str) -> None:
        """`table` is what errors call it."""
        self._columns, self._table = columns, table

    def find(self, tree: exp.Expr) -> Column | None:
        """The column that a name means; None of what is no name, or means no leaf of the schema but a part of it.

        Raises:
            ColumnNotFound: There is no such column.
        """
        parts = _parts_of(tree)
        if parts is None:
            return None
        folded = [part.lower() for part in parts]
        for column in self._columns:
            path = [part.lower() for part in column.path]
            within = len(folded) > len(path) and folded[: len(path)] == path and column.encoding is None
            if within or (len(folded) < len(path) and path[: len(folded)] == folded):
                return None
        if folded[0] == _METADATA and not any(column.path[0].lower() == _METADATA for column in self._columns):
            return None
        return find_column(self._columns, Column("", parts, "", None).name, self._table)

    def find_comparable(self, tree: exp.Expr) -> Column | Unknown:
        """The same, where its values are compared by their bounds; else why nothing is known of the expression."""
        column = self.find(tree)
        if column is None:
            return self.explain(tree)
        if column.collation not in (None, "UTF8_BINARY"):
            return Unknown("COLLATION", column.name)
        if column.type.startswith("char("):
            return Unknown("CHAR_PADDING", column.name)
        bounded = column.encoding is not None and not column.type.startswith("interval")
        return column if bounded else self.explain(tree)

    def explain(self, tree: exp.Expr) -> Unknown:
        """Why an expression has no rule.

        Raises:
            ColumnNotFound: It names a column that there is not; names of sub-queries and lambdas are others.
        """
        if not tree.find(exp.Query, exp.Lambda):
            for column in tree.find_all(exp.Column):
                self.find(column)
        text = tree.sql("spark")
        if tree.find(exp.Query, exp.Exists, exp.Subquery):
            return Unknown("SUBQUERY", text)
        if tree.find(exp.Rand, exp.Randn, exp.Uuid):
            return Unknown("NOT_DETERMINISTIC", text)
        if any((_parts_of(one) or ("",))[0].lower() == _METADATA for one in tree.find_all(exp.Column)):
            return Unknown("METADATA_COLUMN", text)
        return Unknown("UNSUPPORTED_EXPRESSION", text)


def is_name(tree: exp.Expr) -> bool:
    """Whether an expression is the name of a column, or of a field of one."""
    return isinstance(tree, exp.Column | exp.Dot)


def _parts_of(tree: exp.Expr) -> tuple[str, ...] | None:
    """The parts of a column's name."""
    if isinstance(tree, exp.Dot):
        before = _parts_of(tree.this)
        return (*before, tree.expression.name) if before and isinstance(tree.expression, exp.Identifier) else None
    if not isinstance(tree, exp.Column) or not all(isinstance(part, exp.Identifier) for part in tree.parts):
        return None
    return tuple(part.name for part in tree.parts)
