"""How long the bar of each row is: how often a value occurs, how densely the values of a bin lie."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from math import isfinite
from typing import TYPE_CHECKING

from metastore.display.cells import format_number
from metastore.format.spark_text import parse_spark_text
from metastore.format.sparkline import count_evenly

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from metastore.answers import Answer


WIDTH = 24
_SHAPE = 120
_BLOCK = "\u2588"
_PARTS = " \u258f\u258e\u258d\u258c\u258b\u258a\u2589"
DAY = "day"
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in the answer's zone: its texts name none
_FIRST_DAY, _LAST_DAY = (day.toordinal() - EPOCH.toordinal() for day in (date.min, date.max))
DENSITY, BARS = "density", "bars"
"""Names of columns that only people see."""


@dataclass(frozen=True)
class Measure:
    """What the bars of an answer show.

    Attributes:
        beside: The column of the answer that they stand beside.
        shares: The length of each row's bar, from 0 to 1.
        head: The heading of the numbers that are shown for the bars, where no column of the answer has them.
        cells: These numbers as texts, one a row.
    """

    beside: str
    shares: tuple[float, ...]
    head: str = ""
    cells: tuple[str, ...] = ()


def measure_bars(answer: Answer) -> Measure | None:
    """What bars are drawn of: how often values occur, or how densely the values of a bin lie.

    Bins of equal height all hold the same: what tells them apart is how wide they are.
    """
    if answer.kind == "frequencies":
        return Measure("frequency", _shares([float(row["frequency"] or 0) for row in answer.rows]))
    if answer.kind != "histogram":
        return None
    heights = [float(row["count"] or 0) for row in answer.rows]
    edges, unit = read_positions([end for row in answer.rows for end in (row["lo"], row["hi"])])
    widths = [hi - lo for lo, hi in zip(edges[::2], edges[1::2], strict=True)]
    if len(set(widths)) < 2 or not all(0 < width < float("inf") for width in widths):
        return Measure("count", _shares(heights))
    densities = [height / width for height, width in zip(heights, widths, strict=True)]
    return Measure("count", _shares(densities), f"per {unit}", tuple(map(format_number, densities)))


@dataclass(frozen=True)
class Shape:
    """A histogram with bins of equal width.

    Attributes:
        edges: Where they begin and end.
        counts: How many values each has.
        unit: In what `edges` are: `day` stands for days since 1970.
    """

    edges: tuple[float, ...]
    counts: tuple[float, ...]
    unit: str


def measure_shape(answer: Answer) -> Shape | None:
    """The histogram of an answer with many bins of equal width; None where values have no distance."""
    edges, unit = read_positions([end for row in answer.rows for end in (row["lo"], row["hi"])])
    if not edges or edges != sorted(edges) or not all(map(isfinite, edges)):  # of texts that look like numbers, too
        return None
    step = 1.0 if all(edge.is_integer() for edge in edges) else 0.0
    ends, sums = [edges[0]], [0.0]
    for row, high in zip(answer.rows, edges[1::2], strict=True):
        if row["distinct"] == 1:  # a bin of equal height holds its upper edge alone; of equal width it is near
            ends.append(high)
            sums.append(sums[-1])
        ends.append(high + step)
        sums.append(sums[-1] + (row["count"] or 0))
    counts = count_evenly(ends, sums, _SHAPE, whole=step > 0)
    if len(counts) < 2:
        return None
    width = (ends[-1] - ends[0]) / len(counts)
    return Shape(tuple(ends[0] + width * i for i in range(len(counts) + 1)), tuple(counts), unit)


def read_positions(texts: Sequence[str | None]) -> tuple[list[float], str]:
    """Where values lie, and in what: numbers in units, dates and timestamps in days since 1970.

    Nothing where some of them is neither.
    """
    for unit, read in _UNITS:
        with suppress(ValueError, TypeError, OverflowError):
            return [read(text or "") for text in texts], unit
    return [], ""


def read_moment(days: float) -> datetime:
    """The time so many days after the beginning of 1970, or the first or last day there is."""
    return EPOCH + timedelta(days=min(max(days, _FIRST_DAY), _LAST_DAY))


def draw_bar(share: float, width: int = WIDTH) -> str:
    """A bar of block characters, `width` long where the share is 1."""
    eighths = round(share * width * 8)
    return _BLOCK * (eighths // 8) + _PARTS[eighths % 8].strip()


def _shares(heights: Sequence[float]) -> tuple[float, ...]:
    most = max(heights, default=0.0)
    return tuple(height / most if most else 0.0 for height in heights)


def _read_days(text: str) -> float:
    read = parse_spark_text(text, "timestamp_ntz" if " " in text else "date")
    moment = read if isinstance(read, datetime) else datetime.combine(read, time())
    return (moment - EPOCH) / timedelta(days=1)


_UNITS: tuple[tuple[str, Callable[[str], float]], ...] = (("unit", float), (DAY, _read_days))
