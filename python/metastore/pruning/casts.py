"""Casts of terms that neither fail nor give NULL, and keep the order of values."""

from __future__ import annotations

from datetime import timedelta, timezone
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from metastore.errors import InvalidArgument
from metastore.format.table_column import INTEGERS, decimal_type
from metastore.format.time_zones import parse_time_zone
from metastore.pruning.conditions import NoRuleError, require_rule
from metastore.pruning.functions import DAY, GREATEST_INT
from metastore.pruning.keys import key_of_double
from metastore.pruning.preimages import invert_linear, invert_nearly_same, invert_rising

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from metastore.pruning.preimages import Limits, Preimage
    from metastore.pruning.terms import Term

INT_LIMITS = (-(1 << 31), GREATEST_INT)
LONG_LIMITS = (-(1 << 63), (1 << 63) - 1)
_BITS = dict(zip(INTEGERS, (8, 16, 32, 64), strict=True))
_DIGITS = dict(zip(INTEGERS, (3, 5, 10, 19), strict=True))
_MICROSECOND = timedelta(microseconds=1)
_DATES = (1 << 63) // DAY
"""The number of days before and after 1970 that timestamps cover."""
_DAY_OF = invert_rising(lambda moment: moment // DAY, LONG_LIMITS)
_MIDNIGHT = invert_rising(lambda day: day * DAY, (-_DATES + 1, _DATES - 1))


class Casts:
    """Casts terms as Spark does in a time zone.

    Args:
        zone: The session's time zone.
    """

    def __init__(self, zone: str) -> None:
        self._zone = zone

    def convert(self, term: Term, target: str) -> Term:
        """Return a cast of a term to another type.

        Raises:
            NoRuleError: The cast may fail, give NULL or change the order of values.
        """
        if term.type == target:
            return term
        conversion = self._conversions.get((term.type, target))
        if conversion is None:
            return _widen_number(term, target)
        return conversion(term)

    @cached_property
    def _conversions(self) -> Mapping[tuple[str, str], Callable[[Term], Term]]:
        return {
            ("float", "double"): lambda term: term.to("double"),
            ("date", "timestamp_ntz"): lambda term: term.to("timestamp_ntz", _MIDNIGHT),
            ("date", "timestamp"): lambda term: self.to_instant(term.to("timestamp_ntz", _MIDNIGHT)),
            ("timestamp_ntz", "date"): lambda term: term.to("date", _DAY_OF),
            ("timestamp", "date"): lambda term: self.to_clock(term).to("date", _DAY_OF),
            ("timestamp", "timestamp_ntz"): self.to_clock,
            ("timestamp_ntz", "timestamp"): self.to_instant,
        }

    def to_clock(self, instant: Term) -> Term:
        """Return the time of the zone's clocks at an instant."""
        return instant.to("timestamp_ntz", *self._shift(1))

    def to_instant(self, clock: Term) -> Term:
        """Return the instant of a time of the zone's clocks."""
        return clock.to("timestamp", *self._shift(-1))

    def _shift(self, sign: int) -> tuple[Preimage, ...]:
        """Return the steps between instants and the zone's clocks; if these jump, results are only known to a day."""
        try:
            zone = parse_time_zone(self._zone)
        except InvalidArgument:  # Spark may know more zones
            zone = None
        if not isinstance(zone, timezone):
            return (invert_nearly_same(DAY),)
        offset = sign * (zone.utcoffset(None) // _MICROSECOND)
        if offset:
            return (invert_linear(1, offset, LONG_LIMITS),)
        return ()


def limits_of(integer_type: str) -> Limits:
    """Return the least and the greatest value of a type of integers."""
    end = 1 << (_BITS[integer_type] - 1)
    return -end, end - 1


def _widen_number(term: Term, target: str) -> Term:
    if term.type not in INTEGERS:
        return _widen_decimal(term, target, decimal_type(term.type))
    if target in INTEGERS:
        require_rule(applies=INTEGERS.index(target) > INTEGERS.index(term.type))
        return term.to(target)
    if target == "double":
        return term.to(target, invert_rising(_key_as_double, limits_of(term.type)))
    if target == "float":
        return term.to(target, invert_rising(_key_as_float, limits_of(term.type)))
    return _widen_decimal(term, target, (_DIGITS[term.type], 0))


def _key_as_double(integer: int) -> int:
    return key_of_double(float(integer))


def _key_as_float(integer: int) -> int:
    return key_of_double(float(np.int64(integer).astype(np.float32)))


def _widen_decimal(term: Term, target: str, source_size: tuple[int, int] | None) -> Term:
    """Return a cast to a decimal type with as many digits before and after the point, or more."""
    target_size = decimal_type(target)
    if source_size is None or target_size is None:
        raise NoRuleError
    source_precision, source_scale = source_size
    precision, scale = target_size
    more_digits = scale - source_scale
    require_rule(applies=more_digits >= 0)
    require_rule(applies=precision - scale >= source_precision - source_scale)
    if more_digits == 0:
        return term.to(target)
    limit = 10**precision
    return term.to(target, invert_linear(10**more_digits, 0, (-limit, limit)))
