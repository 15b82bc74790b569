"""Answers as tables of other libraries, and as plots; what is not installed is named."""

from __future__ import annotations

import sys
from datetime import datetime

import altair as alt
import duckdb
import matplotlib as mpl
import matplotlib.pyplot as plt
import polars as pl
import pyarrow as pa
import pytest

import metastore
from metastore.display import plots
from metastore.errors import InvalidArgument, LibraryNotFound

pytest_plugins = ["reading.conftest"]
mpl.use("Agg")


@pytest.mark.parametrize("verb", ["summary", "files", "columns", "snapshots"])
def test_answers_are_arrow_streams(location, verb):
    answer = getattr(metastore.open(str(location)), verb)()
    arrow_table = answer.to_arrow()
    assert pa.table(answer) == arrow_table
    assert pl.DataFrame(answer).equals(answer.to_polars())
    assert answer.to_polars().columns == list(answer.columns)
    assert duckdb.sql("SELECT * FROM answer").fetchall() == duckdb.sql("SELECT * FROM arrow_table").fetchall()
    assert list(answer.to_pandas()) == list(answer.columns)


def test_an_empty_answer_keeps_its_types(location):
    files = metastore.open(str(location)).files()
    empty = metastore.Answer(kind="files", subject="db.t", columns=files.columns, rows=(), schema=files.schema)
    assert pl.DataFrame(empty).schema == pl.DataFrame(files).schema
    assert pa.table(empty).schema == files.schema


def answer_of(kind: str, names: str, *rows: tuple) -> metastore.Answer:
    columns = tuple(names.split())
    cells = tuple(dict(zip(columns, row, strict=True)) for row in rows)
    return metastore.Answer(kind=kind, subject="db.t", columns=columns, rows=cells, column_name="price")


def histogram(*bins: tuple) -> metastore.Answer:
    return answer_of("histogram", "lo hi count distinct", *bins)


RATINGS = histogram(("1", "1", 5, 1), ("1", "2", 7, 1), ("2", "4", 6, 2))
DAYS = histogram(("2026-01-01", "2026-01-11", 10, 9), ("2026-01-11", "2026-01-21", 30, 9))
WORDS = histogram(("a", "a", 4, 1), ("a", "c", 3, 2))
FREQUENCIES = answer_of("frequencies", "value frequency", ("NL", 9), ("DE", 4))
QUANTILES = answer_of("quantiles", "probability value", (0.0, "1"), (1.0, "9.5"), (1.0, None))


def test_whole_numbers_have_a_bar_each():
    drawing = plots.prepare_drawing(RATINGS)
    assert list(drawing.x) == [1, 2, 3, 4, 5]
    assert list(drawing.y) == [5, 7, 3, 3]


def test_days_lie_along_the_calendar():
    drawing = plots.prepare_drawing(DAYS)
    assert (drawing.x[0], drawing.x[-1]) == (datetime(2026, 1, 1), datetime(2026, 1, 22))  # noqa: DTZ001
    assert sum(drawing.y) == pytest.approx(40)


def test_times_of_any_length_and_the_last_day_are_drawn():
    times = histogram(
        ("2026-01-01 10:00:00.5", "2026-01-01 12:00:00", 10, 9), ("2026-01-01 12:00:00", "9999-12-31", 1, 1)
    )
    assert plots.prepare_drawing(times).x[0] == datetime(2026, 1, 1, 10, 0, 0, 500000)  # noqa: DTZ001
    last = plots.prepare_drawing(histogram(("2026-01-01", "9999-12-31", 10, 9), ("9999-12-31", "9999-12-31", 1, 1)))
    assert last.x[-1] == datetime(9999, 12, 31)  # noqa: DTZ001


def test_other_values_are_named():
    assert plots.prepare_drawing(WORDS).x == ["a", "a to c"]
    assert plots.prepare_drawing(FREQUENCIES).y == [9, 4]
    assert plots.prepare_drawing(QUANTILES).x == [1.0, 9.5]


def test_a_plot_of_many_bins_shows_all_values():
    many = histogram(*((f"w{i:04}", f"w{i + 1:04}", i, 1) for i in range(1005)))
    drawing = plots.prepare_drawing(many)
    assert len(drawing.y) <= 40
    assert sum(drawing.y) == sum(range(1005))
    assert (drawing.x[0], drawing.x[-1].rpartition(" ")[2]) == ("w0000 to w0026", "w1005")


@pytest.mark.parametrize("answer", [RATINGS, DAYS, WORDS, FREQUENCIES, QUANTILES], ids=lambda answer: answer.kind)
def test_both_libraries_draw_it(answer):
    axes = answer.plot()
    labels = {axes.get_xlabel(), axes.get_ylabel()}
    assert "price" in labels
    assert axes.get_title() == "db.t"
    axes.figure.canvas.draw()
    plt.close(axes.figure)
    chart = answer.plot("altair")
    assert isinstance(chart, alt.Chart)
    assert chart.to_dict()["data"]["values"][0]["y"] == plots.prepare_drawing(answer).y[0]


def test_only_distributions_are_drawn(location):
    with pytest.raises(InvalidArgument, match=r"summary is nothing that can be drawn. Say histogram\(\)"):
        metastore.open(str(location)).summary().plot()
    with pytest.raises(InvalidArgument, match="'gnuplot' is none of matplotlib, altair"):
        FREQUENCIES.plot("gnuplot")


def test_what_is_not_installed_is_named(monkeypatch):
    for name in ("polars", "pandas", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(LibraryNotFound, match=r"to_polars\(\) needs polars.* pip install polars"):
        FREQUENCIES.to_polars()
    with pytest.raises(LibraryNotFound, match="pip install pandas"):
        FREQUENCIES.to_pandas()
    with pytest.raises(LibraryNotFound, match=r"pip install matplotlib$"):
        FREQUENCIES.plot("matplotlib")
    assert isinstance(FREQUENCIES.plot(), alt.Chart)
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(LibraryNotFound, match=r"needs matplotlib or altair.* pip install matplotlib$"):
        FREQUENCIES.plot()
