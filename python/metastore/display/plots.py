"""Answers as plots, by an installed plotting library: none is required."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from metastore.answers import require_library
from metastore.display.bars import DAY, even_histogram, read_moment, read_positions
from metastore.display.cells import format_brief_cell
from metastore.display.columns import read_column
from metastore.errors import InvalidArgument, LibraryNotFound
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from metastore.answers import Answer


STEPS = "steps"
BARS = "bars"
LINE = "line"
_MOST_BARS = 40
"""More bars than these would leave no room for their names."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A plot, independent of the library that draws it.

    Attributes:
        form: `steps` (one between two values of `x`), `bars` (a horizontal one for each name) or `line`.
        x: Values of the column: numbers, times or names.
        y: A number for each of `x`; for `steps` a number for each two neighbours in `x`.
        x_label: The name of the column.
        y_label: The name of the numbers.
        title: The name of the table.
    """

    form: str
    x: Sequence[Any]
    y: Sequence[float]
    x_label: str
    y_label: str
    title: str

    @property
    def scale(self) -> str:
        """The type of `x` in the words of Altair."""
        if not self.x:
            return "nominal"
        kinds = {float: "quantitative", datetime: "temporal"}
        return kinds.get(type(self.x[0]), "nominal")


def draw(answer: Answer, library: str | None = None) -> Any:
    """Return the axes of matplotlib or the chart of Altair that shows an answer."""
    drawing = prepare_drawing(answer)
    if library is None:
        return _draw_with_any(drawing)
    if library not in _LIBRARIES:
        raise InvalidArgument("library", f"{library!r} is none of {', '.join(_LIBRARIES)}")
    return _LIBRARIES[library](drawing)


def _draw_with_any(drawing: Drawing) -> Any:
    """Draw with the first library that is installed."""
    for draw_with_library in _LIBRARIES.values():
        with suppress(LibraryNotFound):
            return draw_with_library(drawing)
    raise LibraryNotFound(" or ".join(_LIBRARIES), "plot()")


def prepare_drawing(answer: Answer) -> Drawing:
    """Return the drawing of an answer: numbers and times along an axis, other values by their names."""
    prepare = _DRAWINGS.get(answer.kind)
    if prepare is None:
        hint = "Say histogram(), frequencies() or quantiles() of a column, and plot() of that."
        raise InvalidArgument("plot", f"{answer.kind} is nothing that can be drawn", hint)
    return prepare(answer)


def _quantile_drawing(answer: Answer) -> Drawing:
    values = []
    probabilities = []
    for row in answer.rows:
        if row["value"] is not None:
            values.append(row["value"])
            probabilities.append(row["probability"])
    return Drawing(
        form=LINE,
        x=_read_values(values),
        y=probabilities,
        x_label=_column_label(answer),
        y_label="probability",
        title=make_visible(answer.subject),
    )


def _histogram_drawing(answer: Answer) -> Drawing:
    """Return a histogram along an axis; for texts, a bar for each group of bins."""
    histogram = even_histogram(answer)
    if histogram is None:
        bars = [_join_bins(bins) for bins in _group_bins(answer.rows)]
        return _bar_drawing(answer, bars, make_visible(answer.subject))
    return Drawing(
        form=STEPS,
        x=_convert_unit(histogram.edges, histogram.unit),
        y=histogram.counts,
        x_label=_column_label(answer),
        y_label="values",
        title=make_visible(answer.subject),
    )


def _frequency_drawing(answer: Answer) -> Drawing:
    title = make_visible(answer.subject)
    if len(answer.rows) > _MOST_BARS:
        title = f"{title} (first {_MOST_BARS} of {len(answer.rows):,})"
    bars = zip(read_column(answer, "value"), read_column(answer, "frequency"), strict=True)
    return _bar_drawing(answer, list(bars)[:_MOST_BARS], title)


def _bar_drawing(answer: Answer, bars: Sequence[tuple[str, int]], title: str) -> Drawing:
    """Return a bar for each pair of a name and a number."""
    return Drawing(
        form=BARS,
        x=[format_brief_cell("value", name) for name, _ in bars],
        y=[count for _, count in bars],
        x_label=_column_label(answer),
        y_label="values",
        title=title,
    )


_DRAWINGS: dict[str, Callable[[Answer], Drawing]] = {
    "quantiles": _quantile_drawing,
    "histogram": _histogram_drawing,
    "frequencies": _frequency_drawing,
}


def _column_label(answer: Answer) -> str:
    return make_visible(answer.column_name or "value")


def _group_bins(rows: Sequence[Mapping[str, Any]]) -> list[Sequence[Mapping[str, Any]]]:
    """Return consecutive bins in groups, so that there are not too many bars."""
    step = max(1, math.ceil(len(rows) / _MOST_BARS))
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def _join_bins(bins: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """Return the range of several bins as text, and their number of values."""
    lo = bins[0]["lo"]
    hi = bins[-1]["hi"]
    name = hi if lo == hi else f"{lo} to {hi}"
    return name, sum(row["count"] for row in bins)


def _read_values(texts: Sequence[str]) -> Sequence[Any]:
    """Return texts as numbers or times if they all are, else the texts themselves."""
    positions, unit = read_positions(texts)
    if positions:
        return _convert_unit(positions, unit)
    return [format_brief_cell("value", text) for text in texts]


def _convert_unit(positions: Sequence[float], unit: str) -> Sequence[Any]:
    """Return times for days since 1970; other numbers stay."""
    if unit != DAY:
        return positions
    return [read_moment(position) for position in positions]


def _draw_with_matplotlib(drawing: Drawing) -> Any:
    plots = require_library("matplotlib.pyplot", "plot()")
    if drawing.form == BARS:
        return _draw_bars_with_matplotlib(drawing, plots)
    _, axes = plots.subplots(layout="constrained")
    if drawing.form == STEPS:
        axes.stairs(drawing.y, drawing.x, fill=True)
    else:
        axes.plot(drawing.x, drawing.y, marker="o")
    axes.set(xlabel=drawing.x_label, ylabel=drawing.y_label, title=drawing.title)
    if drawing.scale == "temporal":
        axes.figure.autofmt_xdate()
    return axes


def _draw_bars_with_matplotlib(drawing: Drawing, plots: Any) -> Any:
    height = max(2.4, 0.22 * len(drawing.x))
    _, axes = plots.subplots(layout="constrained", figsize=(6.4, height))
    axes.barh(range(len(drawing.x)), drawing.y, tick_label=drawing.x)
    axes.invert_yaxis()
    axes.set(xlabel=drawing.y_label, ylabel=drawing.x_label, title=drawing.title)
    return axes


def _draw_with_altair(drawing: Drawing) -> Any:
    alt = require_library("altair", "plot()")
    starts = list(map(_write_time, drawing.x))
    ends = [*starts[1:], None]
    rows = []
    for start, end, y in zip(starts, ends, drawing.y, strict=False):  # `steps` have one number less
        rows.append({"x": start, "to": end, "y": y})
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


def _write_time(value: Any) -> Any:
    """Return a time as Altair takes it; other values stay."""
    return value.isoformat() if isinstance(value, datetime) else value


_LIBRARIES: dict[str, Callable[[Drawing], Any]] = {"matplotlib": _draw_with_matplotlib, "altair": _draw_with_altair}
