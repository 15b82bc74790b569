"""What functions of Spark's make of single values: of keys, see `metastore.pruning.keys`. None is a doubt."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

DAY = 86_400_000_000
"""In microseconds."""
LONGEST = (1 << 31) - 1
_OF_CLOCKS = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000}
_SPELLED = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    **{unit: unit for unit in ("QUARTER", "WEEK")},
}


def lower(text: bytes) -> bytes | None:
    """A text in lower case; that of other letters than ASCII's depends on the versions of Java and Unicode."""
    return text.lower() if text.isascii() else None


def upper(text: bytes) -> bytes | None:
    """A text in upper case, likewise."""
    return text.upper() if text.isascii() else None


def count_characters(text: bytes) -> int | None:
    """The length of a text in characters."""
    decoded = _decode(text)
    return None if decoded is None else len(decoded)


def trim(text: bytes) -> bytes:
    r"""A text without blanks at its ends: no other white space is one.

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
        first = start - 1 if start > 0 else start + len(decoded) if start < 0 else 0
        return decoded[max(first, 0) : max(first + length, 0)].encode()

    return cut


def remainder(by: int) -> Callable[[int], int]:
    """What a division leaves over: it has the sign of what is divided.

    Example:
        >>> remainder(3)(-7), remainder(-3)(7)
        (-1, 1)
    """
    return lambda value: abs(value) % abs(by) * (1 if value >= 0 else -1)


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
    """Which day of its month it is."""
    return day - _first_day(_months(day)) + 1


def truncate_day(unit: str) -> Callable[[int], int] | None:
    """The first day of the unit that a day is in; None of what is no unit of days.

    Example:
        >>> [truncate_day(unit)(59) for unit in ("mm", "QUARTER", "week")]  # 1970-03-01, a Sunday
        [59, 0, 53]
    """
    months = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
    name = _SPELLED.get(unit.upper())
    if name == "WEEK":
        return lambda day: day - (day + 3) % 7
    size = months.get(name or "")
    return size and (lambda day: _first_day(_months(day) // size * size))  # type: ignore[return-value] # no unit has 0


def truncate_moment(unit: str) -> Callable[[int], int] | None:
    """The beginning of the unit that the time of a clock is in; None of what is no unit of times."""
    size = _OF_CLOCKS.get(unit.upper(), DAY if unit.upper() in ("DAY", "DD") else None)
    if size is not None:
        return lambda moment: moment - moment % size
    first = truncate_day(unit)
    return None if first is None else lambda moment: first(moment // DAY) * DAY


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
