"""Filters in Spark's SQL, as conditions on columns that statistics can decide.

An expression without a rule is unknown, and keeps every file. A name that is no column is an error.
"""

from __future__ import annotations

from functools import cached_property, partial
from operator import or_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from metastore.format.table_column import INTEGERS, Column
from metastore.pruning import literals
from metastore.pruning.column_names import ColumnNames
from metastore.pruning.conditions import ALWAYS, NEVER, Condition, Conjunct, Related, Unknown, all_of, any_of
from metastore.pruning.expressions import find_expression
from metastore.pruning.filter_text import has_only, parse_condition, unwrap
from metastore.pruning.keys import NAN
from metastore.pruning.like_patterns import texts_from, texts_like, texts_with
from metastore.pruning.sql_literals import read_literal
from metastore.pruning.terms import Term, Terms
from metastore.pruning.value_sets import ALL_VALUES, ONLY_NULL, ValueSet, join_sets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from metastore.pruning.literals import Literal

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def parse_filter(
    text: str,
    columns: Sequence[Column],
    table: str,
    zone: str = "UTC",
    expressions: Mapping[str, Column] = MappingProxyType({}),
) -> tuple[Conjunct, ...]:
    """The conjuncts of a filter.

    Args:
        text: The text that would follow WHERE in Spark.
        columns: The table's columns.
        table: The table's name, for errors.
        zone: The time zone of times without a zone.
        expressions: Expressions with statistics, from `metastore.pruning.expressions.index_expressions`.

    Raises:
        InvalidArgument: The text is no condition.
        ColumnNotFound: The table has no column of that name.

    Example:
        >>> from metastore.format.table_column import Column
        >>> conjuncts = parse_filter("a > 1 AND NOT a IS NULL", [Column("1", ("a",), "int", "long")], "t")
        >>> [conjunct.text for conjunct in conjuncts]
        ['a > 1', 'NOT a IS NULL']
    """
    tree = parse_condition(text)
    compiler = _Compiler(columns, table, zone, expressions)
    parts = tree.flatten() if isinstance(tree, exp.And) else [tree]
    return tuple(Conjunct(part.sql("spark"), compiler.compile(part)) for part in map(unwrap, parts))


class _Compiler:
    def __init__(self, columns: Sequence[Column], table: str, zone: str, expressions: Mapping[str, Column]) -> None:
        self._names = ColumnNames(columns, table)
        self._zone = zone
        self._terms = Terms(self._names, zone, partial(find_expression, expressions, self._names))

    def compile(self, tree: exp.Expr, *, negated: bool = False) -> Condition:
        """The condition that holds where an expression is true, or false where it is negated."""
        tree = unwrap(tree)
        if isinstance(tree, exp.Not) and has_only(tree, "this"):
            return self.compile(tree.this, negated=not negated)
        if isinstance(tree, exp.And | exp.Or) and has_only(tree, "this", "expression"):
            parts = [self.compile(part, negated=negated) for part in tree.flatten()]
            is_or = isinstance(tree, exp.Or) != negated  # NOT (a AND b) is NOT a OR NOT b
            return any_of(parts) if is_or else all_of(parts)
        return self._leaf(tree, negated=negated) or self._no_rule(tree)

    def _leaf(self, tree: exp.Expr, *, negated: bool) -> Condition | None:
        if type(tree) in _OPERATORS:
            return self._comparison(_OPERATORS[type(tree)], tree, negated=negated)
        for expression_type, rule in self._rules.items():
            if isinstance(tree, expression_type):
                return rule(tree, negated)
        return None

    @cached_property
    def _rules(self) -> dict[type[exp.Expr], Callable[[Any, bool], Condition | None]]:
        return {
            exp.Boolean: lambda tree, negated: ALWAYS if tree.this != negated else NEVER,
            exp.Null: lambda _, __: NEVER,
            exp.NullSafeNEQ: lambda tree, negated: self._comparison("<=>", tree, negated=not negated),
            exp.Escape: self._like_with_escape,
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            exp.Like: lambda tree, negated: self._like(tree, None, negated=negated),
            exp.IsNan: self._is_nan,
            exp.StartsWith: self._part_of_text,
            exp.EndsWith: self._part_of_text,
            exp.Contains: self._part_of_text,
            exp.Column: self._boolean_column,
        }

    def _comparison(self, operator: str, tree: exp.Expr, *, negated: bool) -> Condition | None:
        """A comparison of a column or a function of one with a literal on either side, or of two columns."""
        if not has_only(tree, "this", "expression"):
            return None
        left, right = unwrap(tree.this), unwrap(tree.expression)
        literal = read_literal(right)
        if literal is not None:
            return self._comparison_with_literal(tree, left, operator, literal, negated=negated)
        literal = read_literal(left)
        if literal is not None:
            mirrored = _MIRRORED.get(operator, operator)
            return self._comparison_with_literal(tree, right, mirrored, literal, negated=negated)
        return self._comparison_of_columns(operator, left, right, negated=negated)

    def _comparison_with_literal(
        self, tree: exp.Expr, operand: exp.Expr, operator: str, literal: Literal, *, negated: bool
    ) -> Condition:
        term = self._terms.read(operand)
        if isinstance(term, Unknown):
            return term
        is_null_safe = operator == "<=>"
        if literal.kind == literals.NULL:
            return self._null_test(term, negated=negated) if is_null_safe else NEVER
        readings = literals.read_literals([literal], term.result, self._zone)
        if readings is None:
            return _of_other_type([literal], term) or self._no_rule(tree)
        if is_null_safe:
            operator = "="
        if not negated:
            return term.where(_any_reading(operator, readings))
        values = _any_reading(_OPPOSITE[operator], readings)
        return term.where(values.with_null() if is_null_safe else values)

    def _null_test(self, term: Term, *, negated: bool) -> Condition:
        return term.where_null(ALL_VALUES if negated else ONLY_NULL)

    def _comparison_of_columns(
        self, operator: str, left: exp.Expr, right: exp.Expr, *, negated: bool
    ) -> Condition | None:
        left_term, right_term = self._terms.read(left), self._terms.read(right)
        if isinstance(left_term, Unknown):
            return left_term
        if isinstance(right_term, Unknown):
            return right_term
        left_column, right_column = left_term.column, right_term.column
        if left_column is None or right_column is None:
            return None
        if negated:
            operator = _OPPOSITE.get(operator, "")
        if not operator or not _compare_as_keys(left_column, right_column):
            return None
        if operator in (">", ">="):
            return Related(right_column, _MIRRORED[operator], left_column)
        return Related(left_column, operator, right_column)

    def _is(self, tree: exp.Is, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        """IS NULL of any column, also of those without bounds; IS TRUE and IS FALSE of boolean ones."""
        if not has_only(tree, "this", "expression"):
            return None
        column = self._names.find(unwrap(tree.this))
        term = Term.of(column) if column else self._terms.read(tree.this)
        if isinstance(term, Unknown):
            return term
        if isinstance(tree.expression, exp.Null):
            return self._null_test(term, negated=negated)
        if isinstance(tree.expression, exp.Boolean) and term.type == "boolean":
            values = ValueSet.of([int(tree.expression.this)])
            return term.where(values.complement().with_null() if negated else values)
        return None

    def _in(self, tree: exp.In, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        if not has_only(tree, "this", "expressions"):
            return None
        term = self._terms.read(tree.this)
        if isinstance(term, Unknown):
            return term
        listed = _read_all(tree.expressions)
        return self._membership(term, listed, negated=negated) if listed else None

    def _membership(self, term: Term, listed: Sequence[Literal], *, negated: bool) -> Condition | None:
        """Whether values are in a list of literals; with NULL in the list, NOT IN is never true."""
        values = [literal for literal in listed if literal.kind != literals.NULL]
        has_null = len(values) < len(listed)
        if not values or (negated and has_null):
            return NEVER
        if negated and _may_compare_times_as_texts(term, values):
            return None
        readings = literals.read_literals(values, term.result, self._zone)
        if readings is None:
            return _of_other_type(values, term)
        return term.where(_any_reading("<>" if negated else "=", readings))

    def _between(self, tree: exp.Between, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        if not has_only(tree, "this", "low", "high"):
            return None
        low = exp.GTE(this=tree.this, expression=tree.args["low"])
        high = exp.LTE(this=tree.this, expression=tree.args["high"])
        parts = [self.compile(low, negated=negated), self.compile(high, negated=negated)]
        return any_of(parts) if negated else all_of(parts)

    def _like_with_escape(self, tree: exp.Escape, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        if not isinstance(tree.this, exp.Like):
            return None
        return self._like(tree.this, tree.expression, negated=negated)

    def _like(self, tree: exp.Like, escape: exp.Expr | None, *, negated: bool) -> Condition | None:
        term = self._terms.read(tree.this)
        if isinstance(term, Unknown):
            return term
        if not has_only(tree, "this", "expression", "negate") or not literals.is_plain_text(term.result):
            return None
        pattern = _read_text(tree.expression)
        escape_character = "\\" if escape is None else _read_text(escape)
        if pattern is None or escape_character is None or len(escape_character) != 1:
            return None
        if tree.args.get("negate"):
            negated = not negated
        values = texts_like(pattern, escape_character, negated=negated)
        return None if values is None else term.where(values)

    def _part_of_text(self, tree: exp.Expr, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        term = self._terms.read(tree.this)
        if isinstance(term, Unknown):
            return term
        if not has_only(tree, "this", "expression") or not literals.is_plain_text(term.result):
            return None
        part = _read_text(tree.expression)
        if part is None or literals.NOT_UTF8 in part:
            return None
        values = _texts_with_part(tree, part.encode("utf-8", "surrogatepass"))
        return term.where(values.complement() if negated else values)

    def _is_nan(self, tree: exp.IsNan, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        term = self._terms.read(tree.this)
        if isinstance(term, Unknown):
            return term
        if term.result.encoding != "double":
            return None
        values = ValueSet.of([NAN])
        return term.where(values.complement().with_null() if negated else values)

    def _boolean_column(self, tree: exp.Column, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        term = self._terms.read(tree)
        if isinstance(term, Unknown):
            return term
        if term.type != "boolean":
            return None
        return term.where(ValueSet.of([int(not negated)]))

    def _no_rule(self, tree: exp.Expr) -> Unknown:
        return self._names.explain(tree)


def _of_other_type(values: Sequence[Literal], term: Term) -> Unknown | None:
    """The reason that a text is no value of the type that it is compared with."""
    for literal in values:
        if literals.is_of_other_type(literal, term.type):
            return Unknown("UNSUPPORTED_EXPRESSION", f"{literal.value!r}, which is no {term.type}")
    return None


def _may_compare_times_as_texts(term: Term, values: Sequence[Literal]) -> bool:
    """Whether times are compared with a list of texts: without ANSI mode Spark compares both as texts."""
    return term.type.startswith("timestamp") and any(literal.kind == literals.STRING for literal in values)


def _read_all(trees: Sequence[exp.Expr]) -> list[Literal] | None:
    """The literals of a list; None if an element is no literal."""
    values = []
    for tree in trees:
        literal = read_literal(unwrap(tree))
        if literal is None:
            return None
        values.append(literal)
    return values


def _read_text(tree: exp.Expr) -> str | None:
    """The text of a literal; None of any other expression."""
    literal = read_literal(tree)
    if literal is None or literal.kind != literals.STRING:
        return None
    text: str = literal.value
    return text


def _texts_with_part(tree: exp.Expr, part: bytes) -> ValueSet:
    """The texts that begin with, end with or contain a part."""
    if isinstance(tree, exp.StartsWith):
        return texts_from(part)
    return texts_with(part, at_end=isinstance(tree, exp.EndsWith))


def _any_reading(operator: str, readings: tuple[literals.Reading, ...]) -> ValueSet:
    """The values for which a comparison is true by any reading of its literals."""
    return join_sets([_accepted(operator, cuts) for cuts in readings], or_)


def _accepted(operator: str, cuts: literals.Reading) -> ValueSet:
    if operator in ("=", "<>"):
        equal = literals.equal_to(cuts)
        return equal if operator == "=" else equal.complement()
    ((start, end),) = cuts
    return {
        "<": ValueSet.between(None, start),
        "<=": ValueSet.between(None, end),
        ">": ValueSet.between(end, None),
        ">=": ValueSet.between(start, None),
    }[operator]


def _compare_as_keys(one: Column, other: Column) -> bool:
    """Whether Spark compares two columns without a cast that changes values, and by their keys."""
    if literals.is_plain_text(one) and literals.is_plain_text(other):
        return True
    return one.type == other.type or (one.type in INTEGERS and other.type in INTEGERS)
