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
"""The characters of the longest bar."""
_MOST_EVEN_BINS = 120
_BLOCK = "\u2588"
_PARTIAL_BLOCKS = " \u258f\u258e\u258d\u258c\u258b\u258a\u2589"
DAY = "day"
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the times of an answer name no zone either
_FIRST_DAY = date.min.toordinal() - EPOCH.toordinal()
_LAST_DAY = date.max.toordinal() - EPOCH.toordinal()
DENSITY, BARS = "density", "bars"
"""Names of columns that are displayed only; the answer itself does not have them."""


@dataclass(frozen=True)
class Bars:
    """The bars of an answer.

    Attributes:
        column: The column of the answer to whose right the bars are drawn.
        shares: The length of each row's bar, from 0 to 1.
        heading: The heading of the densities; empty if the bars show the column's own numbers.
        densities: The densities that the bars show as texts, one a row; empty if they show the column's own numbers.
    """

    column: str
    shares: tuple[float, ...]
    heading: str = ""
    densities: tuple[str, ...] = ()


def measure_bars(answer: Answer) -> Bars | None:
    """Return the bars of frequencies and histograms; other answers have none."""
    if answer.kind == "frequencies":
        frequencies = _read_counts(answer, "frequency")
        return Bars(column="frequency", shares=_shares(frequencies))
    if answer.kind == "histogram":
        return _measure_bins(answer)
    return None


def _measure_bins(answer: Answer) -> Bars:
    """Measure the count of each bin, or its density if bins differ in width: such bins often have equal counts."""
    counts = _read_counts(answer, "count")
    edges, unit = read_edges(answer.rows)
    widths = _measure_widths(edges)
    if not _have_unequal_widths(widths):
        return Bars(column="count", shares=_shares(counts))
    densities = list(map(truediv, counts, widths))
    return Bars(
        column="count",
        shares=_shares(densities),
        heading=f"per {unit}",
        densities=tuple(map(format_number, densities)),
    )


def _measure_widths(edges: Sequence[float]) -> list[float]:
    """Return the width of each bin."""
    return list(map(sub, edges[1::2], edges[::2]))


def _have_unequal_widths(widths: Sequence[float]) -> bool:
    """Return whether bins differ in width; False if a width is not positive and finite, since it has no density."""
    have_densities = all(0 < width < math.inf for width in widths)
    return have_densities and len(set(widths)) > 1


def _read_counts(answer: Answer, column: str) -> list[float]:
    return [float(count or 0) for count in read_column(answer, column)]


def read_edges(bins: Sequence[Mapping[str, Any]]) -> tuple[list[float], str]:
    """Read the edges of all bins as numbers, the lower and the upper in turn, and their unit; empty for texts."""
    edges: list[str | None] = []
    for row in bins:
        edges += [row["lo"], row["hi"]]
    return read_positions(edges)


@dataclass(frozen=True)
class EvenHistogram:
    """A histogram with bins of equal width.

    Attributes:
        edges: The edges of the bins.
        counts: The number of values of each bin.
        unit: The unit of `edges`; `day` means days since 1970.
    """

    edges: tuple[float, ...]
    counts: tuple[float, ...]
    unit: str


def even_histogram(answer: Answer) -> EvenHistogram | None:
    """Return the histogram of an answer, divided into bins of equal width; None for values without a distance."""
    edges, unit = read_edges(answer.rows)
    if not edges or not _are_on_axis(edges):
        return None
    are_integers = all(map(float.is_integer, edges))
    ends, sums = _accumulate_counts(answer, edges, step=1.0 if are_integers else 0.0)
    counts = count_evenly(ends, sums, _MOST_EVEN_BINS, integers=are_integers)
    if len(counts) < 2:
        return None
    start = ends[0]
    width = (ends[-1] - start) / len(counts)
    return EvenHistogram(
        edges=tuple(start + width * number for number in range(len(counts) + 1)),
        counts=tuple(counts),
        unit=unit,
    )


def _are_on_axis(edges: list[float]) -> bool:
    """Return whether edges are finite and ascend; texts may look like numbers, but are in another order."""
    return edges == sorted(edges) and all(map(math.isfinite, edges))


def _accumulate_counts(answer: Answer, edges: Sequence[float], step: float) -> tuple[list[float], list[float]]:
    """Return the cumulative counts: positions in ascending order, and the number of values below each.

    A value of the length `step`, such as an integer, ends that much above its own position.
    """
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
    """Return the values as numbers, and their unit; dates and timestamps become days since 1970.

    Empty if a value is neither a number nor a date.
    """
    for unit, read in _UNITS:
        with suppress(ValueError, TypeError, OverflowError):
            return [read(text or "") for text in texts], unit
    return [], ""


def read_moment(days: float) -> datetime:
    """Return the time of a number of days after the beginning of 1970, at most the first or last day of Python."""
    valid_days = min(max(days, _FIRST_DAY), _LAST_DAY)
    return EPOCH + timedelta(days=valid_days)


def draw_bar(share: float, width: int = WIDTH) -> str:
    """Return a bar of block characters, `width` long where the share is 1."""
    eighths = round(share * width * 8)
    return _BLOCK * (eighths // 8) + _PARTIAL_BLOCKS[eighths % 8].strip()


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
