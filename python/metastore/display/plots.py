"""Answers as plots, by an installed plotting library: none is required."""

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
_MOST_BARS = 40
"""The number of bars whose names can be read beside each other."""


@dataclass(frozen=True)
class Drawing:
    """A plot, independent of the library that draws it.

    Attributes:
        form: `steps` (between the first of `x` and the last), `bars` (horizontal, one a name) or `line`.
        x: Values of the column: numbers, times or names.
        y: A number for each of `x`; for `steps` one between each two.
        x_label: The column.
        y_label: The name of the numbers.
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
        """Altair's name for the kind of `x`."""
        if not self.x:
            return "nominal"
        kinds = {float: "quantitative", datetime: "temporal"}
        return kinds.get(type(self.x[0]), "nominal")


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
    """The drawing of an answer: numbers and times along an axis, other values by their names."""
    if answer.kind == "quantiles":
        return _quantile_drawing(answer)
    if answer.kind == "histogram":
        return _histogram_drawing(answer)
    if answer.kind == "frequencies":
        return _frequency_drawing(answer)
    hint = "Say histogram(), frequencies() or quantiles() of a column, and plot() of that."
    raise InvalidArgument("plot", f"{answer.kind} is nothing that can be drawn", hint)


def _quantile_drawing(answer: Answer) -> Drawing:
    rows = [row for row in answer.rows if row["value"] is not None]
    return Drawing(
        form=LINE,
        x=_read_values([row["value"] for row in rows]),
        y=[row["probability"] for row in rows],
        x_label=_column_label(answer),
        y_label="probability",
        title=make_visible(answer.subject),
    )


def _histogram_drawing(answer: Answer) -> Drawing:
    """A histogram along an axis, or of texts as bars."""
    shape = measure_shape(answer)
    if shape is None:
        bars = [_join_bins(bins) for bins in _group_bins(answer.rows)]
        return _bar_drawing(answer, bars, make_visible(answer.subject))
    return Drawing(
        form=STEPS,
        x=_in_unit(shape.edges, shape.unit),
        y=shape.counts,
        x_label=_column_label(answer),
        y_label="values",
        title=make_visible(answer.subject),
    )


def _frequency_drawing(answer: Answer) -> Drawing:
    title = make_visible(answer.subject)
    if len(answer.rows) > _MOST_BARS:
        title = f"{title} (first {_MOST_BARS} of {len(answer.rows):,})"
    bars = [(row["value"], row["frequency"]) for row in answer.rows[:_MOST_BARS]]
    return _bar_drawing(answer, bars, title)


def _bar_drawing(answer: Answer, bars: Sequence[tuple[str, int]], title: str) -> Drawing:
    """A bar for each pair of a name and a number."""
    return Drawing(
        form=BARS,
        x=[format_brief_cell("value", name) for name, _ in bars],
        y=[count for _, count in bars],
        x_label=_column_label(answer),
        y_label="values",
        title=title,
    )


def _column_label(answer: Answer) -> str:
    return make_visible(answer.column_name or "value")


def _group_bins(rows: Sequence[Mapping[str, Any]]) -> list[Sequence[Mapping[str, Any]]]:
    """Groups of consecutive bins, as many as there can be bars."""
    step = max(1, math.ceil(len(rows) / _MOST_BARS))
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def _join_bins(bins: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """The range of several bins as text, and their number of values."""
    lo = bins[0]["lo"]
    hi = bins[-1]["hi"]
    name = hi if lo == hi else f"{lo} to {hi}"
    return name, sum(row["count"] for row in bins)


def _read_values(texts: Sequence[str]) -> Sequence[Any]:
    """Numbers or times, else the texts themselves."""
    positions, unit = read_positions(texts)
    if positions:
        return _in_unit(positions, unit)
    return [format_brief_cell("value", text) for text in texts]


def _in_unit(positions: Sequence[float], unit: str) -> Sequence[Any]:
    if unit != DAY:
        return positions
    return [read_moment(position) for position in positions]


def _draw_with_matplotlib(drawing: Drawing) -> Any:
    plots = require_library("matplotlib.pyplot", "plot()")
    if drawing.form == BARS:
        height = max(2.4, 0.22 * len(drawing.x))
        _, axes = plots.subplots(layout="constrained", figsize=(6.4, height))
        axes.barh(range(len(drawing.x)), drawing.y, tick_label=drawing.x)
        axes.invert_yaxis()
        axes.set(xlabel=drawing.y_label, ylabel=drawing.x_label, title=drawing.title)
        return axes
    _, axes = plots.subplots(layout="constrained")
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
    starts = [value.isoformat() if isinstance(value, datetime) else value for value in drawing.x]
    ends = [*starts[1:], None]
    rows = [{"x": start, "to": end, "y": y} for start, end, y in zip(starts, ends, drawing.y, strict=False)]
    chart = alt.Chart(alt.Data(values=rows), title=drawing.title)
    if drawing.form == BARS:
        counts = alt.X("y", type="quantitative", title=drawing.y_label)
        names = alt.Y("x", type="nominal", title=drawing.x_label, sort=None)
        return chart.mark_bar().encode(x=counts, y=names)
    values = alt.X("x", type=drawing.scale, title=drawing.x_label, sort=None)
    counts = alt.Y("y", type="quantitative", title=drawing.y_label)
    if drawing.form == STEPS:
        return chart.mark_bar().encode(x=values, x2="to", y=counts)
    return chart.mark_line(point=True).encode(x=values, y=counts)


_LIBRARIES: dict[str, Callable[[Drawing], Any]] = {"matplotlib": _draw_with_matplotlib, "altair": _draw_with_altair}
