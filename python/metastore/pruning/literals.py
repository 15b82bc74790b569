"""Finds the place of a literal among the keys of a column, as Spark compares the two."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.errors import InvalidArgument
from metastore.format.table_column import INTEGERS, Column, decimal_type
from metastore.format.time_zones import parse_time_zone
from metastore.pruning.keys import key_of_double
from metastore.pruning.value_sets import Key, ValueSet, following

if TYPE_CHECKING:
    from collections.abc import Sequence

Cut = tuple[Key, Key]
"""Keys below the first are less than the literal, keys from the second on are greater, and keys between are equal."""
Reading = tuple[Cut, ...]
"""The cuts of several literals."""

INTEGER, DECIMAL, DOUBLE, FLOAT, STRING, BOOLEAN = "integer", "decimal", "double", "float", "string", "boolean"
DATE, TIMESTAMP, TIMESTAMP_NTZ, BINARY, NULL = "date", "timestamp", "timestamp_ntz", "binary", "null"

NUMBERS = (INTEGER, DECIMAL, DOUBLE, FLOAT)
MOST_DIGITS = 38
"""Of a decimal."""
_EXACT_DOUBLES = 1 << 53
_UNREACHED = 1 << 64
_DIGITS = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?\s*(Z|UTC|GMT|[+-]\d\d:\d\d)?"
)
NOT_UTF8 = "\ufffd"
"""Stands for what is no text: Spark and Python may disagree about it."""


@dataclass(frozen=True)
class Literal:
    """A constant of a filter.

    Attributes:
        kind: What Spark takes it for: one of the names above.
        value: An `int`, `Decimal`, `float`, `str`, `bool` or `bytes`; times and dates as text; None of NULL.
    """

    kind: str
    value: Any


def read_literals(literals: Sequence[Literal], column: Column, zone: str) -> tuple[Reading, ...] | None:
    """Return the cuts of literals that a column is compared with; None if Spark's comparison is unknown.

    There are two readings where engines compare in different ways: a condition may hold by either.
    """
    kinds = {literal.kind for literal in literals}
    if column.encoding == "double":
        return _read_doubles(literals, column) if kinds <= set(NUMBERS) else None
    are_decimals = kinds <= {INTEGER, DECIMAL}
    if len(kinds) > 1 and not are_decimals:
        return None
    has_decimal = DECIMAL in kinds or decimal_type(column.type) is not None
    if has_decimal and not (are_decimals and _fit_one_decimal_type(literals, column)):
        return None
    cuts = []
    for literal in literals:
        cut = _find_cut(literal, column, zone)
        if cut is None:
            return None
        cuts.append(cut)
    return (tuple(cuts),)


def _find_cut(literal: Literal, column: Column, zone: str) -> Cut | None:
    if literal.kind in (INTEGER, DECIMAL, DOUBLE) and column.type in INTEGERS:
        return _find_integer_cut(literal, column)
    decimal = decimal_type(column.type)
    if decimal and literal.kind in (INTEGER, DECIMAL):
        _, scale = decimal
        return _cut(Fraction(literal.value) * 10**scale)
    if (literal.kind, column.type) in ((BOOLEAN, "boolean"), (BINARY, "binary")):
        return _cut_at(int(literal.value) if literal.kind == BOOLEAN else literal.value)
    if literal.kind == STRING and is_plain_text(column):
        return _find_text_cut(literal.value)
    if literal.kind in (STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return _find_time_cut(literal, column, zone)
    return None


def is_plain_text(column: Column) -> bool:
    """Return whether texts compare by their bytes: CHAR is padded, and collations have other orders."""
    is_text = column.type == "string" or column.type.startswith("varchar")
    return is_text and column.collation in (None, "UTF8_BINARY")


def is_of_other_type(literal: Literal, type_: str) -> bool:
    """Return whether a literal is a text that is certainly no number or time, as the type it is compared with.

    Example:
        >>> is_of_other_type(Literal(STRING, "x"), "bigint"), is_of_other_type(Literal(STRING, " 7"), "bigint")
        (True, False)
    """
    if literal.kind != STRING:
        return False
    if type_ in INTEGERS:
        return any(character.isalpha() for character in literal.value)
    if type_.startswith(("date", "timestamp", "decimal")):
        return not any(character.isdigit() for character in literal.value)
    return False


def equal_to(cuts: Reading) -> ValueSet:
    """Return the values that equal one of the literals.

    Example:
        >>> 15 in equal_to(((15, 16),)), 15 in equal_to(((16, 16),))
        (True, False)
    """
    return ValueSet.of([start for start, end in cuts if start < end])


def _cut_at(key: Key) -> Cut:
    return key, following(key)


def _find_text_cut(text: str) -> Cut | None:
    if NOT_UTF8 in text:
        return None
    try:
        return _cut_at(text.encode())
    except UnicodeEncodeError:
        return None


def _find_integer_cut(literal: Literal, column: Column) -> Cut | None:
    value = literal.value
    if literal.kind == DOUBLE:
        if not isfinite(value):
            return (-_UNREACHED, -_UNREACHED) if value < 0 else (_UNREACHED, _UNREACHED)
        # Spark casts the column: a bigint may be rounded.
        if column.type == "bigint" and abs(value) >= _EXACT_DOUBLES:
            return None
    return _cut(Fraction(value))


def _cut(value: Fraction) -> Cut:
    return ceil(value), floor(value) + 1


def _fit_one_decimal_type(literals: Sequence[Literal], column: Column) -> bool:
    """Return whether one decimal type holds the column and all literals: else Spark rounds."""
    precision, scale = decimal_type(column.type) or (_DIGITS.get(column.type, 0), 0)
    if not precision:
        return False
    integer_digits, fraction_digits = precision - scale, scale
    for literal in literals:
        _, digits, exponent = Decimal(literal.value).as_tuple()
        least_digits = _DIGITS["bigint"] if literal.kind == INTEGER else 0
        integer_digits = max(integer_digits, len(digits) + int(exponent), least_digits)
        fraction_digits = max(fraction_digits, -int(exponent))
    return integer_digits + fraction_digits <= MOST_DIGITS


def _read_doubles(literals: Sequence[Literal], column: Column) -> tuple[Reading, ...] | None:
    try:
        values = [float(literal.value) for literal in literals]
    except OverflowError:
        return None
    doubles = tuple(_cut_at(key_of_double(value)) for value in values)
    if column.type != "float" or {literal.kind for literal in literals} == {FLOAT}:
        return (doubles,)
    # Spark compares most as doubles, other engines round the literal to a float.
    with np.errstate(over="ignore"):
        rounded = [float(np.float32(value)) for value in values]
    return doubles, tuple(_cut_at(key_of_double(value)) for value in rounded)


def _find_time_cut(literal: Literal, column: Column, zone: str) -> Cut | None:
    text = literal.value.strip()
    try:
        if column.type == "date":
            return _find_date_cut(text) if literal.kind in (STRING, DATE) else None
        if literal.kind == DATE and not _DATE.fullmatch(text):
            return None
        moment = _read_moment(text, literal.kind, column.type, zone)
    except (ValueError, OverflowError, InvalidArgument):  # no day, or none that Python knows
        return None
    if moment is None:
        return None
    return _cut_at((moment - _EPOCH) // _MICROSECOND)


def _find_date_cut(text: str) -> Cut | None:
    if not _DATE.fullmatch(text):
        return None
    return _cut_at(date.fromisoformat(text).toordinal() - _EPOCH.toordinal())


def _read_moment(text: str, kind: str, column_type: str, zone: str) -> datetime | None:
    if column_type == "timestamp" and kind != TIMESTAMP_NTZ:
        return _read_instant(text, parse_time_zone(zone))
    if column_type != "timestamp_ntz":
        return None
    # An instant is compared in the session's zone, whose clocks must not jump.
    has_fixed_offset = isinstance(parse_time_zone(zone), timezone)
    if kind == TIMESTAMP and not has_fixed_offset:
        return None
    return _read_wall_clock(text)


def _read_wall_clock(text: str) -> datetime | None:
    match = _MOMENT.fullmatch(text)
    if match is None or match[6]:
        return None
    day, *digits, fraction, _ = match.groups()
    hour, minute, second = (int(number or 0) for number in digits)
    if hour > 23 or minute > 59 or second > 59:
        return None
    microseconds = int((fraction or "0").ljust(6, "0"))
    clock = timedelta(hours=hour, minutes=minute, seconds=second, microseconds=microseconds)
    return datetime.fromisoformat(f"{day}T00:00:00+00:00") + clock


def _read_instant(text: str, zone: tzinfo) -> datetime | None:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    if match[6]:
        zone = parse_time_zone(match[6])
        text = text[: match.start(6)].rstrip()
    wall_clock = _read_wall_clock(text)
    if wall_clock is None:
        return None
    local = wall_clock.replace(tzinfo=zone)
    # Where clocks jump, a time may come twice or not at all.
    if (local - _DAY).utcoffset() != (local + _DAY).utcoffset():
        return None
    return local.astimezone(timezone.utc)
