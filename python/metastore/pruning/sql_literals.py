"""Constants of a filter, typed as Spark types them."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from sqlglot import exp

from metastore.pruning import literals
from metastore.pruning.filter_text import has_only, unwrap
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


def read_literal(tree: exp.Expr, sign: int = 1) -> Literal | None:
    """Return a constant, times `sign` if it is a number; None if it is none, or Spark may read it otherwise."""
    if isinstance(tree, exp.Neg):
        number = read_literal(unwrap(tree.this), -sign)
        return number if number and number.kind in literals.NUMBERS else None
    if isinstance(tree, exp.Literal):
        return Literal(literals.STRING, tree.this) if tree.is_string else _number(tree.this, sign)
    if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Literal):
        return _cast(tree, sign)
    return _read_other_literal(tree)


def _read_other_literal(tree: exp.Expr) -> Literal | None:
    if isinstance(tree, exp.Null):
        return Literal(literals.NULL, None)
    if isinstance(tree, exp.Boolean):
        return Literal(literals.BOOLEAN, bool(tree.this))
    if isinstance(tree, exp.HexString) and has_only(tree, "this"):
        return _binary(str(tree.this))
    return None


def read_type(tree: exp.Expr) -> str | None:
    """Return a number's or a time's type as Spark writes it; None for any other type."""
    name = _type_name(tree)
    if name == "DECIMAL":
        size = _decimal_size(tree)
        return size and "decimal({},{})".format(*size)
    if name in (*_INTEGER_BITS, "FLOAT", "DOUBLE"):
        return name.lower()
    return _TIMES.get(name)


def _type_name(tree: Any) -> str:
    name = tree.this.value if hasattr(tree.this, "value") else tree.this
    return str(name).rpartition(".")[2].upper()


def _decimal_size(tree: Any) -> tuple[int, int] | None:
    """Return precision and scale of a decimal type; None if Spark has no such type."""
    match = _DECIMAL.fullmatch(tree.sql("spark"))
    if match is None:
        return None
    precision, scale = int(match[1] or 10), int(match[2] or 0)
    return (precision, scale) if scale <= precision and 0 < precision <= literals.MOST_DIGITS else None


def _binary(digits: str) -> Literal | None:
    whole_bytes = digits if len(digits) % 2 == 0 else f"0{digits}"
    try:
        return Literal(literals.BINARY, bytes.fromhex(whole_bytes))
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


def _cast(tree: exp.Cast, sign: int) -> Literal | None:
    constant = tree.this
    name = _type_name(tree.to)
    if name in _TIMES:
        return Literal(_TIMES[name], constant.this) if constant.is_string else None
    if name in ("DOUBLE", "FLOAT"):
        return _floating(constant.this, name.lower(), sign)
    number = _number(constant.this, sign)
    if number is None:
        return None
    if name in _INTEGER_BITS and not constant.is_string:
        return number if _fits_integer(number, _INTEGER_BITS[name]) else None
    if name == "DECIMAL" and number.kind in (literals.INTEGER, literals.DECIMAL):
        return _decimal(Decimal(number.value), tree.to)
    return None


def _fits_integer(number: Literal, bits: int) -> bool:
    limit = 1 << (bits - 1)
    return number.kind == literals.INTEGER and -limit <= number.value < limit


def _floating(text: str, kind: str, sign: int) -> Literal | None:
    try:
        value = sign * float(text)
    except ValueError:
        return None
    if kind == literals.FLOAT:
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    return Literal(kind, value)


def _decimal(value: Decimal, to: exp.DataType) -> Literal | None:
    """Return a decimal literal; None if the type would round it or is too small."""
    size = _decimal_size(to)
    if size is None:
        return None
    precision, scale = size
    _, digits, exponent = value.as_tuple()
    is_rounded = -int(exponent) > scale
    is_too_large = len(digits) + int(exponent) > precision - scale
    return None if is_rounded or is_too_large else Literal(literals.DECIMAL, value)
