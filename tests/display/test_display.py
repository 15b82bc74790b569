"""Displayed answers, compared with the texts in `golden/`."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

import metastore
from metastore.adapters.table_facts import Refusal
from metastore.answers import Summary
from metastore.display import cells, columns, html, numbers, plain_text, shortening
from metastore.reading.views import FUNCTIONS
from reports import REPORT

pytest_plugins = ["reading.conftest"]

GOLDEN = Path(__file__).parent / "golden"


def check(name: str, text: str) -> None:
    """Compares with the kept text; METASTORE_GOLDEN=write keeps the new one."""
    file = GOLDEN / name
    if os.environ.get("METASTORE_GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


def on_terminal(answer, width: int) -> str:
    console = Console(file=StringIO(), width=width, color_system=None, force_terminal=False)
    console.print(answer)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize("verb", ["summary", "files", "columns", "snapshots"])
def test_as_text(location, verb):
    check(f"{verb}.txt", repr(getattr(metastore.open(str(location)), verb)()) + "\n")


@pytest.mark.parametrize("width", [60, 80, 160])
def test_on_a_terminal(location, width):
    check(f"summary-{width}.txt", on_terminal(metastore.open(str(location)).summary(), width))


def test_in_a_notebook(location):
    page = metastore.open(str(location)).summary()._repr_html_()
    check("summary.html", page.replace(html.STYLE, "") + "\n")
    assert "<script" not in page


def test_values_cannot_become_markup():
    row = {"path": "<b>[red]x[/red]</b>", "rows": 1}
    answer = metastore.Answer(kind="files", subject="<i>t</i>", columns=("path", "rows"), rows=(row,))
    assert "&lt;b&gt;" not in html.render(answer)  # of a path, the last part is shown
    assert "<i>t</i>" not in html.render(answer)
    assert "[red]x[" in on_terminal(
        metastore.Answer(kind="x", subject="", columns=("a",), rows=({"a": "[red]x[/red]"},)), 80
    )


def histogram(*bins: tuple[str, str, int]) -> metastore.Answer:
    names = ("bin", "lo", "hi", "count", "distinct")
    rows = tuple(dict(zip(names, (i, *bar, 1), strict=True)) for i, bar in enumerate(bins))
    return metastore.Answer(kind="histogram", subject="db.t", columns=names, rows=rows, column_name="price")


def test_bars_show_the_numbers_beside_them():
    check("densities.txt", on_terminal(histogram(("0", "1", 50), ("1", "3", 50), ("3", "13", 50)), 80))
    check("counts.txt", on_terminal(histogram(("a", "b", 10), ("b", "b", 40)), 80))
    days = histogram(("2026-01-01", "2026-01-11", 50), ("2026-01-11", "2026-01-13", 50))
    assert "per day" in on_terminal(days, 80)
    text = on_terminal(histogram(("0", "1", 5), ("1", "3", 5)), 44)
    assert "per unit" in text
    assert "\u2588" in text


def test_a_histogram_is_drawn_in_a_notebook():
    html = histogram(("0", "1", 50), ("1", "3", 50), ("3", "12345", 50))._repr_html_()
    assert html.count("<svg class=shape") == 1
    assert '<td class="n">12345</td>' in html
    assert "<svg" not in histogram(("a", "b", 10), ("b", "c", 40))._repr_html_()
    assert "<svg" not in histogram(("10", "2", 10), ("2", "30", 40))._repr_html_()  # texts in their order


def test_wide_characters_take_two_places():
    answer = metastore.Answer(
        kind="x",
        subject="",
        columns=("value", "next"),
        rows=({"value": "日本", "next": "a"}, {"value": "NL", "next": "b"}),
    )
    assert plain_text.render(answer).splitlines() == ["value  next", "日本   a", "NL     b"]
    assert on_terminal(answer, 80).splitlines() == ["value  next", "日本   a", "NL     b"]
    assert shortening.shorten("日本日本", 5) == "日本…"


def test_the_end_of_a_path_that_is_cut_stays():
    paths = [f"data/00000-46-5bd54206-7fd9-4074-8ef2-6e41de462931-0-0000{i}.parquet" for i in (1, 2)]
    answer = metastore.Answer(
        kind="files", subject="", columns=("path", "size"), rows=tuple({"path": path, "size": 7} for path in paths)
    )
    names = [line.split()[0] for line in on_terminal(answer, 40).splitlines()[1:3]]
    assert [path.count(shortening.ELLIPSIS) for path in names] == [1, 1]
    assert [path.rpartition("-")[2] for path in names] == ["00001.parquet", "00002.parquet"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(
            ("2026", "2,026"),
            ("1283144.14", "1,283,144.14"),
            ("4.0000019E7", "40,000,019"),
            ("-12345", "-12,345"),
            ("0.1", "0.1"),
            ("10.221221719457013", "10.2212"),
        ),
        *(("123456789.123456", "123,456,789"), ("1.0E-300", "1.0E-300"), ("1.2345678901E-300", "1.23457e-300")),
        *(("NL", "NL"), ("", ""), ("NaN", "NaN"), ("12345678901234567890", "12,345,678,901,234,567,890")),
    ],
)
def test_numbers_are_shown_as_people_write_them(text, expected):
    assert numbers.round_text(text) == expected


@pytest.mark.parametrize(
    ("kind", "low", "high", "text", "expected"),
    [
        ("int", "1970", "2026", "1999", "1999"),
        ("int", "0", "12345", "1999", "1,999"),
        ("double", "0.0", "9999.99", "1999.5", "1,999.5"),
        ("decimal(38,10)", "0.0000000000", "399999.0000000000", "0.0000000000", "0"),
        ("decimal(38,10)", "0.0000000000", "399999.0000000000", "399999.0000000000", "399,999"),
        ("decimal(12,2)", "0.00", "9.50", "9.50", "9.50"),
        ("string", "0123", "9999999", "0123456", "0123456"),
    ],
)
def test_all_numbers_of_a_column_have_marks_between_digits_or_none(kind, low, high, text, expected):
    row = {"column_type": kind, "min": low, "max": high, "q50": text, "avg": 1999.4}
    assert cells.displayed_value(row, "q50") == expected
    average = cells.format_cell("avg", cells.displayed_value(row, "avg"))
    assert average == ("1999" if high == "2026" else "1,999")


@pytest.mark.parametrize(
    ("value", "expected"), [(9999.99, "10,000"), (8705.4, "8,705"), (999.96, "1,000"), (0.5, "0.5")]
)
def test_numbers_as_short_as_they_tell_something(value, expected):
    assert numbers.format_number(value) == expected


def test_texts_that_are_cut_can_be_distinguished():
    prefix = "https://shop.example/very/long/common/"
    shortened = shortening.shorten_alike([f"{prefix}p{i}" for i in (12345, 67890)], 40)
    assert shortened == ["https://shop.…ong/common/p12345", "https://shop.…ong/common/p67890"]
    assert shortening.shorten_alike(["a" * 9, "b" * 50], 40) == ["a" * 9, "b" * 39 + "…"]


def test_times_lose_their_seconds_before_more():
    assert [shortening.shorten("2026-01-02 03:04:05", width) for width in (19, 16, 12)] == [
        "2026-01-02 03:04:05", "2026-01-02 03:04", "2026-01-02…",
    ]  # fmt: skip


def test_a_filtered_summary_looks_like_a_summary(location):
    rows = [{**row, "rows_read": 10, "rows_total": 20} for row in metastore.open(str(location)).summary()]
    text = on_terminal(
        Summary(kind="filtered_summary", subject="SELECT", columns=tuple(rows[0]), rows=tuple(rows)), 160
    )
    assert "10 of 20 rows read for this" in text
    assert text.splitlines()[1].split() == (GOLDEN / "summary-160.txt").read_text("utf-8").splitlines()[1].split()


def test_the_zone_of_timestamps_is_shown(location):
    rows = [{**row, "column_type": "timestamp"} for row in metastore.open(str(location)).summary()]
    answer = Summary(kind="summary", subject="db.t", columns=tuple(rows[0]), rows=tuple(rows), zone="Europe/Zurich")
    assert "timestamps in Europe/Zurich" in plain_text.render_complete(answer)
    assert "timestamps in" not in plain_text.render_complete(metastore.open(str(location)).summary())


def test_the_most_frequent_value_has_its_share(location):
    row = {**metastore.open(str(location)).summary()[1], "top_value": "bob", "top_count": 4}
    assert cells.format_marked_cell(row, "top_value") == "bob (25 %)"
    assert cells.format_marked_cell({**row, "top_count": 1}, "top_value") == ""
    assert cells.format_marked_cell({**row, "top_count": None}, "top_value") == "bob"


def test_an_answer_about_a_column_names_it():
    answer = histogram(("0", "1", 5))
    assert plain_text.render(answer).splitlines()[0] == "db.t, column price"
    assert "column price" in answer._repr_html_()
    assert answer.to_dict()["column"] == "price"


@pytest.mark.parametrize("kind", sorted(FUNCTIONS))
@pytest.mark.parametrize("width", [80, 60, 40])
def test_nothing_is_left_out_silently(kind, width):
    names = tuple(FUNCTIONS[kind].names)
    values = dict.fromkeys(names, "12345678-90ab-cdef-1234-567890abcdef")
    values |= {field.name: 123456789 for field in FUNCTIONS[kind] if pa.types.is_integer(field.type)}
    values |= {field.name: 0.123456789 for field in FUNCTIONS[kind] if pa.types.is_floating(field.type)}
    printed = on_terminal(metastore.Answer(kind=kind, subject="db.t", columns=names, rows=(values,)), width)
    assert max(map(len, printed.splitlines())) <= width
    text = " ".join(printed.split())
    unsaid = columns.IN_CAPTION.get(kind, ())
    assert [name for name in names if columns.column_heading(name) not in text and name not in unsaid] == []


def test_a_summary_shows_what_is_approximate(location):
    exact = metastore.open(str(location)).summary()[0]
    rows = ({**exact, "distinct_error": 0.016}, {**exact, "exact": False, "max": "9"}, {**exact, "max": "zz\u2026"})
    lines = on_terminal(Summary(kind="summary", subject="db.t", columns=tuple(exact), rows=rows), 120).splitlines()
    assert "~20" in lines[2]
    assert "~-5" in lines[3]
    assert "~9" in lines[3]
    assert "~" not in lines[4]
    printed = plain_text.render_complete(
        Summary(kind="summary", subject="db.t", columns=tuple(exact), rows=rows)
    ).splitlines()
    assert ["~20" in printed[1], "~9" in printed[2], printed[4].startswith("~ approximate: ")] == [True] * 3
    assert lines[5].startswith("~ approximate: distinct values have a standard error of at most 1.6 % (two of three")


def test_numbers_in_which_deleted_rows_count_are_approximate(location):
    exact = metastore.open(str(location)).summary()[0]
    deleted = {**exact, "exact": False, "distinct_error": None}
    for name in ("approx_unique", "avg", "q50", "max"):
        assert cells.format_marked_cell(deleted, name) == f"~{cells.format_marked_cell(exact, name)}"
    assert cells.format_marked_cell(deleted, "null_percentage") == cells.format_marked_cell(exact, "null_percentage")
    text = on_terminal(Summary(kind="summary", subject="db.t", columns=tuple(exact), rows=(deleted,)), 160)
    assert "those of all rows in the data files, deleted ones too" in " ".join(text.split())


def test_quartiles_that_are_near_are_marked_with_their_error(location):
    row = {**metastore.open(str(location)).summary()[0], "q25": "1", "q50": "2", "q75": "3"}
    scores = {"a": 0.0, "b": 0.00123, "c": None}
    rows = tuple({**row, "column_name": name} for name in (*scores, "d"))
    summary = Summary(kind="summary", subject="db.t", columns=tuple(row), rows=rows, measure_ranks=lambda: scores)
    for text in (on_terminal(summary, 200), repr(pickle.loads(pickle.dumps(summary))), summary._repr_html_()):  # noqa: S301 - ours
        assert [text.count(mark) for mark in ("~1", "~2", "~3")] == [2, 2, 2]
        assert (
            "ranks of quartiles are off by at most 0.12 % of the values; by how much some quartiles are off is not"
            in (" ".join(text.split()))
        )
    assert "quartiles" not in on_terminal(summary, 30), "they are not drawn"
    assert summary.to_dict()["rows"] == list(map(dict, rows))


def test_an_empty_answer_has_its_heads():
    answer = metastore.Answer(kind="files", subject="db.t", columns=("path", "rows"), rows=())
    assert plain_text.render(answer) == "db.t\npath  rows"
    assert "<thead>" in answer._repr_html_()


def test_long_answers_are_cut_and_say_so():
    rows = tuple({"path": f"/w/{i}", "rows": i} for i in range(2300))
    answer = metastore.Answer(kind="files", subject="db.t", columns=("path", "rows"), rows=rows)
    assert plain_text.render(answer).splitlines()[-1].startswith("2,250 more rows")
    assert "300 more rows" in answer._repr_html_()
    assert len(plain_text.render_complete(answer).splitlines()) == 2301


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        (True, "yes"),
        (1234567, "1,234,567"),
        (0.5, "0.5"),
        (float("nan"), "nan"),
        ({"day": "1", "hour": "2"}, "day=1/hour=2"),
        ("tab\there", "tab\\there"),
        ("x" * 50, "x" * 39 + "…"),
    ],
)
def test_cells(value, expected):
    assert cells.format_brief_cell("any", value) == expected


def test_an_answer_is_a_sequence_and_converts(location):
    answer = metastore.open(str(location)).files()
    assert len(answer) == 2
    assert answer[-1]["path"] == "t/b.parquet"
    assert [row["rows"] for row in answer] == [10, 10]
    assert answer[0:1] == [answer[0]]
    with pytest.raises(IndexError):
        answer[2]
    assert answer.to_arrow().schema == answer.schema
    assert answer.to_arrow().column("partition")[0].as_py() == [("day", "d0")]
    assert list(answer.to_pandas()["path"]) == ["t/a.parquet", "t/b.parquet"]
    assert answer.to_dict()["rows"] == list(answer)


def test_an_answer_cannot_be_changed(location):
    answer = metastore.open(str(location)).files()
    with pytest.raises(AttributeError):
        answer.kind = "other"
    answer[0]["path"] = "changed"
    with pytest.raises(TypeError):
        answer.rows[0]["path"] = "changed"
    assert answer[0]["path"] == "t/a.parquet"


def test_an_answer_travels(location):
    answer = metastore.open(str(location)).summary()
    arrived = pickle.loads(pickle.dumps(answer))  # noqa: S301 - our own bytes
    assert type(arrived) is type(answer)
    assert arrived.to_dict() == answer.to_dict()
    assert repr(arrived) == repr(answer)


def test_the_report_of_an_analyze_is_a_table_in_a_notebook():
    left_out = (Refusal("a<b", "it is <no> column"),)
    page = replace(REPORT, rows=2_000_000, refused=left_out)._repr_html_()
    assert "<bdi>db.t</bdi>" in page
    assert "2,000,000" in page
    assert "a&lt;b: it is &lt;no&gt; column" in page
