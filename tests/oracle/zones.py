"""The answers that true bounds of a file allow, computed from the values without the pruner under test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from oracle.columns import BYTES, is_nan

if TYPE_CHECKING:
    from collections.abc import Sequence

CUT = 64


@dataclass(frozen=True)
class Zone:
    """Bounds of one leaf in one file: `lo` and `hi` enclose what is neither null nor NaN.

    `present` tells whether such values exist; `hi` is None where a cut string has no upper bound. `values` are these
    values, where the statistics know single ones: all of them if `listed`, else a filter knows them.
    """

    nulls: int
    nans: int
    present: bool
    lo: Any = None
    hi: Any = None
    exact: bool = True
    values: frozenset[Any] | None = None
    listed: bool = False

    def bounds(self) -> Zone:
        """The same without single values."""
        return replace(self, values=None, listed=False)

    def has_value(self) -> bool:
        """Tells whether any row is not null."""
        return self.present or self.nans > 0


def zone_of(name: str, values: Sequence[Any]) -> Zone:
    """Returns the bounds of a file's values as the statistics are to hold them."""
    ordinary = [v for v in values if v is not None and not is_nan(v)]
    nulls = sum(v is None for v in values)
    nans = len(values) - nulls - len(ordinary)
    if not ordinary:
        return Zone(nulls, nans, present=False)
    lo, hi = min(ordinary), max(ordinary)
    if name not in BYTES or max(len(lo), len(hi)) <= CUT:
        return Zone(nulls, nans, present=True, lo=lo, hi=hi)
    return Zone(nulls, nans, present=True, lo=lo[:CUT], hi=hi if len(hi) <= CUT else _above(hi[:CUT]), exact=False)


def _above(prefix: bytes) -> bytes | None:
    prefix_below_ff = prefix.rstrip(b"\xff")
    return prefix_below_ff[:-1] + bytes([prefix_below_ff[-1] + 1]) if prefix_below_ff else None


def _key(value: Any) -> tuple[bool, Any]:
    """Spark's order: NaN is equal to itself and above everything."""
    return (True, 0) if is_nan(value) else (False, value)


def _holds(op: str, left: Any, right: Any) -> bool:
    a, b = _key(left), _key(right)
    return {"=": a == b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "<>": a != b}[op]


def may_hold(op: str, zone: Zone, value: Any) -> bool:
    """Tells whether some non-null row of the file may satisfy `column op value`."""
    if zone.nans and _holds(op, float("nan"), value):
        return True
    if not zone.present:
        return False
    above_all = is_nan(value)
    if op in {"<", "<="}:
        return above_all or _holds(op, zone.lo, value)
    if op in {">", ">="}:
        return not above_all and (zone.hi is None or _holds(op, zone.hi, value))
    if op == "=":
        inside = not above_all and zone.lo <= value and (zone.hi is None or value <= zone.hi)
        return inside and (zone.values is None or value in zone.values)
    return above_all or not (zone.exact and zone.lo == zone.hi == value)


def may_hold_other(zone: Zone, values: Sequence[Any]) -> bool:
    """Tells whether some non-null row of the file may hold none of the values."""
    if zone.listed and zone.values is not None:
        nan = zone.nans > 0 and not any(is_nan(v) for v in values)
        return nan or any(v not in values for v in zone.values)
    return all(may_hold("<>", zone, v) for v in values)


def may_start_with(zone: Zone, prefix: bytes, *, negated: bool) -> bool:
    """Tells whether some non-null row may (not) start with the prefix."""
    if not zone.present:
        return False
    size = len(prefix)
    if negated:
        return not (zone.lo[:size] == prefix and zone.hi is not None and zone.hi[:size] == prefix)
    return zone.lo[:size] <= prefix and (zone.hi is None or zone.hi >= prefix)
