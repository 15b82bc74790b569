"""Charts of histograms: bars of equal width, drawn from bins of any width."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from metastore.display.bars import read_edges, read_moment
from metastore.display.cells import LATEST_YEAR
from metastore.display.numbers import format_number, ungroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.answers import Answer


BARS = 30
WIDTH = 300
HEIGHT = 60
_TAIL, _LONGEST_TAIL = 0.01, 4.0
"""A tail with this share of the values is cut if it is this many times as long as the range of all other values."""
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
        """Return the value of a bar, or the range of its values, as text."""
        lo, hi = self.edges[bar : bar + 2]
        if self.kind not in _WHOLE:
            return f"{self.text(lo)} to {self.text(hi)}"
        first = math.ceil(lo)
        last = math.floor(hi)
        if first >= last:
            return self.text(first)
        return f"{self.text(first)} to {self.text(last)}"

    def text(self, value: float) -> str:
        """Return a value of the axis as text."""
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
            first_edge = self.axis.edges[1]
            labels[0] = f"before {self.axis.text(first_edge)}"
        if self.above:
            last_edge = self.axis.edges[-2]
            labels[-1] = f"from {self.axis.text(last_edge)} on"
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

    @property
    def shares(self) -> list[float]:
        """The share of the values in each bar."""
        total = sum(self.counts)
        return [count / total for count in self.counts]

    @property
    def highest(self) -> float:
        """The share of values that the highest bar stands for."""
        return max(self.shares)

    def path(self, full_share: float) -> str:
        """Return the bars as the path of one SVG shape; a bar of full height has `full_share` of the values."""
        width = WIDTH / len(self.counts)
        drawn_width = _short(width - 1)
        bars = []
        for bar, share in enumerate(self.shares):
            if share:
                start = _short(bar * width)
                top = _short(_height(share, full_share))
                bars.append(f"M{start} {HEIGHT}v-{top}h{drawn_width}v{top}z")
        return "".join(bars)

    def outline(self, full_share: float) -> str:
        """Return the line over all bars as the path of an SVG shape."""
        width = _short(WIDTH / len(self.counts))
        steps = []
        for share in self.shares:
            top = _short(HEIGHT - _height(share, full_share))
            steps.append(f"V{top}h{width}")
        return f"M0 {HEIGHT}" + "".join(steps)


def _height(share: float, full_share: float) -> float:
    """Return the height of a bar; a bar with values is at least one unit high, to be visible."""
    if not share:
        return 0.0
    return max(share / full_share * HEIGHT, 1.0)


@dataclass(frozen=True)
class _Bin:
    lo: float
    hi: float
    count: int


def draw_chart(answer: Answer | None, column_type: str, axis: Axis | None = None) -> Chart | None:
    """Return the chart of a histogram on an axis, or on one that fits its values; None for values without positions."""
    kind = column_type.partition("(")[0]
    if answer is None or kind not in _DRAWN:
        return None
    bins = _read_bins(answer, kind)
    if not bins:
        return None
    axis = axis or _choose_axis(bins, kind)
    return Chart(
        axis=axis,
        counts=tuple(_count_values(bins, axis.edges)),
        below=bins[0].lo < axis.edges[0],
        above=bins[-1].hi > axis.edges[-1],
    )


def _count_values(bins: Sequence[_Bin], edges: Sequence[float]) -> list[float]:
    """Return the number of values of each bar."""
    counts = [0.0] * (len(edges) - 1)
    for source in bins:
        for bar, share in _spread_bin(source, edges):
            counts[bar] += share * source.count
    return counts


def _read_bins(answer: Answer, kind: str) -> list[_Bin]:
    """Return the bins with values; those of integers extend by a half on both sides, so that each value is 1 wide."""
    rows = [row for row in answer.rows if row["count"]]
    edges, _ = read_edges(rows)
    if not edges or not all(map(math.isfinite, edges)):
        return []
    bins = _make_bins(rows, edges, half=0.5 if kind in _WHOLE else 0.0)
    if math.isinf(bins[-1].hi - bins[0].lo):
        return []
    return bins


def _make_bins(rows: Sequence[Mapping[str, Any]], edges: Sequence[float], half: float) -> list[_Bin]:
    bounds = zip(edges[::2], edges[1::2], strict=True)
    bins = [_make_bin(row, lo, hi, half) for row, (lo, hi) in zip(rows, bounds, strict=True)]
    if rows[0]["distinct"] != 1:
        bins[0] = replace(bins[0], lo=edges[0] - half)
    return bins


def _make_bin(row: Mapping[str, Any], lo: float, hi: float, half: float) -> _Bin:
    start = lo + half  # the previous bin includes its upper edge
    if row["distinct"] == 1 or lo == hi:
        start = hi - half
    return _Bin(lo=start, hi=hi + half, count=row["count"])


def _choose_axis(bins: Sequence[_Bin], kind: str) -> Axis:
    """Choose an axis over the values without long tails."""
    lo, hi = _cut_tails(bins)
    if kind not in _WHOLE:
        return Axis(tuple(_equal_edges(lo, hi)), kind)
    # In a long range it does not matter that a bar has one integer more than the next.
    edges = _equal_edges(lo, hi) if hi - lo > 4 * BARS else _whole_edges(lo, hi)
    first = math.ceil(bins[0].lo)
    last = math.floor(bins[-1].hi)
    longest = max(-first, last)
    return Axis(tuple(edges), kind, is_grouped=longest > LATEST_YEAR)


def _whole_edges(lo: float, hi: float) -> list[float]:
    """Return edges whose distance is an integer."""
    step = max(math.ceil((hi - lo) / BARS), 1)
    bars = max(math.ceil((hi - lo) / step), 1)
    return [lo + step * edge for edge in range(bars + 1)]


def _equal_edges(lo: float, hi: float) -> list[float]:
    if hi == lo:
        lo -= 0.5
        hi += 0.5
    length = hi - lo
    return [lo + length * edge / BARS for edge in range(BARS + 1)]


def _cut_tails(bins: Sequence[_Bin]) -> tuple[float, float]:
    """Return the range of the values, without a tail that is much longer than the range of all other values."""
    lo = bins[0].lo
    hi = bins[-1].hi
    inner_lo = _bin_at_rank(bins, _TAIL).lo
    inner_hi = _bin_at_rank(bins, 1 - _TAIL).hi
    longest_tail = _LONGEST_TAIL * (inner_hi - inner_lo)
    if longest_tail <= 0:
        return lo, hi
    if inner_lo - lo > longest_tail:
        lo = inner_lo
    if hi - inner_hi > longest_tail:
        hi = inner_hi
    return lo, hi


def _bin_at_rank(bins: Sequence[_Bin], share: float) -> _Bin:
    """Return the bin with the value at a rank, which is a share of all values."""
    sums = list(accumulate(source.count for source in bins))
    position = bisect_left(sums, share * sums[-1])
    return bins[min(position, len(bins) - 1)]


def _spread_bin(source: _Bin, edges: Sequence[float]) -> list[tuple[int, float]]:
    """Spread the values of a bin evenly over bars: pairs of a bar and its share of the values."""
    bars = len(edges) - 1
    width = (edges[-1] - edges[0]) / bars or 1.0

    def find_bar(value: float) -> int:
        bar = math.floor((value - edges[0]) / width)
        return min(max(bar, 0), bars - 1)

    first_bar = find_bar(source.lo)
    last_bar = find_bar(source.hi)
    length = source.hi - source.lo
    if length <= 0:
        return [(last_bar, 1.0)]
    ends = [source.lo, *edges[first_bar + 1 : last_bar + 1], source.hi]
    shares = [max(end - start, 0.0) / length for start, end in pairwise(ends)]
    return list(enumerate(shares, start=first_bar))


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
