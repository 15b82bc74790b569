"""Formats of numbers for people: few digits, in groups of three."""

from __future__ import annotations

import math
import re
from decimal import Decimal

NUMERIC_TYPES = ("tinyint", "smallint", "int", "bigint", "float", "double")
APPROXIMATE = "~"
"""The mark before an approximate number."""
_DIGITS = 12
_DECIMALS = 4
_FINITE = re.compile(r"^-?(0|[1-9]\d*)(\.\d+)?(E-?\d+)?$")


def is_numeric(column_type: str) -> bool:
    """Return whether the values of a type are numbers."""
    return column_type in NUMERIC_TYPES or column_type.startswith("decimal")


def is_number_text(text: str) -> bool:
    """Return whether a text is a number as Spark writes it."""
    return text.removeprefix("-") == "Infinity" or bool(_FINITE.match(text))


def mark_approximate(text: str, *, is_approximate: bool) -> str:
    """Return the text of a number, with a mark if it is approximate."""
    return APPROXIMATE + text if is_approximate else text


def ungroup(number: str) -> str:
    """Return a number without commas between its digits."""
    return number.replace(",", "")


def format_number(value: float) -> str:
    """Return a number with four significant digits, or all of its integer part, in groups of three digits."""
    if not math.isfinite(value):
        return str(value)
    short = f"{value:.4g}"
    if 1e3 <= abs(float(short)) < 1e15:
        return f"{value:,.0f}"
    return short


def format_bytes(value: int) -> str:
    """Return a size as B, kB, MB, GB or TB."""
    if abs(value) < 1000:
        return f"{value} B"
    scaled = value / 1000
    for unit in ("kB", "MB", "GB"):
        if abs(scaled) < 1000:
            return f"{scaled:.1f} {unit}"
        scaled /= 1000
    return f"{scaled:.1f} TB"


def round_text(text: str) -> str:
    """Round the text of a number to few digits, in groups of three; other texts stay."""
    if not _FINITE.match(text):
        return text
    if "E" in text:
        return _round_power_of_ten(text)
    return _round_decimal(Decimal(text))


def _round_power_of_ten(text: str) -> str:
    value = float(text)
    if 1 <= abs(value) < 1e15:
        return _round_decimal(Decimal(text))
    if len(text) <= _DIGITS:
        return text
    return f"{value:.6g}"


def _round_decimal(value: Decimal) -> str:
    integer, _, fraction = f"{value:,f}".partition(".")
    if len(fraction) > _DECIMALS:
        fraction = fraction.rstrip("0")
    if not fraction:
        return integer
    digits = len(ungroup(integer)) + 1 + len(fraction)
    if digits <= _DIGITS:
        return f"{integer}.{fraction}"
    if abs(value) >= 100_000:
        return f"{value:,.0f}"
    return f"{float(value):,.6g}"
