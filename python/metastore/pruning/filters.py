"""Filters in Spark's SQL, as conditions on columns that statistics can decide.

What has no rule is unknown, and keeps every file. A name that is no column is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from operator import or_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard

from sqlglot import exp

from metastore.format.table_column import INTEGERS, Column
from metastore.pruning import literals
from metastore.pruning.column_names import ColumnNames
from metastore.pruning.conditions import ALWAYS, NEVER, Condition, Related, Unknown, all_of, any_of
from metastore.pruning.expressions import find_expression
from metastore.pruning.filter_text import has_only, parse_condition, unwrap
from metastore.pruning.keys import NAN
from metastore.pruning.like_patterns import texts_from, texts_like, texts_with
from metastore.pruning.literals import Literal
from metastore.pruning.sql_literals import read_literal
from metastore.pruning.terms import Term, Terms, reason_of
from metastore.pruning.value_sets import ALL_VALUES, ONLY_NULL, ValueSet, join_sets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Conjunct:
    """One of the conditions that a filter joins by AND.

    Attributes:
        text: As SQL.
        condition: What statistics are asked.
    """

    text: str
    condition: Condition


def parse_filter(
    text: str,
    columns: Sequence[Column],
    table: str,
    zone: str = "UTC",
    expressions: Mapping[str, Column] = MappingProxyType({}),
) -> tuple[Conjunct, ...]:
    """The conjuncts of a filter.

    Args:
        text: What would follow WHERE in Spark.
        columns: The table's columns.
        table: What errors call it.
        zone: In which times without a zone are read.
        expressions: Those that have statistics, as `metastore.pruning.expressions.index_expressions` gives them.

    Raises:
        InvalidArgument: It is no condition.
        ColumnNotFound: It names a column that there is not.

    Example:
        >>> from metastore.format.table_column import Column
        >>> [one.text for one in parse_filter("a > 1 AND NOT a IS NULL", [Column("1", ("a",), "int", "long")], "t")]
        ['a > 1', 'NOT a IS NULL']
    """
    tree = parse_condition(text)
    compiler = _Compiler(columns, table, zone, expressions)
    parts = tree.flatten() if isinstance(tree, exp.And) else [tree]
    return tuple(Conjunct(part.sql("spark"), compiler.compile(part)) for part in map(unwrap, parts))


class _Compiler:
    def __init__(self, columns: Sequence[Column], table: str, zone: str, expressions: Mapping[str, Column]) -> None:
        self._names, self._zone = ColumnNames(columns, table), zone
        self._terms = Terms(self._names, zone, partial(find_expression, expressions, self._names))

    def compile(self, tree: exp.Expr, *, negated: bool = False) -> Condition:
        """The condition that holds where an expression is true, or false where it is negated."""
        tree = unwrap(tree)
        if isinstance(tree, exp.Not) and has_only(tree, "this"):
            return self.compile(tree.this, negated=not negated)
        if isinstance(tree, exp.And | exp.Or) and has_only(tree, "this", "expression"):
            parts = [self.compile(part, negated=negated) for part in tree.flatten()]
            return any_of(parts) if isinstance(tree, exp.And) == negated else all_of(parts)
        return self._leaf(tree, negated=negated) or self._no_rule(tree)

    def _leaf(self, tree: exp.Expr, *, negated: bool) -> Condition | None:
        if isinstance(tree, exp.Boolean):
            return ALWAYS if tree.this != negated else NEVER
        if isinstance(tree, exp.Null):
            return NEVER
        if type(tree) in _OPERATORS and has_only(tree, "this", "expression"):
            return self._comparison(_OPERATORS[type(tree)], tree, negated=negated)
        if isinstance(tree, exp.NullSafeNEQ) and has_only(tree, "this", "expression"):
            return self._comparison("<=>", tree, negated=not negated)
        if isinstance(tree, exp.Escape) and isinstance(tree.this, exp.Like):
            return self._like(tree.this, tree.expression, negated=negated)
        rule = next((rule for kind, rule in self._rules.items() if isinstance(tree, kind)), None)
        return rule(tree, negated) if rule else None

    @cached_property
    def _rules(self) -> dict[type[exp.Expr], Callable[[Any, bool], Condition | None]]:
        return {
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
        left, right = unwrap(tree.this), unwrap(tree.expression)
        literal = read_literal(right)
        if literal is None:
            literal, right, left = read_literal(left), left, right
            operator = _TURNED.get(operator, operator) if literal else operator
            if literal is None:
                return self._related(operator, right, left, negated=negated)
        term = self._terms.read(left)
        if isinstance(term, Unknown):
            return term
        if literal.kind == literals.NULL:
            return term.where_null(ALL_VALUES if negated else ONLY_NULL) if operator == "<=>" else NEVER
        readings = literals.read_literals([literal], term.result, self._zone)
        if readings is None:
            return _of_other_type([literal], term) or self._no_rule(tree)
        with_null = operator == "<=>" and negated
        operator = "=" if operator == "<=>" else operator
        values = _any_reading(_OPPOSITE[operator] if negated else operator, readings)
        return term.where(values.with_null() if with_null else values)

    def _related(self, operator: str, left: exp.Expr, right: exp.Expr, *, negated: bool) -> Condition | None:
        terms = self._terms.read(left), self._terms.read(right)
        unknown = next((one for one in terms if isinstance(one, Unknown)), None)
        one, other = (term.column if isinstance(term, Term) else None for term in terms)
        if one is None or other is None:
            return unknown
        if negated:
            operator = _OPPOSITE.get(operator, "")
        if not operator or not _compare_as_keys(one, other):
            return None
        if operator in (">", ">="):
            return Related(other, _TURNED[operator], one)
        return Related(one, operator, other)

    def _is(self, tree: exp.Is, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        if not has_only(tree, "this", "expression"):
            return None
        column, asked = self._names.find(unwrap(tree.this)), tree.expression
        term = Term.of(column) if column else self._terms.read(tree.this)
        if isinstance(term, Unknown):
            return term
        if isinstance(asked, exp.Null):
            return term.where_null(ALL_VALUES if negated else ONLY_NULL)
        if isinstance(asked, exp.Boolean) and term.type == "boolean":
            asked_for = ValueSet.of([int(asked.this)])
            return term.where(asked_for.complement().with_null() if negated else asked_for)
        return None

    def _in(self, tree: exp.In, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        if not has_only(tree, "this", "expressions"):
            return None
        listed = [read_literal(unwrap(one)) for one in tree.expressions]
        given = [one for one in listed if one is not None]
        term = self._terms.read(tree.this)
        if isinstance(term, Unknown) or not given or len(given) < len(listed):
            return reason_of(term)
        values = [one for one in given if one.kind != literals.NULL]
        if (negated and len(values) < len(given)) or not values:
            return NEVER
        # Without ANSI mode Spark compares texts in a list with times as texts.
        if negated and term.type.startswith("timestamp") and any(one.kind == literals.STRING for one in values):
            return None
        readings = literals.read_literals(values, term.result, self._zone)
        return (
            term.where(_any_reading("<>" if negated else "=", readings)) if readings else _of_other_type(values, term)
        )

    def _between(self, tree: exp.Between, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        if not has_only(tree, "this", "low", "high"):
            return None
        limits = (
            exp.GTE(this=tree.this, expression=tree.args["low"]),
            exp.LTE(this=tree.this, expression=tree.args["high"]),
        )
        parts = [self.compile(one, negated=negated) for one in limits]
        return any_of(parts) if negated else all_of(parts)

    def _like(self, tree: exp.Like, escape: exp.Expr | None, *, negated: bool) -> Condition | None:
        pattern = read_literal(tree.expression)
        other = Literal(literals.STRING, "\\") if escape is None else read_literal(escape)
        term = self._terms.read(tree.this)
        if isinstance(term, Unknown) or not has_only(tree, "this", "expression", "negate"):
            return reason_of(term)
        if not _is_text(pattern) or not _is_text(other) or len(other.value) != 1:
            return None
        if not literals.is_plain_text(term.result):
            return None
        matched = texts_like(pattern.value, other.value, negated=negated != bool(tree.args.get("negate")))
        return None if matched is None else term.where(matched)

    def _part_of_text(self, tree: exp.Expr, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        part, term = read_literal(tree.expression), self._terms.read(tree.this)
        if isinstance(term, Unknown) or not has_only(tree, "this", "expression"):
            return reason_of(term)
        if not _is_text(part) or not literals.is_plain_text(term.result) or literals.NOT_UTF8 in part.value:
            return None
        text = part.value.encode("utf-8", "surrogatepass")
        if isinstance(tree, exp.StartsWith):
            found = texts_from(text)
        else:
            found = texts_with(text, at_end=isinstance(tree, exp.EndsWith))
        return term.where(found.complement() if negated else found)

    def _is_nan(self, tree: exp.IsNan, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        term = self._terms.read(tree.this)
        if isinstance(term, Unknown) or term.result.encoding != "double":
            return reason_of(term)
        found = ValueSet.of([NAN])
        return term.where(found.complement().with_null() if negated else found)

    def _boolean_column(self, tree: exp.Column, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        term = self._terms.read(tree)
        if isinstance(term, Unknown):
            return term
        return term.where(ValueSet.of([int(not negated)])) if term.type == "boolean" else None

    def _no_rule(self, tree: exp.Expr) -> Unknown:
        return self._names.explain(tree)


def _of_other_type(given: Sequence[Literal], term: Term) -> Unknown | None:
    """Why nothing is known where a text is no value of the type that it is compared with."""
    wrong = next((one for one in given if literals.is_of_other_type(one, term.type)), None)
    return Unknown("UNSUPPORTED_EXPRESSION", f"{wrong.value!r}, which is no {term.type}") if wrong else None


def _any_reading(operator: str, readings: tuple[literals.Reading, ...]) -> ValueSet:
    """The values of which a comparison is true by any reading of its literals."""
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


def _is_text(literal: Literal | None) -> TypeGuard[Literal]:
    return literal is not None and literal.kind == literals.STRING
