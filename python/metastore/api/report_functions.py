"""The public function that makes a page of a table's statistics."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from metastore import configuration
from metastore.answers import Answer
from metastore.api import query_functions, read_functions
from metastore.display.report.contents import Contents, collect_columns
from metastore.display.report.page import render_page
from metastore.errors import InvalidArgument, MetastoreError
from metastore.reading.table_answers import Statistics, compare_answers
from metastore.reading.views import FUNCTIONS
from metastore.spark.discovery_by_name import open_by_name
from metastore.spark.session import check_session

if TYPE_CHECKING:
    from datetime import datetime
    from os import PathLike

    from pyspark.sql import SparkSession

    Moment = str | int | datetime | None


@dataclass(frozen=True, repr=False)
class Report:
    """A page about a table's statistics, which needs no other file and no network.

    Attributes:
        subject: The table.
        html: The page.
        columns: The number of columns on it.
        current: Whether it is about the snapshot that the table is at, or None if unknown.
    """

    subject: str
    html: str
    columns: int
    current: bool | None = None

    def __repr__(self) -> str:
        return f"Report({self.subject!r}, columns={self.columns})"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="700"></iframe>'

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the page to a file.

        Raises:
            OSError: The file cannot be written.
        """
        file = Path(path)
        file.write_text(self.html, "utf-8")
        return file


def report(
    where: SparkSession | str,
    table: str | None = None,
    *,
    at: Moment = None,
    before: Moment = None,
    other: str | None = None,
) -> Report:
    """One HTML page about a table: each column's distribution and numbers, what stands out, layout, what pruning saved.

    All of it is read from the statistics that are stored, no data file is read; nothing is computed that the reading
    verbs do not answer.

    Args:
        where: A session; or a table's location, its store, or the root of many stores, without Spark: then neither the
            statement that would help the layout nor what pruning saved is told.
        table: Its name in the session's catalogs; or which table, where the location is a root of several.
        at: A snapshot id, version or instant; the current one if None.
        before: An earlier snapshot to compare with: columns show both, and what has changed, as `diff` tells it.
        other: Another table to compare with, named as the first is: by its name, or by its location.

    Raises:
        TableNotFound: There is no such table, or nothing at the location.
        NoStatistics: The table was not analyzed.

    Example:
        >>> metastore.report(spark, "db.sales").save("sales.html")  # doctest: +SKIP
        PosixPath('sales.html')
    """
    statistics, contents = _collect(where, table, at)
    summary = contents.summary
    if before is not None or other is not None:
        if isinstance(where, str):
            former, earlier = _collect(other or where, table, before)
        else:
            former, earlier = _collect(where, other or table, before)
        changes = compare_answers(earlier.summary, summary, (former, statistics))
        contents = replace(contents, before=earlier, changes=changes)
    return Report(summary.subject, render_page(contents), len(summary), summary.current)


def _collect(where: SparkSession | str, table: str | None, at: Moment) -> tuple[Statistics, Contents]:
    if isinstance(where, str):
        statistics = read_functions.open(where, table)
        summary = statistics.summary(at=at)
        layout = statistics.layout() if at is None else None
        return statistics, Contents(summary=summary, columns=collect_columns(statistics, summary), layout=layout)
    check_session(where)
    if table is None:
        raise InvalidArgument("table", "no table is named", 'Say metastore.report(spark, "db.t").')
    summary = read_functions.summary(where, table, at=at)  # asks whether the user may see the table
    statistics = open_by_name(where, table, summary.zone)
    columns = collect_columns(statistics, summary)
    if at is not None:
        return statistics, Contents(summary=summary, columns=columns)
    is_recorded = configuration.get("spark.metastore.history.enabled", where)
    history = _history(where, table)
    return statistics, Contents(
        summary=summary, columns=columns, layout=_layout(where, table), history=history, is_recorded=is_recorded
    )


def _history(spark: SparkSession, table: str) -> Answer:
    try:
        return query_functions.history(spark, table)
    except InvalidArgument:  # nothing was noted, for that is switched off: the page says how to switch it on
        return Answer(
            kind="history",
            subject=table,
            columns=tuple(FUNCTIONS["history"].names),
            rows=(),
            schema=FUNCTIONS["history"],
        )


def _layout(spark: SparkSession, table: str) -> Answer | None:
    with suppress(MetastoreError):  # of very wide tables it is not told in time
        return read_functions.layout(spark, table)
    return None
