"""Histograms as people read them: bars of equal width, drawn from bins of any width."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from metastore.display.bars import read_moment, read_positions
from metastore.display.cells import MOST_YEARS, format_number, ungroup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.answers import Answer


BARS = 30
WIDTH, HEIGHT = 300, 60
_TAIL, _STRETCH = 0.01, 4.0
"""The share of values at an end that is drawn in its last bar if it would make the axis four times as long."""
_WHOLE = ("tinyint", "smallint", "int", "bigint", "date")
_DRAWN = (*_WHOLE, "float", "double", "timestamp", "timestamp_ntz", "decimal")


@dataclass(frozen=True)
class Axis:
    """The edges of the bars of a chart.

    Attributes:
        edges: One more than there are bars; numbers, or days.
        kind: The type of the column; edges of integers and days lie half-way between two values.
        is_grouped: Whether the digits of its values stand in groups.
    """

    edges: tuple[float, ...]
    kind: str
    is_grouped: bool = True

    def label(self, bar: int) -> str:
        """The values of a bar: one, or from one to another."""
        lo, hi = self.edges[bar : bar + 2]
        if self.kind in _WHOLE:
            lo, hi = math.ceil(lo), math.floor(hi)
            if lo >= hi:
                return self.text(lo)
        return f"{self.text(lo)} to {self.text(hi)}"

    def text(self, value: float) -> str:
        """A value of the axis."""
        if self.kind in ("timestamp", "timestamp_ntz"):
            return read_moment(value).isoformat(" ", "minutes")[:16]
        if self.kind == "date":
            return read_moment(math.ceil(value)).date().isoformat()
        number = format_number(math.ceil(value) if self.kind in _WHOLE else value)
        return number if self.is_grouped else ungroup(number)


@dataclass(frozen=True)
class Chart:
    """A histogram of bars of equal width.

    Attributes:
        axis: The edges of the bars.
        counts: The number of values of each bar; the outer bars include the values beyond the axis.
        below: Whether there are values below the axis.
        above: Whether there are values above the axis.
    """

    axis: Axis
    counts: tuple[float, ...]
    below: bool = False
    above: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The values of each bar, as text."""
        labels = [self.axis.label(bar) for bar in range(len(self.counts))]
        if self.below:
            labels[0] = f"before {self.axis.text(self.axis.edges[1])}"
        if self.above:
            labels[-1] = f"from {self.axis.text(self.axis.edges[-2])} on"
        return tuple(labels)

    @property
    def ends(self) -> tuple[str, str]:
        """The texts under both ends of the axis."""
        last = self.axis.edges[-1]
        if self.axis.kind in _WHOLE:
            last = math.floor(last)
        lo = self.axis.text(self.axis.edges[0])
        hi = self.axis.text(last)
        if self.below:
            lo = f"{lo} and less"
        if self.above:
            hi = f"{hi} and more"
        return lo, hi

    def path(self, full_share: float) -> str:
        """The bars as the path of one SVG shape; a bar of full height has `full_share` of the values."""
        width = WIDTH / len(self.counts)
        bars = []
        for bar, height in enumerate(self._heights(full_share)):
            if height:
                left, top = _short(bar * width), _short(height)
                bars.append(f"M{left} {HEIGHT}v-{top}h{_short(width - 1)}v{top}z")
        return "".join(bars)

    def outline(self, full_share: float) -> str:
        """The line over all bars as the path of an SVG shape."""
        width = _short(WIDTH / len(self.counts))
        steps = [f"V{_short(HEIGHT - height)}h{width}" for height in self._heights(full_share)]
        return f"M0 {HEIGHT}" + "".join(steps)

    def _heights(self, full_share: float) -> list[float]:
        """The heights of the bars; a bar with values is at least one unit high, to be visible."""
        total = sum(self.counts) or 1.0
        heights = []
        for count in self.counts:
            height = count / total / full_share * HEIGHT if count else 0.0
            heights.append(max(height, 1.0) if count else 0.0)
        return heights

    @property
    def highest(self) -> float:
        """The share of values that the highest bar stands for."""
        return max(self.counts, default=0.0) / (sum(self.counts) or 1.0)


@dataclass(frozen=True)
class _Bin:
    lo: float
    hi: float
    count: int


def draw_chart(answer: Answer | None, column_type: str, axis: Axis | None = None) -> Chart | None:
    """The chart of a histogram on an axis, or on one that fits its values; None for values without positions."""
    kind = column_type.partition("(")[0]
    if answer is None or kind not in _DRAWN:
        return None
    bins = _read_bins(answer, kind)
    if not bins:
        return None
    axis = axis or _choose_axis(bins, kind)
    counts = [0.0] * (len(axis.edges) - 1)
    for source in bins:
        for bar, share in _spread(source, axis.edges):
            counts[bar] += share * source.count
    return Chart(axis, tuple(counts), below=bins[0].lo < axis.edges[0], above=bins[-1].hi > axis.edges[-1])


def _read_bins(answer: Answer, kind: str) -> list[_Bin]:
    """The bins with values; those of integers extend by a half on both sides, so that each value is 1 wide."""
    rows = [row for row in answer.rows if row["count"]]
    lows, _ = read_positions([row["lo"] for row in rows])
    highs, _ = read_positions([row["hi"] for row in rows])
    are_finite = all(map(math.isfinite, [*lows, *highs]))
    if not lows or not highs or not are_finite:
        return []
    half = 0.5 if kind in _WHOLE else 0.0
    bins: list[_Bin] = []
    for row, lo, hi in zip(rows, lows, highs, strict=True):
        if row["distinct"] == 1 or lo == hi:
            start = hi - half
        elif not bins:
            start = lo - half
        else:
            start = lo + half  # the previous bin includes its upper edge
        bins.append(_Bin(start, hi + half, row["count"]))
    has_finite_length = math.isfinite(bins[-1].hi - bins[0].lo)
    return bins if has_finite_length else []


def _choose_axis(bins: Sequence[_Bin], kind: str) -> Axis:
    """An axis over the values; a few values far out do not stretch it."""
    is_whole = kind in _WHOLE
    least, greatest = bins[0].lo, bins[-1].hi
    is_grouped = not is_whole or max(-math.ceil(least), math.floor(greatest)) > MOST_YEARS
    lo, hi = _cut_tails(bins)
    if is_whole and hi - lo <= 4 * BARS:  # in longer ranges, bars of unequal numbers of values are not noticed
        step = max(math.ceil((hi - lo) / BARS), 1)
        bars = max(math.ceil((hi - lo) / step), 1)
        return Axis(tuple(lo + step * edge for edge in range(bars + 1)), kind, is_grouped)
    if hi == lo:
        lo, hi = lo - 0.5, hi + 0.5
    return Axis(tuple(lo + (hi - lo) * edge / BARS for edge in range(BARS + 1)), kind, is_grouped)


def _cut_tails(bins: Sequence[_Bin]) -> tuple[float, float]:
    """The range of the values, without a tail that is much longer than the range of all other values."""
    lo, hi = bins[0].lo, bins[-1].hi
    inner_lo = _bin_at_rank(bins, _TAIL).lo
    inner_hi = _bin_at_rank(bins, 1 - _TAIL).hi
    longest_tail = _STRETCH * (inner_hi - inner_lo)
    if longest_tail <= 0:
        return lo, hi
    if inner_lo - lo > longest_tail:
        lo = inner_lo
    if hi - inner_hi > longest_tail:
        hi = inner_hi
    return lo, hi


def _bin_at_rank(bins: Sequence[_Bin], share: float) -> _Bin:
    """The bin of the value with a share of all values up to it."""
    rank = share * sum(source.count for source in bins)
    sums = accumulate(source.count for source in bins)
    for source, count_up_to in zip(bins, sums, strict=True):
        if count_up_to >= rank:
            return source
    return bins[-1]


def _spread(source: _Bin, edges: Sequence[float]) -> list[tuple[int, float]]:
    """The bars over which the values of a bin are spread evenly, each with its share of them."""
    last = len(edges) - 2
    width = (edges[-1] - edges[0]) / (len(edges) - 1) or 1.0

    def find_bar(value: float) -> int:
        return min(max(math.floor((value - edges[0]) / width), 0), last)

    first_bar, last_bar = find_bar(source.lo), find_bar(source.hi)
    if source.hi <= source.lo:
        return [(last_bar, 1.0)]
    shares = []
    for bar in range(first_bar, last_bar + 1):
        start = source.lo if bar == first_bar else edges[bar]
        end = source.hi if bar == last_bar else edges[bar + 1]
        shares.append((bar, max(end - start, 0.0) / (source.hi - source.lo)))
    return shares


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
