"""The texts of an answer's cells."""

from __future__ import annotations

import re
from datetime import datetime
from functools import singledispatch
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from metastore.display.numbers import (
    format_bytes,
    format_number,
    is_numeric,
    mark_approximate,
    round_text,
    ungroup,
)
from metastore.display.shortening import is_cut, shorten
from metastore.format.binary_text import render_binary
from metastore.format.counts import subtract
from metastore.format.value_rendering import render_average_time
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from metastore.answers import Answer


_SIZES = ("size", "size_bytes", "live_size_bytes")
_LONGEST = 40
QUARTILES = ("q25", "q50", "q75")
WITH_DELETED_ROWS = ("avg", "std", *QUARTILES)
"""Statistics that include deleted rows."""
_NO_ERRORS: Mapping[str, float | None] = MappingProxyType({})
LATEST_YEAR = 9999
"""Numbers up to this one may be years: their digits are not grouped."""
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_TIMES = ("date", "timestamp")
_MICROSECONDS = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.\d+$")


def rank_errors(answer: Answer) -> Mapping[str, float | None]:
    """The error of the ranks of quartiles by column, as a share of the column's values; empty if it is unknown."""
    errors: Mapping[str, float | None] = getattr(answer, "rank_errors", _NO_ERRORS)
    return errors


def format_cell(name: str, value: Any) -> str:
    """A value as it is displayed: digits in groups of three, sizes in kB and MB, four significant digits."""
    if name in _SIZES and isinstance(value, int):
        return format_bytes(value)
    return make_visible(_write(value))


@singledispatch
def _write(value: Any) -> str:
    return str(value)


@_write.register(type(None))
def _write_none(_: None) -> str:
    return ""


@_write.register
def _write_flag(value: bool) -> str:  # noqa: FBT001 - the value that is written
    return "yes" if value else "no"


@_write.register
def _write_integer(value: int) -> str:
    return f"{value:,}"


@_write.register(dict)
def _write_partition(value: Mapping[str, Any]) -> str:
    return "/".join(f"{key}={part}" for key, part in value.items())


@_write.register
def _write_time(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}"


_write.register(float, format_number)
_write.register(bytes, render_binary)


def format_brief_cell(name: str, value: Any) -> str:
    """A cell of limited length: the end of a path, the beginning of a text, a time without seconds."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    text = format_cell(name, value)
    if name == "path":
        return text.rsplit("/", 1)[-1]
    return shorten(_MICROSECONDS.sub(r"\1", text), _LONGEST)


def displayed_value(row: Mapping[str, Any], name: str) -> Any:
    """The value to show: the mean of dates as a date, no top value if each value occurs once."""
    if name in _DISPLAYED:
        return _DISPLAYED[name](row, name)
    return row[name]


def _displayed_mean(row: Mapping[str, Any], name: str) -> Any:
    """The mean; empty for timestamps with a time zone."""
    column_type = _column_type(row)
    if not column_type.startswith(_TIMES):
        return _displayed_moment(row, name)
    mean = row[name]
    if mean is None or column_type not in ("date", "timestamp_ntz"):
        return None
    return render_average_time(mean, column_type)


def _displayed_deviation(row: Mapping[str, Any], name: str) -> Any:
    if _column_type(row).startswith(_TIMES):
        return None
    return _displayed_moment(row, name)


def _displayed_moment(row: Mapping[str, Any], name: str) -> Any:
    value = row[name]
    if value is None or not is_numeric(_column_type(row)) or are_grouped(row):
        return value
    return ungroup(format_number(value))


def _displayed_top_value(row: Mapping[str, Any], name: str) -> Any:
    if row.get("top_count") == 1:
        return None
    return _displayed_column_value(row, name)


def _displayed_column_value(row: Mapping[str, Any], name: str) -> Any:
    value = row[name]
    if value is None:
        return None
    return format_value(value, row)


_DISPLAYED: Mapping[str, Callable[[Mapping[str, Any], str], Any]] = {
    "avg": _displayed_mean,
    "std": _displayed_deviation,
    "top_value": _displayed_top_value,
    **dict.fromkeys(("min", "max", *QUARTILES), _displayed_column_value),
}


def _column_type(row: Mapping[str, Any]) -> str:
    return str(row.get("column_type"))


def are_grouped(row: Mapping[str, Any]) -> bool:
    """Whether the digits of a column's values are grouped by commas; those of years, and ids as short, are not."""
    if row["column_type"] not in _WHOLE:
        return True
    bounds = (str(row["min"]), str(row["max"]))
    longest = max(len(bound.lstrip("-")) for bound in bounds)
    return longest > len(str(LATEST_YEAR))


def format_value(text: str, row: Mapping[str, Any]) -> str:
    """A value of a column as it is displayed; numbers are rounded, and grouped as all numbers of the column."""
    if not is_numeric(_column_type(row)):
        return text
    number = round_text(text)
    if are_grouped(row):
        return number
    return ungroup(number)


def format_marked_cell(
    row: Mapping[str, Any],
    name: str,
    rank_errors: Mapping[str, float | None] = _NO_ERRORS,
    write: Callable[[str, Any], str] = format_brief_cell,
) -> str:
    """The text of a cell, marked if the number is approximate; for quartiles `rank_errors` decides that."""
    text = write(name, displayed_value(row, name))
    if name == "top_value":
        return _append_share(text, top_share(row))
    is_uncertain = text != "" and _has_uncertain_rank(row, name, rank_errors)
    return mark_approximate(text, is_approximate=is_uncertain or is_approximate(row, name))


def _append_share(text: str, share: float | None) -> str:
    if share is None:
        return text
    return f"{text} ({100 * share:.3g} %)"


def top_share(row: Mapping[str, Any]) -> float | None:
    """The share of a column's most frequent value; None if it is unknown, or the value occurs once."""
    count: int | None = row.get("top_count")
    values = count_values(row)
    if count is None or not 1 < count <= values:
        return None
    return count / values


def count_values(row: Mapping[str, Any]) -> int:
    """The number of values of a column that are not null; 0 if it is unknown."""
    return subtract(row.get("count"), row.get("null_count")) or 0


def _has_uncertain_rank(row: Mapping[str, Any], name: str, rank_errors: Mapping[str, float | None]) -> bool:
    return name in QUARTILES and rank_errors.get(row["column_name"], 0.0) != 0


def is_approximate(row: Mapping[str, Any], name: str) -> bool:
    """Whether a number of a summary is approximate."""
    if row[name] is None or name not in _UNCERTAIN:
        return False
    return _UNCERTAIN[name](row)


def _is_estimated(row: Mapping[str, Any]) -> bool:
    return row.get("distinct_error") != 0


def _counts_deleted_rows(row: Mapping[str, Any]) -> bool:
    return row.get("exact") is False and row.get("distinct_error") is None


def _has_wide_bounds(row: Mapping[str, Any]) -> bool:
    """Whether bounds are inexact without an ellipsis that says so."""
    if row.get("exact") is not False:
        return False
    return not is_cut(row["min"]) and not is_cut(row["max"])


_UNCERTAIN: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "approx_unique": _is_estimated,
    **dict.fromkeys(WITH_DELETED_ROWS, _counts_deleted_rows),
    **dict.fromkeys(("min", "max"), _has_wide_bounds),
}
