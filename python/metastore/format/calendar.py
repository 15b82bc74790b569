"""Days, microseconds and intervals as Spark shows them: proleptic Gregorian, with years of any length."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from datetime import tzinfo


_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - wall clocks have no zone
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_EPOCH_DAY = _EPOCH.toordinal()
_DAY_MICROS = 86_400_000_000
_NOT_A_TIME = -(1 << 63)
_CYCLE_YEARS = 400
_CYCLE_DAYS = 146_097
_CYCLE_MICROS = _CYCLE_DAYS * _DAY_MICROS
_UNITS = {"day": _DAY_MICROS, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def to_date(days: int) -> dt.date | np.datetime64:
    """Return the date that is this many days after 1970-01-01."""
    ordinal = days + _EPOCH_DAY
    if 1 <= ordinal <= dt.date.max.toordinal():
        return dt.date.fromordinal(ordinal)
    return np.datetime64(days, "D")


def to_datetime(micros: int, *, utc: bool) -> dt.datetime | np.datetime64 | int:
    """Return the instant, or the wall clock without a zone, of microseconds since 1970-01-01T00:00:00."""
    epoch = _EPOCH_UTC if utc else _EPOCH
    try:
        return epoch + dt.timedelta(microseconds=micros)
    except OverflowError:
        if micros == _NOT_A_TIME:
            return micros
        return np.datetime64(micros, "us")


def to_interval(value: int, kind: str) -> dt.timedelta | np.timedelta64 | int:
    """Return an interval: months as they are, microseconds as a `timedelta`."""
    if _is_year_month(kind):
        return value
    try:
        return dt.timedelta(microseconds=value)
    except OverflowError:
        if value == _NOT_A_TIME:
            return value
        return np.timedelta64(value, "us")


def render_date(days: int) -> str:
    """Write a date as text, e.g. 2026-01-31, +10000-01-01, -0001-12-31."""
    # The calendar repeats every 400 years: each day corresponds to one in a year that datetime supports.
    cycles, day = divmod(days, _CYCLE_DAYS)
    date = dt.date.fromordinal(day + _EPOCH_DAY)
    year = _render_year(date.year + cycles * _CYCLE_YEARS)
    return f"{year}-{date.month:02}-{date.day:02}"


def render_timestamp(micros: int, zone: tzinfo | None) -> str:
    """Write a timestamp as text in a zone (None: as a wall clock), without trailing zeros."""
    if zone is not None:
        micros += _find_offset_micros(micros, zone)
    days, micros_of_day = divmod(micros, _DAY_MICROS)
    return f"{render_date(days)} {_render_clock(micros_of_day)}"


def render_interval(value: int, kind: str) -> str:
    """Write an interval as Spark's ANSI literal, e.g. INTERVAL '1-2' YEAR TO MONTH."""
    unit = kind.removeprefix("interval ")
    first, _, last = unit.partition(" to ")
    render = _render_months if _is_year_month(kind) else _render_day_time
    text = render(abs(value), first, last or first)
    if value < 0:
        text = f"-{text}"
    return f"INTERVAL '{text}' {unit.upper()}"


def _is_year_month(kind: str) -> bool:
    return kind.startswith(("interval year", "interval month"))


def _render_year(year: int) -> str:
    if year > 9999:
        return f"+{year}"
    if year < 0:
        return f"-{-year:04}"
    return f"{year:04}"


def _find_offset_micros(micros: int, zone: tzinfo) -> int:
    try:
        offset = _find_offset(micros, zone)
    except OverflowError:
        # Before all rules of a zone, the first one applies; after all of them, the rules of a similar year do.
        cycles = 4 if micros > 0 else -4
        offset = _find_offset(micros % _CYCLE_MICROS + cycles * _CYCLE_MICROS, zone)
    return int(offset / dt.timedelta(microseconds=1))


def _find_offset(micros: int, zone: tzinfo) -> dt.timedelta:
    instant = _EPOCH_UTC + dt.timedelta(microseconds=micros)
    return instant.astimezone(zone).utcoffset() or dt.timedelta()


def _render_clock(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text + _render_fraction(fraction)


def _render_fraction(micros: int) -> str:
    return f".{micros:06}".rstrip("0").rstrip(".")


def _render_months(months: int, first: str, last: str) -> str:
    if first == "month":
        return str(months)
    if last == "year":
        return str(months // 12)
    return f"{months // 12}-{months % 12}"


def _render_day_time(micros: int, first: str, last: str) -> str:
    """Write days, and the other units as a clock; fractions are cut, except those of seconds."""
    units = list(_UNITS)
    days = []
    clock = []
    for unit in units[units.index(first) : units.index(last) + 1]:
        count, micros = divmod(micros, _UNITS[unit])
        if unit == "day":
            days.append(str(count))
        else:
            clock.append(f"{count:02}")
    if last == "second":
        clock[-1] += _render_fraction(micros)
    if clock:
        days.append(":".join(clock))
    return " ".join(days)
