"""Rows of the views, made from rows of statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from metastore.format.sparkline import draw_sparkline
from metastore.format.value_rendering import may_be_cut, render_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from metastore.adapters.table_facts import DataFile
    from metastore.format.table_column import Column


Row = dict[str, Any]
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
QUARTILES = (25, 50, 75)
TOP = "top"
"""In a row of statistics: the most frequent value and how often it occurs."""


@dataclass(frozen=True)
class FileCounts:
    """How many data files a summary is about.

    Attributes:
        described: Those of the snapshot described.
        left: How many of them the snapshot asked for still has; None where not known.
        total: Those of the snapshot asked for; None where not known.
    """

    described: int
    left: int | None
    total: int | None


@dataclass(frozen=True)
class Scope:
    """What the rows of a summary have in common: the files they describe and when.

    Attributes:
        rows: Physical rows of the files described; None where not known.
        live: How many of them nothing deletes; None where not known, or where other files change them.
        exact: Whether nothing was deleted or changed since.
        current: Whether the table is still there.
    """

    rows: int | None
    live: int | None
    exact: bool
    files: FileCounts
    snapshot: str
    current: bool | None
    analyzed_at: datetime | None


def scale_to_live(part: int | None, whole: int, live: int | None) -> int | None:
    """How many of `part` of `whole` things are among the `live` ones of them; None where that cannot be told."""
    if part is None or live is None:
        return None
    return min(part, live) if live == whole or part in (0, whole) or live == 0 else None


def build_summary_row(column: Column, row: Mapping[str, Any] | None, scope: Scope, zone: str) -> Row:
    """The row of one column; what its statistics do not tell is null.

    Counts are those of live rows or null; bounds and all that tells of a distribution describe physical rows.
    """
    known: Mapping[str, Any] = row or {}
    covered = known.get("files", 1) if row is not None else 0
    files = scale_to_live(covered, scope.files.described, scope.files.left)
    is_whole = row is not None and scope.rows is not None and known["rows"] == scope.rows  # all rows, of all files

    def live(part: int | None) -> int | None:
        return scale_to_live(part, scope.rows or 0, scope.live) if is_whole else None

    nulls = live(known.get("nulls"))
    top_value, top_count = _top(known)
    return {
        "column_name": column.name,
        "column_type": column.type,
        **render_bounds(column, known, zone),
        "approx_unique": _distinct(known.get("distinct"), scope.live, nulls),
        "avg": _finite_mean(known),
        "std": _deviation(known),
        **{f"q{p}": _percentile(column, known, p, zone) for p in QUARTILES},
        "count": scope.live,
        "null_percentage": _percentage(nulls, scope.live),
        "null_count": nulls,
        "nan_count": live(known.get("nans")),
        "avg_len": known.get("avg_len"),
        "max_len": known.get("max_len"),
        "top_value": render_value(top_value, column, zone=zone),
        "top_count": live(top_count),
        "size_bytes": known.get("compressed_bytes"),
        "exact": scope.exact and files == scope.files.total and (not files or _is_exact(column, known)),
        "distinct_error": known.get("distinct_error") if is_whole and scope.live == scope.rows else None,
        "files": files,
        "files_total": scope.files.total,
        "snapshot": scope.snapshot,
        "current": scope.current,
        "analyzed_at": scope.analyzed_at,
        "sparkline": draw_sparkline(known.get(f"percentiles_{column.encoding}")),
        "inf_count": live(_infinities(column, known)),
    }


def _distinct(distinct: int | None, live: int | None, nulls: int | None) -> int | None:
    """Distinct values, no more than live rows can have."""
    return distinct if distinct is None or live is None else min(distinct, live - (nulls or 0))


def _top(known: Mapping[str, Any]) -> tuple[Any, int | None]:
    """The most frequent value and how often it occurs; nothing where one left out of its list may be more frequent."""
    value, count = known.get(TOP) or (None, 0)
    return (value, count) if count and count >= (known.get("frequencies_floor") or 0) else (None, None)


def render_bounds(column: Column, row: Mapping[str, Any], zone: str) -> Row:
    """Minimum and maximum as texts; a bound that was cut ends in an ellipsis."""
    low, high = row.get(f"lo_{column.encoding}"), row.get(f"hi_{column.encoding}")
    return {
        "min": render_value(low, column, exact=row.get("lo_exact") is not False, zone=zone),
        "max": render_value(high, column, exact=row.get("hi_exact") is not False, zone=zone),
    }


def render_edge(column: Column, row: Mapping[str, Any], value: Any, zone: str) -> str | None:
    """An edge of a bin or a quantile as text; one that may be the beginning of longer ones ends in an ellipsis."""
    return render_value(value, column, exact=not is_edge_cut(row, value), zone=zone)


def is_edge_cut(row: Mapping[str, Any], value: Any) -> bool:
    """Whether an edge of a bin or a quantile may be the beginning of longer values of a column of such a summary."""
    return may_be_cut(value, are_bounds_exact=all(row.get(f"{end}_exact") for end in ("lo", "hi")))


def parse_instant(text: str) -> datetime | None:
    """The instant that a manifest writes as ISO 8601; None where it is none."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc)
    except ValueError:
        return None


def describe_new_file(file: DataFile) -> Row:
    """The row of `files` of a data file that a folder has and nobody has analyzed."""
    folders = (part.partition("=") for part in file.path.split("/")[:-1])
    values = {unquote(name): unquote(value) for name, equals, value in folders if equals}
    partition = {name: None if value == _NULL_PARTITION else value for name, value in values.items()}
    return {
        "path": file.path,
        "size": file.size,
        "rows": file.rows,
        "deleted_rows": file.deleted_rows,
        "partition": partition or None,
        "analyzed": False,
        "columns_analyzed": 0,
    }


def count_live_rows(file: Mapping[str, Any]) -> int | None:
    """The live rows of a row of `table-files`; None where not known."""
    physical, deleted = file["rows"], 0 if file["deletes"] is None else file["deleted_rows"]
    return physical - deleted if physical is not None and deleted is not None else None


def _percentile(column: Column, row: Mapping[str, Any], percent: int, zone: str) -> str | None:
    values = row.get(f"percentiles_{column.encoding}")
    return render_edge(column, row, values[percent], zone) if values else None


def _infinities(column: Column, row: Mapping[str, Any]) -> int | None:
    """How many values are infinite; None where that is not known."""
    if column.encoding != "double":
        return 0 if row else None
    below, above = row.get("negative_infinities"), row.get("positive_infinities")
    if below is not None and above is not None:
        return int(below + above)
    rows, nulls, nans = row.get("rows"), row.get("nulls"), row.get("nans")
    has_no_value = rows is not None and nulls is not None and nans is not None and rows == nulls + nans
    return 0 if has_no_value else None


def _finite_mean(row: Mapping[str, Any]) -> float | None:
    """The mean of the finite values; None where infinite ones may be in it."""
    mean: float | None = row.get("mean")
    is_of_finite = row.get("negative_infinities") is not None or mean is None or math.isfinite(mean)
    return mean if is_of_finite else None


def _deviation(row: Mapping[str, Any]) -> float | None:
    """The sample standard deviation; of fewer than two values there is none."""
    rows, nulls, m2 = row.get("rows"), row.get("nulls"), row.get("m2")
    if rows is None or nulls is None or m2 is None or _finite_mean(row) is None:
        return None
    infinities = (row.get("negative_infinities") or 0) + (row.get("positive_infinities") or 0)
    values = rows - nulls - (row.get("nans") or 0) - infinities
    return math.sqrt(m2 / (values - 1)) if values > 1 else None


def _is_exact(column: Column, row: Mapping[str, Any]) -> bool:
    cut = (row.get(f"{end}_{column.encoding}") is not None and not row.get(f"{end}_exact") for end in ("lo", "hi"))
    return row.get("nulls") is not None and not any(cut)


def _percentage(part: int | None, whole: int | None) -> float | None:
    return 100.0 * part / whole if part is not None and whole else None
