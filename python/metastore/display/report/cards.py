"""What a page shows of a column: texts and pictures, ready to be written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore.display.bars import read_positions
from metastore.display.cells import (
    APPROXIMATE,
    ELLIPSIS,
    column_heading,
    displayed_value,
    format_brief_cell,
    format_bytes,
    format_cell,
    format_marked_cell,
    format_number,
    format_value,
    is_approximate,
    is_numeric,
    shorten,
    shorten_alike,
)
from metastore.display.report.alerts import format_share
from metastore.display.report.charts import Chart, draw_chart
from metastore.display.report.contents import VALUES
from metastore.format.table_column import encoding_of
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.answers import Answer
    from metastore.display.report.alerts import Alert
    from metastore.display.report.contents import ColumnContents, Contents

_LONGEST, _LONGEST_FACT = 48, 40
_WIDTHS = ((11, ""), (15, "wide"), (21, "wider"))
"""Rooms for numbers of so many digits, as the page's style names them."""
MOVED = ("psi", "js_distance")
"""Measures of `diff` that are no difference of two numbers."""
_FEW = 12
"""Numbers with so few values are told by these."""


@dataclass(frozen=True)
class Fact:
    """A name and its value.

    Attributes:
        note: What more is to be known of it, such as how far it may be off.
        is_number: Whether it stands in one line.
    """

    name: str
    text: str
    note: str = ""
    is_number: bool = False


@dataclass(frozen=True)
class Value:
    """A frequent value, and what share of all values it makes, from 0 to 100."""

    text: str
    count: str
    share: str
    width: float


@dataclass(frozen=True)
class Picture:
    """A histogram as one SVG shape.

    Attributes:
        path: The bars.
        before: Those of what it is compared with; empty if nothing.
        lo: Where the axis begins, as text.
        hi: Where it ends.
        told: What it shows, in a sentence.
        bars: What each bar stands for, as the page's script takes it: values and share, with separators between.
        highest: What share of the values a bar as high as the picture stands for.
    """

    path: str
    before: str
    lo: str
    hi: str
    told: str
    bars: str
    highest: str


@dataclass(frozen=True)
class Change:
    """A measure that differs from what the column is compared with."""

    measure: str
    before: str
    after: str
    change: str


@dataclass(frozen=True)
class Card:
    """A column as a page shows it.

    Attributes:
        place: Its place among the columns.
        name: Its name.
        type: Its type.
        cells: Its row in the table of all columns: text and what it is sorted by, each.
        facts: Its numbers.
        width: How much room these need, as the page's style names it.
        quantiles: Its quantiles, by names such as `5 %`.
        quantiles_width: How much room these need.
        precision: How far these may be off.
        picture: Its histogram; None where there is none.
        values: Its most frequent values.
        remark: What is to be said of these.
        alerts: What deserves a look.
        changes: How it differs from what it is compared with.
        moved: How far its values have moved; empty where that is not known.
    """

    place: int
    name: str
    type: str
    cells: tuple[tuple[str, float | None], ...]
    facts: tuple[Fact, ...]
    width: str
    quantiles: tuple[Fact, ...]
    quantiles_width: str
    precision: str
    picture: Picture | None
    values: tuple[Value, ...]
    remark: str
    alerts: tuple[Alert, ...]
    changes: tuple[Change, ...]
    moved: str


def make_cards(contents: Contents, alerts: Sequence[Alert]) -> list[Card]:
    """The cards of all columns."""
    of_column: dict[str, list[Alert]] = {}
    for alert in alerts:
        of_column.setdefault(alert.column, []).append(alert)
    changes: dict[str, list[Mapping[str, Any]]] = {}
    for row in contents.changes.rows if contents.changes is not None else ():
        changes.setdefault(row["column_name"], []).append(row)
    before = {one.summary["column_name"]: one for one in (contents.before.columns if contents.before else ())}
    return [
        _card(place, one, before.get(name), tuple(of_column.get(name, ())), changes.get(name, ()))
        for place, one in enumerate(contents.columns)
        for name in [one.summary["column_name"]]
    ]


def _card(
    place: int,
    column: ColumnContents,
    before: ColumnContents | None,
    alerts: tuple[Alert, ...],
    changes: Sequence[Mapping[str, Any]],
) -> Card:
    row = column.summary
    chart = draw_chart(column.bins, row["column_type"])
    earlier = draw_chart(before.bins, before.summary["column_type"], chart.axis) if before and chart else None
    values = _values(column.values, row)
    facts, quantiles = tuple(_facts(row)), tuple(_quantiles(column.quantiles, row))
    is_few = (row["approx_unique"] or _FEW) < _FEW
    is_frequent = bool(values) and values[0].width >= 1
    is_spread = chart is not None or (row["approx_unique"] or 0) > VALUES
    return Card(
        place=place,
        name=make_visible(row["column_name"]),
        type=make_visible(row["column_type"]),
        cells=_cells(row),
        facts=facts,
        width=_width(facts),
        quantiles=quantiles if is_spread else (),
        quantiles_width=_width(quantiles),
        precision=_precision(column.quantiles),
        picture=_picture(chart, earlier),
        values=values if chart is None or is_few or is_frequent else (),
        remark="" if chart else _remark(column),
        alerts=alerts,
        changes=_changes(changes),
        moved=_moved(changes),
    )


def _cells(row: Mapping[str, Any]) -> tuple[tuple[str, float | None], ...]:
    """Nulls, distinct values, minimum and maximum: those that the table of columns has."""
    lo, hi = read_positions([row["min"], row["max"]])[0] or (None, None)
    nulls, distinct = row["null_percentage"], row["approx_unique"]
    return (
        ("" if nulls is None else format_share(nulls / 100), nulls),
        (format_marked_cell(row, "approx_unique"), distinct),
        *zip(_ends(row), (lo, hi), strict=True),
    )


def _ends(row: Mapping[str, Any]) -> list[str]:
    """Minimum and maximum, told apart."""
    ends = [format_cell("", displayed_value(row, name)) for name in ("min", "max")]
    return [format_brief_cell("", one) for one in shorten_alike(ends, _LONGEST_FACT)]


def _width(facts: Iterable[Fact]) -> str:
    """The name of the room that the longest number needs."""
    longest = max((_digits(one.text) for one in facts if one.is_number), default=0.0)
    return next((name for most, name in _WIDTHS if longest <= most), "widest")


def _digits(text: str) -> float:
    """How many digits are as wide as a number: marks between digits take half as much, the one before it half more."""
    return len(text) - sum(map(text.count, ",.")) / 2 + text.count(APPROXIMATE) / 2


def _facts(row: Mapping[str, Any]) -> Iterable[Fact]:
    one, ends = row["min"] == row["max"], dict(zip(("min", "max"), _ends(row), strict=True))
    for name, heading in (("min", "only value" if one else "minimum"), ("max", "" if one else "maximum"), *_MOMENTS):
        value = displayed_value(row, name)
        if value is not None and heading and row["column_type"] != "boolean":  # its two values tell all
            mark = APPROXIMATE if is_approximate(row, name) else ""
            text = ends[name] if name in ends else format_brief_cell(name, value)
            yield Fact(heading, mark + text, is_number=is_numeric(row["column_type"]))
    if row["approx_unique"] is not None:
        error = row["distinct_error"]
        note = f"standard error {100 * error:.1f}\u00a0%" if error else ""
        yield Fact("distinct", format_marked_cell(row, "approx_unique"), note)
    for name, heading in (("null_count", "nulls"), ("nan_count", "NaN"), ("inf_count", "infinite")):
        if row[name] or (row[name] == 0 and name == "null_count"):
            share = format_share(row[name] / row["count"]) if row[name] and row["count"] else ""
            yield Fact(heading, f"{row[name]:,}", share)
    if row["max_len"] is not None and str(row["column_type"]).startswith(_OF_LENGTH):
        length = format_number(row["avg_len"] or 0)
        yield Fact("length", f"{length} byte" if length == "1" else f"{length} bytes", f"at most {row['max_len']:,}")
    if (fresh := _freshness(row)) is not None:
        yield fresh
    if row["size_bytes"] is not None:
        yield Fact("size", format_bytes(row["size_bytes"]))


_MOMENTS = (("avg", "mean"), ("std", "deviation"))
_OF_LENGTH = ("string", "binary", "char", "varchar")


def _freshness(row: Mapping[str, Any]) -> Fact | None:
    """How old the newest value was when the table was analyzed."""
    if not str(row["column_type"]).startswith(("date", "timestamp")) or row["analyzed_at"] is None:
        return None
    form = "%Y-%m-%d" if row["column_type"] == "date" else "%Y-%m-%d %H:%M:%S"
    places, _ = read_positions([row["max"], row["analyzed_at"].strftime(form)])
    if not places:
        return None
    days = round(places[1] - places[0])
    number = f"{abs(days):,} {'day' if abs(days) == 1 else 'days'}"
    return Fact(
        "newest", f"{number} {'before' if days > 0 else 'after'} the analysis" if days else "day of the analysis"
    )


def _quantiles(answer: Answer | None, row: Mapping[str, Any]) -> Iterable[Fact]:
    """Quantiles; where nothing is kept of the values by which they differ, what all of them begin with."""
    rows = [one for one in (answer.rows if answer is not None else ()) if one["value"] is not None]
    names = [f"{format_number(100 * one['probability'])} %" for one in rows]
    whole = [one["value"] for one in rows]
    if len(rows) > 1 and len({*whole}) == 1 and whole[0].endswith(ELLIPSIS):
        yield Fact(f"{names[0]} to {names[-1]}", make_visible(whole[0]), "what follows is not kept")
        return
    texts = shorten_alike([make_visible(format_value(one, row)) for one in whole], _LONGEST_FACT)
    for name, one, text in zip(names, rows, texts, strict=True):
        mark = APPROXIMATE if one["error"] != 0 or not (one["exact"] or _is_cut(one)) else ""
        yield Fact(name, mark + format_brief_cell("", text), is_number=is_numeric(row["column_type"]))


def _is_cut(row: Mapping[str, Any]) -> bool:
    return str(row["value"]).endswith(ELLIPSIS)


def _precision(answer: Answer | None) -> str:
    """How far the quantiles may be off."""
    rows = answer.rows if answer is not None else ()
    errors = [one["error"] for one in rows]
    if not errors or None in errors:
        return ""
    cut = ", of long texts the beginning" if any(map(_is_cut, rows)) else ""
    return (f"ranks within {100 * max(errors):.2g} %" if max(errors) else "ranks exact" if cut else "exact") + cut


def _values(answer: Answer | None, column: Mapping[str, Any]) -> tuple[Value, ...]:
    return tuple(
        Value(
            shorten(make_visible(format_value(str(row["value"]), column)), _LONGEST) if row["value"] != "" else '""',
            f"{'' if row['exact'] else APPROXIMATE}{row['frequency']:,}",
            "" if row["fraction"] is None else format_share(row["fraction"]),
            round(100 * (row["fraction"] or 0), 1),
        )
        for row in (answer.rows if answer is not None else ())
    )


def _remark(column: ColumnContents) -> str:
    row = column.summary
    if not row["count"]:
        return "There are no rows."
    if row["null_count"] == row["count"]:
        return "Every row is null."
    if column.bins is None and column.values is None:
        if row["min"] is None and encoding_of(row["column_type"]) is not None:
            return "Of some data files only counts are known of it."
        return f"Only counts are known of {'values of this type' if row['min'] is None else 'its values'}."
    if column.values is not None and not len(column.values) and row["approx_unique"]:
        return "No value is known to occur twice."
    return ""


def _picture(chart: Chart | None, before: Chart | None) -> Picture | None:
    if chart is None:
        return None
    most = max(chart.highest, before.highest if before else 0.0)
    total = sum(chart.counts) or 1.0
    shares = [format_share(count / total) for count in chart.counts]
    highest = max(range(len(chart.counts)), key=chart.counts.__getitem__)
    said = (
        f"Histogram with {len(shares)} bars; the highest, {chart.labels[highest]}, has {shares[highest]} of the values."
    )
    bars = [f"{label}\t{share}" for label, share in zip(chart.labels, shares, strict=True)]
    if before is not None:
        of_before = sum(before.counts) or 1.0
        bars = [f"{one}\t{format_share(count / of_before)} %" for one, count in zip(bars, before.counts, strict=True)]
    return Picture(
        *(chart.path(most), before.outline(most) if before else "", *chart.ends),
        *(said, "\n".join(bars), f"highest bar {format_share(most)}"),
    )


def _changes(rows: Iterable[Mapping[str, Any]]) -> tuple[Change, ...]:
    """What differs, distributions first."""
    return tuple(map(_change, sorted(rows, key=lambda row: row["measure"] not in MOVED)))


def _change(row: Mapping[str, Any]) -> Change:
    """A measure; of one that is not known the reason stands in place of the change."""
    before, after = (make_visible(shorten(str(row[name] or ""), _LONGEST)) for name in ("before", "after"))
    change = row["change"]
    sign = "+" if change is not None and change > 0 and row["measure"] not in MOVED else ""
    told = (row["reason"] or "") if change is None else sign + format_number(change)
    return Change(column_heading(row["measure"]), before, after, told)


def _moved(rows: Iterable[Mapping[str, Any]]) -> str:
    """How far the values have moved, in a word."""
    known = (row["change"] for row in rows if row["measure"] == MOVED[0] and row["change"] is not None)
    return next((f"psi {change:.3f}" for change in known), "")
