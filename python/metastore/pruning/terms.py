"""Functions of a column: which of its values a condition on their results is true of.

What the shim computes of bounds is turned around here: a set of results becomes the set of the column's values that
have them, so that lists, filters and other conditions on the column are asked alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

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
"""So many days before and after 1970 are timestamps."""
_LONG, _INT = (-(1 << 63), (1 << 63) - 1), (-(1 << 31), LONGEST)
_MOMENTS = -(1 << 63) + 400 * DAY, (1 << 63) - 1
"""Times of which the beginning of the year is one, too."""
_TRIMMED = {None: functions.trim, "LEADING": functions.trim_start, "TRAILING": functions.trim_end}
_OF_DATES: dict[type[exp.Expr], Callable[[int], int]] = {
    exp.Month: functions.month,
    exp.Quarter: functions.quarter,
    exp.Day: functions.day_of_month,
    exp.DayOfMonth: functions.day_of_month,
}


@dataclass(frozen=True)
class Source:
    """A column whose statistics tell of a term.

    Attributes:
        column: The column, or an expression that has statistics.
        steps: What is made of its values, one after the other.
    """

    column: Column
    steps: tuple[Preimage, ...] = ()

    def where(self, results: ValueSet) -> Member:
        """The condition that the result is in a set."""
        for step in reversed(self.steps):
            results = step(results)
        return Member(self.column, results)


@dataclass(frozen=True)
class Term:
    """A column, or a function of one that is null where the column is and nowhere else.

    Attributes:
        result: Of which type its values are: a column for the literals that it is compared with.
        sources: What tells of it, each alone.
    """

    result: Column
    sources: tuple[Source, ...]

    @classmethod
    def of(cls, column: Column) -> Term:
        """A column as it is."""
        return cls(column, (Source(column),))

    @property
    def type(self) -> str:
        """The type of its values."""
        return self.result.type

    @property
    def column(self) -> Column | None:
        """The column that it is; None of a function."""
        return next((one.column for one in self.sources if not one.steps and one.column == self.result), None)

    def where(self, results: ValueSet) -> Condition:
        """The condition that its value is in a set."""
        return all_of(one.where(results) for one in self.sources)

    def where_null(self, values: ValueSet) -> Condition:
        """The condition that the column's value is in a set that tells NULL from all others."""
        return all_of(Member(one.column, values) for one in self.sources)

    def to(self, kind: str, *steps: Preimage) -> Term:
        """What is made of it."""
        result = replace(self.result, type=kind, encoding=encoding_of(kind), collation=None)
        return Term(result, tuple(Source(one.column, (*one.steps, *steps)) for one in self.sources))


def reason_of(term: Term | Unknown | None) -> Unknown | None:
    """Why nothing is known of a term; None where another reason is to be found."""
    return term if isinstance(term, Unknown) else None


class Terms:
    """Reads the terms of a filter."""

    def __init__(self, names: ColumnNames, zone: str, stored: Callable[[exp.Expr], Column | None]) -> None:
        """`stored` gives the statistics of expressions that have some."""
        self._names, self._zone, self._stored = names, zone, stored

    def read(self, tree: exp.Expr | None) -> Term | Unknown:
        """The term that an expression is; else why nothing is known of it.

        Raises:
            InvalidArgument: There is none: a function has no argument.
        """
        if tree is None:
            raise InvalidArgument("filter", "a function has no argument", "Name the column that it is of.")
        tree = unwrap(tree)
        if is_name(tree):
            column = self._names.find_comparable(tree)
            return column if isinstance(column, Unknown) else Term.of(column)
        rule = next((rule for kind, rule in self._rules.items() if isinstance(tree, kind)), None)
        found = (rule(tree) if rule else None) or self._names.explain(tree)
        stored = self._stored(tree)
        if stored is None:
            return found
        own = Term.of(stored)
        return replace(own, sources=own.sources + found.sources) if _has_type(found, own.type) else own

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
        """Between instants and the clocks of the zone: where these jump, both are known to be near."""
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
        """The argument of a function of dates, which casts it."""
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
        """Arithmetic with whole constants, on one side or the other."""
        constant, argument, is_turned = _whole(tree.right), tree.left, False
        if constant is None:
            constant, argument, is_turned = _whole(tree.left), tree.right, True
        if constant is None:
            return None
        term = self.read(argument)
        if not is_turned and isinstance(tree, exp.Add | exp.Sub) and _has_type(term, "date"):
            return _add_days(term, tree.right, 1 if isinstance(tree, exp.Add) else -1)
        if isinstance(term, Unknown) or term.type not in INTEGERS:
            return reason_of(term)
        number, kind = constant[0], max(constant[1], term.type, key=INTEGERS.index)
        if isinstance(tree, exp.Mod):
            return None if is_turned or not number else term.to(kind, of_any(functions.remainder(number)))
        if isinstance(tree, exp.Mul):
            return term.to(kind, of_linear(number, 0, _limits(kind))) if number else None
        factor, offset = (1, number) if isinstance(tree, exp.Add) else (-1, number) if is_turned else (1, -number)
        return term.to(kind, of_linear(factor, offset, _limits(kind)))

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
        first, length = tree.args.get("start"), tree.args.get("length")
        start = None if first is None else _whole(first)
        number = (LONGEST, "int") if length is None else _whole(length)
        if start is None or number is None or not has_only(tree, "this", "start", "length"):
            return None
        return self._part(tree.this, start[0], number[0])

    def _left(self, tree: exp.Left) -> Term | Unknown | None:
        length = _whole(tree.expression) if has_only(tree, "this", "expression") else None
        return None if length is None else self._part(tree.this, 1, length[0])

    def _right(self, tree: exp.Right) -> Term | Unknown | None:
        length = _whole(tree.expression) if has_only(tree, "this", "expression") else None
        return None if length is None else self._part(tree.this, -max(length[0], 0), LONGEST if length[0] > 0 else 0)

    def _part(self, text: exp.Expr, start: int, length: int) -> Term | Unknown | None:
        term = self.read(text)
        if isinstance(term, Unknown) or not literals.is_plain_text(term.result):
            return reason_of(term)
        cut = functions.substring(start, length)
        return term.to("string", of_prefix(cut) if start in (0, 1) else of_any(cut))


def _add_days(term: Term | Unknown | None, number: exp.Expr, sign: int = 1) -> Term | Unknown | None:
    days = _whole(number)
    if not isinstance(term, Term) or days is None or days[1] == "bigint":
        return reason_of(term)
    return term.to("date", of_linear(1, sign * days[0], _INT))


def _widened(term: Term, kind: str) -> Term | None:
    """A cast that neither fails nor rounds, nor gives NULL, or whose rounding keeps the order."""
    held, wanted = decimal_type(term.type), decimal_type(kind)
    if term.type in INTEGERS:
        limits = _limits(term.type)
        if kind in INTEGERS:
            return term.to(kind) if INTEGERS.index(kind) > INTEGERS.index(term.type) else None
        if kind == "double":
            return term.to(kind, of_rising(lambda key: key_of_double(float(key)), limits))
        if kind == "float":
            return term.to(kind, of_rising(lambda key: key_of_double(float(np.int64(key).astype(np.float32))), limits))
        held = _DIGITS[term.type], 0
    if held and wanted:
        more = wanted[1] - held[1]
        fits = more >= 0 and wanted[0] - wanted[1] >= held[0] - held[1]
        most = 10 ** wanted[0]
        return term.to(kind, *([of_linear(10**more, 0, (-most, most))] if more else [])) if fits else None
    simple = {("float", "double"): (), ("timestamp_ntz", "date"): (_DAY_OF,), ("date", "timestamp_ntz"): (_MIDNIGHT,)}
    steps = simple.get((term.type, kind))
    return None if steps is None else term.to(kind, *steps)


_DAY_OF = of_rising(lambda moment: moment // DAY, _LONG)
_MIDNIGHT = of_rising(lambda day: day * DAY, (-_DATES + 1, _DATES - 1))


def _has_type(term: Term | Unknown, kind: str) -> TypeGuard[Term]:
    return isinstance(term, Term) and term.type == kind


def _limits(kind: str) -> Limits:
    return -(1 << _BITS[kind] - 1), (1 << _BITS[kind] - 1) - 1


def _text_of(tree: exp.Expr) -> str:
    """A text that stands in a filter; nothing of what is none."""
    return str(tree.this) if isinstance(tree, exp.Literal) and tree.is_string else ""


def _whole(tree: exp.Expr) -> tuple[int, str] | None:
    """A whole number in a filter, and its type; None of the least of a type, which may be one of the next."""
    tree = unwrap(tree)
    found = read_literal(tree)
    if found is None or found.kind != literals.INTEGER:
        return None
    cast = tree.find(exp.Cast)
    kind = next((one for one in ("int", "bigint") if abs(found.value) <= _limits(one)[1]), None)
    kind = kind if cast is None else read_type(cast.to)
    return None if kind is None or found.value == -(1 << 31) else (found.value, kind)
