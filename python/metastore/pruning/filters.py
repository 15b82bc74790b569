"""Filters in Spark's SQL, as conditions on columns that statistics can decide.

What has no rule is unknown, and keeps every file. A name that is no column is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from sqlglot import exp

from metastore.adapters.identifiers import find_column
from metastore.format.table_column import INTEGERS, Column
from metastore.pruning import literals
from metastore.pruning.conditions import ALWAYS, NEVER, Condition, Member, Related, Unknown, all_of, any_of
from metastore.pruning.filter_text import has_only, parse_condition, unwrap
from metastore.pruning.keys import NAN
from metastore.pruning.like_patterns import texts_from, texts_like, texts_with
from metastore.pruning.literals import Literal
from metastore.pruning.sql_literals import read_literal
from metastore.pruning.value_sets import ALL_VALUES, ONLY_NULL, ValueSet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
_METADATA = "_metadata"


@dataclass(frozen=True)
class Conjunct:
    """One of the conditions that a filter joins by AND.

    Attributes:
        text: As SQL.
        condition: What statistics are asked.
    """

    text: str
    condition: Condition


def parse_filter(text: str, columns: Sequence[Column], table: str, zone: str = "UTC") -> tuple[Conjunct, ...]:
    """The conjuncts of a filter.

    Args:
        text: What would follow WHERE in Spark.
        columns: The table's columns.
        table: What errors call it.
        zone: In which times without a zone are read.

    Raises:
        InvalidArgument: It is no condition.
        ColumnNotFound: It names a column that there is not.

    Example:
        >>> from metastore.format.table_column import Column
        >>> [one.text for one in parse_filter("a > 1 AND NOT a IS NULL", [Column("1", ("a",), "int", "long")], "t")]
        ['a > 1', 'NOT a IS NULL']
    """
    tree = parse_condition(text)
    compiler = _Compiler(columns, table, zone)
    parts = tree.flatten() if isinstance(tree, exp.And) else [tree]
    return tuple(Conjunct(part.sql("spark"), compiler.compile(part)) for part in map(unwrap, parts))


class _Compiler:
    def __init__(self, columns: Sequence[Column], table: str, zone: str) -> None:
        self._columns, self._table, self._zone = columns, table, zone

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
        rule = next((rule for kind, rule in self._rules().items() if isinstance(tree, kind)), None)
        return rule(tree, negated) if rule else None

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
        column = self._column(left)
        if isinstance(column, Unknown):
            return column
        if literal.kind == literals.NULL:
            if operator != "<=>":
                return NEVER
            return Member(column, ALL_VALUES if negated else ONLY_NULL)
        readings = literals.read_literals([literal], column, self._zone)
        if readings is None:
            return self._no_rule(tree)
        with_null = operator == "<=>" and negated
        operator = "=" if operator == "<=>" else operator
        values = _any_reading(_OPPOSITE[operator] if negated else operator, readings)
        return Member(column, values.with_null() if with_null else values)

    def _related(self, operator: str, left: exp.Expr, right: exp.Expr, *, negated: bool) -> Condition | None:
        if not (isinstance(left, exp.Column | exp.Dot) and isinstance(right, exp.Column | exp.Dot)):
            return None
        one, other = self._column(left), self._column(right)
        if isinstance(one, Unknown) or isinstance(other, Unknown):
            return one if isinstance(one, Unknown) else other if isinstance(other, Unknown) else None
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
        column, asked = self._column(unwrap(tree.this), with_bounds=False), tree.expression
        if isinstance(column, Unknown):
            return column
        if isinstance(asked, exp.Null):
            return Member(column, ALL_VALUES if negated else ONLY_NULL)
        if isinstance(asked, exp.Boolean) and column.type == "boolean":
            asked_for = ValueSet.of([int(asked.this)])
            return Member(column, asked_for.complement().with_null() if negated else asked_for)
        return None

    def _in(self, tree: exp.In, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        if not has_only(tree, "this", "expressions"):
            return None
        listed = [read_literal(unwrap(one)) for one in tree.expressions]
        given = [one for one in listed if one is not None]
        column = self._column(unwrap(tree.this))
        if isinstance(column, Unknown) or not given or len(given) < len(listed):
            return column if isinstance(column, Unknown) else None
        values = [one for one in given if one.kind != literals.NULL]
        if (negated and len(values) < len(given)) or not values:
            return NEVER
        # Without ANSI mode Spark compares texts in a list with times as texts.
        if negated and column.type.startswith("timestamp") and any(one.kind == literals.STRING for one in values):
            return None
        readings = literals.read_literals(values, column, self._zone)
        return Member(column, _any_reading("<>" if negated else "=", readings)) if readings else None

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
        column = self._column(unwrap(tree.this))
        if isinstance(column, Unknown) or not has_only(tree, "this", "expression", "negate"):
            return column if isinstance(column, Unknown) else None
        if not _is_text(pattern) or not _is_text(other) or len(other.value) != 1:
            return None
        if not literals.is_plain_text(column):
            return None
        matched = texts_like(pattern.value, other.value)
        negated = negated != bool(tree.args.get("negate"))
        if matched is None:
            return None
        return Member(column, matched.complement() if negated else matched)

    def _part_of_text(self, tree: exp.Expr, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        part, column = read_literal(tree.expression), self._column(unwrap(tree.this))
        if isinstance(column, Unknown) or not has_only(tree, "this", "expression"):
            return column if isinstance(column, Unknown) else None
        if not _is_text(part) or not literals.is_plain_text(column) or literals.NOT_UTF8 in part.value:
            return None
        text = part.value.encode("utf-8", "surrogatepass")
        if isinstance(tree, exp.StartsWith):
            found = texts_from(text)
        else:
            found = texts_with(text, at_end=isinstance(tree, exp.EndsWith))
        return Member(column, found.complement() if negated else found)

    def _is_nan(self, tree: exp.IsNan, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        column = self._column(unwrap(tree.this))
        if isinstance(column, Unknown) or column.encoding != "double":
            return column if isinstance(column, Unknown) else None
        found = ValueSet.of([NAN])
        return Member(column, found.complement().with_null() if negated else found)

    def _boolean_column(self, tree: exp.Column, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        column = self._column(tree)
        if isinstance(column, Unknown):
            return column
        return Member(column, ValueSet.of([int(not negated)])) if column.type == "boolean" else None

    def _column(self, tree: exp.Expr, *, with_bounds: bool = True) -> Column | Unknown:
        parts = _name_of(tree)
        if parts is None:
            return self._no_rule(tree)
        column = self._find(parts)
        if column is None or not with_bounds:
            return column or self._no_rule(tree)
        if column.collation not in (None, "UTF8_BINARY"):
            return Unknown("COLLATION", column.name)
        if column.type.startswith("char("):
            return Unknown("CHAR_PADDING", column.name)
        bounded = column.encoding is not None and not column.type.startswith("interval")
        return column if bounded else self._no_rule(tree)

    def _find(self, parts: tuple[str, ...]) -> Column | None:
        """The column of that name; None of what is no leaf of the schema, but a part of it."""
        folded = [part.lower() for part in parts]
        for column in self._columns:
            path = [part.lower() for part in column.path]
            within = len(folded) > len(path) and folded[: len(path)] == path and column.encoding is None
            if within or (len(folded) < len(path) and path[: len(folded)] == folded):
                return None
        if folded[0] == _METADATA and not any(column.path[0].lower() == _METADATA for column in self._columns):
            return None
        return find_column(self._columns, Column("", parts, "", None).name, self._table)

    def _no_rule(self, tree: exp.Expr) -> Unknown:
        self._check_names(tree)
        text = tree.sql("spark")
        if tree.find(exp.Query, exp.Exists, exp.Subquery):
            return Unknown("SUBQUERY", text)
        if tree.find(exp.Rand, exp.Randn, exp.Uuid):
            return Unknown("NOT_DETERMINISTIC", text)
        if any((_name_of(one) or ("",))[0].lower() == _METADATA for one in tree.find_all(exp.Column)):
            return Unknown("METADATA_COLUMN", text)
        return Unknown("UNSUPPORTED_EXPRESSION", text)

    def _check_names(self, tree: exp.Expr) -> None:
        """Refuses a name that is none of the table's; names of sub-queries and lambdas are others."""
        if not tree.find(exp.Query, exp.Lambda):
            for column in tree.find_all(exp.Column):
                parts = _name_of(column)
                if parts is not None:
                    self._find(parts)


def _name_of(tree: exp.Expr) -> tuple[str, ...] | None:
    """The parts of a column's name."""
    if isinstance(tree, exp.Dot):
        before = _name_of(tree.this)
        return (*before, tree.expression.name) if before and isinstance(tree.expression, exp.Identifier) else None
    if not isinstance(tree, exp.Column) or not all(isinstance(part, exp.Identifier) for part in tree.parts):
        return None
    return tuple(part.name for part in tree.parts)


def _any_reading(operator: str, readings: tuple[literals.Reading, ...]) -> ValueSet:
    """The values of which a comparison is true by any reading of its literals."""
    first, *others = (_accepted(operator, cuts) for cuts in readings)
    for other in others:
        first |= other
    return first


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
