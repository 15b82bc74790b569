"""Which columns of an answer fit a width, how wide each is, and which ones are left out."""

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
    from collections.abc import Mapping, Sequence

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
        *(
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
        is_key: Whether it names what the row is about.
        is_bar: Whether it is drawn of blocks, for what cannot draw bars behind the numbers to its left.
        is_sparkline: Whether its cells are small histograms.
        shares: How long the bar of each row is, from 0 to 1: drawn of blocks, or behind the cell; empty for no bars.
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
        columns: What is drawn, from left to right.
        remarks: What the reader should know: what marks mean, which columns and how many rows are not there.
    """

    columns: tuple[DisplayColumn, ...]
    remarks: tuple[str, ...]


def fit_columns(answer: Answer, rows: int, width: int | None = None) -> Layout:
    """Lays out the first rows of an answer.

    Numbers and headings are never cut. Where not all columns fit, those that are asked for least are left out, and a
    remark names them.
    """
    drawn = {name: _column(answer, name, rows) for name in shown_columns(answer)}
    measure = bars.measure_bars(answer)
    if measure is not None:
        drawn = _with_bars(drawn, measure, rows)
    kept = _those_that_fit(answer, drawn, width)
    columns = _narrowed([drawn[name] for name in kept], width)
    return Layout(tuple(columns), tuple(_remarks(answer, kept, rows)))


def _column(answer: Answer, name: str, rows: int) -> DisplayColumn:
    cells = tuple(format_marked_cell(row, name, rank_errors(answer)) for row in answer.rows[:rows])
    numeric = is_number(answer, name)
    if numeric:
        cells = tuple(round_text(cell) if "." in cell else cell for cell in cells)
    width = max(cell_len(column_heading(name)), *map(cell_len, cells), 0)
    share = _SHARES.get(name)
    return DisplayColumn(
        *(column_heading(name), cells, width, numeric, name in _KEYS),
        is_sparkline=name == "sparkline",
        shares=tuple(map(share, answer.rows[:rows])) if share else (),
    )


def _null_share(row: Mapping[str, Any]) -> float | None:
    percentage: float | None = row["null_percentage"]
    return None if percentage is None else percentage / 100


_SHARES = {"null_percentage": _null_share, "top_value": top_share}


def _with_bars(drawn: dict[str, DisplayColumn], measure: bars.Measure, rows: int) -> dict[str, DisplayColumn]:
    """Bars stand to the right of the numbers that they show."""
    found: dict[str, DisplayColumn] = {}
    shares, cells = measure.shares[:rows], measure.cells[:rows]
    for name, column in drawn.items():
        found[name] = column
        if name == measure.beside:
            if cells:
                width = max(len(measure.head), *map(len, cells))
                found[bars.DENSITY] = DisplayColumn(measure.head, cells, width, is_number=True, shares=shares)
            else:
                found[name] = replace(column, shares=shares)
            found[bars.BARS] = DisplayColumn(
                "", tuple(map(bars.draw_bar, shares)), bars.WIDTH, is_bar=True, shares=shares
            )
    return found


def _those_that_fit(answer: Answer, drawn: dict[str, DisplayColumn], width: int | None) -> list[str]:
    kept = list(drawn)
    order = [name for name in _FIRST_TO_GO.get(answer.kind, ()) if name in kept]
    order += [name for name in reversed(kept) if name not in order and not drawn[name].is_key and name != kept[0]]
    for name in order:
        if width is None or _total([_narrowest(drawn[one]) for one in kept]) <= width:
            break
        kept.remove(name)
    return kept


def _narrowest(column: DisplayColumn) -> int:
    if column.is_bar:
        return _READABLE_BAR
    if column.is_number or column.is_sparkline:
        return column.width
    return max(len(column.head), min(column.width, _READABLE_KEY if column.is_key else _READABLE))


def _narrowed(columns: Sequence[DisplayColumn], width: int | None) -> list[DisplayColumn]:
    """Texts become shorter, the longest first, until all columns fit."""
    sizes = [column.width for column in columns]
    least = [_narrowest(column) for column in columns]
    while width is not None and _total(sizes) > width:
        longest = max(range(len(sizes)), key=lambda i: (sizes[i] > least[i], sizes[i]))
        if sizes[longest] <= least[longest]:
            break
        sizes[longest] -= 1
    return [_cut(column, size) for column, size in zip(columns, sizes, strict=True)]


def _cut(column: DisplayColumn, width: int) -> DisplayColumn:
    if column.is_bar:
        cells = tuple(bars.draw_bar(share or 0.0, width) for share in column.shares)
    else:
        cut = shorten_inside if column.head == "path" else shorten
        cells = tuple(cut(cell, width) for cell in column.cells)
    return replace(column, cells=cells, width=width)


def _total(sizes: Sequence[int]) -> int:
    return sum(sizes) + GAP * (len(sizes) - 1)


def _remarks(answer: Answer, drawn: Sequence[str], rows: int) -> list[str]:
    remarks = list_approximations(answer, drawn)
    elsewhere = SAID_ELSEWHERE.get(answer.kind, ())
    unseen = [name for name in answer.columns if name not in drawn and name not in elsewhere]
    missing = [column_heading(name) for name in unseen if any(row[name] is not None for row in answer.rows)]
    if missing:
        remarks.append(f"not shown: {', '.join(missing)} (--json and to_dict() have all)")
    if len(answer) > rows:
        remarks.append(f"{len(answer) - rows:,} more rows (--json, a pipe and to_dict() have all)")
    return remarks


def _nearness(errors: Sequence[float | None]) -> list[str]:
    """How near quartiles are."""
    most = max((error for error in errors if error is not None), default=0.0)
    parts = [f"ranks of quartiles are off by at most {100 * most:.2g} % of the values"] if most else []
    return [*parts, *(["by how much some quartiles are off is not known"] if None in errors else [])]


def list_approximations(answer: Answer, drawn: Sequence[str]) -> list[str]:
    """What the mark of approximate numbers means in a summary, and the zone of its instants; none where none are."""
    if not is_summary(answer):
        return []
    error = max((row["distinct_error"] or 0.0 for row in answer.rows), default=0.0)
    told = f"a standard error of at most {format_number(100 * error)} % {_MEANING}"
    parts = [f"distinct values have {told}"] if error else []
    parts += _nearness(list(rank_errors(answer).values())) if {*QUARTILES} & {*drawn} else []
    if any(is_approximate(row, "min") or is_approximate(row, "max") for row in answer.rows):
        parts.append("bounds hold for more than the live rows of this snapshot")
    if any(is_approximate(row, name) for row in answer.rows for name in OF_ALL_ROWS):
        parts.append("means, quantiles and distinct values are those of all rows in the data files, deleted ones too")
    marked = [f"{APPROXIMATE} approximate: {'; '.join(parts)}"] if parts else []
    return [*marked, *_infinities(answer), *_zone(answer)]


def _infinities(answer: Answer) -> list[str]:
    """Which columns have infinite values: what leaves them out says so."""
    counts = [(row["column_name"], row.get("inf_count")) for row in answer.rows]
    told = [f"{make_visible(name)} ({format_number(count)})" for name, count in counts if count]
    if not told:
        return []
    named = ", ".join(told[:_MOST_NAMED]) + (" and others" if len(told) > _MOST_NAMED else "")
    return [f"avg, std and histograms leave infinite values out: {named}"]


def _zone(answer: Answer) -> list[str]:
    """In which zone the instants are written: without Spark and by name it is not the same."""
    return [f"timestamps in {answer.zone}"] if any(row["column_type"] == "timestamp" for row in answer.rows) else []
