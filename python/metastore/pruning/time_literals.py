"""Dates and times in a filter as keys."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING

from metastore.errors import InvalidArgument
from metastore.format.time_zones import parse_time_zone
from metastore.pruning.conditions import NoRuleError, require_rule
from metastore.pruning.literals import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ

if TYPE_CHECKING:
    from metastore.pruning.literals import Literal

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?\s*(Z|UTC|GMT|[+-]\d\d:\d\d)?"
)


def read_time(literal: Literal, column_type: str, zone: str) -> int:
    """Return the key of a literal that a column of dates or times is compared with.

    Args:
        literal: The literal.
        column_type: The column's type.
        zone: The session's time zone.

    Raises:
        NoRuleError: The literal is no time in a usual form, or Spark's comparison with the type is unknown.
    """
    require_rule(applies=literal.kind in (STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ))
    text = literal.value.strip()
    try:
        return _read_key(text, literal.kind, column_type, zone)
    except (ValueError, OverflowError, InvalidArgument):  # no date, or one that Python does not support
        raise NoRuleError from None


def _read_key(text: str, kind: str, column_type: str, zone: str) -> int:
    if column_type == "date":
        require_rule(applies=kind in (STRING, DATE))
        return _read_date(text)
    if kind == DATE:
        _require_date(text)
    moment = _read_moment(text, kind, column_type, zone)
    return (moment - _EPOCH) // _MICROSECOND


def _read_date(text: str) -> int:
    _require_date(text)
    return date.fromisoformat(text).toordinal() - _EPOCH.toordinal()


def _require_date(text: str) -> None:
    require_rule(applies=_DATE.fullmatch(text) is not None)


def _read_moment(text: str, kind: str, column_type: str, zone: str) -> datetime:
    if column_type == "timestamp":
        require_rule(applies=kind != TIMESTAMP_NTZ)
        return _read_instant(text, parse_time_zone(zone))
    require_rule(applies=column_type == "timestamp_ntz")
    # Spark converts an instant by the session's zone, which must not have clock changes.
    has_fixed_offset = isinstance(parse_time_zone(zone), timezone)
    require_rule(applies=kind != TIMESTAMP or has_fixed_offset)
    return _read_wall_clock(text)


def _read_wall_clock(text: str) -> datetime:
    """Read a time without a zone as if it were in UTC."""
    match = _MOMENT.fullmatch(text)
    if match is None or match[6]:
        raise NoRuleError
    day, hour, minute, second, fraction, _ = match.groups(default="0")
    microsecond = int(fraction.ljust(6, "0"))
    clock = time(int(hour), int(minute), int(second), microsecond, timezone.utc)
    return datetime.combine(date.fromisoformat(day), clock)


def _read_instant(text: str, zone: tzinfo) -> datetime:
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise NoRuleError
    if match[6]:
        zone = parse_time_zone(match[6])
        text = text[: match.start(6)].rstrip()
    local = _read_wall_clock(text).replace(tzinfo=zone)
    # Near a clock change, a time may occur twice or not at all.
    offset_before = (local - _DAY).utcoffset()
    offset_after = (local + _DAY).utcoffset()
    require_rule(applies=offset_before == offset_after)
    return local.astimezone(timezone.utc)
