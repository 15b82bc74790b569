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
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400
_UNITS = {"day": _DAY_MICROS, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def to_date(days: int) -> dt.date | np.datetime64:
    """The date so many days after 1970-01-01."""
    ordinal = days + _EPOCH_DAY
    inside = 1 <= ordinal <= dt.date.max.toordinal()
    return dt.date.fromordinal(ordinal) if inside else np.datetime64(days, "D")


def to_datetime(micros: int, *, utc: bool) -> dt.datetime | np.datetime64 | int:
    """The instant (or, without a zone, the wall clock) so many microseconds after 1970-01-01T00:00:00."""
    try:
        return (_EPOCH_UTC if utc else _EPOCH) + dt.timedelta(microseconds=micros)
    except OverflowError:
        return np.datetime64(micros, "us") if micros > _NOT_A_TIME else micros


def to_interval(value: int, kind: str) -> dt.timedelta | np.timedelta64 | int:
    """An interval: months as they are, microseconds as a `timedelta`."""
    if _is_year_month(kind):
        return value
    try:
        return dt.timedelta(microseconds=value)
    except OverflowError:
        return np.timedelta64(value, "us") if value > _NOT_A_TIME else value


def render_date(days: int) -> str:
    """A date as text, e.g. 2026-01-31, +10000-01-01, -0001-12-31."""
    # The calendar repeats every 400 years: any day has a twin in a year that datetime knows.
    cycles, day = divmod(days, _CYCLE_DAYS)
    date = dt.date.fromordinal(day + _EPOCH_DAY)
    year = date.year + cycles * _CYCLE_YEARS
    return f"{_year(year)}-{date.month:02}-{date.day:02}"


def render_timestamp(micros: int, zone: tzinfo | None) -> str:
    """A timestamp as text in a zone (None: as a wall clock), without trailing zeros."""
    if zone is not None:
        micros += _offset_micros(micros, zone)
    days, of_day = divmod(micros, _DAY_MICROS)
    return f"{render_date(days)} {_clock(of_day)}"


def render_interval(value: int, kind: str) -> str:
    """An interval as Spark's ANSI literal, e.g. INTERVAL '1-2' YEAR TO MONTH."""
    first, _, last = kind.removeprefix("interval ").partition(" to ")
    last = last or first
    sign, size = ("-" if value < 0 else ""), abs(value)
    text = _months(size, first, last) if _is_year_month(kind) else _day_time(size, first, last)
    return f"INTERVAL '{sign}{text}' {kind.removeprefix('interval ').upper()}"


def _is_year_month(kind: str) -> bool:
    return "year" in kind or "month" in kind


def _year(year: int) -> str:
    if year > 9999:
        return f"+{year}"
    return f"-{-year:04}" if year < 0 else f"{year:04}"


def _offset_micros(micros: int, zone: tzinfo) -> int:
    cycle_micros = _CYCLE_DAYS * _DAY_MICROS
    try:
        instant = _EPOCH_UTC + dt.timedelta(microseconds=micros)
        offset = instant.astimezone(zone).utcoffset()
    except OverflowError:
        # Far before the first rule the first one holds, far after the last one the rules of a like year.
        twin = micros % cycle_micros + (4 * cycle_micros if micros > 0 else -4 * cycle_micros)
        offset = (_EPOCH_UTC + dt.timedelta(microseconds=twin)).astimezone(zone).utcoffset()
    return int((offset or dt.timedelta()) / dt.timedelta(microseconds=1))


def _clock(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text + (f".{fraction:06}".rstrip("0") if fraction else "")


def _months(months: int, first: str, last: str) -> str:
    if first == "month":
        return str(months)
    return str(months // 12) if last == "year" else f"{months // 12}-{months % 12}"


def _day_time(micros: int, first: str, last: str) -> str:
    units = list(_UNITS)
    parts, rest = [], micros
    for unit in units[units.index(first) : units.index(last) + 1]:
        count, rest = divmod(rest, _UNITS[unit])
        parts.append(str(count) if unit == "day" else f"{count:02}")
    if last == "second" and rest:
        parts[-1] += f".{rest:06}".rstrip("0")
    days, clock = (parts[:1], parts[1:]) if first == "day" else ([], parts)
    return " ".join(days + [":".join(clock)] * bool(clock))
