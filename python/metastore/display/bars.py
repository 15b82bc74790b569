"""How long the bar of each row is: how often a value occurs, how densely the values of a bin lie."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING, Any

from metastore.display.cells import format_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from metastore.answers import Answer


WIDTH = 24
_SECONDS_OF_DAY = 86_400
_BLOCK = "\u2588"
_PARTS = " \u258f\u258e\u258d\u258c\u258b\u258a\u2589"
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
    widths, unit = _widths(answer.rows)
    if len(set(widths)) < 2 or not all(width and width < float("inf") for width in widths):
        return Measure("count", _shares(heights))
    densities = [height / width for height, width in zip(heights, widths, strict=True) if width]
    return Measure("count", _shares(densities), f"per {unit}", tuple(map(format_number, densities)))


def draw_bar(share: float, width: int = WIDTH) -> str:
    """A bar of block characters, `width` long where the share is 1."""
    eighths = round(share * width * 8)
    return _BLOCK * (eighths // 8) + _PARTS[eighths % 8].strip()


def _shares(heights: Sequence[float]) -> tuple[float, ...]:
    most = max(heights, default=0.0)
    return tuple(height / most if most else 0.0 for height in heights)


def _widths(rows: Sequence[Mapping[str, Any]]) -> tuple[list[float | None], str]:
    """How wide the bins are, and in what: numbers in units, dates and timestamps in days."""
    for unit, read in _UNITS:
        ends = [(_position(row["lo"], read), _position(row["hi"], read)) for row in rows]
        widths = [None if lo is None or hi is None or hi <= lo else hi - lo for lo, hi in ends]
        if any(width is not None for width in widths):
            return widths, unit
    return [None] * len(rows), ""


def _position(text: str | None, read: Callable[[str], float]) -> float | None:
    try:
        return read(text or "")
    except (ValueError, OverflowError):
        return None


_UNITS: tuple[tuple[str, Callable[[str], float]], ...] = (
    ("unit", float),
    ("day", lambda text: date.fromisoformat(text).toordinal()),
    ("day", lambda text: datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() / _SECONDS_OF_DAY),
)
