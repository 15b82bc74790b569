"""The columns of an answer that fit a width, their widths, and remarks on the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from metastore.display import bars
from metastore.display.cells import (
    APPROXIMATE,
    OF_ALL_ROWS,
    QUARTILES,
    SAID_ELSEWHERE,
    column_heading,
    format_marked_cell,
    format_number,
    has_values,
    is_approximate,
    is_number,
    is_summary,
    rank_errors,
    round_text,
    shorten,
    shorten_inside,
    shown_columns,
    top_share,
)
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from metastore.answers import Answer


GAP = 2
_MOST_NAMED = 5
_MEANING = "(two of three are nearer, 19 of 20 within twice that)"
_READABLE, _READABLE_KEY, _READABLE_BAR = 17, 24, 8
_KEYS = ("column_name", "path", "name", "value", "table")
_OF_SUMMARY = ("std", "q25", "q75", "avg", "q50", "top_value", "column_type", "sparkline")
_FIRST_TO_GO = {
    "summary": _OF_SUMMARY,
    "filtered_summary": _OF_SUMMARY,
    "files": ("deleted_rows", "partition", "columns_analyzed"),
    "columns": ("nan_count", "distinct", "null_count"),
    "snapshots": ("live_size_bytes", "size_bytes", "columns"),
    "frequencies": ("error", "exact", "fraction"),
    "histogram": ("distinct", bars.BARS, "bin"),
    "explain": (
        "estimate_exact",
        "estimated_from",
        "estimated_rows",
        "sentence",
        "scan",
        "rows",
        "statistic",
        "table",
        "conjunct",
    ),
    "estimates": ("estimated_bytes", "parent", "exact", "source", "matching_rows", "detail"),
}


@dataclass(frozen=True)
class DisplayColumn:
    """A column as it is drawn.

    Attributes:
        head: Its heading.
        cells: Its texts, one a row, cut to `width`.
        width: In characters.
        is_number: Whether it is set to the right.
        is_key: Whether it names the subject of the row.
        is_bar: Whether it is a bar of block characters; HTML draws bars behind the numbers to its left instead.
        is_sparkline: Whether its cells are small histograms.
        shares: The length of each row's bar, from 0 to 1; empty for no bars.
    """

    head: str
    cells: tuple[str, ...]
    width: int
    is_number: bool = False
    is_key: bool = False
    is_bar: bool = False
    is_sparkline: bool = False
    shares: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Layout:
    """An answer laid out for a width.

    Attributes:
        columns: The columns from left to right.
        remarks: The meaning of marks, the columns that are not shown, and the number of further rows.
    """

    columns: tuple[DisplayColumn, ...]
    remarks: tuple[str, ...]


def fit_columns(answer: Answer, rows: int, width: int | None = None) -> Layout:
    """Lay out the first rows of an answer.

    Numbers and headings are never cut. If not all columns fit, the least useful ones are left out, and a remark names
    them.
    """
    columns = {name: _column(answer, name, rows) for name in shown_columns(answer)}
    measure = bars.measure_bars(answer)
    if measure is not None:
        columns = _with_bars(columns, measure, rows)
    names = _select_columns(answer, columns, width)
    selected = [columns[name] for name in names]
    return Layout(
        columns=tuple(_narrowed(selected, width)),
        remarks=tuple(_remarks(answer, names, rows)),
    )


def _column(answer: Answer, name: str, rows: int) -> DisplayColumn:
    visible_rows = answer.rows[:rows]
    cells = [format_marked_cell(row, name, rank_errors(answer)) for row in visible_rows]
    is_numeric = is_number(answer, name)
    if is_numeric:
        cells = list(map(_round_fraction, cells))
    heading = column_heading(name)
    shares: tuple[float | None, ...] = ()
    if name in _SHARES:
        shares = tuple(map(_SHARES[name], visible_rows))
    return DisplayColumn(
        head=heading,
        cells=tuple(cells),
        width=max(map(cell_len, [heading, *cells])),
        is_number=is_numeric,
        is_key=name in _KEYS,
        is_sparkline=name == "sparkline",
        shares=shares,
    )


def _round_fraction(text: str) -> str:
    return round_text(text) if "." in text else text


def _null_share(row: Mapping[str, Any]) -> float | None:
    percentage: float | None = row["null_percentage"]
    return None if percentage is None else percentage / 100


_SHARES = {"null_percentage": _null_share, "top_value": top_share}


def _with_bars(columns: dict[str, DisplayColumn], measure: bars.Measure, rows: int) -> dict[str, DisplayColumn]:
    """The same columns, with bars to the right of their numbers."""
    with_bars = {}
    for name, column in columns.items():
        with_bars[name] = column
        if name == measure.beside:
            with_bars.update(_bar_columns(name, column, measure, rows))
    return with_bars


def _bar_columns(name: str, column: DisplayColumn, measure: bars.Measure, rows: int) -> dict[str, DisplayColumn]:
    """A column of counts with its bars; densities, if bars show these, have a column between both."""
    shares = measure.shares[:rows]
    cells = measure.cells[:rows]
    blocks = tuple(map(bars.draw_bar, shares))
    bar = DisplayColumn("", blocks, bars.WIDTH, is_bar=True, shares=shares)
    if not cells:
        return {name: replace(column, shares=shares), bars.BARS: bar}
    width = max(map(len, [measure.head, *cells]))
    density = DisplayColumn(measure.head, cells, width, is_number=True, shares=shares)
    return {name: column, bars.DENSITY: density, bars.BARS: bar}


def _select_columns(answer: Answer, columns: dict[str, DisplayColumn], width: int | None) -> list[str]:
    """The names of the columns that fit a width."""
    names = list(columns)
    if width is None:
        return names
    narrowest = {name: _narrowest(column) for name, column in columns.items()}
    for name in _removal_order(answer, columns):
        if _total(narrowest.values()) <= width:
            break
        names.remove(name)
        del narrowest[name]
    return names


def _removal_order(answer: Answer, columns: dict[str, DisplayColumn]) -> list[str]:
    """The columns in the order in which they are left out; the first column and keys always stay, unless listed."""
    order = [name for name in _FIRST_TO_GO.get(answer.kind, ()) if name in columns]
    for name in reversed(list(columns)[1:]):
        if name not in order and not columns[name].is_key:
            order.append(name)
    return order


def _narrowest(column: DisplayColumn) -> int:
    if column.is_bar:
        return _READABLE_BAR
    if column.is_number or column.is_sparkline:
        return column.width
    readable = _READABLE_KEY if column.is_key else _READABLE
    return max(len(column.head), min(column.width, readable))


def _narrowed(columns: Sequence[DisplayColumn], width: int | None) -> list[DisplayColumn]:
    """The same columns with shorter texts, the longest first, until all fit."""
    widths = [column.width for column in columns]
    if width is not None:
        _narrow_widths(widths, [_narrowest(column) for column in columns], width)
    return [_cut(column, size) for column, size in zip(columns, widths, strict=True)]


def _narrow_widths(widths: list[int], narrowest: Sequence[int], total: int) -> None:
    """Reduce the greatest width, one character at a time, until all fit a total."""
    while _total(widths) > total:
        reducible = [i for i, width in enumerate(widths) if width > narrowest[i]]
        if not reducible:
            return
        widest = max(reducible, key=widths.__getitem__)
        widths[widest] -= 1


def _cut(column: DisplayColumn, width: int) -> DisplayColumn:
    if column.is_bar:
        cells = [bars.draw_bar(share or 0.0, width) for share in column.shares]
    elif column.head == "path":
        cells = [shorten_inside(cell, width) for cell in column.cells]
    else:
        cells = [shorten(cell, width) for cell in column.cells]
    return replace(column, cells=tuple(cells), width=width)


def _total(sizes: Collection[int]) -> int:
    return sum(sizes) + GAP * (len(sizes) - 1)


def _remarks(answer: Answer, names: Sequence[str], rows: int) -> list[str]:
    remarks = list_approximations(answer, names)
    visible = {*names, *SAID_ELSEWHERE.get(answer.kind, ())}
    hidden = [name for name in answer.columns if name not in visible]
    missing = [column_heading(name) for name in hidden if has_values(answer, name)]
    if missing:
        remarks.append(f"not shown: {', '.join(missing)} (--json and to_dict() have all)")
    if len(answer) > rows:
        remarks.append(f"{len(answer) - rows:,} more rows (--json, a pipe and to_dict() have all)")
    return remarks


def list_approximations(answer: Answer, names: Sequence[str]) -> list[str]:
    """Remarks on a summary: the meaning of the mark of approximate numbers, infinite values, the time zone."""
    if not is_summary(answer):
        return []
    remarks = []
    reasons = _list_reasons(answer, names)
    if reasons:
        remarks.append(f"{APPROXIMATE} approximate: {'; '.join(reasons)}")
    return [*remarks, *_infinities(answer), *_zone(answer)]


def _list_reasons(answer: Answer, names: Sequence[str]) -> list[str]:
    """The reasons why numbers of a summary are approximate."""
    reasons = []
    error = max((row["distinct_error"] or 0.0 for row in answer.rows), default=0.0)
    if error:
        reasons.append(f"distinct values have a standard error of at most {format_number(100 * error)} % {_MEANING}")
    if not set(names).isdisjoint(QUARTILES):
        reasons += _rank_errors(list(rank_errors(answer).values()))
    if _has_approximate(answer, ("min", "max")):
        reasons.append("bounds hold for more than the live rows of this snapshot")
    if _has_approximate(answer, OF_ALL_ROWS):
        reasons.append("means, quantiles and distinct values are those of all rows in the data files, deleted ones too")
    return reasons


def _rank_errors(errors: Sequence[float | None]) -> list[str]:
    """The greatest error of the ranks of quartiles."""
    remarks = []
    greatest = max((error or 0.0 for error in errors), default=0.0)
    if greatest:
        remarks.append(f"ranks of quartiles are off by at most {100 * greatest:.2g} % of the values")
    if None in errors:
        remarks.append("by how much some quartiles are off is not known")
    return remarks


def _has_approximate(answer: Answer, names: Sequence[str]) -> bool:
    return any(is_approximate(row, name) for row in answer.rows for name in names)


def _infinities(answer: Answer) -> list[str]:
    """A remark on the columns with infinite values."""
    rows = [row for row in answer.rows if row.get("inf_count")]
    if not rows:
        return []
    columns = [f"{make_visible(row['column_name'])} ({format_number(row['inf_count'])})" for row in rows]
    names = ", ".join(columns[:_MOST_NAMED])
    if len(columns) > _MOST_NAMED:
        names += " and others"
    return [f"avg, std and histograms leave infinite values out: {names}"]


def _zone(answer: Answer) -> list[str]:
    """The time zone of instants; it differs between reading with Spark and without."""
    types = {row["column_type"] for row in answer.rows}
    if "timestamp" not in types:
        return []
    return [f"timestamps in {answer.zone}"]
