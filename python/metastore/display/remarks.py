"""Remarks under an answer: the meaning of marks, and the columns and rows that are not displayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore.display.cells import QUARTILES, WITH_DELETED_ROWS, is_approximate, rank_errors
from metastore.display.columns import IN_CAPTION, column_heading, has_values, is_summary, read_column
from metastore.display.numbers import APPROXIMATE, format_number
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.answers import Answer

_MOST_NAMED = 5
_MEANING_OF_ERROR = "(two of three are nearer, 19 of 20 within twice that)"


def list_remarks(answer: Answer, names: Sequence[str], rows: int) -> list[str]:
    """Return remarks under an answer, of which the named columns and the first rows are displayed."""
    remarks = list_approximations(answer, names)
    missing = _list_missing_columns(answer, names)
    if missing:
        remarks.append(f"not shown: {', '.join(missing)} (--json and to_dict() have all)")
    if len(answer) > rows:
        remarks.append(f"{len(answer) - rows:,} more rows (--json, a pipe and to_dict() have all)")
    return remarks


def _list_missing_columns(answer: Answer, names: Sequence[str]) -> list[str]:
    """Return the headings of columns with values that are neither displayed nor in the caption."""
    visible = {*names, *IN_CAPTION.get(answer.kind, ())}
    hidden = [name for name in answer.columns if name not in visible]
    return [column_heading(name) for name in hidden if has_values(answer, name)]


def list_approximations(answer: Answer, names: Sequence[str]) -> list[str]:
    """Return remarks on a summary: why numbers are approximate, which columns have infinite values, the time zone."""
    if not is_summary(answer):
        return []
    remarks = []
    reasons = _list_reasons(answer, names)
    if reasons:
        remarks.append(f"{APPROXIMATE} approximate: {'; '.join(reasons)}")
    return [*remarks, *_infinities(answer), *_zone(answer)]


def _list_reasons(answer: Answer, names: Sequence[str]) -> list[str]:
    """Return the reasons why numbers of a summary are approximate."""
    reasons = _distinct_errors(answer)
    if not set(names).isdisjoint(QUARTILES):
        reasons += _rank_errors(answer)
    if _has_approximate(answer, ("min", "max")):
        reasons.append("bounds hold for more than the live rows of this snapshot")
    if _has_approximate(answer, WITH_DELETED_ROWS):
        reasons.append("means, quantiles and distinct values are those of all rows in the data files, deleted ones too")
    return reasons


def _distinct_errors(answer: Answer) -> list[str]:
    """Return the greatest error of the numbers of distinct values."""
    error = _greatest(read_column(answer, "distinct_error"))
    if not error:
        return []
    return [f"distinct values have a standard error of at most {format_number(100 * error)} % {_MEANING_OF_ERROR}"]


def _rank_errors(answer: Answer) -> list[str]:
    """Return the greatest error of the ranks of quartiles."""
    remarks = []
    errors = rank_errors(answer).values()
    greatest = _greatest(errors)
    if greatest:
        remarks.append(f"ranks of quartiles are off by at most {100 * greatest:.2g} % of the values")
    if None in errors:
        remarks.append("by how much some quartiles are off is not known")
    return remarks


def _greatest(errors: Iterable[float | None]) -> float:
    """Return the greatest of the errors that are known; 0 if there is none."""
    return max(filter(None, errors), default=0.0)


def _has_approximate(answer: Answer, names: Sequence[str]) -> bool:
    return any(is_approximate(row, name) for row in answer.rows for name in names)


def _infinities(answer: Answer) -> list[str]:
    """Return a remark on the columns with infinite values."""
    columns = [_describe_infinities(row) for row in answer.rows if row.get("inf_count")]
    if not columns:
        return []
    names = ", ".join(columns[:_MOST_NAMED])
    if len(columns) > _MOST_NAMED:
        names += " and others"
    return [f"avg, std and histograms leave infinite values out: {names}"]


def _describe_infinities(row: Mapping[str, Any]) -> str:
    return f"{make_visible(row['column_name'])} ({format_number(row['inf_count'])})"


def _zone(answer: Answer) -> list[str]:
    """Return the time zone of instants; it differs between reading with Spark and without."""
    if "timestamp" not in read_column(answer, "column_type"):
        return []
    return [f"timestamps in {answer.zone}"]
