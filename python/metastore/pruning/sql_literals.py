"""Constants of a filter, typed as Spark types them."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from sqlglot import exp

from metastore.pruning import literals
from metastore.pruning.conditions import NoRuleError, require_rule
from metastore.pruning.filter_text import require_only, unwrap
from metastore.pruning.literals import Literal

_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_DECIMAL = re.compile(r"DECIMAL(?:\((\d{1,2})(?:, (\d{1,2}))?\))?")
_TIMES = {
    "DATE": literals.DATE,
    "TIMESTAMP": literals.TIMESTAMP,
    "TIMESTAMPTZ": literals.TIMESTAMP,
    "TIMESTAMPLTZ": literals.TIMESTAMP,
    "TIMESTAMPNTZ": literals.TIMESTAMP_NTZ,
}


def find_literal(tree: exp.Expr) -> Literal | None:
    """Return a constant; None if the expression is none, or Spark may read it otherwise."""
    try:
        return read_literal(tree)
    except NoRuleError:
        return None


def read_literal(tree: exp.Expr, sign: int = 1) -> Literal:
    """Return a constant, times `sign` if it is a number.

    Raises:
        NoRuleError: The expression is no constant, or Spark may read it otherwise.
    """
    if isinstance(tree, exp.Neg):
        number = read_literal(unwrap(tree.this), -sign)
        require_rule(applies=number.kind in literals.NUMBERS)
        return number
    if isinstance(tree, exp.Cast):
        return _read_cast(tree, sign)
    if isinstance(tree, exp.Literal) and tree.is_number:
        return _read_number(tree.this, sign)
    return _read_other_literal(tree)


def _read_other_literal(tree: exp.Expr) -> Literal:
    if isinstance(tree, exp.Literal):
        return Literal(literals.STRING, tree.this)
    if isinstance(tree, exp.Null):
        return Literal(literals.NULL, None)
    if isinstance(tree, exp.Boolean):
        return Literal(literals.BOOLEAN, bool(tree.this))
    if isinstance(tree, exp.HexString):
        require_only(tree, "this")
        return _read_binary(str(tree.this))
    raise NoRuleError


def read_type(tree: exp.Expr) -> str:
    """Return a number's or a time's type as Spark writes it.

    Raises:
        NoRuleError: It is another type.
    """
    name = _type_name(tree)
    if name == "DECIMAL":
        return "decimal({},{})".format(*_decimal_size(tree))
    if name in _TIMES:
        return _TIMES[name]
    require_rule(applies=name in (*_INTEGER_BITS, "FLOAT", "DOUBLE"))
    return name.lower()


def _type_name(tree: Any) -> str:
    name = getattr(tree.this, "value", tree.this)
    return str(name).rpartition(".")[2].upper()


def _decimal_size(tree: Any) -> tuple[int, int]:
    """Return precision and scale of a decimal type that Spark has."""
    match = _DECIMAL.fullmatch(tree.sql("spark"))
    if match is None:
        raise NoRuleError
    precision = int(match[1] or 10)
    scale = int(match[2] or 0)
    require_rule(applies=max(1, scale) <= precision <= literals.MOST_DIGITS)
    return precision, scale


def _read_binary(digits: str) -> Literal:
    even_length = len(digits) + len(digits) % 2
    try:
        return Literal(literals.BINARY, bytes.fromhex(digits.zfill(even_length)))
    except ValueError:
        raise NoRuleError from None


def _read_number(text: str, sign: int) -> Literal:
    try:
        if text.isdecimal():
            return Literal(literals.INTEGER, sign * int(text))
        if "e" in text.lower():
            return Literal(literals.DOUBLE, sign * float(text))
        return Literal(literals.DECIMAL, sign * Decimal(text))
    except (ValueError, InvalidOperation):
        raise NoRuleError from None


def _read_cast(tree: exp.Cast, sign: int) -> Literal:
    constant = tree.this
    name = _type_name(tree.to)
    require_rule(applies=isinstance(constant, exp.Literal))
    if name in _TIMES:
        require_rule(applies=constant.is_string)
        return Literal(_TIMES[name], constant.this)
    if name in ("DOUBLE", "FLOAT"):
        return _read_floating(constant.this, name.lower(), sign)
    number = _read_number(constant.this, sign)
    if name == "DECIMAL":
        return _to_decimal(number, tree.to)
    require_rule(applies=name in _INTEGER_BITS)
    require_rule(applies=not constant.is_string)
    _require_integer(number, _INTEGER_BITS[name])
    return number


def _require_integer(number: Literal, bits: int) -> None:
    limit = 1 << (bits - 1)
    require_rule(applies=number.kind == literals.INTEGER)
    require_rule(applies=-limit <= number.value < limit)


def _read_floating(text: str, kind: str, sign: int) -> Literal:
    try:
        value = sign * float(text)
    except ValueError:
        raise NoRuleError from None
    if kind == literals.FLOAT:
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    return Literal(kind, value)


def _to_decimal(number: Literal, target: exp.DataType) -> Literal:
    """Return a decimal literal of a type that neither rounds it nor is too small."""
    require_rule(applies=number.kind in (literals.INTEGER, literals.DECIMAL))
    precision, scale = _decimal_size(target)
    value = Decimal(number.value)
    _, digits, exponent = value.as_tuple()
    require_rule(applies=-int(exponent) <= scale)
    require_rule(applies=len(digits) + int(exponent) <= precision - scale)
    return Literal(literals.DECIMAL, value)
