"""The shape of a distribution in a few characters, as `metastore.summary` shows it in both languages."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


LEVELS = "▁▂▃▄▅▆▇█"
_BARS = 10


def draw_sparkline(percentiles: Sequence[Any] | None) -> str | None:
    """Bars for equally wide ranges of values, from the first percentile to the 99th; None where values are no numbers.

    Infinite percentiles are left out.

    The lowest character stands for none, or next to none. Of few whole numbers each has its bar, from the least to the
    greatest.

    Example:
        >>> draw_sparkline([0] * 51 + [1] * 50), draw_sparkline(list(range(101)))
        ('██', '█████████▇')
    """
    if not percentiles or len(percentiles) < 3 or not isinstance(percentiles[0], int | float):
        return None
    step = 1.0 if isinstance(percentiles[0], int) else 0.0
    values = sorted(float(one) for one in percentiles if math.isfinite(one))  # exact quartiles may be out of order
    if len(values) < 3:
        return None
    if not step or values[-1] - values[0] >= _BARS:
        values = values[1:-1]
    # Equal whole numbers fill the room up to the next one.
    starts, stops = ([find(values, one) for one in values] for find in (bisect_left, bisect_right))
    ends = [values[i] + step * (i - starts[i]) / (stops[i] - starts[i]) for i in range(len(values))]
    ends[-1] = values[-1] + step
    heights = count_evenly(ends, range(len(ends)), _BARS, whole=step > 0)
    most = max(heights, default=0.0)
    return "".join(LEVELS[int(height / most * (len(LEVELS) - 1) + 0.5)] for height in heights) or None


def count_evenly(ends: Sequence[float], sums: Sequence[float], bars: int, *, whole: bool) -> list[float]:
    """How many values fall into each of up to so many equally wide ranges; nothing where these are not finite.

    Args:
        ends: Places in their order. Values between two of them are taken to lie evenly.
        sums: How many values there are up to each place.
        bars: How many ranges.
        whole: Whether there are to be no more than there are whole numbers.
    """
    low, high = ends[0], ends[-1]
    if not (math.isfinite(low) and math.isfinite(high - low)):
        return []
    number = int(max(1.0, min(bars, high - low))) if whole or high == low else bars
    inner = [low + (high - low) * i / number for i in range(1, number)]
    below = [0.0, *(_count_below(one, ends, sums) for one in inner), float(sums[-1])]
    return [after - before for before, after in pairwise(below)]


def _count_below(place: float, ends: Sequence[float], sums: Sequence[float]) -> float:
    i = bisect_right(ends, place) - 1
    share = (place - ends[i]) / (ends[i + 1] - ends[i]) if i + 1 < len(ends) else 0.0
    return sums[i] + share * (sums[min(i + 1, len(sums) - 1)] - sums[i])
