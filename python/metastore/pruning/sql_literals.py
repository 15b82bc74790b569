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

_WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_DECIMAL = re.compile(r"DECIMAL(?:\((\d{1,2})(?:, (\d{1,2}))?\))?")
_TIMES = {
    "DATE": literals.DATE,
    "TIMESTAMP": literals.TIMESTAMP,
    "TIMESTAMPTZ": literals.TIMESTAMP,
    "TIMESTAMPLTZ": literals.TIMESTAMP,
    "TIMESTAMPNTZ": literals.TIMESTAMP_NTZ,
}


def read_literal(tree: exp.Expr, sign: int = 1) -> Literal | None:
    """A constant; None of what is none, or is not known to be what it is in Spark."""
    if isinstance(tree, exp.Neg):
        found = read_literal(unwrap(tree.this), -sign)
        return found if found and found.kind in literals.NUMBERS else None
    if isinstance(tree, exp.Null | exp.Boolean):
        return (
            Literal(literals.NULL, None) if isinstance(tree, exp.Null) else Literal(literals.BOOLEAN, bool(tree.this))
        )
    if isinstance(tree, exp.HexString):
        return _binary(str(tree.this)) if has_only(tree, "this") else None
    if isinstance(tree, exp.Literal):
        return Literal(literals.STRING, tree.this) if tree.is_string else _number(tree.this, sign)
    return _cast(tree, sign) if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Literal) else None


def read_type(kind: exp.Expr) -> str | None:
    """A number's or a time's type as Spark writes it; None of any other type."""
    name = _name_of(kind)
    if name == "DECIMAL":
        sizes = _sizes_of(kind)
        return sizes and "decimal({},{})".format(*sizes)
    return _TIMES.get(name) or (name.lower() if name in (*_WHOLE, "FLOAT", "DOUBLE") else None)


def _name_of(kind: Any) -> str:
    return str(kind.this.value if hasattr(kind.this, "value") else kind.this).rpartition(".")[2].upper()


def _sizes_of(kind: Any) -> tuple[int, int] | None:
    """Precision and scale of a decimal type; None where Spark has no such type."""
    found = _DECIMAL.fullmatch(kind.sql("spark"))
    precision, scale = (int(found[1] or 10), int(found[2] or 0)) if found else (0, 0)
    return (precision, scale) if scale <= precision and 0 < precision <= literals.MOST_DIGITS else None


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


def _cast(tree: exp.Cast, sign: int) -> Literal | None:
    inner, to = tree.this, tree.to
    kind = _name_of(to)
    if kind in _TIMES:
        return Literal(_TIMES[kind], inner.this) if inner.is_string else None
    number = _number(inner.this, sign)
    if kind in _WHOLE:
        fits = (
            number
            and number.kind == literals.INTEGER
            and -1 << _WHOLE[kind] - 1 <= number.value < 1 << _WHOLE[kind] - 1
        )
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
    sizes = _sizes_of(to)
    _, digits, exponent = value.as_tuple()
    fits = sizes and -int(exponent) <= sizes[1] and len(digits) + int(exponent) <= sizes[0] - sizes[1]
    return Literal(literals.DECIMAL, value) if fits else None
