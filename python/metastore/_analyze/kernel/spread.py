"""How many values there could be between the bounds of a column: where they are many, bounds tell little of one."""

from __future__ import annotations

from typing import Any

import numpy as np

_PREFIX = 8


def estimate_values_between(lo: Any, hi: Any) -> int:
    """About how many values of its type lie between two bounds; 0 where a bound is not known."""
    if lo is None or hi is None:
        return 0
    if isinstance(lo, bytes):
        return _texts_between(lo, hi)
    return _place(hi) - _place(lo) if isinstance(lo, float) else int(hi) - int(lo)


def _texts_between(lo: bytes, hi: bytes) -> int:
    """The difference of the first bytes in which they differ."""
    ends = (place for place, (a, b) in enumerate(zip(lo, hi, strict=False)) if a != b)
    common = next(ends, min(len(lo), len(hi)))
    length = min(max(len(lo), len(hi)) - common, _PREFIX)
    low, high = (int.from_bytes(one[common : common + length].ljust(length, b"\0"), "big") for one in (lo, hi))
    return abs(high - low)


def _place(value: float) -> int:
    """The place of a double among all doubles."""
    bits = int(np.float64(value).view(np.int64))
    return bits if bits >= 0 else -(bits & ((1 << 63) - 1))
