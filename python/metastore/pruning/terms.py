"""Functions of a column in a filter.

The shim computes a function's results of bounds. Here a set of results becomes the set of the column's values that
have them, so that bounds, value lists and filters of the column answer conditions on the function, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
from sqlglot import exp

from metastore.errors import InvalidArgument
from metastore.format.table_column import INTEGERS, Column, decimal_type, encoding_of
from metastore.format.time_zones import parse_time_zone
from metastore.pruning import functions, literals
from metastore.pruning.column_names import ColumnNames, is_name
from metastore.pruning.conditions import Condition, Member, Unknown, all_of
from metastore.pruning.filter_text import has_only, unwrap
from metastore.pruning.functions import DAY, LONGEST
from metastore.pruning.keys import key_of_double
from metastore.pruning.preimages import Preimage, of_any, of_linear, of_nearly_same, of_prefix, of_rising
from metastore.pruning.sql_literals import read_literal, read_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from metastore.pruning.preimages import Limits
    from metastore.pruning.value_sets import ValueSet

_BITS = dict(zip(INTEGERS, (8, 16, 32, 64), strict=True))
_DIGITS = dict(zip(INTEGERS, (3, 5, 10, 19), strict=True))
_MICROSECOND = timedelta(microseconds=1)
_DATES = (1 << 63) // DAY
"""Days before and after 1970 that are timestamps."""
_LONG, _INT = (-(1 << 63), (1 << 63) - 1), (-(1 << 31), LONGEST)
_MOMENTS = -(1 << 63) + 400 * DAY, (1 << 63) - 1
"""Timestamps whose year begins with a timestamp, too."""
_TRIMMED = {None: functions.trim, "LEADING": functions.trim_start, "TRAILING": functions.trim_end}
_OF_DATES: dict[type[exp.Expr], Callable[[int], int]] = {
    exp.Month: functions.month,
    exp.Quarter: functions.quarter,
    exp.Day: functions.day_of_month,
    exp.DayOfMonth: functions.day_of_month,
}


@dataclass(frozen=True)
class Source:
    """A column whose statistics bound a term.

    Attributes:
        column: The column, or an expression that has statistics.
        steps: Preimages of the functions that make the term of the column, in the order in which they apply.
    """

    column: Column
    steps: tuple[Preimage, ...] = ()

    def where(self, results: ValueSet) -> Member:
        """Return the condition that the result is in a set."""
        for step in reversed(self.steps):
            results = step(results)
        return Member(self.column, results)


@dataclass(frozen=True)
class Term:
    """A column, or a function of one that is null exactly where the column is null.

    Attributes:
        result: A column of the result's type, for the literals that it is compared with.
        sources: Columns with statistics; each alone bounds the term.
    """

    result: Column
    sources: tuple[Source, ...]

    @classmethod
    def of(cls, column: Column) -> Term:
        """Return the term that is a column."""
        return cls(column, (Source(column),))

    @property
    def type(self) -> str:
        """The type of the term's values."""
        return self.result.type

    @property
    def column(self) -> Column | None:
        """The column that the term is; None for a function."""
        for source in self.sources:
            if not source.steps and source.column == self.result:
                return source.column
        return None

    def where(self, results: ValueSet) -> Condition:
        """Return the condition that the term's value is in a set."""
        return all_of(source.where(results) for source in self.sources)

    def where_null(self, values: ValueSet) -> Condition:
        """Return the condition that the column is null, or that it is not null, as the set says."""
        return all_of(Member(source.column, values) for source in self.sources)

    def to(self, result_type: str, *steps: Preimage) -> Term:
        """Return a function of the term."""
        result = replace(self.result, type=result_type, encoding=encoding_of(result_type), collation=None)
        sources = [Source(source.column, (*source.steps, *steps)) for source in self.sources]
        return Term(result, tuple(sources))


def reason_of(term: Term | Unknown | None) -> Unknown | None:
    """Return the reason that a term is unknown, if it has one."""
    return term if isinstance(term, Unknown) else None


class Terms:
    """Reads the terms of a filter.

    Args:
        names: The table's columns.
        zone: The session's time zone.
        find_stored: Finds the statistics of an expression, or None.
    """

    def __init__(self, names: ColumnNames, zone: str, find_stored: Callable[[exp.Expr], Column | None]) -> None:
        self._names = names
        self._zone = zone
        self._find_stored = find_stored

    def read(self, tree: exp.Expr | None) -> Term | Unknown:
        """Return the term of an expression, or the reason that it has none.

        Raises:
            InvalidArgument: A function has no argument.
        """
        if tree is None:
            raise InvalidArgument("filter", "a function has no argument", "Name the column that it is of.")
        tree = unwrap(tree)
        if is_name(tree):
            column = self._names.find_comparable(tree)
            return column if isinstance(column, Unknown) else Term.of(column)
        term = self._apply_rule(tree) or self._names.explain(tree)
        stored = self._find_stored(tree)
        if stored is None:
            return term
        stored_term = Term.of(stored)
        if _has_type(term, stored_term.type):
            return replace(stored_term, sources=stored_term.sources + term.sources)
        return stored_term

    def _apply_rule(self, tree: exp.Expr) -> Term | Unknown | None:
        for expression_type, rule in self._rules.items():
            if isinstance(tree, expression_type):
                return rule(tree)
        return None

    @cached_property
    def _rules(self) -> Mapping[type[exp.Expr], Callable[[Any], Term | Unknown | None]]:
        return {
            exp.Cast: self._cast,
            exp.TsOrDsToDate: self._to_date,
            exp.Year: self._year,
            **dict.fromkeys(_OF_DATES, self._part_of_date),
            exp.Anonymous: self._call,
            **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Mod), self._arithmetic),
            **dict.fromkeys((exp.Neg, exp.Negative), self._negative),
            exp.Lower: lambda tree: self._text(tree, functions.lower),
            exp.Upper: lambda tree: self._text(tree, functions.upper),
            exp.Trim: self._trim,
            exp.Length: self._length,
            exp.Substring: self._substring,
            exp.Left: self._left,
            exp.Right: self._right,
        }

    def _cast(self, tree: exp.Cast) -> Term | Unknown | None:
        kind = read_type(tree.to)
        if kind is None or not has_only(tree, "this", "to", "safe"):
            return None
        return self._converted(self.read(tree.this), kind)

    def _to_date(self, tree: exp.TsOrDsToDate) -> Term | Unknown | None:
        return self._converted(self.read(tree.this), "date") if has_only(tree, "this", "safe") else None

    def _converted(self, term: Term | Unknown, kind: str) -> Term | Unknown | None:
        if isinstance(term, Unknown) or term.type == kind:
            return term
        if (term.type, kind) == ("timestamp", "date"):
            return self._converted(self._to_clock(term), kind)
        if (term.type, kind) == ("date", "timestamp"):
            return self._to_instant(term.to("timestamp_ntz", _MIDNIGHT))
        if (term.type, kind) == ("timestamp", "timestamp_ntz"):
            return self._to_clock(term)
        if (term.type, kind) == ("timestamp_ntz", "timestamp"):
            return self._to_instant(term)
        return _widened(term, kind)

    def _to_clock(self, term: Term) -> Term:
        return term.to("timestamp_ntz", *self._shifted(1))

    def _to_instant(self, term: Term) -> Term:
        return term.to("timestamp", *self._shifted(-1))

    def _shifted(self, sign: int) -> tuple[Preimage, ...]:
        """Return the steps between instants and the zone's clocks, which are near where clocks jump."""
        try:
            zone = parse_time_zone(self._zone)
        except InvalidArgument:  # Spark may know more of them
            zone = None
        if not isinstance(zone, timezone):
            return (of_nearly_same(DAY),)
        offset = sign * (zone.utcoffset(None) // _MICROSECOND)
        return (of_linear(1, offset, _LONG),) if offset else ()

    def _year(self, tree: exp.Year) -> Term | Unknown | None:
        term = self._as_date(tree)
        return term.to("int", of_rising(functions.year, _INT)) if isinstance(term, Term) else term

    def _part_of_date(self, tree: exp.Expr) -> Term | Unknown | None:
        term = self._as_date(tree)
        return term.to("int", of_any(_OF_DATES[type(tree)])) if isinstance(term, Term) else term

    def _as_date(self, tree: exp.Expr) -> Term | Unknown | None:
        """Return the argument of a function of dates, cast to a date."""
        return self._converted(self.read(tree.this), "date") if has_only(tree, "this") else None

    def _call(self, tree: exp.Anonymous) -> Term | Unknown | None:
        rules: dict[str, Callable[[exp.Expr, exp.Expr], Term | Unknown | None]] = {
            "TRUNC": self._trunc,
            "DATE_TRUNC": self._date_trunc,
            "DATE_ADD": lambda day, number: _add_days(self._converted(self.read(day), "date"), number),
            "DATE_SUB": lambda day, number: _add_days(self._converted(self.read(day), "date"), number, -1),
        }
        rule = rules.get(str(tree.this).upper())
        return rule(*tree.expressions) if rule and len(tree.expressions) == 2 else None

    def _trunc(self, day: exp.Expr, unit: exp.Expr) -> Term | Unknown | None:
        term, first = self._converted(self.read(day), "date"), functions.truncate_day(_text_of(unit))
        if not isinstance(term, Term) or first is None:
            return reason_of(term)
        return term.to("date", of_rising(first, _INT))

    def _date_trunc(self, unit: exp.Expr, moment: exp.Expr) -> Term | Unknown | None:
        term, first = self._converted(self.read(moment), "timestamp"), functions.truncate_moment(_text_of(unit))
        if not isinstance(term, Term) or first is None:
            return reason_of(term)
        return self._to_instant(self._to_clock(term).to("timestamp_ntz", of_rising(first, _MOMENTS)))

    def _arithmetic(self, tree: exp.Binary) -> Term | Unknown | None:
        """Read arithmetic of a term and a whole number, on either side."""
        constant = _read_integer(tree.right)
        if constant is not None:
            return self._arithmetic_with_right(tree, constant)
        constant = _read_integer(tree.left)
        if constant is not None:
            return self._arithmetic_with_left(tree, constant)
        return None

    def _arithmetic_with_right(self, tree: exp.Binary, constant: _Integer) -> Term | Unknown | None:
        term = self.read(tree.left)
        if isinstance(tree, exp.Add | exp.Sub) and _has_type(term, "date"):
            return _add_days(term, tree.right, 1 if isinstance(tree, exp.Add) else -1)
        if isinstance(term, Unknown) or term.type not in INTEGERS:
            return reason_of(term)
        number = constant.value
        if isinstance(tree, exp.Add | exp.Sub):
            return _linear(term, constant, 1, number if isinstance(tree, exp.Add) else -number)
        if number == 0:
            return None
        if isinstance(tree, exp.Mul):
            return _linear(term, constant, number, 0)
        return term.to(_wider(term, constant), of_any(functions.remainder(number)))

    def _arithmetic_with_left(self, tree: exp.Binary, constant: _Integer) -> Term | Unknown | None:
        term = self.read(tree.right)
        if isinstance(term, Unknown) or term.type not in INTEGERS:
            return reason_of(term)
        number = constant.value
        if isinstance(tree, exp.Add | exp.Sub):
            return _linear(term, constant, 1 if isinstance(tree, exp.Add) else -1, number)
        if isinstance(tree, exp.Mul) and number != 0:
            return _linear(term, constant, number, 0)
        return None

    def _negative(self, tree: exp.Expr) -> Term | Unknown | None:
        term = self.read(tree.this)
        if isinstance(term, Unknown) or term.type not in INTEGERS:
            return reason_of(term)
        return term.to(term.type, of_linear(-1, 0, _limits(term.type)))

    def _text(self, tree: exp.Expr, function: Callable[[bytes], bytes | None]) -> Term | Unknown | None:
        term = self.read(tree.this)
        if isinstance(term, Unknown):
            return term
        return term.to("string", of_any(function)) if literals.is_plain_text(term.result) else None

    def _trim(self, tree: exp.Trim) -> Term | Unknown | None:
        function = _TRIMMED.get(tree.args.get("position"))
        return self._text(tree, function) if function and has_only(tree, "this", "position") else None

    def _length(self, tree: exp.Length) -> Term | Unknown | None:
        term = self.read(tree.this)
        if isinstance(term, Unknown) or not has_only(tree, "this"):
            return reason_of(term)
        if term.type == "binary":
            return term.to("int", of_any(len))
        return term.to("int", of_any(functions.count_characters)) if literals.is_plain_text(term.result) else None

    def _substring(self, tree: exp.Substring) -> Term | Unknown | None:
        if tree.args.get("start") is None or not has_only(tree, "this", "start", "length"):
            return None
        start = _read_integer(tree.args["start"])
        length = _read_integer(tree.args["length"]) if tree.args.get("length") else _Integer(LONGEST, "int")
        if start is None or length is None:
            return None
        return self._part(tree.this, start.value, length.value)

    def _left(self, tree: exp.Left) -> Term | Unknown | None:
        length = _read_integer(tree.expression) if has_only(tree, "this", "expression") else None
        return None if length is None else self._part(tree.this, 1, length.value)

    def _right(self, tree: exp.Right) -> Term | Unknown | None:
        length = _read_integer(tree.expression) if has_only(tree, "this", "expression") else None
        if length is None:
            return None
        if length.value <= 0:
            return self._part(tree.this, 0, 0)
        return self._part(tree.this, -length.value, LONGEST)

    def _part(self, text: exp.Expr, start: int, length: int) -> Term | Unknown | None:
        term = self.read(text)
        if isinstance(term, Unknown) or not literals.is_plain_text(term.result):
            return reason_of(term)
        cut = functions.substring(start, length)
        return term.to("string", of_prefix(cut) if start in (0, 1) else of_any(cut))


def _add_days(term: Term | Unknown | None, number: exp.Expr, sign: int = 1) -> Term | Unknown | None:
    days = _read_integer(number)
    if not isinstance(term, Term) or days is None or days.type == "bigint":
        return reason_of(term)
    return term.to("date", of_linear(1, sign * days.value, _INT))


def _linear(term: Term, constant: _Integer, factor: int, offset: int) -> Term:
    result_type = _wider(term, constant)
    return term.to(result_type, of_linear(factor, offset, _limits(result_type)))


def _wider(term: Term, constant: _Integer) -> str:
    """Return the type in which Spark computes with a whole number."""
    return max(constant.type, term.type, key=INTEGERS.index)


def _widened(term: Term, target: str) -> Term | None:
    """Return a cast that neither fails nor gives NULL, and whose rounding keeps the order of values; else None."""
    if term.type in INTEGERS and target in (*INTEGERS, "double", "float"):
        return _widened_integer(term, target)
    source_size = (_DIGITS[term.type], 0) if term.type in INTEGERS else decimal_type(term.type)
    target_size = decimal_type(target)
    if source_size and target_size:
        return _widened_decimal(term, target, source_size, target_size)
    steps = {
        ("float", "double"): (),
        ("timestamp_ntz", "date"): (_DAY_OF,),
        ("date", "timestamp_ntz"): (_MIDNIGHT,),
    }.get((term.type, target))
    return None if steps is None else term.to(target, *steps)


def _widened_integer(term: Term, target: str) -> Term | None:
    if target in INTEGERS:
        return term.to(target) if INTEGERS.index(target) > INTEGERS.index(term.type) else None
    limits = _limits(term.type)
    if target == "double":
        return term.to(target, of_rising(lambda key: key_of_double(float(key)), limits))
    return term.to(target, of_rising(lambda key: key_of_double(float(np.int64(key).astype(np.float32))), limits))


def _widened_decimal(
    term: Term, target: str, source_size: tuple[int, int], target_size: tuple[int, int]
) -> Term | None:
    precision, scale = target_size
    more_digits = scale - source_size[1]
    if more_digits < 0 or precision - scale < source_size[0] - source_size[1]:
        return None
    if more_digits == 0:
        return term.to(target)
    limit = 10**precision
    return term.to(target, of_linear(10**more_digits, 0, (-limit, limit)))


_DAY_OF = of_rising(lambda moment: moment // DAY, _LONG)
_MIDNIGHT = of_rising(lambda day: day * DAY, (-_DATES + 1, _DATES - 1))


def _has_type(term: Term | Unknown, kind: str) -> TypeGuard[Term]:
    return isinstance(term, Term) and term.type == kind


def _limits(integer_type: str) -> Limits:
    end = 1 << (_BITS[integer_type] - 1)
    return -end, end - 1


def _text_of(tree: exp.Expr) -> str:
    """Return a text in a filter; an empty one for any other expression."""
    return str(tree.this) if isinstance(tree, exp.Literal) and tree.is_string else ""


class _Integer(NamedTuple):
    """A whole number in a filter and its type in Spark."""

    value: int
    type: str


def _read_integer(tree: exp.Expr) -> _Integer | None:
    tree = unwrap(tree)
    literal = read_literal(tree)
    if literal is None or literal.kind != literals.INTEGER:
        return None
    # Spark may read the least int as a bigint.
    if literal.value == _INT[0]:
        return None
    cast = tree.find(exp.Cast)
    integer_type = _smallest_type(literal.value) if cast is None else read_type(cast.to)
    return None if integer_type is None else _Integer(literal.value, integer_type)


def _smallest_type(value: int) -> str | None:
    """Return the type that Spark gives a number without a suffix."""
    for integer_type in ("int", "bigint"):
        if abs(value) <= _limits(integer_type)[1]:
            return integer_type
    return None
