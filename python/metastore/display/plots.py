"""Answers as plots, by whatever plotting library is installed: none is required."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from metastore.answers import require_library
from metastore.display.bars import DAY, measure_shape, read_moment, read_positions
from metastore.display.cells import format_brief_cell
from metastore.errors import InvalidArgument, LibraryNotFound
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from metastore.answers import Answer


STEPS, BARS, LINE = "steps", "bars", "line"
_MOST = 40
"""Bars whose names can be read beside each other."""


@dataclass(frozen=True)
class Drawing:
    """What a plot shows, whichever library draws it.

    Attributes:
        form: `steps` (between the first of `x` and the last), `bars` (lying, one a name) or `line`.
        x: Values of the column: numbers, times or names.
        y: Numbers, one each, or one between each two for `steps`.
        x_label: The column.
        y_label: What is counted.
        title: The table.
    """

    form: str
    x: Sequence[Any]
    y: Sequence[float]
    x_label: str
    y_label: str
    title: str

    @property
    def scale(self) -> str:
        """What Altair calls the kind of `x`."""
        kinds = {float: "quantitative", datetime: "temporal"}
        return kinds.get(type(self.x[0]), "nominal") if self.x else "nominal"


def draw(answer: Answer, library: str | None = None) -> Any:
    """The axes of matplotlib or the chart of Altair that shows an answer."""
    drawing = prepare_drawing(answer)
    if library not in (None, *_LIBRARIES):
        raise InvalidArgument("library", f"{library!r} is none of {', '.join(_LIBRARIES)}")
    for name in _LIBRARIES if library is None else [library]:
        try:
            return _LIBRARIES[name](drawing)
        except LibraryNotFound as error:
            missing = error
    raise missing if library else LibraryNotFound(" or ".join(_LIBRARIES), "plot()")


def prepare_drawing(answer: Answer) -> Drawing:
    """What is drawn of an answer: numbers and times along an axis, other values by their names."""
    label, rows = make_visible(answer.column_name or "value"), answer.rows
    title = make_visible(answer.subject)
    if answer.kind == "quantiles":
        known = [row for row in rows if row["value"] is not None]
        values = _along([row["value"] for row in known])
        return Drawing(LINE, values, [row["probability"] for row in known], label, "probability", title)
    if answer.kind == "histogram" and (shape := measure_shape(answer)):
        return Drawing(STEPS, _in_unit(shape.edges, shape.unit), shape.counts, label, "values", title)
    if answer.kind not in ("histogram", "frequencies"):
        hint = "Say histogram(), frequencies() or quantiles() of a column, and plot() of that."
        raise InvalidArgument("plot", f"{answer.kind} is nothing that can be drawn", hint)
    if answer.kind == "frequencies":
        said = f"{title} (first {_MOST} of {len(rows):,})" if len(rows) > _MOST else title
        pairs = [(row["value"], row["frequency"]) for row in rows[:_MOST]]
    else:
        said, pairs = title, [_join_bins(bins) for bins in _put_together(rows)]
    names = [format_brief_cell("value", name) for name, _ in pairs]
    return Drawing(BARS, names, [count for _, count in pairs], label, "values", said)


def _put_together(rows: Sequence[Mapping[str, Any]]) -> list[Sequence[Mapping[str, Any]]]:
    """The bins in order, as many together as it takes for all to be seen."""
    step = max(1, math.ceil(len(rows) / _MOST))
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def _join_bins(bins: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    lo, hi = bins[0]["lo"], bins[-1]["hi"]
    return hi if lo == hi else f"{lo} to {hi}", sum(row["count"] for row in bins)


def _along(texts: Sequence[str]) -> Sequence[Any]:
    positions, unit = read_positions(texts)
    return _in_unit(positions, unit) if positions else [format_brief_cell("value", text) for text in texts]


def _in_unit(positions: Sequence[float], unit: str) -> Sequence[Any]:
    return [read_moment(one) for one in positions] if unit == DAY else positions


def _draw_with_matplotlib(drawing: Drawing) -> Any:
    plots = require_library("matplotlib.pyplot", "plot()")
    if drawing.form == BARS:
        axes = plots.subplots(layout="constrained", figsize=(6.4, max(2.4, 0.22 * len(drawing.x))))[1]
        axes.barh(range(len(drawing.x)), drawing.y, tick_label=drawing.x)
        axes.invert_yaxis()
        axes.set(xlabel=drawing.y_label, ylabel=drawing.x_label, title=drawing.title)
        return axes
    axes = plots.subplots(layout="constrained")[1]
    if drawing.form == STEPS:
        axes.stairs(drawing.y, drawing.x, fill=True)
    else:
        axes.plot(drawing.x, drawing.y, marker="o")
    axes.set(xlabel=drawing.x_label, ylabel=drawing.y_label, title=drawing.title)
    if drawing.scale == "temporal":
        axes.figure.autofmt_xdate()
    return axes


def _draw_with_altair(drawing: Drawing) -> Any:
    alt = require_library("altair", "plot()")
    x = [one.isoformat() if isinstance(one, datetime) else one for one in drawing.x]
    rows = [{"x": one, "to": end, "y": y} for one, end, y in zip(x, [*x[1:], None], drawing.y, strict=False)]
    along = alt.X("x", type=drawing.scale, title=drawing.x_label, sort=None)
    up = alt.Y("y", type="quantitative", title=drawing.y_label)
    chart = alt.Chart(alt.Data(values=rows), title=drawing.title)
    if drawing.form == BARS:
        across = alt.Y("x", type="nominal", title=drawing.x_label, sort=None)
        return chart.mark_bar().encode(x=alt.X("y", type="quantitative", title=drawing.y_label), y=across)
    if drawing.form == STEPS:
        return chart.mark_bar().encode(x=along, x2="to", y=up)
    return chart.mark_line(point=True).encode(x=along, y=up)


_LIBRARIES: dict[str, Callable[[Drawing], Any]] = {"matplotlib": _draw_with_matplotlib, "altair": _draw_with_altair}
