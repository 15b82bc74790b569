"""Parses names and offsets of time zones in the spellings of Spark."""

from __future__ import annotations

import re
from datetime import timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from metastore.errors import InvalidArgument

_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?(?P<sign>[+-])"
    r"(?:(?P<h>\d{1,2})(?::(?P<m>\d{1,2})(?::(?P<s>\d\d))?)?|(?P<hh>\d\d)(?P<mm>\d\d)(?P<ss>\d\d)?)"
)
_LONGEST = timedelta(hours=18)
_SIXTY = 60
_SHORT = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Java's short names, which Spark accepts."""


@lru_cache
def parse_time_zone(text: str) -> tzinfo:
    """Return the time zone of a name, or of an offset in one of Spark's spellings."""
    name = _SHORT.get(text, text)
    if name in ("Z", "UTC", "GMT", "UT"):
        return timezone.utc
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        return timezone(_parse_distance(text, offset))
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # a folder of zones is an OSError
        raise InvalidArgument("zone", f"{text!r} is no time zone that is known here") from error


def _parse_distance(text: str, offset: re.Match[str]) -> timedelta:
    hours = _parse_group(offset, "h")
    minutes = _parse_group(offset, "m")
    seconds = _parse_group(offset, "s")
    distance = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if max(minutes, seconds) >= _SIXTY or distance > _LONGEST:
        raise InvalidArgument("zone", f"{text!r} is no offset from -18:00 to +18:00")
    if offset["sign"] == "-":
        return -distance
    return distance


def _parse_group(offset: re.Match[str], name: str) -> int:
    """Parse the number of a group, which is called `h` in texts with colons and `hh` in those without."""
    return int(offset[name] or offset[name * 2] or 0)
