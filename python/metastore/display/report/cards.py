"""Cards of a page: one for each column of a report's contents."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from metastore.display.bars import read_positions
from metastore.display.cells import format_marked_cell, format_value
from metastore.display.columns import column_heading
from metastore.display.numbers import format_number, mark_approximate
from metastore.display.report.alerts import format_share
from metastore.display.report.card import Card, Change, Picture, Value
from metastore.display.report.charts import Chart, draw_chart
from metastore.display.report.contents import VALUES
from metastore.display.report.facts import describe_precision, fit_width, format_bounds, list_facts, list_quantiles
from metastore.display.shortening import shorten
from metastore.format.table_column import encoding_of
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.answers import Answer
    from metastore.display.report.alerts import Alert
    from metastore.display.report.contents import ColumnContents, Contents

_LONGEST = 48
DISTANCES = ("psi", "js_distance")
"""Measures of `diff` that compare distributions, so that their change has no sign."""
_FEW = 12
"""A column with fewer distinct values gets a list of them beside its histogram."""


def make_cards(contents: Contents, alerts: Sequence[Alert]) -> list[Card]:
    """The cards of all columns."""
    alerts_by_column: dict[str, list[Alert]] = defaultdict(list)
    for alert in alerts:
        alerts_by_column[alert.column].append(alert)
    changes_by_column = _group_changes(contents.changes)
    earlier = _list_earlier_columns(contents.before)
    cards = []
    for position, column in enumerate(contents.columns):
        name = column.summary["column_name"]
        card = _card(
            position,
            column,
            earlier.get(name),
            alerts=tuple(alerts_by_column[name]),
            changes=changes_by_column[name],
        )
        cards.append(card)
    return cards


def _group_changes(changes: Answer | None) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of `diff` by column."""
    by_column: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    if changes is None:
        return by_column
    for change in changes.rows:
        by_column[change["column_name"]].append(change)
    return by_column


def _list_earlier_columns(before: Contents | None) -> dict[str, ColumnContents]:
    """The columns of the earlier snapshot by name."""
    if before is None:
        return {}
    return {column.summary["column_name"]: column for column in before.columns}


def _card(
    position: int,
    column: ColumnContents,
    earlier: ColumnContents | None,
    *,
    alerts: tuple[Alert, ...],
    changes: Sequence[Mapping[str, Any]],
) -> Card:
    row = column.summary
    chart = draw_chart(column.bins, row["column_type"])
    facts = tuple(list_facts(row))
    quantiles = tuple(list_quantiles(column.quantiles, row))
    return Card(
        position=position,
        name=make_visible(row["column_name"]),
        type=make_visible(row["column_type"]),
        cells=_cells(row),
        facts=facts,
        width=fit_width(facts),
        quantiles=quantiles if _are_quantiles_shown(row, chart) else (),
        quantiles_width=fit_width(quantiles),
        precision=describe_precision(column.quantiles),
        picture=_picture(chart, _earlier_chart(earlier, chart)),
        values=_frequent_values(column, chart),
        remark="" if chart else _remark(column),
        alerts=alerts,
        changes=_changes(changes),
        drift=_drift(changes),
    )


def _earlier_chart(earlier: ColumnContents | None, chart: Chart | None) -> Chart | None:
    """The chart of the earlier snapshot on the axis of the present one."""
    if earlier is None or chart is None:
        return None
    return draw_chart(earlier.bins, earlier.summary["column_type"], chart.axis)


def _are_quantiles_shown(row: Mapping[str, Any], chart: Chart | None) -> bool:
    """Whether a column has more values than the list of frequent values shows."""
    return chart is not None or (row["approx_unique"] or 0) > VALUES


def _frequent_values(column: ColumnContents, chart: Chart | None) -> tuple[Value, ...]:
    """The most frequent values; beside a chart only if there are few, or the first one has a share of 1 %."""
    if column.values is None:
        return ()
    values = tuple(_value(row, column.summary) for row in column.values.rows)
    if chart is None or _has_few_values(column.summary):
        return values
    if not values or values[0].width < 1:
        return ()
    return values


def _has_few_values(row: Mapping[str, Any]) -> bool:
    distinct_values: int = row["approx_unique"] or _FEW
    return distinct_values < _FEW


def _value(row: Mapping[str, Any], column: Mapping[str, Any]) -> Value:
    """A row of `frequencies`."""
    share = ""
    width: float = 0
    if row["fraction"] is not None:
        share = format_share(row["fraction"])
        width = round(100 * row["fraction"], 1)
    return Value(
        text=_format_frequent_value(row["value"], column),
        count=mark_approximate(f"{row['frequency']:,}", is_approximate=not row["exact"]),
        share=share,
        width=width,
    )


def _format_frequent_value(value: Any, column: Mapping[str, Any]) -> str:
    if value == "":
        return '""'
    text = make_visible(format_value(str(value), column))
    return shorten(text, _LONGEST)


def _cells(row: Mapping[str, Any]) -> tuple[tuple[str, float | None], ...]:
    """The row of the table of columns: nulls, distinct values, minimum and maximum."""
    nulls = row["null_percentage"]
    share_of_nulls = "" if nulls is None else format_share(nulls / 100)
    positions, _ = read_positions([row["min"], row["max"]])
    lo, hi = positions or (None, None)
    minimum, maximum = format_bounds(row)
    return (
        (share_of_nulls, nulls),
        (format_marked_cell(row, "approx_unique"), row["approx_unique"]),
        (minimum, lo),
        (maximum, hi),
    )


def _remark(column: ColumnContents) -> str:
    """The reason why a column has no chart, and perhaps no values."""
    row = column.summary
    if not row["count"]:
        return "There are no rows."
    if row["null_count"] == row["count"]:
        return "Every row is null."
    if column.values is not None and len(column.values) == 0 and row["approx_unique"]:
        return "No value is known to occur twice."
    if column.values is None and column.bins is None:
        return _describe_counts(row)
    return ""


def _describe_counts(row: Mapping[str, Any]) -> str:
    """The reason why only counts of a column are known."""
    if row["min"] is not None:
        return "Only counts are known of its values."
    if encoding_of(row["column_type"]) is None:
        return "Only counts are known of values of this type."
    return "Of some data files only counts are known of it."


def _picture(chart: Chart | None, earlier: Chart | None) -> Picture | None:
    if chart is None:
        return None
    shares = list(map(format_share, chart.shares))
    bars = [f"{label}\t{share}" for label, share in zip(chart.labels, shares, strict=True)]
    highest_share = chart.highest
    outline = ""
    if earlier is not None:
        bars = [f"{bar}\t{format_share(share)}" for bar, share in zip(bars, earlier.shares, strict=True)]
        highest_share = max(chart.highest, earlier.highest)
        outline = earlier.outline(highest_share)
    highest = chart.counts.index(max(chart.counts))
    lo, hi = chart.ends
    return Picture(
        path=chart.path(highest_share),
        before=outline,
        lo=lo,
        hi=hi,
        description=(
            f"Histogram with {len(shares)} bars; "
            f"the highest, {chart.labels[highest]}, has {shares[highest]} of the values."
        ),
        bars="\n".join(bars),
        highest=f"highest bar {format_share(highest_share)}",
    )


def _changes(rows: Iterable[Mapping[str, Any]]) -> tuple[Change, ...]:
    """The differences, with those of distributions first."""
    ordered = sorted(rows, key=lambda row: row["measure"] not in DISTANCES)
    return tuple(map(_change, ordered))


def _change(row: Mapping[str, Any]) -> Change:
    """A row of `diff`, with the reason if the change is unknown."""
    return Change(
        measure=column_heading(row["measure"]),
        before=_format_side(row["before"]),
        after=_format_side(row["after"]),
        change=_format_change(row),
    )


def _format_side(text: str | None) -> str:
    return make_visible(shorten(text or "", _LONGEST))


def _format_change(row: Mapping[str, Any]) -> str:
    change = row["change"]
    if change is None:
        return str(row["reason"] or "")
    text = format_number(change)
    if change > 0 and row["measure"] not in DISTANCES:
        return f"+{text}"
    return text


def _drift(rows: Iterable[Mapping[str, Any]]) -> str:
    """The population stability index of the values; empty if it is unknown."""
    for row in rows:
        if row["measure"] == "psi" and row["change"] is not None:
            return f"psi {row['change']:.3f}"
    return ""
