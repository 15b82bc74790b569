"""Finds the columns of a table by the names in a filter."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from metastore.adapters.identifiers import find_column
from metastore.format.table_column import Column
from metastore.pruning.conditions import NoRuleError, Unknown, require_rule

if TYPE_CHECKING:
    from collections.abc import Sequence

_METADATA = "_metadata"
_REASONS: dict[str, tuple[type[exp.Expr], ...]] = {
    "SUBQUERY": (exp.Query, exp.Exists, exp.Subquery),
    "NOT_DETERMINISTIC": (exp.Rand, exp.Randn, exp.Uuid),
}
"""Expressions without a rule, by the reason; the first that applies is shown."""


class ColumnNames:
    """The columns of a table, by name.

    Args:
        columns: The leaves of the table's schema.
        table: The table's name, for errors.
    """

    def __init__(self, columns: Sequence[Column], table: str) -> None:
        self._columns = columns
        self._table = table

    def find(self, tree: exp.Expr) -> Column | None:
        """Return the column of a name; None if the expression is no name, or names a struct or a part of a leaf.

        Raises:
            ColumnNotFound: The table has no column of that name.
        """
        parts = _name_parts(tree)
        if parts is None:
            return None
        name = _lower(parts)
        if name[0] in self._hidden_names:
            return None
        if any(_is_no_leaf(name, column) for column in self._columns):
            return None
        return find_column(self._columns, Column(key="", path=parts, type="", encoding=None).name, self._table)

    @cached_property
    def _hidden_names(self) -> set[str]:
        """Names that are Spark's own, as far as the table has no such columns."""
        return {_METADATA} - {column.path[0].lower() for column in self._columns}

    def find_comparable(self, tree: exp.Expr) -> Column:
        """Return the column of a name, whose values are compared by bounds.

        Raises:
            ColumnNotFound: The table has no column of that name.
            NoRuleError: Bounds do not say how values compare, or the name is of no leaf.
        """
        column = self.find(tree)
        if column is None:
            raise NoRuleError
        if column.collation not in (None, "UTF8_BINARY"):
            raise NoRuleError(Unknown("COLLATION", column.name))
        if column.type.startswith("char("):
            raise NoRuleError(Unknown("CHAR_PADDING", column.name))
        require_rule(applies=column.encoding is not None)
        require_rule(applies=not column.type.startswith("interval"))
        return column

    def explain(self, tree: exp.Expr) -> Unknown:
        """Return the reason that an expression has no rule.

        Raises:
            ColumnNotFound: The expression names a column that the table does not have.
        """
        # Names in sub-queries and lambdas are not the table's.
        if not tree.find(exp.Query, exp.Lambda):
            self._require_columns(tree)
        text = tree.sql("spark")
        for reason, expression_types in _REASONS.items():
            if tree.find(*expression_types):
                return Unknown(reason, text)
        if any(map(_is_metadata, tree.find_all(exp.Column))):
            return Unknown("METADATA_COLUMN", text)
        return Unknown("UNSUPPORTED_EXPRESSION", text)

    def _require_columns(self, tree: exp.Expr) -> None:
        for column in tree.find_all(exp.Column):
            self.find(column)


def is_name(tree: exp.Expr) -> bool:
    """Return whether an expression is the name of a column or of a field."""
    return isinstance(tree, exp.Column | exp.Dot)


def _is_no_leaf(name: tuple[str, ...], column: Column) -> bool:
    """Return whether a name means a struct that the column is in, or a part of a column of a nested type."""
    path = _lower(column.path)
    if len(name) < len(path):
        return path[: len(name)] == name
    if len(name) == len(path) or column.encoding is not None:
        return False
    return name[: len(path)] == path


def _is_metadata(column: exp.Expr) -> bool:
    first, *_ = _name_parts(column) or ("",)
    return first.lower() == _METADATA


def _lower(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(str.lower, parts))


def _name_parts(tree: exp.Expr) -> tuple[str, ...] | None:
    """Return the parts of a column's name; None if the expression is no name."""
    fields: list[exp.Expr] = []
    while isinstance(tree, exp.Dot):
        fields.insert(0, tree.expression)
        tree = tree.this
    if not isinstance(tree, exp.Column):
        return None
    parts = [*tree.parts, *fields]
    if set(map(type, parts)) != {exp.Identifier}:
        return None
    return tuple(part.name for part in parts)
