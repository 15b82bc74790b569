"""Parts that all ways of showing an answer share: its visible columns, the text of a value, the caption."""

from __future__ import annotations

import math
import re
from datetime import datetime
from decimal import Decimal
from os.path import commonprefix
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size

from metastore.format.binary_text import render_binary
from metastore.format.value_rendering import render_average_time
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
_SHOWN = {
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
_LAST_OF_SUMMARY = "analyzed_at"
_SIZES = ("size", "size_bytes", "live_size_bytes")
_LONGEST = 40
_ID = 20
_CONTEXT = 12
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
SAID_ELSEWHERE = {"summary": _OF_ALL_COLUMNS, "filtered_summary": _OF_ALL_COLUMNS}
"""Columns that people do not see, because caption and remarks say the same."""
ELLIPSIS = "…"
APPROXIMATE = "~"
"""The mark before a number that may be off."""
_VALUES = ("min", "max", "q25", "q50", "q75", "top_value")
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")
QUARTILES = ("q25", "q50", "q75")
OF_ALL_ROWS = ("avg", "std", *QUARTILES)
"""Numbers in which deleted rows count, where there are any."""
_NONE: Mapping[str, float | None] = MappingProxyType({})
MOST_YEARS = 9999
"""The greatest number of as many digits as years have."""
_DIGITS = 12
_DECIMALS = 4
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_OF_ONE_COLUMN = {"histogram": ("lo", "hi"), "quantiles": ("value",)}
"""Texts that are all numbers where the column's values are."""
_NUMBER = re.compile(r"^-?((0|[1-9]\d*)(\.\d+)?(E-?\d+)?|Infinity)$")
_TIME = re.compile(r"^(~?\d{4}-\d\d-\d\d \d\d:\d\d):\d\d$")
_MICROSECONDS = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.\d+$")


def shown_columns(answer: Answer) -> list[str]:
    """The columns that people see, without empty ones; `to_dict()` and `--json` have all."""
    if is_summary(answer):
        return _shown_columns_of_summary(answer)
    columns = [name for name in _SHOWN.get(answer.kind, answer.columns) if name in answer.columns]
    if answer.kind == "settings" and not has_values(answer, "problem"):
        columns.remove("problem")
    return columns


def _shown_columns_of_summary(answer: Answer) -> list[str]:
    user_defined = answer.columns[answer.columns.index(_LAST_OF_SUMMARY) + 1 :]
    visible = set(answer.columns).difference(SAID_ELSEWHERE[answer.kind])
    columns = [name for name in dict.fromkeys((*_SUMMARY, *user_defined)) if name in visible]
    if not answer.rows:
        return columns
    return [name for name in columns if name in ("min", "max") or has_values(answer, name)]


def has_values(answer: Answer, name: str) -> bool:
    """Whether a column has a value in any row."""
    return any(row[name] is not None for row in answer.rows)


def is_summary(answer: Answer) -> bool:
    """Whether an answer has a row for each column of a table."""
    return answer.kind in ("summary", "filtered_summary")


def rank_errors(answer: Answer) -> Mapping[str, float | None]:
    """The error of the ranks of quartiles by column, as a share of the column's values; empty if it is unknown."""
    errors: Mapping[str, float | None] = getattr(answer, "rank_errors", _NONE)
    return errors


def column_heading(name: str) -> str:
    """The heading of a column."""
    return _HEADS.get(name) or make_visible(name.replace("_", " "))


def is_number(answer: Answer, name: str) -> bool:
    """Whether all values of a column are numbers: they are aligned to the right."""
    values = [row[name] for row in answer.rows if row[name] is not None]
    if not values:
        return False
    if name in _OF_ONE_COLUMN.get(answer.kind, ()):
        return all(_NUMBER.match(value) for value in values)
    return all(_is_number(value) for value in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def format_cell(name: str, value: Any) -> str:
    """A value as people read it: digits in groups of three, sizes in kB and MB, four significant digits."""
    if name in _SIZES and isinstance(value, int):
        return format_bytes(value)
    for value_type, write in _WRITERS:
        if isinstance(value, value_type):
            return make_visible(write(value))
    return make_visible(str(value))


def displayed_value(row: Mapping[str, Any], name: str) -> Any:
    """The value to show: the mean of dates as a date, no top value if each value occurs once."""
    column_type = str(row.get("column_type"))
    if name in ("avg", "std"):
        return _displayed_moment(row, name, column_type)
    value = row[name]
    if name == "top_value" and row.get("top_count") == 1:
        return None
    if value is None or name not in _VALUES or not is_numeric(column_type):
        return value
    return format_value(value, row)


def _displayed_moment(row: Mapping[str, Any], name: str, column_type: str) -> Any:
    value = row[name]
    if column_type.startswith(("date", "timestamp")):
        return _displayed_mean_time(value, column_type) if name == "avg" else None
    if value is None or not is_numeric(column_type) or are_grouped(row):
        return value
    return ungroup(format_number(value))


def _displayed_mean_time(mean: float | None, column_type: str) -> str | None:
    """The mean of dates and of times without a zone; of times with a zone it is not shown."""
    if mean is None or column_type not in ("date", "timestamp_ntz"):
        return None
    return render_average_time(mean, column_type)


def is_numeric(column_type: str) -> bool:
    """Whether the values of a type are numbers."""
    return column_type in NUMBERS or column_type.startswith("decimal")


def are_grouped(row: Mapping[str, Any]) -> bool:
    """Whether the digits of a column's values stand in groups: of years, and ids as short, they do not."""
    longest = max(len(str(row[end]).lstrip("-")) for end in ("min", "max"))
    return row["column_type"] not in _WHOLE or longest > len(str(MOST_YEARS))


def ungroup(number: str) -> str:
    """A number without marks between its digits."""
    return number.replace(",", "")


def format_value(text: str, row: Mapping[str, Any]) -> str:
    """A value of a column for people, numbers as all numbers of the column."""
    if not is_numeric(str(row["column_type"])):
        return text
    number = round_text(text)
    return number if are_grouped(row) else ungroup(number)


def round_text(text: str) -> str:
    """A number short enough to be read, digits in groups of three; no other text changes."""
    if not _NUMBER.match(text) or text.endswith("Infinity"):
        return text
    if "E" in text and not 1 <= abs(float(text)) < 1e15:
        return f"{float(text):.6g}" if len(text) > _DIGITS else text
    return _round_decimal(Decimal(text))


def _round_decimal(value: Decimal) -> str:
    integer, _, fraction = f"{value:,f}".partition(".")
    if len(fraction) > _DECIMALS:
        fraction = fraction.rstrip("0")
    if not fraction:
        return integer
    digits = len(ungroup(integer)) + 1 + len(fraction)
    if digits <= _DIGITS:
        return f"{integer}.{fraction}"
    if abs(value) >= 100_000:
        return f"{value:,.0f}"
    return f"{float(value):,.6g}"


def top_share(row: Mapping[str, Any]) -> float | None:
    """The share of a column's most frequent value; None if it is unknown, or the value occurs once."""
    count: int | None = row.get("top_count")
    values: int = (row.get("count") or 0) - (row.get("null_count") or 0)
    if count is None or not 1 < count <= values:
        return None
    return count / values


def format_marked_cell(
    row: Mapping[str, Any],
    name: str,
    rank_errors: Mapping[str, float | None] = _NONE,
    write: Callable[[str, Any], str] | None = None,
) -> str:
    """The text of a cell, marked if the number may be off; of quartiles by the ranks of the column."""
    format_text = write or format_brief_cell
    text = format_text(name, displayed_value(row, name))
    if name == "top_value":
        return _append_share(text, top_share(row))
    may_have_other_rank = name in QUARTILES and text != "" and rank_errors.get(row["column_name"], 0.0) != 0
    if may_have_other_rank or is_approximate(row, name):
        return APPROXIMATE + text
    return text


def _append_share(text: str, share: float | None) -> str:
    if share is None:
        return text
    return f"{text} ({100 * share:.3g} %)"


def is_approximate(row: Mapping[str, Any], name: str) -> bool:
    """Whether a number of a summary may be off; a bound that was cut ends in an ellipsis and needs no other mark."""
    if name == "approx_unique":
        return row[name] is not None and row.get("distinct_error") != 0
    if row[name] is None or row.get("exact") is not False:
        return False
    if name in OF_ALL_ROWS:
        return row.get("distinct_error") is None  # deleted rows count in them
    if name not in ("min", "max"):
        return False
    return not is_cut(row["min"]) and not is_cut(row["max"])


def is_cut(value: Any) -> bool:
    """Whether a value is the beginning of a longer text."""
    return str(value).endswith(ELLIPSIS)


def format_brief_cell(name: str, value: Any) -> str:
    """A cell of limited length: the end of a path, the beginning of a text, a time without seconds."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    text = format_cell(name, value)
    if name == "path":
        return text.rsplit("/", 1)[-1]
    return shorten(_MICROSECONDS.sub(r"\1", text), _LONGEST)


def shorten(text: str, length: int) -> str:
    """A text at most that wide, its end replaced by an ellipsis; a time loses its seconds first."""
    if cell_len(text) <= length:
        return text
    without_seconds = _TIME.sub(r"\1", text)
    if cell_len(without_seconds) <= length:
        return without_seconds
    return set_cell_size(without_seconds, length - 1).rstrip() + ELLIPSIS


def shorten_alike(texts: Sequence[str], length: int) -> list[str]:
    """Texts at most that wide; if they would be cut to the same, their common beginning is cut instead."""
    common = len(commonprefix(texts))  # noqa: RUF071 - of any texts, not of paths
    longest = max(map(len, texts), default=0)
    if longest > length and common + _CONTEXT >= length:
        texts = [text[: length // 3] + ELLIPSIS + text[common - _CONTEXT :] for text in texts]
    return [shorten(text, length) for text in texts]


def shorten_inside(text: str, length: int) -> str:
    """A text at most that wide, its middle replaced by an ellipsis: names of data files differ at their ends."""
    if cell_len(text) <= length:
        return text
    end = text[-(length // 2) :]
    return shorten(text, length - len(end)) + end


def format_number(value: float) -> str:
    """A number with four significant digits, or all of its integer part, in groups of three digits."""
    if not math.isfinite(value):
        return str(value)
    short = f"{value:.4g}"
    if 1e3 <= abs(float(short)) < 1e15:
        return f"{value:,.0f}"
    return short


def format_bytes(value: int) -> str:
    """A number of bytes."""
    if abs(value) < 1000:
        return f"{value} B"
    scaled = value / 1000
    for unit in ("kB", "MB", "GB"):
        if abs(scaled) < 1000:
            return f"{scaled:.1f} {unit}"
        scaled /= 1000
    return f"{scaled:.1f} TB"


_WRITERS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (type(None), lambda _: ""),
    (bool, lambda value: "yes" if value else "no"),
    (int, lambda value: f"{value:,}"),
    (float, format_number),
    (dict, lambda value: "/".join(f"{key}={part}" for key, part in value.items())),
    (datetime, lambda value: f"{value:%Y-%m-%d %H:%M:%S}"),
    (bytes, render_binary),
)


def build_caption(answer: Answer) -> str:
    """One line about the whole answer: its subject, its coverage, whether it is current."""
    return ", ".join(list_caption_parts(answer))


def list_caption_parts(answer: Answer) -> list[str]:
    """The parts of the caption, each of one source: a name may be written from right to left."""
    parts = [answer.subject] if answer.subject else []
    if answer.column_name:
        parts.append(f"column {answer.column_name}")
    if is_summary(answer) and answer.rows:
        parts += _list_row_counts(answer.rows[0])
    if answer.snapshot is not None:
        parts.append(f"snapshot {shorten(answer.snapshot, _ID)} ({_STATES[answer.current]})")
    if answer.analyzed_at is not None:
        parts.append(f"analyzed {answer.analyzed_at:%Y-%m-%d %H:%M} UTC")
    return list(map(make_visible, parts))


_STATES = {
    True: "current",
    False: "the table has changed since",
    None: "not known whether current",
}


def _list_row_counts(row: Mapping[str, Any]) -> list[str]:
    """The numbers of rows and data files behind a row of a summary."""
    parts = []
    if row["count"] is not None:
        parts.append(f"{row['count']:,} rows")
    parts.append(_coverage(row["files"], row["files_total"]))
    if row.get("rows_total") is not None:
        parts.append(f"{row['rows_read']:,} of {row['rows_total']:,} rows read for this")
    return parts


def _coverage(files: int | None, total: int | None) -> str:
    noun = "file" if total == 1 else "files"
    if files == total:
        return f"{total:,} {noun}"
    return f"{files:,} of {total:,} {noun}"
