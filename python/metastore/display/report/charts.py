"""Histograms as people read them: bars of equal width over the values, of whatever width the bins are that are kept."""

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
"""The share of values at an end that is drawn in its last bar, where it would make the axis so many times as long."""
_WHOLE = ("tinyint", "smallint", "int", "bigint", "date")
_DRAWN = (*_WHOLE, "float", "double", "timestamp", "timestamp_ntz", "decimal")


@dataclass(frozen=True)
class Axis:
    """Where the bars of a chart are.

    Attributes:
        edges: One more than there are bars; numbers, or days.
        kind: The type of the column; of whole numbers and days the edges lie half-way between two.
        is_grouped: Whether the digits of its values stand in groups.
    """

    edges: tuple[float, ...]
    kind: str
    is_grouped: bool = True

    def label(self, place: int) -> str:
        """The values of a bar: one, or from one to another."""
        lo, hi = self.edges[place : place + 2]
        if self.kind not in _WHOLE:
            return f"{self.text(lo)} to {self.text(hi)}"
        first, last = math.ceil(lo), math.floor(hi)
        return self.text(first) if first >= last else f"{self.text(first)} to {self.text(last)}"

    def text(self, value: float) -> str:
        """A value of the axis."""
        if self.kind in ("timestamp", "timestamp_ntz"):
            return read_moment(value).isoformat(" ", "minutes")[:16]
        if self.kind == "date":
            return read_moment(math.ceil(value)).date().isoformat()
        shown = format_number(math.ceil(value) if self.kind in _WHOLE else value)
        return shown if self.is_grouped else ungroup(shown)


@dataclass(frozen=True)
class Chart:
    """A histogram of bars of equal width.

    Attributes:
        axis: Where they are.
        counts: How many values each bar stands for; those before the first and after the last edge are in these.
        below: Whether the first bar stands for values before the axis too.
        above: Whether the last one stands for values behind it too.
    """

    axis: Axis
    counts: tuple[float, ...]
    below: bool = False
    above: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """What values each bar stands for."""
        found = [self.axis.label(place) for place in range(len(self.counts))]
        if self.below:
            found[0] = f"before {self.axis.text(self.axis.edges[1])}"
        if self.above:
            found[-1] = f"from {self.axis.text(self.axis.edges[-2])} on"
        return tuple(found)

    @property
    def ends(self) -> tuple[str, str]:
        """What stands under both ends of the axis."""
        first, last = self.axis.edges[0], self.axis.edges[-1]
        lo, hi = map(self.axis.text, (first, math.floor(last) if self.axis.kind in _WHOLE else last))
        return f"{lo} and less" if self.below else lo, f"{hi} and more" if self.above else hi

    def path(self, most: float) -> str:
        """The bars as the path of one SVG shape, as high as the picture where a share of values is `most`."""
        width = WIDTH / len(self.counts)
        return "".join(
            f"M{_short(place * width)} {HEIGHT}v-{_short(height)}h{_short(width - 1)}v{_short(height)}z"
            for place, height in enumerate(self._heights(most))
            if height
        )

    def outline(self, most: float) -> str:
        """The line over all bars as the path of an SVG shape."""
        width = WIDTH / len(self.counts)
        return f"M0 {HEIGHT}" + "".join(f"V{_short(HEIGHT - one)}h{_short(width)}" for one in self._heights(most))

    def _heights(self, most: float) -> list[float]:
        """How high the bars are: none that has values is so low that it is not seen."""
        total = sum(self.counts) or 1.0
        return [max(count / total / most * HEIGHT, 1.0) if count else 0.0 for count in self.counts]

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
    """The chart of a histogram, on an axis of its own if none is given; None where values have no place on an axis."""
    kind = column_type.partition("(")[0]
    bins = _read_bins(answer, kind) if answer is not None and kind in _DRAWN else []
    if not bins:
        return None
    found = axis or _choose_axis(bins, kind)
    edges, counts = found.edges, [0.0] * (len(found.edges) - 1)
    for one in bins:
        for place, share in _spread(one, edges):
            counts[place] += share * one.count
    return Chart(found, tuple(counts), bins[0].lo < edges[0], bins[-1].hi > edges[-1])


def _read_bins(answer: Answer, kind: str) -> list[_Bin]:
    """Bins with the room that their values take: of whole numbers each takes one."""
    rows = [row for row in answer.rows if row["count"]]
    ends, _ = read_positions([row[end] for row in rows for end in ("lo", "hi")])
    room = 0.5 if kind in _WHOLE else 0.0
    found = []
    for place, row in enumerate(rows if ends else ()):
        lo, hi = ends[2 * place : 2 * place + 2]
        if not math.isfinite(lo) or not math.isfinite(hi):
            return []
        is_single = row["distinct"] == 1 or lo == hi
        low = hi - room if is_single else lo - room if place == 0 else lo + room
        found.append(_Bin(low, hi + room, row["count"]))
    return found if found and math.isfinite(found[-1].hi - found[0].lo) else []


def _choose_axis(bins: Sequence[_Bin], kind: str) -> Axis:
    lo, hi = bins[0].lo, bins[-1].hi
    inner_lo, inner_hi = _rank(bins, _TAIL).lo, _rank(bins, 1 - _TAIL).hi
    length = inner_hi - inner_lo
    is_grouped = kind not in _WHOLE or max(-math.ceil(lo), math.floor(hi)) > MOST_YEARS
    if length > 0:
        lo = inner_lo if inner_lo - lo > _STRETCH * length else lo
        hi = inner_hi if hi - inner_hi > _STRETCH * length else hi
    if kind in _WHOLE and hi - lo <= 4 * BARS:  # wider ones are not seen to be whole
        step = max(math.ceil((hi - lo) / BARS), 1)
        bars = max(math.ceil((hi - lo) / step), 1)
        return Axis(tuple(lo + step * place for place in range(bars + 1)), kind, is_grouped)
    if hi == lo:
        lo, hi = lo - 0.5, hi + 0.5
    return Axis(tuple(lo + (hi - lo) * place / BARS for place in range(BARS + 1)), kind, is_grouped)


def _rank(bins: Sequence[_Bin], share: float) -> _Bin:
    wanted = share * sum(one.count for one in bins)
    sums = accumulate(one.count for one in bins)
    return next((one for one, upto in zip(bins, sums, strict=True) if upto >= wanted), bins[-1])


def _spread(one: _Bin, edges: Sequence[float]) -> list[tuple[int, float]]:
    """The bars over which the values of a bin lie, each with its share of them: evenly, as nothing else is known."""
    last, width = len(edges) - 2, (edges[-1] - edges[0]) / (len(edges) - 1) or 1.0

    def place(value: float) -> int:
        return min(max(math.floor((value - edges[0]) / width), 0), last)

    if one.hi <= one.lo:
        return [(place(one.hi), 1.0)]
    found: dict[int, float] = {}
    first, final = place(one.lo), place(one.hi)
    for bar in range(first, final + 1):
        start = one.lo if bar == first else edges[bar]
        end = one.hi if bar == final else edges[bar + 1]
        found[bar] = max(end - start, 0.0) / (one.hi - one.lo)
    return list(found.items())


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
