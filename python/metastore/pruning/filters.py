"""Filters in Spark's SQL, as conditions on columns that statistics can decide.

What has no rule is unknown, and keeps every file. A name that is no column is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from metastore.adapters.identifiers import find_column
from metastore.errors import InvalidArgument
from metastore.format.table_column import INTEGERS, Column
from metastore.pruning import literals
from metastore.pruning.conditions import ALWAYS, NEVER, Condition, Member, Related, Unknown, all_of, any_of
from metastore.pruning.keys import NAN
from metastore.pruning.like_patterns import texts_from, texts_like, texts_with
from metastore.pruning.literals import Literal
from metastore.pruning.value_sets import ALL_VALUES, ONLY_NULL, ValueSet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SPARK = Dialect.get_or_raise("spark")
_OPERATORS: dict[type[exp.Expression], str] = {
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
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TIMES = {
    "DATE": literals.DATE,
    "TIMESTAMP": literals.TIMESTAMP,
    "TIMESTAMPTZ": literals.TIMESTAMP,
    "TIMESTAMPLTZ": literals.TIMESTAMP,
    "TIMESTAMPNTZ": literals.TIMESTAMP_NTZ,
}


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
    tree = _parse(text)
    compiler = _Compiler(columns, table, zone)
    parts = tree.flatten() if isinstance(tree, exp.And) else [tree]
    return tuple(Conjunct(part.sql("spark"), compiler.compile(part)) for part in map(_unwrapped, parts))


def _parse(text: str) -> exp.Expression:
    try:
        tokens = _SPARK.tokenize(text)
        for token in tokens:
            if token.token_type == TokenType.STRING:
                token.text = _unescaped(text[token.start + 1 : token.end])
        found = _SPARK.parser().parse_into(exp.Condition, tokens, text)
    except SqlglotError as error:
        raise InvalidArgument("filter", f"{text!r} is no condition of Spark's SQL", _place_of(error)) from error
    if len(found) != 1 or found[0] is None or isinstance(found[0], exp.Command | exp.Query):
        raise InvalidArgument("filter", f"{text!r} is no condition", "Write what would follow WHERE.")
    return found[0]


def _place_of(error: SqlglotError) -> str:
    places = getattr(error, "errors", None) or []
    first = next((one for one in places if one.get("line")), None)
    return f"It stops at {first['highlight']!r} (line {first['line']}, column {first['col']})." if first else ""


def _unescaped(raw: str) -> str:
    """A string literal as Spark reads it."""

    def replaced(found: re.Match[str]) -> str:
        short, long, octal, other = found.groups()
        if other is not None:
            return _ESCAPED.get(other, other)
        code = int(octal, 8) if octal else int(short or long, 16)
        return chr(code) if code <= 0x10FFFF else "\ufffd"

    return _ESCAPE.sub(replaced, raw)


def _unwrapped(tree: exp.Expression) -> exp.Expression:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def _has_only(tree: exp.Expression, *names: str) -> bool:
    """Whether a node says nothing but what a rule looks at: parsers learn new words."""
    return all(name in names for name, value in tree.args.items() if value not in (None, False, []))


class _Compiler:
    def __init__(self, columns: Sequence[Column], table: str, zone: str) -> None:
        self._columns, self._table, self._zone = columns, table, zone

    def compile(self, tree: exp.Expression, *, negated: bool = False) -> Condition:
        """The condition that holds where an expression is true, or false where it is negated."""
        tree = _unwrapped(tree)
        if isinstance(tree, exp.Not) and _has_only(tree, "this"):
            return self.compile(tree.this, negated=not negated)
        if isinstance(tree, exp.And | exp.Or) and _has_only(tree, "this", "expression"):
            parts = [self.compile(part, negated=negated) for part in tree.flatten()]
            return any_of(parts) if isinstance(tree, exp.And) == negated else all_of(parts)
        return self._leaf(tree, negated=negated) or self._no_rule(tree)

    def _leaf(self, tree: exp.Expression, *, negated: bool) -> Condition | None:
        if isinstance(tree, exp.Boolean):
            return ALWAYS if tree.this != negated else NEVER
        if isinstance(tree, exp.Null):
            return NEVER
        if type(tree) in _OPERATORS and _has_only(tree, "this", "expression"):
            return self._comparison(_OPERATORS[type(tree)], tree, negated=negated)
        if isinstance(tree, exp.NullSafeNEQ) and _has_only(tree, "this", "expression"):
            return self._comparison("<=>", tree, negated=not negated)
        if isinstance(tree, exp.Escape) and isinstance(tree.this, exp.Like):
            return self._like(tree.this, tree.expression, negated=negated)
        for kind, rule in self._rules().items():
            if isinstance(tree, kind):
                return rule(tree, negated)
        return None

    def _rules(self) -> dict[type[exp.Expression], Callable[[Any, bool], Condition | None]]:
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

    def _comparison(self, operator: str, tree: exp.Expression, *, negated: bool) -> Condition | None:
        left, right = _unwrapped(tree.this), _unwrapped(tree.expression)
        literal = _literal(right)
        if literal is None:
            literal, right, left = _literal(left), left, right
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

    def _related(self, operator: str, left: exp.Expression, right: exp.Expression, *, negated: bool) -> Condition | None:
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
        if not _has_only(tree, "this", "expression"):
            return None
        column, asked = self._column(_unwrapped(tree.this), with_bounds=False), tree.expression
        if isinstance(column, Unknown):
            return column
        if isinstance(asked, exp.Null):
            return Member(column, ALL_VALUES if negated else ONLY_NULL)
        if isinstance(asked, exp.Boolean) and column.type == "boolean":
            asked_for = ValueSet.of([int(asked.this)])
            return Member(column, asked_for.complement().with_null() if negated else asked_for)
        return None

    def _in(self, tree: exp.In, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        if not _has_only(tree, "this", "expressions"):
            return None
        listed = [_literal(_unwrapped(one)) for one in tree.expressions]
        given = [one for one in listed if one is not None]
        column = self._column(_unwrapped(tree.this))
        if isinstance(column, Unknown) or not given or len(given) < len(listed):
            return column if isinstance(column, Unknown) else None
        values = [one for one in given if one.kind != literals.NULL]
        if negated and len(values) < len(given) or not values:
            return NEVER
        # Without ANSI mode Spark compares texts in a list with times as texts.
        if negated and column.type.startswith("timestamp") and any(one.kind == literals.STRING for one in values):
            return None
        readings = literals.read_literals(values, column, self._zone)
        return Member(column, _any_reading("<>" if negated else "=", readings)) if readings else None

    def _between(self, tree: exp.Between, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        if not _has_only(tree, "this", "low", "high"):
            return None
        limits = exp.GTE(this=tree.this, expression=tree.args["low"]), exp.LTE(this=tree.this, expression=tree.args["high"])
        parts = [self.compile(one, negated=negated) for one in limits]
        return any_of(parts) if negated else all_of(parts)

    def _like(self, tree: exp.Like, escape: exp.Expression | None, *, negated: bool) -> Condition | None:
        pattern, other = _literal(tree.expression), Literal(literals.STRING, "\\") if escape is None else _literal(escape)
        column = self._column(_unwrapped(tree.this))
        if isinstance(column, Unknown) or not _has_only(tree, "this", "expression", "negate"):
            return column if isinstance(column, Unknown) else None
        if not (_is_text(pattern) and _is_text(other) and literals.is_plain_text(column)):
            return None
        if len(other.value) != 1:
            return None
        matched = texts_like(pattern.value, other.value)
        negated = negated != bool(tree.args.get("negate"))
        return matched and Member(column, matched.complement() if negated else matched)

    def _part_of_text(self, tree: exp.Expression, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        part, column = _literal(tree.expression), self._column(_unwrapped(tree.this))
        if isinstance(column, Unknown) or not _has_only(tree, "this", "expression"):
            return column if isinstance(column, Unknown) else None
        if not (_is_text(part) and literals.is_plain_text(column)) or "\ufffd" in part.value:
            return None
        text = part.value.encode("utf-8", "surrogatepass")
        if isinstance(tree, exp.StartsWith):
            found = texts_from(text)
        else:
            found = texts_with(text, at_end=isinstance(tree, exp.EndsWith))
        return Member(column, found.complement() if negated else found)

    def _is_nan(self, tree: exp.IsNan, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        column = self._column(_unwrapped(tree.this))
        if isinstance(column, Unknown) or column.encoding != "double":
            return column if isinstance(column, Unknown) else None
        found = ValueSet.of([NAN])
        return Member(column, found.complement().with_null() if negated else found)

    def _boolean_column(self, tree: exp.Column, negated: bool) -> Condition | None:  # noqa: FBT001 - as all rules
        column = self._column(tree)
        if isinstance(column, Unknown):
            return column
        return Member(column, ValueSet.of([int(not negated)])) if column.type == "boolean" else None

    def _column(self, tree: exp.Expression, *, with_bounds: bool = True) -> Column | Unknown:
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

    def _no_rule(self, tree: exp.Expression) -> Unknown:
        self._check_names(tree)
        text = tree.sql("spark")
        if tree.find(exp.Query, exp.Exists, exp.Subquery):
            return Unknown("SUBQUERY", text)
        if tree.find(exp.Rand, exp.Randn, exp.Uuid):
            return Unknown("NOT_DETERMINISTIC", text)
        if any((_name_of(one) or ("",))[0].lower() == _METADATA for one in tree.find_all(exp.Column)):
            return Unknown("METADATA_COLUMN", text)
        return Unknown("UNSUPPORTED_EXPRESSION", text)

    def _check_names(self, tree: exp.Expression) -> None:
        """Refuses a name that is none of the table's; names of sub-queries and lambdas are others."""
        if not tree.find(exp.Query, exp.Lambda):
            for column in tree.find_all(exp.Column):
                parts = _name_of(column)
                if parts is not None:
                    self._find(parts)


def _name_of(tree: exp.Expression) -> tuple[str, ...] | None:
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


def _is_text(literal: Literal | None) -> bool:
    return literal is not None and literal.kind == literals.STRING


def _literal(tree: exp.Expression, sign: int = 1) -> Literal | None:
    """A constant; None of what is none, or is not known to be what it is in Spark."""
    if isinstance(tree, exp.Neg):
        found = _literal(_unwrapped(tree.this), -sign)
        return found if found and found.kind in (literals.INTEGER, literals.DECIMAL, literals.DOUBLE, literals.FLOAT) else None
    if isinstance(tree, exp.Null):
        return Literal(literals.NULL, None)
    if isinstance(tree, exp.Boolean):
        return Literal(literals.BOOLEAN, bool(tree.this))
    if isinstance(tree, exp.HexString) and _has_only(tree, "this"):
        return _binary(str(tree.this))
    if isinstance(tree, exp.Literal):
        return Literal(literals.STRING, tree.this) if tree.is_string else _number(tree.this, sign)
    if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Literal):
        return _cast(tree.this, tree.to, sign)
    return None


def _binary(digits: str) -> Literal | None:
    try:
        return Literal(literals.BINARY, bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}"))
    except ValueError:
        return None


def _number(text: str, sign: int) -> Literal | None:
    try:
        if text.isdecimal():
            return Literal(literals.INTEGER, sign * int(text))
        if "e" in text.lower():
            return Literal(literals.DOUBLE, sign * float(text))
        return Literal(literals.DECIMAL, sign * Decimal(text))
    except (ValueError, InvalidOperation):
        return None


def _cast(inner: exp.Literal, to: exp.DataType, sign: int) -> Literal | None:
    kind = str(to.this.value if hasattr(to.this, "value") else to.this).rpartition(".")[2].upper()
    if kind in _TIMES:
        return Literal(_TIMES[kind], inner.this) if inner.is_string else None
    number = _number(inner.this, sign)
    if kind in _WHOLE:
        fits = number and number.kind == literals.INTEGER and -1 << _WHOLE[kind] - 1 <= number.value < 1 << _WHOLE[kind] - 1
        return number if fits and not inner.is_string else None
    if kind in ("DOUBLE", "FLOAT"):
        return _floating(inner.this, kind.lower(), sign)
    if kind == "DECIMAL" and number and number.kind in (literals.INTEGER, literals.DECIMAL):
        return _decimal(Decimal(number.value), to)
    return None


def _floating(text: str, kind: str, sign: int) -> Literal | None:
    try:
        value = sign * float(text)
    except ValueError:
        return None
    with np.errstate(over="ignore"):
        return Literal(kind, float(np.float32(value)) if kind == literals.FLOAT else value)


def _decimal(value: Decimal, to: exp.DataType) -> Literal | None:
    """A decimal literal, where its type holds it as it is."""
    sizes = [one.this.this for one in to.expressions]
    precision, scale = (int(sizes[0]), int(sizes[1]) if len(sizes) > 1 else 0) if sizes else (10, 0)
    _, digits, exponent = value.as_tuple()
    fits = -int(exponent) <= scale and len(digits) + int(exponent) <= precision - scale
    return Literal(literals.DECIMAL, value) if fits else None

