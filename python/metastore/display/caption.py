"""The caption of an answer: its subject, its coverage, whether it is current."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore.display.columns import is_summary
from metastore.display.shortening import shorten
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from metastore.answers import Answer

_LONGEST_ID = 20
_STATES = {
    True: "current",
    False: "the table has changed since",
    None: "not known whether current",
}


def build_caption(answer: Answer) -> str:
    """Return one line about the whole answer."""
    return ", ".join(list_caption_parts(answer))


def list_caption_parts(answer: Answer) -> list[str]:
    """Return the parts of the caption; HTML isolates each, because a name may be written from right to left."""
    parts = [
        answer.subject,
        _describe_column(answer),
        *_list_row_counts(answer),
        _describe_snapshot(answer),
        _describe_analysis(answer),
    ]
    return list(map(make_visible, filter(None, parts)))


def _describe_column(answer: Answer) -> str:
    if not answer.column_name:
        return ""
    return f"column {answer.column_name}"


def _describe_snapshot(answer: Answer) -> str:
    if answer.snapshot is None:
        return ""
    return f"snapshot {shorten(answer.snapshot, _LONGEST_ID)} ({_STATES[answer.current]})"


def _describe_analysis(answer: Answer) -> str:
    if answer.analyzed_at is None:
        return ""
    return f"analyzed {answer.analyzed_at:%Y-%m-%d %H:%M} UTC"


def _list_row_counts(answer: Answer) -> list[str]:
    """Return the numbers of rows and data files behind a summary, which are the same in all its rows."""
    if not is_summary(answer) or not answer.rows:
        return []
    row = answer.rows[0]
    return [
        _describe_rows(row),
        _describe_files(row["files"], row["files_total"]),
        _describe_rows_read(row),
    ]


def _describe_rows(row: Mapping[str, Any]) -> str:
    if row["count"] is None:
        return ""
    return f"{row['count']:,} rows"


def _describe_files(files: int | None, total: int | None) -> str:
    noun = "file" if total == 1 else "files"
    if files == total:
        return f"{total:,} {noun}"
    return f"{files:,} of {total:,} {noun}"


def _describe_rows_read(row: Mapping[str, Any]) -> str:
    if row.get("rows_total") is None:
        return ""
    return f"{row['rows_read']:,} of {row['rows_total']:,} rows read for this"
