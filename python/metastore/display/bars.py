"""How long the bar of each row is: how often a value occurs, how densely the values of a bin lie."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.answers import Answer

_COUNTS = {"frequencies": "frequency", "histogram": "count"}
_WIDTH = 24
_BLOCK = "\u2588"
_PARTS = " \u258f\u258e\u258d\u258c\u258b\u258a\u2589"


def counted(answer: Answer) -> str | None:
    """The column that bars are about, None for answers without bars."""
    return _COUNTS.get(answer.kind)


def shares(answer: Answer) -> list[float]:
    """The length of each row's bar, from 0 to 1.

    Bins of equal height all hold the same: what tells them apart is how wide they are.

    Example:
        >>> from metastore.answers import Answer
        >>> rows = ({"lo": "0", "hi": "1", "count": 5}, {"lo": "1", "hi": "11", "count": 5})
        >>> shares(Answer("histogram", "t", ("lo", "hi", "count"), rows))
        [1.0, 0.1]
    """
    name = counted(answer)
    heights = [float(row[name] or 0) for row in answer.rows] if name else []
    if answer.kind == "histogram":
        heights = _densities(answer.rows, heights)
    most = max(heights, default=0.0)
    return [height / most if most else 0.0 for height in heights]


def text(share: float) -> str:
    """A bar of block characters.

    Example:
        >>> text(0.5) == "\u2588" * 12
        True
    """
    eighths = round(share * _WIDTH * 8)
    return _BLOCK * (eighths // 8) + _PARTS[eighths % 8].strip()


def _densities(rows: Sequence[Mapping[str, Any]], heights: list[float]) -> list[float]:
    ends = [(_number(row["lo"]), _number(row["hi"])) for row in rows]
    widths = [None if lo is None or hi is None else hi - lo for lo, hi in ends]
    if any(width is None or not 0 < width < float("inf") for width in widths):
        return heights
    return [height / width for height, width in zip(heights, widths, strict=True) if width]


def _number(value: str | None) -> float | None:
    for read in (
        float,
        lambda day: date.fromisoformat(day).toordinal(),
        lambda at: datetime.fromisoformat(at).timestamp(),
    ):
        try:
            return float(read(value or ""))
        except ValueError:
            continue
    return None
