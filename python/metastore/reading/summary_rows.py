"""Builds rows of `summary` and `files` from rows of statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from metastore.format.counts import add_up, subtract
from metastore.format.sparkline import draw_sparkline
from metastore.format.value_rendering import may_be_cut, render_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from metastore.format.data_files import DataFile
    from metastore.format.table_column import Column


Row = dict[str, Any]
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
QUARTILES = (25, 50, 75)
_QUARTILE_NAMES = ("q25", "q50", "q75")
TOP = "top"
"""The field of a row of statistics with the most frequent value and its frequency."""


@dataclass(frozen=True)
class FileCounts:
    """Numbers of data files that a summary is about.

    Attributes:
        described: Files of the described snapshot.
        remaining: The described files that the requested snapshot still has, or None if unknown.
        total: Files of the requested snapshot, or None if unknown.
    """

    described: int
    remaining: int | None
    total: int | None

    @classmethod
    def of_same_files(cls, number: int) -> FileCounts:
        """Return the counts if the described snapshot is the requested one."""
        return cls(described=number, remaining=number, total=number)


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Facts that the rows of a summary share: the files that they describe, and when.

    Attributes:
        rows: Physical rows of the described files, or None if unknown.
        live: Rows that are not deleted; None if unknown, or if log files change them.
        exact: Whether no row was deleted or changed after the analysis.
        current: Whether the table is still at this snapshot, or None if unknown.
    """

    rows: int | None
    live: int | None
    exact: bool
    files: FileCounts
    snapshot: str
    current: bool | None
    analyzed_at: datetime | None

    def covers(self, statistics: Mapping[str, Any]) -> bool:
        """Return whether statistics cover all rows of the described files."""
        return self.rows is not None and statistics.get("rows") == self.rows


def scale_to_live(part: int | None, total: int, live: int | None) -> int | None:
    """Count the live ones among `part` of `total` rows or files; None unless all or none of either count."""
    if part is None or live is None:
        return None
    if {part, live}.isdisjoint((0, total)):
        return None
    return min(part, live)


def build_summary_row(column: Column, row: Mapping[str, Any] | None, scope: Scope, zone: str) -> Row:
    """Build the row of one column; unknown fields are null.

    Counts are of live rows, or null; bounds, mean and distribution are of physical rows.
    """
    statistics: Mapping[str, Any] = row or {}
    covers_all_rows = scope.covers(statistics)
    live_rows = scope.live if covers_all_rows else None
    has_only_live_rows = covers_all_rows and scope.live == scope.rows
    scale = partial(scale_to_live, total=scope.rows or 0, live=live_rows)
    analyzed_files = statistics.get("files", 1) if statistics else 0
    files = scale_to_live(analyzed_files, scope.files.described, scope.files.remaining)
    nulls = scale(statistics.get("nulls"))
    top_value, top_count = _find_top(statistics)
    return {
        "column_name": column.name,
        "column_type": column.type,
        **render_bounds(column, statistics, zone),
        "approx_unique": _limit_distinct(statistics.get("distinct"), scope.live, nulls),
        "avg": _finite_mean(statistics),
        "std": _deviation(statistics),
        **_render_quartiles(column, statistics, zone),
        "count": scope.live,
        "null_percentage": _percentage(nulls, scope.live),
        "null_count": nulls,
        "nan_count": scale(statistics.get("nans")),
        "avg_len": statistics.get("avg_len"),
        "max_len": statistics.get("max_len"),
        "top_value": render_value(top_value, column, zone=zone),
        "top_count": scale(top_count),
        "size_bytes": statistics.get("compressed_bytes"),
        "exact": _is_exact(column, statistics, scope, files),
        "distinct_error": statistics.get("distinct_error") if has_only_live_rows else None,
        "files": files,
        "files_total": scope.files.total,
        "snapshot": scope.snapshot,
        "current": scope.current,
        "analyzed_at": scope.analyzed_at,
        "sparkline": draw_sparkline(statistics.get(f"percentiles_{column.encoding}")),
        "inf_count": scale(_count_infinite(column, statistics)),
    }


def _limit_distinct(distinct: int | None, live: int | None, nulls: int | None) -> int | None:
    """Limit the number of distinct values to the number of live values."""
    if distinct is None or live is None:
        return distinct
    return min(distinct, live - (nulls or 0))


def _find_top(row: Mapping[str, Any]) -> tuple[Any, int | None]:
    """Find the most frequent value and its frequency; None if a value that is not listed may be more frequent."""
    value, count = row.get(TOP) or (None, 0)
    if count < max(1, count_or_zero(row, "frequencies_floor")):
        return None, None
    return value, count


def render_bounds(column: Column, row: Mapping[str, Any], zone: str) -> Row:
    """Render minimum and maximum as texts; a bound that was cut ends in an ellipsis."""
    low = row.get(f"lo_{column.encoding}")
    high = row.get(f"hi_{column.encoding}")
    return {
        "min": render_value(low, column, exact=row.get("lo_exact") is not False, zone=zone),
        "max": render_value(high, column, exact=row.get("hi_exact") is not False, zone=zone),
    }


def render_edge(column: Column, row: Mapping[str, Any], value: Any, zone: str) -> str | None:
    """Render an edge of a bin or a quantile; a text that may be the beginning of a longer value ends in an ellipsis."""
    return render_value(value, column, exact=not is_edge_cut(row, value), zone=zone)


def is_edge_cut(row: Mapping[str, Any], value: Any) -> bool:
    """Return whether an edge of a bin or a quantile may be only the beginning of a value."""
    are_bounds_exact = bool(row.get("lo_exact") and row.get("hi_exact"))
    return may_be_cut(value, are_bounds_exact=are_bounds_exact)


def parse_instant(text: str) -> datetime | None:
    """Parse an instant that a manifest writes as ISO 8601; None if it is not valid."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc)
    except ValueError:
        return None


def describe_new_file(file: DataFile) -> Row:
    """Build the row of `files` of a data file that is not analyzed."""
    return {
        "path": file.path,
        "size": file.size,
        "rows": file.rows,
        "deleted_rows": file.deleted_rows,
        "partition": _parse_partition(file.path) or None,
        "analyzed": False,
        "columns_analyzed": 0,
    }


def _parse_partition(path: str) -> dict[str, str | None]:
    """Return the partition values that folder names such as `country=CH` give."""
    partition = {}
    for folder in path.split("/")[:-1]:
        name, equals, text = folder.partition("=")
        if equals:
            value = unquote(text)
            partition[unquote(name)] = None if value == _NULL_PARTITION else value
    return partition


def count_live_rows(file: Mapping[str, Any]) -> int | None:
    """Count the live rows of a row of `table-files`; None if unknown."""
    deleted = 0 if file["deletes"] is None else file["deleted_rows"]
    return subtract(file["rows"], deleted)


def _render_quartiles(column: Column, row: Mapping[str, Any], zone: str) -> Row:
    percentiles = row.get(f"percentiles_{column.encoding}")
    quartiles = dict.fromkeys(_QUARTILE_NAMES)
    if percentiles:
        for percent, name in zip(QUARTILES, _QUARTILE_NAMES, strict=True):
            quartiles[name] = render_edge(column, row, percentiles[percent], zone)
    return quartiles


def _count_infinite(column: Column, row: Mapping[str, Any]) -> int | None:
    """Return the number of infinite values, or None if unknown."""
    if not row:
        return None
    if column.encoding != "double":
        return 0
    infinities = add_up([row.get("negative_infinities"), row.get("positive_infinities")])
    if infinities is not None:
        return infinities
    numbers = subtract(row.get("rows"), row.get("nulls"), row.get("nans"))
    if numbers == 0:
        return 0
    return None


def _finite_mean(row: Mapping[str, Any]) -> float | None:
    """Return the mean of the finite values; None if it may include infinite ones."""
    mean: float | None = row.get("mean")
    if mean is None:
        return None
    leaves_out_infinities = row.get("negative_infinities") is not None
    if leaves_out_infinities or math.isfinite(mean):
        return mean
    return None


def _deviation(row: Mapping[str, Any]) -> float | None:
    """Return the sample standard deviation; None for fewer than two values."""
    m2: float | None = row.get("m2")
    if m2 is None or _finite_mean(row) is None:
        return None
    nans = count_or_zero(row, "nans")
    infinities = count_or_zero(row, "negative_infinities") + count_or_zero(row, "positive_infinities")
    values = subtract(row.get("rows"), row.get("nulls"), nans, infinities)
    if values is None or values < 2:
        return None
    return math.sqrt(m2 / (values - 1))


def _is_exact(column: Column, row: Mapping[str, Any], scope: Scope, files: int | None) -> bool:
    """Return whether a row of a summary describes all live rows of all files exactly."""
    if not scope.exact or files != scope.files.total:
        return False
    if not files:
        return True
    if row.get("nulls") is None:
        return False
    return not _is_cut(column, row, "lo") and not _is_cut(column, row, "hi")


def _is_cut(column: Column, row: Mapping[str, Any], end: str) -> bool:
    has_bound = row.get(f"{end}_{column.encoding}") is not None
    return has_bound and not row.get(f"{end}_exact")


def _percentage(part: int | None, total: int | None) -> float | None:
    if part is None or not total:
        return None
    return 100.0 * part / total


def count_or_zero(row: Mapping[str, Any], name: str) -> int:
    """Read a count of a row; 0 if it is unknown."""
    return row.get(name) or 0
