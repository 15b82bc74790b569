"""Where a literal stands among the keys of a column, as Spark compares the two."""

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
"""Keys below the first are less than a literal, those from the second on are greater; one between equals it."""
Reading = tuple[Cut, ...]
"""One for each of some literals."""

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
    """Where literals that a column is compared with stand among its keys; None where Spark's comparison is not known.

    More than one reading where engines do not agree how they compare: a condition may then hold by any of them.
    """
    kinds = {literal.kind for literal in literals}
    if column.encoding == "double":
        return _among_doubles(literals, column) if kinds <= set(NUMBERS) else None
    if len(kinds) > 1 and not kinds <= {INTEGER, DECIMAL}:
        return None
    if DECIMAL in kinds | {_kind_of(column)} and not (kinds <= {INTEGER, DECIMAL} and _fit_together(literals, column)):
        return None
    found = [_find_cut(literal, column, zone) for literal in literals]
    cuts = tuple(cut for cut in found if cut is not None)
    return (cuts,) if len(cuts) == len(found) else None


def _kind_of(column: Column) -> str:
    return DECIMAL if decimal_type(column.type) else ""


def _find_cut(literal: Literal, column: Column, zone: str) -> Cut | None:
    if literal.kind in (INTEGER, DECIMAL, DOUBLE) and column.type in INTEGERS:
        return _among_integers(literal, column)
    scaled = decimal_type(column.type)
    if literal.kind in (INTEGER, DECIMAL) and scaled:
        return _cut(Fraction(literal.value) * 10 ** scaled[1])
    if (literal.kind, column.type) == (BOOLEAN, "boolean"):
        return _at(int(literal.value))
    if literal.kind == STRING and is_plain_text(column):
        return _of_text(literal.value)
    if (literal.kind, column.type) == (BINARY, "binary"):
        return _at(literal.value)
    return _among_times(literal, column, zone)


def is_plain_text(column: Column) -> bool:
    """Whether texts compare by their bytes: neither CHAR, which is padded, nor of another collation."""
    plain = column.type == "string" or column.type.startswith("varchar")
    return plain and column.collation in (None, "UTF8_BINARY")


def is_of_other_type(literal: Literal, type_: str) -> bool:
    """Whether a literal is a text that certainly is no number, or no time, where a type of these is compared with it.

    Example:
        >>> is_of_other_type(Literal(STRING, "x"), "bigint"), is_of_other_type(Literal(STRING, " 7"), "bigint")
        (True, False)
    """
    if literal.kind != STRING:
        return False
    if type_ in INTEGERS:
        return any(one.isalpha() for one in literal.value)
    is_read = type_.startswith(("date", "timestamp", "decimal"))
    return is_read and not any(one.isdigit() for one in literal.value)


def equal_to(cuts: Reading) -> ValueSet:
    """The values that equal one of the literals.

    Example:
        >>> 15 in equal_to(((15, 16),)), 15 in equal_to(((16, 16),))
        (True, False)
    """
    return ValueSet.of([start for start, end in cuts if start < end])


def _at(key: Key) -> Cut:
    return key, following(key)


def _of_text(text: str) -> Cut | None:
    try:
        return None if NOT_UTF8 in text else _at(text.encode())
    except UnicodeEncodeError:
        return None


def _among_integers(literal: Literal, column: Column) -> Cut | None:
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


def _fit_together(literals: Sequence[Literal], column: Column) -> bool:
    """Whether a decimal type holds all that is compared: else Spark rounds."""
    precision, scale = decimal_type(column.type) or (_DIGITS.get(column.type, 0), 0)
    if not precision:
        return False
    whole, behind = precision - scale, scale
    for literal in literals:
        exponent = int(Decimal(literal.value).as_tuple().exponent)
        digits = len(Decimal(literal.value).as_tuple().digits)
        own = max(-exponent, 0)
        least = 20 if literal.kind == INTEGER else 0
        whole, behind = max(whole, digits + exponent, least), max(behind, own)
    return whole + behind <= MOST_DIGITS


def _among_doubles(literals: Sequence[Literal], column: Column) -> tuple[Reading, ...] | None:
    try:
        values = [float(literal.value) for literal in literals]
    except OverflowError:
        return None
    doubles = tuple(_at(key_of_double(value)) for value in values)
    if column.type != "float" or {literal.kind for literal in literals} == {FLOAT}:
        return (doubles,)
    # Spark compares most as doubles, other engines round the literal to a float.
    with np.errstate(over="ignore"):
        return doubles, tuple(_at(key_of_double(float(np.float32(value)))) for value in values)


def _among_times(literal: Literal, column: Column, zone: str) -> Cut | None:
    if literal.kind not in (STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return None
    text = literal.value.strip()
    try:
        if column.type == "date":
            day = literal.kind in (STRING, DATE) and _DATE.fullmatch(text) is not None
            return _at(date.fromisoformat(text).toordinal() - _EPOCH.toordinal()) if day else None
        if literal.kind == DATE and not _DATE.fullmatch(text):
            return None
        if column.type == "timestamp" and literal.kind != TIMESTAMP_NTZ:
            moment = _instant(text, parse_time_zone(zone))
        elif column.type == "timestamp_ntz":
            # An instant is compared in the session's zone, whose clocks must not jump.
            is_fixed = isinstance(parse_time_zone(zone), timezone)
            moment = _wall_clock(text) if literal.kind != TIMESTAMP or is_fixed else None
        else:
            return None
    except (ValueError, OverflowError, InvalidArgument):  # no day, or none that Python knows
        return None
    return None if moment is None else _at((moment - _EPOCH) // _MICROSECOND)


def _wall_clock(text: str) -> datetime | None:
    found = _MOMENT.fullmatch(text)
    if found is None or found[6]:
        return None
    day, hour, minute, second, fraction, _ = found.groups()
    clock = timedelta(
        hours=int(hour or 0),
        minutes=int(minute or 0),
        seconds=int(second or 0),
        microseconds=int((fraction or "0").ljust(6, "0")),
    )
    if int(hour or 0) > 23 or int(minute or 0) > 59 or int(second or 0) > 59:
        return None
    return datetime.fromisoformat(f"{day}T00:00:00+00:00") + clock


def _instant(text: str, zone: tzinfo) -> datetime | None:
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    named = found[6]
    wall = _wall_clock(text[: found.start(6)].rstrip() if named else text)
    if wall is None:
        return None
    local = wall.replace(tzinfo=parse_time_zone(named) if named else zone)
    # Where clocks jump, a time may come twice or not at all.
    if (local - _DAY).utcoffset() != (local + _DAY).utcoffset():
        return None
    return local.astimezone(timezone.utc)
