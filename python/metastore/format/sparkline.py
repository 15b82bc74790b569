"""The shape of a distribution in a few characters, as `metastore.summary` shows it in both languages."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


LEVELS = "▁▂▃▄▅▆▇█"
_BARS = 10
_FEWEST_VALUES = 3


def draw_sparkline(percentiles: Sequence[Any] | None) -> str | None:
    """Draw bars for equally wide ranges of values, from the first percentile to the 99th; None if these are no numbers.

    Infinite percentiles are left out.

    The lowest character stands for none, or next to none. Each of a few whole numbers has its bar, from the least to
    the greatest.

    Example:
        >>> draw_sparkline([0] * 51 + [1] * 50), draw_sparkline(list(range(101)))
        ('██', '█████████▇')
    """
    if not percentiles or not isinstance(percentiles[0], int | float):
        return None
    are_integers = isinstance(percentiles[0], int)
    values = _select_drawn(percentiles, are_integers=are_integers)
    if len(values) < 2:
        return None
    heights = count_evenly(values, range(len(values)), _BARS, integers=are_integers)
    return _draw_bars(heights) or None


def _select_drawn(percentiles: Sequence[Any], *, are_integers: bool) -> list[float]:
    """Select the finite values from the first percentile to the 99th, or all of a few whole numbers, in order."""
    values = sorted(map(float, filter(math.isfinite, percentiles)))  # exact quartiles may be out of order
    if len(values) < _FEWEST_VALUES:
        return []
    if not are_integers:
        return values[1:-1]
    if values[-1] - values[0] >= _BARS:
        values = values[1:-1]
    return _spread_equal_values(values)


def _spread_equal_values(values: Sequence[float]) -> list[float]:
    """Spread equal integers evenly over the range up to the next one."""
    spread: list[float] = []
    for number, value in enumerate(values):
        start = bisect_left(values, value)
        stop = bisect_right(values, value)
        spread.append(value + (number - start) / (stop - start))
    spread[-1] = values[-1] + 1.0
    return spread


def _draw_bars(heights: Sequence[float]) -> str:
    highest = max(heights, default=0.0)
    bars = ""
    for height in heights:
        level = height / highest * (len(LEVELS) - 1)
        bars += LEVELS[int(level + 0.5)]
    return bars


def count_evenly(ends: Sequence[float], sums: Sequence[float], bars: int, *, integers: bool) -> list[float]:
    """Count the values in each of several equally wide ranges; return nothing if the ends are not finite.

    Args:
        ends: Values in their order. Those between two of them are taken to lie evenly.
        sums: Number of values up to each end.
        bars: Most ranges.
        integers: Whether values are integers: then there are no more ranges than integers.
    """
    low = ends[0]
    width = ends[-1] - low
    if not math.isfinite(width):
        return []
    if integers or width == 0:
        bars = int(max(1.0, min(bars, width)))
    counts = []
    count_so_far = 0.0
    for bar in range(1, bars):
        count = _count_below(low + width * bar / bars, ends, sums)
        counts.append(count - count_so_far)
        count_so_far = count
    counts.append(float(sums[-1]) - count_so_far)
    return counts


def _count_below(value: float, ends: Sequence[float], sums: Sequence[float]) -> float:
    """Count the values below one that is at least the first end."""
    index = bisect_right(ends, value) - 1
    if index + 1 == len(ends):
        return sums[index]
    share = (value - ends[index]) / (ends[index + 1] - ends[index])
    return sums[index] + share * (sums[index + 1] - sums[index])
