"""Finds the expressions of a filter that have statistics: both are compared in one spelling."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from metastore.errors import MetastoreError
from metastore.format.table_column import INTEGERS, decimal_type
from metastore.pruning.column_names import ColumnNames, is_name
from metastore.pruning.filter_text import parse_condition, unwrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.format.table_column import Column

_CELLS = re.compile(r"^(?:array<|map<\w+,)")
_NUMBER, _TEXT, _OTHER = "number", "text", "other"
_FUNCTIONS: dict[type[exp.Expr], tuple[str, str]] = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Floor, exp.Ceil), (_NUMBER, _NUMBER)),
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Trim, exp.Concat, exp.DPipe), (_TEXT, _TEXT)),
    **dict.fromkeys((exp.Substring, exp.Left, exp.Right), (_TEXT, _TEXT)),
    exp.Length: (_TEXT, _NUMBER),
}
"""The kinds of a function's arguments and of its result; no time zone or setting changes its results."""


def index_expressions(expressions: Iterable[Column], columns: Sequence[Column]) -> dict[str, Column]:
    """Return expressions that have statistics, by their spelling, without those that depend on the session.

    Args:
        expressions: The expressions.
        columns: The table's columns when the expressions were analyzed.

    Example:
        >>> from metastore.format.table_column import Column
        >>> name = Column("1", ("name",), "string", "binary")
        >>> lower = Column("expression:0", ("lcase(NAME)",), "string", "binary")
        >>> list(index_expressions([lower], [name]).values()) == [lower]
        True
    """
    names = ColumnNames(columns, "the table")
    by_spelling = {}
    for expression in expressions:
        try:
            spelling = _spell(parse_condition(expression.name), names)
        except (MetastoreError, RecursionError):  # Spark reads more than this parser does, and columns are renamed
            continue
        if spelling is not None and not decimal_type(expression.type):
            by_spelling[spelling] = expression
    return by_spelling


def find_expression(expressions: Mapping[str, Column], names: ColumnNames, tree: exp.Expr) -> Column | None:
    """Return the statistics of an expression, or None."""
    if not expressions:
        return None
    spelling = _spell(tree, names)
    return None if spelling is None else expressions.get(spelling)


def _spell(tree: exp.Expr, names: ColumnNames, kind: str = "") -> str | None:
    """Write an expression in one spelling; None if its value depends on more than columns, or is of another kind."""
    tree = unwrap(tree)
    if isinstance(tree, exp.Literal):
        if tree.is_string and kind not in ("", _TEXT):
            return None
        return repr((tree.this, tree.is_string))
    if is_name(tree) or isinstance(tree, exp.Bracket):
        spelling, value_kind = _spell_value(tree, names)
        return spelling if kind in ("", value_kind) else None
    if type(tree) not in _FUNCTIONS:
        return None
    argument_kind, result_kind = _FUNCTIONS[type(tree)]
    if kind not in ("", result_kind):
        return None
    arguments = {}
    for name, argument in sorted(tree.args.items()):
        if argument:
            arguments[name] = _spell_argument(argument, names, argument_kind)
    return None if None in arguments.values() else f"{type(tree).__name__}{arguments}"


def _spell_argument(argument: Any, names: ColumnNames, kind: str) -> str | None:
    if isinstance(argument, list):
        spellings = [_spell_argument(element, names, kind) for element in argument]
        return None if None in spellings else repr(spellings)
    if isinstance(argument, exp.Expr):
        return _spell(argument, names, kind)
    return repr(argument)


def _spell_value(tree: exp.Expr, names: ColumnNames) -> tuple[str | None, str]:
    """Write a column, or a cell of a map or an array, and return the kind of its values."""
    cell = _literal_indexes(tree)
    column = names.find(tree.this if cell else tree)
    if column is None or column.collation not in (None, "UTF8_BINARY"):
        return None, _OTHER
    value_type = column.type
    if cell:
        value_type = _CELLS.sub("", value_type).removesuffix(">")
    kind = _kind_of(value_type)
    if kind == _OTHER:
        return None, kind
    options = [tree.args.get(name) for name in ("offset", "safe")]
    return repr((column.key, column.type, cell, options)), kind


def _literal_indexes(tree: exp.Expr) -> list[str]:
    """Return the literals in brackets behind a map or an array."""
    if not isinstance(tree, exp.Bracket):
        return []
    return [index.sql() for index in tree.expressions if isinstance(index, exp.Literal)]


def _kind_of(spark_type: str) -> str:
    # A float is of no kind: ANSI mode decides its type beside whole numbers.
    if spark_type in (*INTEGERS, "double"):
        return _NUMBER
    if spark_type == "string" or spark_type.startswith("varchar("):
        return _TEXT
    return _OTHER
