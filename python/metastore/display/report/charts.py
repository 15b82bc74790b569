"""Histograms as people read them: bars of equal width, drawn from bins of any width."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
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
        if self.kind not in _WHOLE:
            return f"{self.text(lo)} to {self.text(hi)}"
        first = math.ceil(lo)
        last = math.floor(hi)
        if first >= last:
            return self.text(first)
        return f"{self.text(first)} to {self.text(last)}"

    def text(self, value: float) -> str:
        """A value of the axis."""
        if self.kind in ("timestamp", "timestamp_ntz"):
            return read_moment(value).isoformat(" ", "minutes")[:16]
        if self.kind == "date":
            return read_moment(math.ceil(value)).date().isoformat()
        if self.kind in _WHOLE:
            value = math.ceil(value)
        number = format_number(value)
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
        first = self.axis.edges[0]
        last = self.axis.edges[-1]
        if self.axis.kind in _WHOLE:
            last = math.floor(last)
        lo = self.axis.text(first)
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
                start = _short(bar * width)
                top = _short(height)
                bars.append(f"M{start} {HEIGHT}v-{top}h{_short(width - 1)}v{top}z")
        return "".join(bars)

    def outline(self, full_share: float) -> str:
        """The line over all bars as the path of an SVG shape."""
        width = _short(WIDTH / len(self.counts))
        steps = [f"V{_short(HEIGHT - height)}h{width}" for height in self._heights(full_share)]
        return f"M0 {HEIGHT}" + "".join(steps)

    def _heights(self, full_share: float) -> list[float]:
        """The heights of the bars; a bar with values is at least one unit high, to be visible."""
        total = sum(self.counts)
        heights = []
        for count in self.counts:
            height = 0.0
            if count:
                height = max(count / total / full_share * HEIGHT, 1.0)
            heights.append(height)
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
    if axis is None:
        axis = _choose_axis(bins, kind)
    counts = [0.0] * (len(axis.edges) - 1)
    for source in bins:
        for bar, share in _spread(source, axis.edges):
            counts[bar] += share * source.count
    return Chart(
        axis=axis,
        counts=tuple(counts),
        below=bins[0].lo < axis.edges[0],
        above=bins[-1].hi > axis.edges[-1],
    )


def _read_bins(answer: Answer, kind: str) -> list[_Bin]:
    """The bins with values; those of integers extend by a half on both sides, so that each value is 1 wide."""
    rows = [row for row in answer.rows if row["count"]]
    lows, _ = read_positions([row["lo"] for row in rows])
    highs, _ = read_positions([row["hi"] for row in rows])
    if not lows or not highs or not all(map(math.isfinite, [*lows, *highs])):
        return []
    half = 0.5 if kind in _WHOLE else 0.0
    bins: list[_Bin] = []
    for row, lo, hi in zip(rows, lows, highs, strict=True):
        has_one_value = row["distinct"] == 1 or lo == hi
        bins.append(
            _Bin(
                lo=hi - half if has_one_value else lo + half,  # the previous bin includes its upper edge
                hi=hi + half,
                count=row["count"],
            )
        )
    if rows[0]["distinct"] != 1:
        bins[0] = replace(bins[0], lo=lows[0] - half)
    has_finite_length = math.isfinite(bins[-1].hi - bins[0].lo)
    return bins if has_finite_length else []


def _choose_axis(bins: Sequence[_Bin], kind: str) -> Axis:
    """An axis over the values; a few values far out do not stretch it."""
    is_whole = kind in _WHOLE
    least, greatest = bins[0].lo, bins[-1].hi
    lo, hi = _cut_tails(bins)
    edges = _whole_edges(lo, hi) if is_whole else []
    if not edges:
        edges = _equal_edges(lo, hi)
    return Axis(
        edges=tuple(edges),
        kind=kind,
        is_grouped=not is_whole or max(-math.ceil(least), math.floor(greatest)) > MOST_YEARS,
    )


def _whole_edges(lo: float, hi: float) -> list[float]:
    """Edges at distances of a whole number; none for a long range, where bars of unequal widths are not noticed."""
    if hi - lo > 4 * BARS:
        return []
    step = max(math.ceil((hi - lo) / BARS), 1)
    bars = max(math.ceil((hi - lo) / step), 1)
    return [lo + step * edge for edge in range(bars + 1)]


def _equal_edges(lo: float, hi: float) -> list[float]:
    if hi == lo:
        lo -= 0.5
        hi += 0.5
    return [lo + (hi - lo) * edge / BARS for edge in range(BARS + 1)]


def _cut_tails(bins: Sequence[_Bin]) -> tuple[float, float]:
    """The range of the values, without a tail that is much longer than the range of all other values."""
    lo = bins[0].lo
    hi = bins[-1].hi
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

    first_bar = find_bar(source.lo)
    last_bar = find_bar(source.hi)
    length = source.hi - source.lo
    if length <= 0:
        return [(last_bar, 1.0)]
    ends = [source.lo, *edges[first_bar + 1 : last_bar + 1], source.hi]
    shares = []
    for bar, (start, end) in enumerate(pairwise(ends), start=first_bar):
        shares.append((bar, max(end - start, 0.0) / length))
    return shares


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
