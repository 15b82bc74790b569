"""Spark's functions of single values, as keys (`metastore.pruning.keys`); the result None means unknown."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

DAY = 86_400_000_000
"""A day in microseconds."""
GREATEST_INT = (1 << 31) - 1
"""The greatest int."""
_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": DAY,
    "DD": DAY,
}
_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    "QUARTER": "QUARTER",
    "WEEK": "WEEK",
}
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}


def lower(text: bytes) -> bytes | None:
    """A text in lower case; None for letters beyond ASCII, which depend on the versions of Java and Unicode."""
    if text.isascii():
        return text.lower()
    return None


def upper(text: bytes) -> bytes | None:
    """A text in upper case; None for letters beyond ASCII."""
    if text.isascii():
        return text.upper()
    return None


def count_characters(text: bytes) -> int | None:
    """The length of a text in characters."""
    decoded = _decode(text)
    if decoded is None:
        return None
    return len(decoded)


def trim(text: bytes) -> bytes:
    r"""A text without blanks at its ends; other white space stays.

    Example:
        >>> trim(b"  a\t ")
        b'a\t'
    """
    return text.strip(b" ")


def trim_start(text: bytes) -> bytes:
    """A text without blanks at its beginning."""
    return text.lstrip(b" ")


def trim_end(text: bytes) -> bytes:
    """A text without blanks at its end."""
    return text.rstrip(b" ")


def substring(start: int, length: int) -> Callable[[bytes], bytes | None]:
    """A part of a text: from its `start`-th character, the first being 1 or 0, from its end if negative.

    Example:
        >>> [substring(start, 2)(b"abc") for start in (0, 1, 2, -1, -4)]
        [b'ab', b'ab', b'bc', b'c', b'a']
    """

    def cut(text: bytes) -> bytes | None:
        decoded = _decode(text)
        if decoded is None:
            return None
        first = start - 1 if start > 0 else start
        if start < 0:
            first += len(decoded)
        return decoded[max(first, 0) : max(first + length, 0)].encode()

    return cut


def remainder(divisor: int) -> Callable[[int], int]:
    """The remainder of a division; it has the sign of the dividend.

    Example:
        >>> remainder(3)(-7), remainder(-3)(7)
        (-1, 1)
    """

    def divide(value: int) -> int:
        size = abs(value) % abs(divisor)
        if value >= 0:
            return size
        return -size

    return divide


def year(day: int) -> int:
    """The year of a day, in the proleptic Gregorian calendar.

    Example:
        >>> year(-1), year(-719_529)
        (1969, -1)
    """
    return _months(day) // 12 + 1970


def month(day: int) -> int:
    """The month of a day."""
    return _months(day) % 12 + 1


def quarter(day: int) -> int:
    """The quarter of a day."""
    return _months(day) % 12 // 3 + 1


def day_of_month(day: int) -> int:
    """The day of its month."""
    return day - _first_day(_months(day)) + 1


def truncate_day(unit: str) -> Callable[[int], int] | None:
    """The first day of the unit that a day is in; None if the unit is none of days.

    Example:
        >>> [truncate_day(unit)(59) for unit in ("mm", "QUARTER", "week")]  # 1970-03-01, a Sunday
        [59, 0, 53]
    """
    name = _UNITS.get(unit.upper())
    if name is None:
        return None
    if name == "WEEK":
        return lambda day: day - (day + 3) % 7
    months = _MONTHS[name]
    return lambda day: _first_day(_months(day) // months * months)


def truncate_moment(unit: str) -> Callable[[int], int] | None:
    """The beginning of the unit that the time of a clock is in; None if the unit is none of times."""
    size = _MICROSECONDS.get(unit.upper())
    if size is not None:
        return lambda moment: moment - moment % size
    truncate = truncate_day(unit)
    if truncate is None:
        return None
    return lambda moment: truncate(moment // DAY) * DAY


def _decode(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


@lru_cache(1 << 16)
def _months(day: int) -> int:
    return int(np.datetime64(day, "D").astype("M8[M]").astype(np.int64))


def _first_day(months: int) -> int:
    return int(np.datetime64(months, "M").astype("M8[D]").astype(np.int64))
