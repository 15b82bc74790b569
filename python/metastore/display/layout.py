"""The columns of an answer that fit a width, and their widths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from metastore.display import bars
from metastore.display.cells import format_marked_cell, rank_errors, top_share
from metastore.display.columns import choose_columns, column_heading, is_number
from metastore.display.numbers import round_text
from metastore.display.remarks import list_remarks
from metastore.display.shortening import shorten, shorten_inside

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from metastore.answers import Answer


GAP = 2
_READABLE, _READABLE_KEY, _READABLE_BAR = 17, 24, 8
"""The least widths in characters of a text, of a text that names the row, and of a bar."""
_KEYS = ("column_name", "path", "name", "value", "table")
_REMOVED_FROM_SUMMARY = ("std", "q25", "q75", "avg", "q50", "top_value", "column_type", "sparkline")
_REMOVED_FIRST = {
    "summary": _REMOVED_FROM_SUMMARY,
    "filtered_summary": _REMOVED_FROM_SUMMARY,
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


@dataclass(frozen=True, kw_only=True)
class DisplayColumn:
    """A column as it is displayed.

    Attributes:
        cells: Its texts, one a row, cut to `width`.
        width: Its width in characters.
        is_number: Whether it is aligned to the right.
        is_key: Whether it names the subject of the row.
        is_bar: Whether it is a bar of block characters; HTML draws bars behind the numbers to its left instead.
        is_sparkline: Whether its cells are small histograms.
        shares: The length of each row's bar, from 0 to 1; empty for no bars.
    """

    heading: str
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
    columns = _make_columns(answer, rows)
    names = list(columns)
    if width is not None:
        names = _select_columns(answer, columns, width)
        selected = {name: columns[name] for name in names}
        columns = _narrow_columns(selected, width)
    return Layout(
        columns=tuple(columns.values()),
        remarks=tuple(list_remarks(answer, names, rows)),
    )


def _make_columns(answer: Answer, rows: int) -> dict[str, DisplayColumn]:
    columns = {name: _make_column(answer, name, rows) for name in choose_columns(answer)}
    measured = bars.measure_bars(answer)
    if measured is None:
        return columns
    return _with_bars(columns, measured, rows)


def _make_column(answer: Answer, name: str, rows: int) -> DisplayColumn:
    visible_rows = answer.rows[:rows]
    cells = [format_marked_cell(row, name, rank_errors(answer)) for row in visible_rows]
    is_numeric = is_number(answer, name)
    if is_numeric:
        cells = list(map(_round_fraction, cells))
    heading = column_heading(name)
    read_share = _SHARES.get(name)
    return DisplayColumn(
        heading=heading,
        cells=tuple(cells),
        width=max(map(cell_len, [heading, *cells])),
        is_number=is_numeric,
        is_key=name in _KEYS,
        is_sparkline=name == "sparkline",
        shares=tuple(map(read_share, visible_rows)) if read_share else (),
    )


def _round_fraction(text: str) -> str:
    return round_text(text) if "." in text else text


def _null_share(row: Mapping[str, Any]) -> float | None:
    percentage: float | None = row["null_percentage"]
    return None if percentage is None else percentage / 100


_SHARES = {"null_percentage": _null_share, "top_value": top_share}


def _with_bars(columns: dict[str, DisplayColumn], measured: bars.Bars, rows: int) -> dict[str, DisplayColumn]:
    """Return the columns with bars to the right of their numbers."""
    with_bars = {}
    for name, column in columns.items():
        with_bars[name] = column
        if name == measured.column:
            with_bars.update(_bar_columns(name, column, measured, rows))
    return with_bars


def _bar_columns(name: str, column: DisplayColumn, measured: bars.Bars, rows: int) -> dict[str, DisplayColumn]:
    """Return a column with its bars: counts and bars, or counts, densities and bars if the bars show densities."""
    shares = measured.shares[:rows]
    densities = measured.densities[:rows]
    blocks = tuple(map(bars.draw_bar, shares))
    bar = DisplayColumn(heading="", cells=blocks, width=bars.WIDTH, is_bar=True, shares=shares)
    if not densities:
        return {name: replace(column, shares=shares), bars.BARS: bar}
    width = max(map(len, [measured.heading, *densities]))
    density = DisplayColumn(heading=measured.heading, cells=densities, width=width, is_number=True, shares=shares)
    return {name: column, bars.DENSITY: density, bars.BARS: bar}


def _select_columns(answer: Answer, columns: dict[str, DisplayColumn], width: int) -> list[str]:
    """Return the names of the columns that fit a width."""
    least_widths = {name: _least_width(column) for name, column in columns.items()}
    for name in _removal_order(answer, columns):
        if _total_width(least_widths.values()) <= width:
            break
        del least_widths[name]
    return list(least_widths)


def _removal_order(answer: Answer, columns: dict[str, DisplayColumn]) -> list[str]:
    """List the columns in the order of removal; the first column and keys stay, unless they are listed."""
    listed = [name for name in _REMOVED_FIRST.get(answer.kind, ()) if name in columns]
    names = list(columns)[1:]
    removable = [name for name in reversed(names) if not columns[name].is_key]
    return list(dict.fromkeys([*listed, *removable]))


def _least_width(column: DisplayColumn) -> int:
    if column.is_bar:
        return _READABLE_BAR
    if column.is_number or column.is_sparkline:
        return column.width
    readable = _READABLE_KEY if column.is_key else _READABLE
    return max(len(column.heading), min(column.width, readable))


def _narrow_columns(columns: dict[str, DisplayColumn], width: int) -> dict[str, DisplayColumn]:
    """Return the columns, narrowed from the widest one on until all fit."""
    widths = [column.width for column in columns.values()]
    least_widths = list(map(_least_width, columns.values()))
    _narrow_widths(widths, least_widths, width)
    cut_columns = map(_cut, columns.values(), widths)
    return dict(zip(columns, cut_columns, strict=True))


def _narrow_widths(widths: list[int], least_widths: Sequence[int], total: int) -> None:
    """Reduce the greatest width, one character at a time, until all fit a total."""
    while _total_width(widths) > total:
        reducible = [i for i, width in enumerate(widths) if width > least_widths[i]]
        if not reducible:
            return
        widest = max(reducible, key=widths.__getitem__)
        widths[widest] -= 1


def _cut(column: DisplayColumn, width: int) -> DisplayColumn:
    """Return the column with texts and bars that fit a width."""
    if column.is_bar:
        cells = [bars.draw_bar(share or 0.0, width) for share in column.shares]
        return replace(column, cells=tuple(cells), width=width)
    cut = shorten_inside if column.heading == "path" else shorten
    cells = [cut(cell, width) for cell in column.cells]
    return replace(column, cells=tuple(cells), width=width)


def _total_width(widths: Collection[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)
