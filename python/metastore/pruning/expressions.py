"""Expressions that have statistics, and where a filter holds one: both are read alike, by the columns they mean."""

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
"""What they take and give: nothing but their arguments decides their values, no zone and no setting."""


def index_expressions(expressions: Iterable[Column], columns: Sequence[Column]) -> dict[str, Column]:
    """Expressions that have statistics, by one spelling of each; those whose values depend on a session are left out.

    Args:
        expressions: The expressions.
        columns: Those of the table as it was when these were analyzed, which gives their names a meaning.

    Example:
        >>> from metastore.format.table_column import Column
        >>> name = Column("1", ("name",), "string", "binary")
        >>> lower = Column("expression:0", ("lcase(NAME)",), "string", "binary")
        >>> list(index_expressions([lower], [name]).values()) == [lower]
        True
    """
    names, found = ColumnNames(columns, "the table"), {}
    for one in expressions:
        try:
            spelled = _spell(parse_condition(one.name), names)
        except (MetastoreError, RecursionError):  # Spark reads more than this parser does, and columns are renamed
            continue
        if spelled is not None and not decimal_type(one.type):
            found[spelled] = one
    return found


def find_expression(expressions: Mapping[str, Column], names: ColumnNames, tree: exp.Expr) -> Column | None:
    """The one of them that an expression is."""
    spelled = _spell(tree, names) if expressions else None
    return None if spelled is None else expressions.get(spelled)


def _spell(tree: exp.Expr, names: ColumnNames, wanted: str = "") -> str | None:
    """An expression in one spelling; None where more than its columns decides it, or it is of another kind."""
    tree = unwrap(tree)
    if isinstance(tree, exp.Literal):
        return repr((tree.this, tree.is_string)) if not tree.is_string or wanted in ("", _TEXT) else None
    if is_name(tree) or isinstance(tree, exp.Bracket):
        spelled, kind = _spell_value(tree, names)
        return spelled if wanted in ("", kind) else None
    taken, given = _FUNCTIONS.get(type(tree), ("", _OTHER))
    if not taken or wanted not in ("", given):
        return None
    parts = {name: _spell_argument(one, names, taken) for name, one in sorted(tree.args.items()) if one}
    return None if None in parts.values() else f"{type(tree).__name__}{parts}"


def _spell_argument(argument: Any, names: ColumnNames, wanted: str) -> str | None:
    if isinstance(argument, list):
        parts = [_spell_argument(one, names, wanted) for one in argument]
        return None if None in parts else repr(parts)
    return _spell(argument, names, wanted) if isinstance(argument, exp.Expr) else repr(argument)


def _spell_value(tree: exp.Expr, names: ColumnNames) -> tuple[str | None, str]:
    """A column, or a cell of a map or an array, and the kind of its values."""
    is_cell = isinstance(tree, exp.Bracket)
    cell = [one.sql() for one in tree.expressions if isinstance(one, exp.Literal)] if is_cell else []
    column = names.find(tree.this if cell else tree)
    if column is None or column.collation not in (None, "UTF8_BINARY"):
        return None, _OTHER
    options = [tree.args.get(name) for name in ("offset", "safe")]
    kind = _kind_of(_CELLS.sub("", column.type).removesuffix(">") if cell else column.type)
    return (None if kind == _OTHER else repr((column.key, column.type, cell, options))), kind


def _kind_of(spark_type: str) -> str:
    """Of floats it depends on ANSI mode what they become beside whole numbers."""
    if spark_type in (*INTEGERS, "double"):
        return _NUMBER
    return _TEXT if spark_type == "string" or spark_type.startswith("varchar(") else _OTHER
