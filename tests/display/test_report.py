"""The page about a table: what it says, that nothing in a table becomes markup, how large it gets."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import pkgutil
import re
from dataclasses import replace

import pyarrow as pa
import pytest

import metastore
from display.pages import HOSTILE, ROWS, Page, answer, column, contents, summary_row
from metastore.display.report.alerts import find_alerts
from metastore.display.report.charts import draw_chart
from metastore.display.report.contents import ColumnContents
from metastore.display.report.page import render_page
from table_level import analyzed_tables
from table_level.analyzed_tables import Content


def test_nothing_in_a_table_becomes_markup():
    hostile = column(HOSTILE, f"struct<{HOSTILE}>", values=(HOSTILE, '" onload="x', "&amp;"), min=HOSTILE, max="<b>")
    layout = answer("layout", [{"column_name": HOSTILE, "advice": f"CALL '{HOSTILE}'"}])
    history = answer("history", [{"table": HOSTILE, "reasons": {HOSTILE: 1}}])
    html = render_page(contents(hostile, layout=layout, history=history))
    page = Page(html)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [
        element["content"] for element in page.all("meta") if element.get("http-equiv") == "Content-Security-Policy"
    ]
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert not any(name.startswith("on") or name == "style" for _, attributes in page.elements for name in attributes)
    assert HOSTILE in page.texts
    assert f"CALL '{HOSTILE}'" in page.texts


@pytest.mark.parametrize(
    ("columns", "most"), [(100, 600_000), (200, 250_000), pytest.param(2000, 2_000_000, marks=pytest.mark.slow)]
)
def test_size(columns, most):
    html = render_page(contents(*(column(f"a_column_of_usual_length_{i}") for i in range(columns))))
    assert len(html.encode()) < most
    page = Page(html)
    assert len(page.all("article")) == columns


def test_cards_of_many_columns_are_packed():
    columns = [column(f"c{i}") for i in range(120)]
    columns[70] = column(HOSTILE, values=(HOSTILE,))
    html = render_page(contents(*columns))
    assert len(re.findall(r"<article [^>]*></article>", html)) == 120
    packs = re.findall(r'<script type="text/plain" id="p\d+">(.*?)</script>', html)
    unpacked = [json.loads(gzip.decompress(base64.b64decode(pack))) for pack in packs]
    assert list(map(len, unpacked)) == [50, 50, 20]
    card = Page(unpacked[1][20])
    assert HOSTILE in card.texts
    assert ("h3", {"id": "n70"}) in card.elements
    assert len(card.all("svg")) > 1
    assert "c119" in Page(html).texts, "in the table, which is shown without scripts"


def test_nothing_comes_from_elsewhere_and_links_lead_somewhere():
    page = Page(render_page(contents(column("a"), column("b", null_count=ROWS, null_percentage=100.0))))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes[name] for _, attributes in page.elements for name in ("href", "src") if name in attributes]
    assert {link.removeprefix("#") for link in links} <= set(ids)
    labels = [
        attributes[name] for _, attributes in page.elements for name in ("aria-labelledby", "for") if name in attributes
    ]
    assert set(labels) <= set(ids)
    assert all(attributes.get("aria-label") for attributes in page.all("svg") if attributes.get("role") == "img")


def test_texts_stand_out_from_what_is_behind_them():
    style = pkgutil.get_data("metastore.display.report", "page.css").decode()
    both = re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", style)
    themes = [{name: colours[theme] for name, *colours in both} for theme in (0, 1)]
    pairs = [("text", "card"), ("muted", "back"), ("accent", "back"), ("text", "soft"), ("problem", "problem-soft"),
             ("warning", "warning-soft"), ("card", "text")]  # fmt: skip
    for theme in themes:
        for front, behind in pairs:
            light, dark = sorted((luminance(theme[front]), luminance(theme[behind])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (front, behind, theme)


def luminance(colour):
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


ALERTS = {
    "all null": {"null_count": ROWS, "approx_unique": 0, "top_count": None},
    "many nulls": {"null_count": ROWS // 2, "approx_unique": 7},
    "NaN": {"nan_count": 3},
    "infinite": {"inf_count": 3},
    "constant": {"approx_unique": 1},
    "key-like": {"approx_unique": ROWS - 321},
    "skewed": {"top_count": ROWS - 1000},
}


@pytest.mark.parametrize("kind", ALERTS)
def test_what_stands_out(kind):
    rows = [summary_row("plain"), summary_row("odd", **ALERTS[kind])]
    alerts = find_alerts(contents(*map(ColumnContents, rows)))
    assert [(alert.column, alert.kind) for alert in alerts] == [("odd", kind)]


def test_badly_clustered_where_a_statement_would_help_and_the_table_has_files():
    layout = answer("layout", [
        {"column_name": "a", "files_per_lookup": 11.5, "advice": "OPTIMIZE"},
        {"column_name": "b", "files_per_lookup": 11.5},
        {"column_name": "c", "files_per_lookup": 2.0, "advice": "OPTIMIZE"},
    ])  # fmt: skip
    rows = [ColumnContents(summary_row(name)) for name in "abc"]
    assert [(alert.column, alert.kind) for alert in find_alerts(contents(*rows, layout=layout))] == [
        ("a", "badly clustered")
    ]
    few = [ColumnContents(summary_row(name, files_total=3)) for name in "abc"]
    assert find_alerts(contents(*few, layout=layout)) == []


def test_compared_with_before():
    changes = answer("diff", [
        {"column_name": "a", "measure": "count", "before": "5", "after": "7", "change": 2.0},
        {"column_name": "a", "measure": "psi", "change": 0.3},
        {"column_name": "b", "measure": "psi", "reason": "no values before"},
        {"column_name": "new", "measure": "column_type", "after": "int"},
        {"column_name": "gone", "measure": "column_type", "before": HOSTILE},
        {"column_name": "b", "measure": "column_type", "before": "int", "after": HOSTILE},
    ])  # fmt: skip
    changes = replace(changes, rows=tuple({"reason": None, **row} for row in changes.rows))
    before = contents(column("a"), column("b"), column("gone"))
    now = contents(column("a"), column("b"), column("new"), before=before, changes=changes)
    assert [(alert.column, alert.kind) for alert in find_alerts(now)] == [
        ("a", "drifted"), ("b", "other type"), ("new", "new"), ("gone", "gone")
    ]  # fmt: skip
    html = render_page(now)
    page = Page(html)
    assert html.count('class="before"') == 2
    assert {"+2", "no values before", f"Its type was int and is {HOSTILE}."} <= {text.strip() for text in page.texts}


def test_a_bar_has_its_share_now_and_before():
    page = Page(render_page(contents(column("a"), before=contents(column("a")))))
    (bars,) = [path["data-bars"] for path in page.all("svg") if "data-bars" in path]
    for bar in bars.split("\n"):
        _, share, before = bar.split("\t")
        assert before == share
        assert before.count("%") == 1


def bins(*ends_and_counts):
    return answer(
        "histogram", [{"lo": lo, "hi": hi, "count": count, "distinct": d} for lo, hi, count, d in ends_and_counts]
    )


def test_bars_of_whole_numbers_stand_for_one_each():
    chart = draw_chart(bins(("0", "0", 5, 1), ("0", "2", 4, 2), ("2", "4", 1, 1)), "int")
    assert (chart.labels, chart.counts) == (("0", "1", "2", "3", "4"), (5, 2, 2, 0, 1))


def test_what_lies_far_out_is_in_the_last_bar():
    chart = draw_chart(bins(("0", "10", 9999, 50), ("10", "1000000000", 1, 1)), "double")
    assert (chart.axis.edges[-1], chart.above, chart.below) == (10, True, False)
    assert sum(chart.counts) == pytest.approx(10_000)
    assert chart.ends == ("0", "10 and more")


@pytest.mark.parametrize(
    ("kind", "lo", "hi"),
    [
        ("bigint", "-9223372036854775808", "9223372036854775807"),
        ("bigint", "9223372036854775807", "9223372036854775807"),
        ("double", "-Infinity", "Infinity"),
        ("double", "-1.7976931348623157E308", "1.7976931348623157E308"),
        ("double", "5.0E-324", "1.0E-323"),
        ("date", "0001-01-01", "9999-12-31"),
        ("date", "-0044-03-15", "+10000-01-01"),
        ("timestamp", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
        ("decimal(38,0)", "-" + "9" * 38, "9" * 38),
    ],
)
def test_ends_of_what_types_hold(kind, lo, hi):
    number_column = column("x", kind, min=lo, max=hi, edges=(lo, hi))
    page = Page(render_page(contents(number_column)))
    assert len(page.all("article")) == 1
    chart = draw_chart(number_column.bins, kind)
    assert chart is None or sum(chart.counts) == pytest.approx(1)


def texts_of(*columns, **more):
    return [text.strip() for text in Page(render_page(contents(*columns, **more))).texts]


def test_numbers_stay_in_one_line_and_have_room():
    long = column("big", min="0", max="400000199997", approx_unique=395_465)
    page = Page(render_page(contents(long)))
    (facts,) = [attributes["class"] for attributes in page.all("dl") if attributes["class"].startswith("facts")]
    assert facts == "facts wide"
    assert "400,000,199,997" in page.texts
    assert {"class": "one"} in page.all("bdi")
    assert "standard error 1.6\u00a0%" in page.texts


def test_an_axis_ends_as_its_column_does():
    edges = (0.0, 5000.5, 9999.99)
    texts = texts_of(column("price", "double", min="0.0", max="9999.99", edges=edges))
    assert {"10,000", "9,999.99", "highest bar 4.44 %"} <= {*texts}
    years = texts_of(column("year", "int", min="1900", max="2026", edges=range(1900, 2027, 9)))
    assert not any(re.fullmatch(r"~?[12],\d{3}", text) for text in years)


def quantiles(*texts, error=0.0):
    rows = [
        {"probability": i / 10, "value": text, "exact": text[-1:] != "…", "error": error}
        for i, text in enumerate(texts)
    ]
    return answer("quantiles", rows)


def test_quantiles_of_long_texts_say_what_is_exact_of_them():
    prefix = "https://shop.example/very/long/common/prefix/"
    text_column = column("url", "string", min=prefix + "a", max=prefix + "b")
    texts = texts_of(replace(text_column, quantiles=quantiles(prefix + "a…", prefix + "b…")))
    assert {"ranks exact, of long texts the beginning", "https://shop.…mmon/prefix/a…"} <= {*texts}
    assert not any(text.startswith("~https") for text in texts)
    shortened = texts_of(replace(text_column, quantiles=quantiles(prefix + "…", prefix + "…", prefix + "…")))
    assert {"0 % to 20 %", prefix + "…", "what follows is not kept"} <= {*shortened}
    assert "~a" in texts_of(replace(text_column, quantiles=quantiles("a", "b", error=0.001)))


def test_one_byte_is_no_bytes():
    assert "1 byte" in texts_of(column("a", "string", avg_len=1.0, max_len=1))


def test_where_no_query_was_recorded_the_page_says_why():
    nothing = answer("history", [])
    assert any("history.enabled to true" in text for text in texts_of(column("a"), history=nothing))
    recorded = texts_of(column("a"), history=nothing, is_recorded=True)
    assert "No query of this table has been recorded in this session." in recorded


def test_of_a_location(tmp_path):
    texts = [pa.array(["a", "b", None, "a"])]
    analyzed_tables.commit_table_level(
        tmp_path, [Content("bigint", [pa.array([1, 2, 3, 4])], ["complete"]), Content("string", texts, ["complete"])]
    )
    report = metastore.report(str(tmp_path))
    assert (report.subject, report.columns) == ("db.t", 2)
    page = Page(report.save(tmp_path / "t.html").read_text("utf-8"))
    assert [len(page.all("article")), len(page.all("table"))] == [2, 4]  # of all columns, values of both, layout
    assert "66.7 %" in page.texts


def test_of_two_tables(tmp_path):
    for name, values in (("a", range(100)), ("b", range(50, 150))):
        (tmp_path / name).mkdir()
        analyzed_tables.commit_table_level(tmp_path / name, [Content("bigint", [pa.array(values)], ["complete"])])
    page = Page(metastore.report(str(tmp_path / "b"), other=str(tmp_path / "a")).html)
    texts = [text.strip() for text in page.texts]
    assert [texts[texts.index(measure) + 1 :][:6].count("+50") for measure in ("min", "max")] == [1, 1]
    assert "drifted" in texts
