"""Filters in Spark's SQL, as conditions on columns that statistics can decide.

An expression without a rule is unknown, and keeps every file. A name that is no column is an error.
"""

from __future__ import annotations

from functools import cached_property, partial
from operator import or_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from sqlglot import exp

from metastore.format.table_column import INTEGERS, Column
from metastore.pruning import literals
from metastore.pruning.column_names import ColumnNames
from metastore.pruning.conditions import (
    ALWAYS,
    NEVER,
    Condition,
    Conjunct,
    NoRuleError,
    Related,
    Unknown,
    all_of,
    any_of,
    require_rule,
)
from metastore.pruning.expressions import find_expression
from metastore.pruning.filter_text import has_only, parse_condition, require_only, unwrap
from metastore.pruning.keys import NAN
from metastore.pruning.like_patterns import texts_containing, texts_ending_with, texts_like, texts_starting_with
from metastore.pruning.literal_cuts import Reading, equal_to, is_plain_text, read_literals
from metastore.pruning.sql_literals import find_literal, read_literal
from metastore.pruning.term_reader import TermReader, require_term
from metastore.pruning.terms import Term
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
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_TEXTS_WITH_PART: dict[type[exp.Expr], Callable[[bytes], ValueSet]] = {
    exp.StartsWith: texts_starting_with,
    exp.EndsWith: texts_ending_with,
    exp.Contains: texts_containing,
}
_BACKSLASH = exp.Literal.string("\\")


def parse_filter(
    text: str,
    columns: Sequence[Column],
    table: str,
    zone: str = "UTC",
    expressions: Mapping[str, Column] = MappingProxyType({}),
) -> tuple[Conjunct, ...]:
    """Return the conjuncts of a filter.

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
        >>> column = Column(key="1", path=("a",), type="int", encoding="long")
        >>> conjuncts = parse_filter("a > 1 AND NOT a IS NULL", [column], "t")
        >>> [conjunct.text for conjunct in conjuncts]
        ['a > 1', 'NOT a IS NULL']
    """
    tree = parse_condition(text)
    compiler = _Compiler(columns, table, zone, expressions)
    parts = tree.flatten() if isinstance(tree, exp.And) else [tree]
    return tuple(Conjunct(part.sql("spark"), compiler.compile(part)) for part in map(unwrap, parts))


class _Rule(Protocol):
    def __call__(self, tree: Any, *, negated: bool) -> Condition:
        """Return the condition that holds where an expression is true, or false where it is negated."""


class _Compiler:
    def __init__(self, columns: Sequence[Column], table: str, zone: str, expressions: Mapping[str, Column]) -> None:
        self._names = ColumnNames(columns, table)
        self._zone = zone
        self._terms = TermReader(self._names, zone, partial(find_expression, expressions, self._names))

    def compile(self, tree: exp.Expr, *, negated: bool = False) -> Condition:
        """Return the condition that holds where an expression is true, or false where it is negated."""
        tree = unwrap(tree)
        if isinstance(tree, exp.Not) and has_only(tree, "this"):
            return self.compile(tree.this, negated=not negated)
        if isinstance(tree, exp.And | exp.Or) and has_only(tree, "this", "expression"):
            parts = [self.compile(part, negated=negated) for part in tree.flatten()]
            is_or = isinstance(tree, exp.Or) != negated  # NOT (a AND b) is NOT a OR NOT b
            if is_or:
                return any_of(parts)
            return all_of(parts)
        return self._leaf(tree, negated=negated)

    def _leaf(self, tree: exp.Expr, *, negated: bool) -> Condition:
        try:
            return self._apply_rule(tree, negated=negated)
        except NoRuleError as error:
            reason = error.reason
        return reason or self._names.explain(tree)

    def _apply_rule(self, tree: exp.Expr, *, negated: bool) -> Condition:
        for expression_type, rule in self._rules.items():
            if isinstance(tree, expression_type):
                return rule(tree, negated=negated)
        raise NoRuleError

    @cached_property
    def _rules(self) -> dict[type[exp.Expr], _Rule]:
        return {
            **{kind: partial(self._comparison, operator) for kind, operator in _OPERATORS.items()},
            exp.NullSafeNEQ: lambda tree, *, negated: self._comparison("<=>", tree, negated=not negated),
            exp.Boolean: lambda tree, *, negated: ALWAYS if tree.this != negated else NEVER,
            exp.Null: lambda tree, *, negated: NEVER,  # noqa: ARG005 - NOT NULL is NULL, too
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            exp.Like: self._like,
            exp.Escape: self._like_with_escape,
            exp.IsNan: self._is_nan,
            **dict.fromkeys(_TEXTS_WITH_PART, self._part_of_text),
            exp.Column: self._boolean_column,
        }

    def _comparison(self, operator: str, tree: exp.Expr, *, negated: bool) -> Condition:
        """Compile a comparison of a term with a literal on either side, or of two columns."""
        require_only(tree, "this", "expression")
        left = unwrap(tree.this)
        right = unwrap(tree.expression)
        literal = find_literal(right)
        if literal is not None:
            return self._comparison_with_literal(left, operator, literal, negated=negated)
        literal = find_literal(left)
        if literal is not None:
            mirrored = _MIRRORED.get(operator, operator)
            return self._comparison_with_literal(right, mirrored, literal, negated=negated)
        return self._comparison_of_columns(left, operator, right, negated=negated)

    def _comparison_with_literal(self, tree: exp.Expr, operator: str, literal: Literal, *, negated: bool) -> Condition:
        term = self._terms.read(tree)
        if operator == "<=>":
            return self._null_safe_comparison(term, literal, negated=negated)
        if literal.kind == literals.NULL:
            return NEVER
        if negated:
            operator = _NEGATED[operator]
        return term.where(_any_reading(operator, self._read_literals([literal], term)))

    def _null_safe_comparison(self, term: Term, literal: Literal, *, negated: bool) -> Condition:
        if literal.kind == literals.NULL:
            return _null_test(term, negated=negated)
        readings = self._read_literals([literal], term)
        if negated:
            return term.where(_any_reading("<>", readings).with_null())
        return term.where(_any_reading("=", readings))

    def _read_literals(self, values: Sequence[Literal], term: Term) -> tuple[Reading, ...]:
        try:
            return read_literals(values, term.result, self._zone)
        except NoRuleError:
            raise NoRuleError(_explain_other_type(values, term)) from None

    def _comparison_of_columns(self, left: exp.Expr, operator: str, right: exp.Expr, *, negated: bool) -> Condition:
        # Both sides are read, because a name that is no column is an error.
        terms = [self._terms.read_or_explain(left), self._terms.read_or_explain(right)]
        left_term, right_term = map(require_term, terms)
        left_column = _require_column(left_term)
        right_column = _require_column(right_term)
        require_rule(applies=_compare_as_keys(left_column, right_column))
        relation = operator
        if negated:
            require_rule(applies=operator in _NEGATED)
            relation = _NEGATED[operator]
        if relation in (">", ">="):
            return Related(right_column, _MIRRORED[relation], left_column)
        return Related(left_column, relation, right_column)

    def _is(self, tree: exp.Is, *, negated: bool) -> Condition:
        """Compile IS NULL of any column, also of one without bounds, and IS TRUE and IS FALSE of a boolean column."""
        require_only(tree, "this", "expression")
        column = self._names.find(unwrap(tree.this))
        term = Term.of(column) if column else self._terms.read(tree.this)
        if isinstance(tree.expression, exp.Null):
            return _null_test(term, negated=negated)
        require_rule(applies=isinstance(tree.expression, exp.Boolean))
        require_rule(applies=term.type == "boolean")
        return _where_never_null(term, ValueSet.of([int(tree.expression.this)]), negated=negated)

    def _in(self, tree: exp.In, *, negated: bool) -> Condition:
        """Compile membership in a list of literals."""
        require_only(tree, "this", "expressions")
        term = self._terms.read(tree.this)
        elements = [read_literal(unwrap(element)) for element in tree.expressions]
        require_rule(applies=bool(elements))
        values = [literal for literal in elements if literal.kind != literals.NULL]
        if not values:  # a comparison with NULL is never true
            return NEVER
        if negated:
            return self._not_in(term, values, has_null=len(values) < len(elements))
        return term.where(_any_reading("=", self._read_literals(values, term)))

    def _not_in(self, term: Term, values: Sequence[Literal], *, has_null: bool) -> Condition:
        if has_null:  # NOT IN is never true of a list with NULL
            return NEVER
        require_rule(applies=not _may_compare_times_as_texts(term, values))
        return term.where(_any_reading("<>", self._read_literals(values, term)))

    def _between(self, tree: exp.Between, *, negated: bool) -> Condition:
        require_only(tree, "this", "low", "high")
        low = exp.GTE(this=tree.this, expression=tree.args["low"])
        high = exp.LTE(this=tree.this, expression=tree.args["high"])
        parts = [self.compile(low, negated=negated), self.compile(high, negated=negated)]
        if negated:
            return any_of(parts)
        return all_of(parts)

    def _like(self, tree: exp.Like, *, negated: bool, escape: exp.Expr = _BACKSLASH) -> Condition:
        term = self._terms.read(tree.this)
        require_only(tree, "this", "expression", "negate")
        require_rule(applies=is_plain_text(term.result))
        pattern = _read_text(tree.expression)
        escape_character = _read_text(escape)
        require_rule(applies=len(escape_character) == 1)
        is_negated = negated != bool(tree.args.get("negate"))
        return term.where(texts_like(pattern, escape_character, negated=is_negated))

    def _like_with_escape(self, tree: exp.Escape, *, negated: bool) -> Condition:
        if not isinstance(tree.this, exp.Like):
            raise NoRuleError
        return self._like(tree.this, negated=negated, escape=tree.expression)

    def _part_of_text(self, tree: exp.Expr, *, negated: bool) -> Condition:
        """Compile a test for the beginning, the end or a part of a text."""
        term = self._terms.read(tree.this)
        require_only(tree, "this", "expression")
        require_rule(applies=is_plain_text(term.result))
        part = _read_text(tree.expression)
        require_rule(applies=literals.NOT_UTF8 not in part)
        values = _TEXTS_WITH_PART[type(tree)](part.encode("utf-8", "surrogatepass"))
        if negated:
            values = values.complement()
        return term.where(values)

    def _is_nan(self, tree: exp.IsNan, *, negated: bool) -> Condition:
        term = self._terms.read(tree.this)
        require_rule(applies=term.result.encoding == "double")
        return _where_never_null(term, ValueSet.of([NAN]), negated=negated)

    def _boolean_column(self, tree: exp.Column, *, negated: bool) -> Condition:
        term = self._terms.read(tree)
        require_rule(applies=term.type == "boolean")
        return term.where(ValueSet.of([int(not negated)]))


def _require_column(term: Term) -> Column:
    column = term.column
    if column is None:
        raise NoRuleError
    return column


def _null_test(term: Term, *, negated: bool) -> Condition:
    if negated:
        return term.where_null(ALL_VALUES)
    return term.where_null(ONLY_NULL)


def _where_never_null(term: Term, values: ValueSet, *, negated: bool) -> Condition:
    """Return a condition that is false where the term is null."""
    if negated:
        values = values.complement().with_null()
    return term.where(values)


def _explain_other_type(values: Sequence[Literal], term: Term) -> Unknown | None:
    """Return the reason if a text cannot be a value of the term's type, else None."""
    for literal in values:
        if literals.is_of_other_type(literal, term.type):
            return Unknown("UNSUPPORTED_EXPRESSION", f"{literal.value!r}, which is no {term.type}")
    return None


def _may_compare_times_as_texts(term: Term, values: Sequence[Literal]) -> bool:
    """Return whether times are compared with a list of texts: without ANSI mode Spark compares both as texts."""
    kinds = {literal.kind for literal in values}
    return term.type.startswith("timestamp") and literals.STRING in kinds


def _read_text(tree: exp.Expr) -> str:
    literal = read_literal(tree)
    require_rule(applies=literal.kind == literals.STRING)
    text: str = literal.value
    return text


def _any_reading(operator: str, readings: tuple[Reading, ...]) -> ValueSet:
    """Find the values for which a comparison is true in any reading of its literals."""
    return join_sets([_find_accepted(operator, cuts) for cuts in readings], or_)


def _find_accepted(operator: str, cuts: Reading) -> ValueSet:
    if operator == "=":
        return equal_to(cuts)
    if operator == "<>":
        return equal_to(cuts).complement()
    ((start, end),) = cuts
    limits = {"<": (None, start), "<=": (None, end), ">": (end, None), ">=": (start, None)}
    return ValueSet.between(*limits[operator])


def _compare_as_keys(left: Column, right: Column) -> bool:
    """Return whether Spark compares two columns without a cast that changes values, and by their keys."""
    if left.type == right.type or {left.type, right.type} <= set(INTEGERS):
        return True
    return is_plain_text(left) and is_plain_text(right)
