"""Finds the position of a literal among the keys of a column, as Spark compares the two."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, inf, isfinite
from typing import TYPE_CHECKING

import numpy as np

from metastore.format.table_column import INTEGERS, Column, decimal_type
from metastore.pruning.conditions import NoRuleError, require_rule
from metastore.pruning.keys import key_of_double
from metastore.pruning.literals import (
    BINARY,
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    MOST_DIGITS,
    NOT_UTF8,
    NUMBERS,
    STRING,
    Literal,
)
from metastore.pruning.time_literals import read_time
from metastore.pruning.value_sets import Key, ValueSet, following

if TYPE_CHECKING:
    from collections.abc import Sequence

Cut = tuple[Key, Key]
"""Keys below the first are less than the literal, keys from the second on are greater, and keys between are equal."""
Reading = tuple[Cut, ...]
"""The cuts of several literals."""

_EXACT_DOUBLES = 1 << 53
_BELOW_INTEGERS = (-(1 << 64), -(1 << 64))
_ABOVE_INTEGERS = (1 << 64, 1 << 64)
_BIGINT_DIGITS = 20
_INTEGER_SIZES = {"tinyint": (10, 0), "smallint": (10, 0), "int": (10, 0), "bigint": (_BIGINT_DIGITS, 0)}
"""Digits, and digits after the point, of the decimal types that Spark gives integers."""


def read_literals(literals: Sequence[Literal], column: Column, zone: str) -> tuple[Reading, ...]:
    """Return the cuts of literals that a column is compared with.

    There are two readings if engines compare in different ways; a condition may be true in either.

    Raises:
        NoRuleError: Spark's comparison is unknown.
    """
    kinds = {literal.kind for literal in literals}
    if column.encoding == "double":
        require_rule(applies=kinds <= set(NUMBERS))
        return _read_doubles(literals, column.type, kinds)
    are_decimals = kinds <= {INTEGER, DECIMAL}
    require_rule(applies=are_decimals or len(kinds) == 1)
    if DECIMAL in kinds or decimal_type(column.type):
        require_rule(applies=are_decimals)
        _require_one_decimal_type(literals, column)
    return (tuple(_find_cut(literal, column, zone) for literal in literals),)


def _find_cut(literal: Literal, column: Column, zone: str) -> Cut:
    if column.type in INTEGERS:
        return _find_integer_cut(literal, column)
    decimal = decimal_type(column.type)
    if decimal:
        return _find_decimal_cut(literal, scale=decimal[1])
    if is_plain_text(column):
        return _find_text_cut(literal)
    return _cut_at(_find_key(literal, column.type, zone))


def _find_key(literal: Literal, column_type: str, zone: str) -> Key:
    if column_type == BOOLEAN:
        require_rule(applies=literal.kind == BOOLEAN)
        return int(literal.value)
    if column_type == BINARY:
        require_rule(applies=literal.kind == BINARY)
        return literal.value
    return read_time(literal, column_type, zone)


def is_plain_text(column: Column) -> bool:
    """Return whether texts compare by their bytes: CHAR is padded, and collations have other orders."""
    is_text = column.type == "string" or column.type.startswith("varchar")
    return is_text and column.collation in (None, "UTF8_BINARY")


def equal_to(cuts: Reading) -> ValueSet:
    """Return the values that equal one of the literals.

    Example:
        >>> 15 in equal_to(((15, 16),)), 15 in equal_to(((16, 16),))
        (True, False)
    """
    return ValueSet.of([start for start, end in cuts if start < end])


def _cut_at(key: Key) -> Cut:
    return key, following(key)


def _cut(value: Fraction) -> Cut:
    return ceil(value), floor(value) + 1


def _find_decimal_cut(literal: Literal, scale: int) -> Cut:
    require_rule(applies=literal.kind in (INTEGER, DECIMAL))
    return _cut(Fraction(literal.value) * 10**scale)


def _find_text_cut(literal: Literal) -> Cut:
    require_rule(applies=literal.kind == STRING)
    require_rule(applies=NOT_UTF8 not in literal.value)
    try:
        return _cut_at(literal.value.encode())
    except UnicodeEncodeError:
        raise NoRuleError from None


def _find_integer_cut(literal: Literal, column: Column) -> Cut:
    if literal.kind != DOUBLE:
        return _find_decimal_cut(literal, scale=0)
    value = literal.value
    if value == -inf:
        return _BELOW_INTEGERS
    if not isfinite(value):  # infinity, or NaN, which is greater
        return _ABOVE_INTEGERS
    if column.type == "bigint":
        # Spark casts the column to a double, which may round it.
        require_rule(applies=abs(value) < _EXACT_DOUBLES)
    return _cut(Fraction(value))


def _require_one_decimal_type(literals: Sequence[Literal], column: Column) -> None:
    """Raise an error unless one decimal type can represent the column and all literals: else Spark rounds."""
    size = decimal_type(column.type) or _INTEGER_SIZES.get(column.type)
    if size is None:
        raise NoRuleError
    precision, scale = size
    integer_digits = precision - scale
    fraction_digits = scale
    for literal in literals:
        _, digits, exponent = Decimal(literal.value).as_tuple()
        if literal.kind == INTEGER:
            integer_digits = max(integer_digits, _BIGINT_DIGITS)
        integer_digits = max(integer_digits, len(digits) + int(exponent))
        fraction_digits = max(fraction_digits, -int(exponent))
    require_rule(applies=integer_digits + fraction_digits <= MOST_DIGITS)


def _read_doubles(literals: Sequence[Literal], column_type: str, kinds: set[str]) -> tuple[Reading, ...]:
    try:
        values = [float(literal.value) for literal in literals]
    except OverflowError:
        raise NoRuleError from None
    doubles = _cut_at_doubles(values)
    if column_type != "float" or kinds == {FLOAT}:
        return (doubles,)
    # Spark compares most as doubles, other engines round the literal to a float.
    with np.errstate(over="ignore"):
        rounded = np.array(values).astype(np.float32).astype(np.float64).tolist()
    return doubles, _cut_at_doubles(rounded)


def _cut_at_doubles(values: Sequence[float]) -> Reading:
    return tuple(_cut_at(key_of_double(value)) for value in values)
