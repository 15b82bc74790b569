"""Lengths of bars: the frequency of each value, or the density of each bin."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from operator import sub, truediv
from typing import TYPE_CHECKING, Any

from metastore.display.columns import read_column
from metastore.display.numbers import format_number
from metastore.format.spark_text import parse_spark_text
from metastore.format.sparkline import count_evenly

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from metastore.answers import Answer


WIDTH = 24
_SHAPE = 120
_BLOCK = "\u2588"
_PARTS = " \u258f\u258e\u258d\u258c\u258b\u258a\u2589"
DAY = "day"
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in the answer's zone: its texts name none
_FIRST_DAY = date.min.toordinal() - EPOCH.toordinal()
_LAST_DAY = date.max.toordinal() - EPOCH.toordinal()
DENSITY, BARS = "density", "bars"
"""Names of columns that only people see."""


@dataclass(frozen=True)
class Measure:
    """The bars of an answer.

    Attributes:
        beside: The column of the answer to the left of the bars.
        shares: The length of each row's bar, from 0 to 1.
        head: The heading of the numbers behind the bars, if no column of the answer has them.
        cells: These numbers as texts, one a row.
    """

    beside: str
    shares: tuple[float, ...]
    head: str = ""
    cells: tuple[str, ...] = ()


def measure_bars(answer: Answer) -> Measure | None:
    """The bars of frequencies and histograms; other answers have none."""
    if answer.kind == "frequencies":
        frequencies = _read_counts(answer, "frequency")
        return Measure(beside="frequency", shares=_shares(frequencies))
    if answer.kind == "histogram":
        return _measure_bins(answer)
    return None


def _measure_bins(answer: Answer) -> Measure:
    """The density of each bin, if bins differ in width: bins of equal height have equal counts."""
    counts = _read_counts(answer, "count")
    edges, unit = read_edges(answer.rows)
    widths = _measure_widths(edges)
    if not _differ(widths):
        return Measure(beside="count", shares=_shares(counts))
    densities = list(map(truediv, counts, widths))
    return Measure(
        beside="count",
        shares=_shares(densities),
        head=f"per {unit}",
        cells=tuple(map(format_number, densities)),
    )


def _measure_widths(edges: Sequence[float]) -> list[float]:
    """The width of each bin."""
    return list(map(sub, edges[1::2], edges[::2]))


def _differ(widths: Sequence[float]) -> bool:
    """Whether bins differ in width, and all widths are positive and finite."""
    are_widths = all(0 < width < math.inf for width in widths)
    return are_widths and len(set(widths)) > 1


def _read_counts(answer: Answer, column: str) -> list[float]:
    return [float(count or 0) for count in read_column(answer, column)]


def read_edges(bins: Sequence[Mapping[str, Any]]) -> tuple[list[float], str]:
    """The positions of the lower and the upper edge of each bin, and their unit; empty for texts."""
    edges: list[str | None] = []
    for row in bins:
        edges += [row["lo"], row["hi"]]
    return read_positions(edges)


@dataclass(frozen=True)
class Shape:
    """A histogram with bins of equal width.

    Attributes:
        edges: The edges of the bins.
        counts: The number of values of each bin.
        unit: The unit of `edges`: `day` stands for days since 1970.
    """

    edges: tuple[float, ...]
    counts: tuple[float, ...]
    unit: str


def measure_shape(answer: Answer) -> Shape | None:
    """The histogram of an answer with many bins of equal width; None for values without a distance."""
    edges, unit = read_edges(answer.rows)
    if not edges or not _are_on_axis(edges):
        return None
    are_integers = all(map(float.is_integer, edges))
    ends, sums = _accumulate_counts(answer, edges, step=1.0 if are_integers else 0.0)
    counts = count_evenly(ends, sums, _SHAPE, integers=are_integers)
    if len(counts) < 2:
        return None
    start = ends[0]
    width = (ends[-1] - start) / len(counts)
    numbers = range(len(counts) + 1)
    return Shape(
        edges=tuple(start + width * number for number in numbers),
        counts=tuple(counts),
        unit=unit,
    )


def _are_on_axis(edges: list[float]) -> bool:
    """Whether edges are finite and ascend; those of texts that look like numbers do not."""
    return edges == sorted(edges) and all(map(math.isfinite, edges))


def _accumulate_counts(answer: Answer, edges: Sequence[float], step: float) -> tuple[list[float], list[float]]:
    """Positions in ascending order, and the number of values below each; each value takes a range of length `step`."""
    ends = [edges[0]]
    sums = [0.0]
    for row, high in zip(answer.rows, edges[1::2], strict=True):
        if row["distinct"] == 1:  # the only value of a bin of equal height is its upper edge
            ends.append(high)
            sums.append(sums[-1])
        ends.append(high + step)
        sums.append(sums[-1] + (row["count"] or 0))
    return ends, sums


def read_positions(texts: Sequence[str | None]) -> tuple[list[float], str]:
    """The positions of values and their unit: numbers are units, dates and timestamps days since 1970.

    Empty if any value is neither.
    """
    for unit, read in _UNITS:
        with suppress(ValueError, TypeError, OverflowError):
            return [read(text or "") for text in texts], unit
    return [], ""


def read_moment(days: float) -> datetime:
    """The time of a number of days after the beginning of 1970, at most the first or last day of Python."""
    valid_days = min(max(days, _FIRST_DAY), _LAST_DAY)
    return EPOCH + timedelta(days=valid_days)


def draw_bar(share: float, width: int = WIDTH) -> str:
    """A bar of block characters, `width` long where the share is 1."""
    eighths = round(share * width * 8)
    return _BLOCK * (eighths // 8) + _PARTS[eighths % 8].strip()


def _shares(heights: Sequence[float]) -> tuple[float, ...]:
    highest = max(heights, default=0.0)
    if not highest:
        return (0.0,) * len(heights)
    return tuple(height / highest for height in heights)


def _read_days(text: str) -> float:
    spark_type = "timestamp_ntz" if " " in text else "date"
    value = parse_spark_text(text, spark_type)
    if not isinstance(value, datetime):
        value = datetime.combine(value, time())
    return (value - EPOCH) / timedelta(days=1)


_UNITS: tuple[tuple[str, Callable[[str], float]], ...] = (
    ("unit", float),
    (DAY, _read_days),
)
