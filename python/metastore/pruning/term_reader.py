"""Reads columns and functions of columns in a filter as terms."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlglot import exp

from metastore.errors import InvalidArgument
from metastore.format.table_column import INTEGERS
from metastore.pruning import functions, literals
from metastore.pruning.casts import INT_LIMITS, Casts, limits_of
from metastore.pruning.column_names import ColumnNames, is_name
from metastore.pruning.conditions import NoRuleError, Unknown, require_rule
from metastore.pruning.filter_text import require_only, unwrap
from metastore.pruning.functions import DAY, GREATEST_INT
from metastore.pruning.literal_cuts import is_plain_text
from metastore.pruning.preimages import invert_any, invert_linear, invert_prefix, invert_rising
from metastore.pruning.sql_literals import read_literal, read_type
from metastore.pruning.terms import Term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from metastore.format.table_column import Column

_MOMENTS = -(1 << 63) + 400 * DAY, (1 << 63) - 1
"""Timestamps of years whose first moment is a timestamp as well."""
_TRIMMED = {None: functions.trim, "LEADING": functions.trim_start, "TRAILING": functions.trim_end}
_PARTS_OF_DATES: dict[type[exp.Expr], Callable[[int], int]] = {
    exp.Month: functions.month,
    exp.Quarter: functions.quarter,
    exp.Day: functions.day_of_month,
    exp.DayOfMonth: functions.day_of_month,
}


class TermReader:
    """Reads the terms of a filter.

    Args:
        names: The table's columns.
        zone: The session's time zone.
        find_stored: Finds the statistics of an expression, or None.
    """

    def __init__(self, names: ColumnNames, zone: str, find_stored: Callable[[exp.Expr], Column | None]) -> None:
        self._names = names
        self._casts = Casts(zone)
        self._find_stored = find_stored

    def read(self, tree: exp.Expr | None) -> Term:
        """Return the term of an expression.

        Raises:
            ColumnNotFound: The table has no column of a name.
            InvalidArgument: A function has no argument.
            NoRuleError: The expression is no term.
        """
        return require_term(self.read_or_explain(tree))

    def read_or_explain(self, tree: exp.Expr | None) -> Term | Unknown:
        """Return the term of an expression, or the reason that it has none.

        Raises:
            ColumnNotFound: The table has no column of a name.
            InvalidArgument: A function has no argument.
        """
        if tree is None:
            raise InvalidArgument("filter", "a function has no argument", "Name the column that it is of.")
        tree = unwrap(tree)
        computed = self._compute(tree)
        if is_name(tree):
            return computed
        stored = self._find_stored(tree)
        if stored is None:
            return computed
        return _prefer_stored(stored, computed)

    def _compute(self, tree: exp.Expr) -> Term | Unknown:
        """Return the term of an expression by its rule, or the reason that it has none."""
        try:
            return self._apply_rule(tree)
        except NoRuleError as error:
            reason = error.reason
        return reason or self._names.explain(tree)

    def _apply_rule(self, tree: exp.Expr) -> Term:
        if is_name(tree):
            return Term.of(self._names.find_comparable(tree))
        for expression_type, rule in self._rules.items():
            if isinstance(tree, expression_type):
                return rule(tree)
        raise NoRuleError

    @cached_property
    def _rules(self) -> Mapping[type[exp.Expr], Callable[[Any], Term]]:
        return {
            exp.Cast: self._cast,
            exp.TsOrDsToDate: self._to_date,
            exp.Year: self._year,
            **dict.fromkeys(_PARTS_OF_DATES, self._part_of_date),
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

    def _cast(self, tree: exp.Cast) -> Term:
        require_only(tree, "this", "to", "safe")
        return self._read_as(read_type(tree.to), tree.this)

    def _to_date(self, tree: exp.TsOrDsToDate) -> Term:
        require_only(tree, "this", "safe")
        return self._read_as("date", tree.this)

    def _read_as(self, target: str, tree: exp.Expr) -> Term:
        """Read a term, and cast it."""
        return self._casts.convert(self.read(tree), target)

    def _year(self, tree: exp.Year) -> Term:
        require_only(tree, "this")
        return self._read_as("date", tree.this).to("int", invert_rising(functions.year, INT_LIMITS))

    def _part_of_date(self, tree: exp.Expr) -> Term:
        require_only(tree, "this")
        return self._read_as("date", tree.this).to("int", invert_any(_PARTS_OF_DATES[type(tree)]))

    def _call(self, tree: exp.Anonymous) -> Term:
        rules: dict[str, Callable[[exp.Expr, exp.Expr], Term]] = {
            "TRUNC": self._trunc,
            "DATE_TRUNC": self._date_trunc,
            "DATE_ADD": lambda day, number: _add_days(self._read_as("date", day), number, 1),
            "DATE_SUB": lambda day, number: _add_days(self._read_as("date", day), number, -1),
        }
        rule = rules.get(str(tree.this).upper())
        if rule is None or len(tree.expressions) != 2:
            raise NoRuleError
        return rule(*tree.expressions)

    def _trunc(self, day: exp.Expr, unit: exp.Expr) -> Term:
        term = self._read_as("date", day)
        truncate = functions.truncate_day(_text_of(unit))
        if truncate is None:
            raise NoRuleError
        return term.to("date", invert_rising(truncate, INT_LIMITS))

    def _date_trunc(self, unit: exp.Expr, moment: exp.Expr) -> Term:
        term = self._read_as("timestamp", moment)
        truncate = functions.truncate_moment(_text_of(unit))
        if truncate is None:
            raise NoRuleError
        clock = self._casts.to_clock(term)
        return self._casts.to_instant(clock.to("timestamp_ntz", invert_rising(truncate, _MOMENTS)))

    def _arithmetic(self, tree: exp.Binary) -> Term:
        """Read arithmetic of a term with an integer on either side."""
        constant = _find_integer(tree.right)
        if constant is not None:
            return self._arithmetic_with_right(tree, constant)
        return self._arithmetic_with_left(tree, _read_integer(tree.left))

    def _arithmetic_with_right(self, tree: exp.Binary, constant: _Integer) -> Term:
        term = self.read(tree.left)
        is_sum = isinstance(tree, exp.Add | exp.Sub)
        sign = -1 if isinstance(tree, exp.Sub) else 1
        if is_sum and term.type == "date":
            return _add_days(term, tree.right, sign)
        _require_integers(term)
        if is_sum:
            return _linear(term, constant, 1, sign * constant.value)
        require_rule(applies=constant.value != 0)
        if isinstance(tree, exp.Mul):
            return _linear(term, constant, constant.value, 0)
        return term.to(_wider(term, constant), invert_any(functions.remainder(constant.value)))

    def _arithmetic_with_left(self, tree: exp.Binary, constant: _Integer) -> Term:
        term = self._read_integers(tree.right)
        if isinstance(tree, exp.Add):
            return _linear(term, constant, 1, constant.value)
        if isinstance(tree, exp.Sub):
            return _linear(term, constant, -1, constant.value)
        require_rule(applies=isinstance(tree, exp.Mul))
        require_rule(applies=constant.value != 0)
        return _linear(term, constant, constant.value, 0)

    def _negative(self, tree: exp.Expr) -> Term:
        term = self._read_integers(tree.this)
        return term.to(term.type, invert_linear(-1, 0, limits_of(term.type)))

    def _read_integers(self, tree: exp.Expr) -> Term:
        term = self.read(tree)
        _require_integers(term)
        return term

    def _read_text(self, tree: exp.Expr) -> Term:
        term = self.read(tree)
        require_rule(applies=is_plain_text(term.result))
        return term

    def _text(self, tree: exp.Expr, function: Callable[[bytes], bytes | None]) -> Term:
        return self._read_text(tree.this).to("string", invert_any(function))

    def _trim(self, tree: exp.Trim) -> Term:
        require_only(tree, "this", "position")
        function = _TRIMMED.get(tree.args.get("position"))
        if function is None:
            raise NoRuleError
        return self._text(tree, function)

    def _length(self, tree: exp.Length) -> Term:
        term = self.read(tree.this)
        require_only(tree, "this")
        if term.type == "binary":
            return term.to("int", invert_any(len))
        require_rule(applies=is_plain_text(term.result))
        return term.to("int", invert_any(functions.count_characters))

    def _substring(self, tree: exp.Substring) -> Term:
        require_only(tree, "this", "start", "length")
        start = tree.args.get("start")
        length = tree.args.get("length")
        if start is None:
            raise NoRuleError
        characters = _read_integer(length).value if length else GREATEST_INT
        return self._part(tree.this, _read_integer(start).value, characters)

    def _left(self, tree: exp.Left) -> Term:
        require_only(tree, "this", "expression")
        return self._part(tree.this, 1, _read_integer(tree.expression).value)

    def _right(self, tree: exp.Right) -> Term:
        require_only(tree, "this", "expression")
        length = _read_integer(tree.expression).value
        if length <= 0:
            return self._part(tree.this, 0, 0)
        return self._part(tree.this, -length, GREATEST_INT)

    def _part(self, text: exp.Expr, start: int, length: int) -> Term:
        term = self._read_text(text)
        cut = functions.substring(start, length)
        if start in (0, 1):
            return term.to("string", invert_prefix(cut))
        return term.to("string", invert_any(cut))


def require_term(term: Term | Unknown) -> Term:
    """Return a term, or raise an error with the reason that there is none.

    Raises:
        NoRuleError: The expression has no rule.
    """
    if isinstance(term, Unknown):
        raise NoRuleError(term)
    return term


def _prefer_stored(stored: Column, computed: Term | Unknown) -> Term:
    """Return the term of an expression with statistics; its columns bound it as well if the type is the same."""
    term = Term.of(stored)
    if isinstance(computed, Unknown) or computed.type != term.type:
        return term
    return replace(term, sources=term.sources + computed.sources)


def _require_integers(term: Term) -> None:
    require_rule(applies=term.type in INTEGERS)


def _add_days(date: Term, number: exp.Expr, sign: int) -> Term:
    days = _read_integer(number)
    require_rule(applies=days.type != "bigint")
    return date.to("date", invert_linear(1, sign * days.value, INT_LIMITS))


def _linear(term: Term, constant: _Integer, factor: int, offset: int) -> Term:
    result_type = _wider(term, constant)
    return term.to(result_type, invert_linear(factor, offset, limits_of(result_type)))


def _wider(term: Term, constant: _Integer) -> str:
    """Return the type in which Spark computes a term and an integer."""
    return max(constant.type, term.type, key=INTEGERS.index)


def _text_of(tree: exp.Expr) -> str:
    """Return a text in a filter; an empty one for any other expression."""
    if isinstance(tree, exp.Literal) and tree.is_string:
        return str(tree.this)
    return ""


class _Integer(NamedTuple):
    """An integer in a filter and its type in Spark."""

    value: int
    type: str


def _find_integer(tree: exp.Expr) -> _Integer | None:
    try:
        return _read_integer(tree)
    except NoRuleError:
        return None


def _read_integer(tree: exp.Expr) -> _Integer:
    tree = unwrap(tree)
    literal = read_literal(tree)
    require_rule(applies=literal.kind == literals.INTEGER)
    # Spark may read the least int as a bigint.
    require_rule(applies=literal.value != INT_LIMITS[0])
    cast = tree.find(exp.Cast)
    integer_type = _smallest_type(literal.value) if cast is None else read_type(cast.to)
    return _Integer(literal.value, integer_type)


def _smallest_type(value: int) -> str:
    """Return the type that Spark gives a number without a suffix."""
    for integer_type in ("int", "bigint"):
        if abs(value) <= limits_of(integer_type)[1]:
            return integer_type
    raise NoRuleError
