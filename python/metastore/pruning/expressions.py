"""Finds the expressions of a filter that have statistics: both are written in a normal form and compared."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from metastore.errors import MetastoreError
from metastore.format.table_column import INTEGERS, decimal_type
from metastore.pruning.column_names import ColumnNames, is_name
from metastore.pruning.conditions import NoRuleError, require_rule
from metastore.pruning.filter_text import parse_condition, unwrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.format.table_column import Column

_CELLS = re.compile(r"^(?:array<|map<\w+,)")
_NUMBER, _TEXT = _ALL_KINDS = ("number", "text")
_KINDS = {**dict.fromkeys((*INTEGERS, "double"), _NUMBER), "string": _TEXT, "varchar": _TEXT}
"""The kinds of types; a float has no kind, because ANSI mode decides its type beside integers."""
_FUNCTIONS: dict[type[exp.Expr], tuple[str, str]] = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Floor, exp.Ceil), (_NUMBER, _NUMBER)),
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Trim, exp.Concat, exp.DPipe), (_TEXT, _TEXT)),
    **dict.fromkeys((exp.Substring, exp.Left, exp.Right), (_TEXT, _TEXT)),
    exp.Length: (_TEXT, _NUMBER),
}
"""The kinds of a function's arguments and of its result; no time zone or setting changes its results."""


def index_expressions(expressions: Iterable[Column], columns: Sequence[Column]) -> dict[str, Column]:
    """Return expressions with statistics by their normal form, without those that depend on the session.

    Args:
        expressions: The expressions.
        columns: The table's columns when the expressions were analyzed.

    Example:
        >>> from metastore.format.table_column import Column
        >>> name = Column(key="1", path=("name",), type="string", encoding="binary")
        >>> lower = Column(key="expression:0", path=("lcase(NAME)",), type="string", encoding="binary")
        >>> list(index_expressions([lower], [name]).values()) == [lower]
        True
    """
    names = ColumnNames(columns, "the table")
    by_normal_form = {}
    for expression in expressions:
        with suppress(MetastoreError, NoRuleError, RecursionError):  # Spark parses more; columns may be renamed
            by_normal_form[_normalize_stored(expression, names)] = expression
    return by_normal_form


def find_expression(expressions: Mapping[str, Column], names: ColumnNames, tree: exp.Expr) -> Column | None:
    """Return the statistics of an expression, or None."""
    if not expressions:
        return None
    try:
        return expressions.get(_normalize(tree, names, _ALL_KINDS))
    except (MetastoreError, NoRuleError):  # `explain` reports unknown names, except in sub-queries and lambdas
        return None


def _normalize_stored(expression: Column, names: ColumnNames) -> str:
    require_rule(applies=decimal_type(expression.type) is None)
    return _normalize(parse_condition(expression.name), names, _ALL_KINDS)


def _normalize(tree: exp.Expr, names: ColumnNames, kinds: Sequence[str]) -> str:
    """Write an expression in the normal form.

    Raises:
        ColumnNotFound: It names a column that the table does not have.
        NoRuleError: It has no normal form, or is of another kind.
    """
    tree = unwrap(tree)
    if isinstance(tree, exp.Literal):
        require_rule(applies=_TEXT in kinds or not tree.is_string)
        return repr((tree.this, tree.is_string))
    if is_name(tree) or isinstance(tree, exp.Bracket):
        return _normalize_value(tree, names, kinds)
    return _normalize_function(tree, names, kinds)


def _normalize_function(tree: exp.Expr, names: ColumnNames, kinds: Sequence[str]) -> str:
    require_rule(applies=type(tree) in _FUNCTIONS)
    argument_kind, result_kind = _FUNCTIONS[type(tree)]
    require_rule(applies=result_kind in kinds)
    arguments = {}
    for name, argument in sorted(tree.args.items()):
        if argument:
            arguments[name] = _normalize_argument(argument, names, argument_kind)
    return f"{type(tree).__name__}{arguments}"


def _normalize_argument(argument: Any, names: ColumnNames, kind: str) -> str:
    if isinstance(argument, list):
        return repr([_normalize_argument(element, names, kind) for element in argument])
    if isinstance(argument, exp.Expr):
        return _normalize(argument, names, (kind,))
    return repr(argument)


def _normalize_value(tree: exp.Expr, names: ColumnNames, kinds: Sequence[str]) -> str:
    """Write a column, or a cell of a map or an array."""
    cell = _literal_indexes(tree)
    column = names.find(tree.this if cell else tree)
    if column is None:
        raise NoRuleError
    require_rule(applies=column.collation in (None, "UTF8_BINARY"))
    value_type = _cell_type(column) if cell else column.type
    type_name, _, _ = value_type.partition("(")
    require_rule(applies=_KINDS.get(type_name) in kinds)
    options = [tree.args.get("offset"), tree.args.get("safe")]
    return repr((column.key, column.type, cell, options))


def _cell_type(column: Column) -> str:
    return _CELLS.sub("", column.type).removesuffix(">")


def _literal_indexes(tree: exp.Expr) -> list[str]:
    """Return the literals in brackets behind a map or an array."""
    if not isinstance(tree, exp.Bracket):
        return []
    return [index.sql() for index in tree.expressions if isinstance(index, exp.Literal)]
