"""The columns of an answer that are displayed, and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore.display.numbers import is_number_text
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from metastore.answers import Answer


_SUMMARY = (
    "column_name",
    "column_type",
    "sparkline",
    "min",
    "max",
    "approx_unique",
    "null_percentage",
    "top_value",
    "avg",
    "std",
    "q25",
    "q50",
    "q75",
)
_DISPLAYED = {
    "files": ("path", "size", "rows", "deleted_rows", "partition", "analyzed", "columns_analyzed"),
    "columns": ("path", "column_name", "min", "max", "rows", "null_count", "nan_count", "distinct"),
    "settings": ("name", "value", "source", "problem"),
}
_HEADS = {
    "column_name": "column",
    "column_type": "type",
    "approx_unique": "distinct",
    "null_percentage": "null %",
    "sparkline": "histogram",
    "lo": "from",
    "hi": "to",
    "null_count": "nulls",
    "nan_count": "NaN",
    "inf_count": "infinite",
    "deleted_rows": "deleted",
    "columns_analyzed": "columns",
    "analyzed_at": "analyzed",
    "files_total": "of files",
    "size_bytes": "size",
    "live_size_bytes": "live size",
}
_LAST_BUILT_IN = "analyzed_at"
_ALWAYS_SHOWN = ("min", "max")
_OF_ALL_COLUMNS = (
    "count",
    "exact",
    "distinct_error",
    "files",
    "files_total",
    "snapshot",
    "current",
    "analyzed_at",
    "rows_read",
    "rows_total",
    "inf_count",
)
IN_CAPTION = {"summary": _OF_ALL_COLUMNS, "filtered_summary": _OF_ALL_COLUMNS}
"""Columns that are not displayed, because the caption and the remarks have the same numbers."""
_VALUE_TEXTS = {"histogram": ("lo", "hi"), "quantiles": ("value",)}
"""Columns with values of the described column as texts: they are numbers if that column has numbers."""


def is_summary(answer: Answer) -> bool:
    """Whether an answer has a row for each column of a table."""
    return answer.kind in ("summary", "filtered_summary")


def read_column(answer: Answer, name: str) -> list[Any]:
    """The values of a column, one a row."""
    return [row[name] for row in answer.rows]


def read_known_values(answer: Answer, name: str) -> list[Any]:
    """The values of a column without None."""
    return [value for value in read_column(answer, name) if value is not None]


def has_values(answer: Answer, name: str) -> bool:
    """Whether a column has a value in any row."""
    return len(read_known_values(answer, name)) > 0


def choose_columns(answer: Answer) -> list[str]:
    """The names of the columns that are displayed; empty ones are not, but `to_dict()` and `--json` have all."""
    if is_summary(answer):
        return _choose_columns_of_summary(answer)
    visible = _DISPLAYED.get(answer.kind, answer.columns)
    columns = [name for name in visible if name in answer.columns]
    if answer.kind == "settings" and not has_values(answer, "problem"):
        columns.remove("problem")
    return columns


def _choose_columns_of_summary(answer: Answer) -> list[str]:
    user_defined = answer.columns[answer.columns.index(_LAST_BUILT_IN) + 1 :]
    visible = set(answer.columns).difference(IN_CAPTION[answer.kind])
    columns = [name for name in dict.fromkeys((*_SUMMARY, *user_defined)) if name in visible]
    if not answer.rows:
        return columns
    return [name for name in columns if name in _ALWAYS_SHOWN or has_values(answer, name)]


def column_heading(name: str) -> str:
    """The heading of a column."""
    return _HEADS.get(name, make_visible(name.replace("_", " ")))


def is_number(answer: Answer, name: str) -> bool:
    """Whether all values of a column are numbers: such a column is aligned to the right."""
    values = read_known_values(answer, name)
    if not values:
        return False
    if name in _VALUE_TEXTS.get(answer.kind, ()):
        return all(map(is_number_text, values))
    return all(map(_is_number, values))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
