"""The statistics of one table, read from where they are stored."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.adapters.identifiers import find_column, narrow_columns
from metastore.answers import Answer, Summary
from metastore.errors import InvalidArgument, NoStatistics
from metastore.reading import exact_ranks, summary_rows, views
from metastore.reading.analyzed_table import AnalyzedTable
from metastore.reading.answer_shapes import (
    add_user_defined,
    build_answer,
    build_table_answer,
    describe_snapshot,
    infer_user_defined_fields,
)
from metastore.reading.column_answers import ColumnAnswers
from metastore.reading.column_distributions import DistributionReader, require_values
from metastore.reading.diff_answers import DiffAnswers
from metastore.reading.discovery import discover_all, report_missing
from metastore.reading.distribution_changes import compare_distributions
from metastore.reading.distribution_rows import PROBABILITIES, check_probabilities
from metastore.reading.file_answers import FileAnswers
from metastore.reading.snapshot_files import count_known_columns
from metastore.reading.summary_changes import compare_summaries, sort_by_change
from metastore.reading.summary_reader import SummaryReader
from metastore.store.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from metastore.adapters.current_tables import CurrentTable
    from metastore.format.data_files import DataFile
    from metastore.format.manifest import Snapshot
    from metastore.reading.column_details import ColumnDetails
    from metastore.reading.discovery import Discovery
    from metastore.reading.pruned_files import PrunedFiles
    from metastore.reading.snapshot import SnapshotAnswer
    from metastore.reading.summary_rows import Row

    BuildView = Callable[[str | None, str | None], pa.Table]


class Statistics:
    """The statistics of one table, as `metastore.open` returns them: no Spark, no JVM.

    They are read once; open the table again to see later statistics.
    """

    def __init__(
        self, discovery: Discovery, zone: str = "UTC", opened: CurrentTable | None = None, *, reads_lineage: bool = True
    ) -> None:
        table = AnalyzedTable(discovery.keep_reads(), zone, opened, reads_lineage=reads_lineage)
        distributions = DistributionReader(table)
        self._table = table
        self._distributions = distributions
        self._summary = SummaryReader(table)
        self._columns = ColumnAnswers(table, distributions)
        self._files = FileAnswers(table)
        self._diff = DiffAnswers(table, distributions)

    def __repr__(self) -> str:
        return f"Statistics({self.table!r}, snapshots={len(self._table.snapshots)})"

    @property
    def table(self) -> str:
        """The table's name, or its location if it has no name."""
        return self._table.name

    @property
    def location(self) -> str:
        """The table's location."""
        return self._table.location

    def summary(self, file: str | None = None, at: str | int | datetime | None = None) -> Summary:
        """One row per column: bounds, distinct values, quantiles, nulls."""
        answer = self._table.at(at)
        rows = self._summary.read(file, answer)
        return build_answer(
            Summary,
            "summary",
            self.table,
            rows,
            infer_user_defined_fields(rows),
            measure_ranks=None if file else partial(self._summary.measure_quartiles, answer),
            **describe_snapshot(self._table, answer),
        )

    def files(self, at: str | int | datetime | None = None) -> Answer:
        """One row per data file of the table."""
        answer = self._table.find(at)
        if answer is None:
            return build_table_answer(self._table, "files", [])
        rows = self._describe_files(answer)
        listed = self._table.history.listed
        if at is None and listed and not answer.is_requested:
            rows = self._describe_listed_files(listed, answer.snapshot, rows)
        return build_table_answer(self._table, "files", rows, answer)

    def _describe_files(self, answer: SnapshotAnswer) -> list[Row]:
        """Return the rows of `files` of an analyzed snapshot, in its order."""
        stored = self._table.read_files(answer.snapshot)
        analyzed = stored.is_covered().tolist()
        analyzed_columns = count_known_columns(stored, answer.columns).tolist()
        rows: list[Row] = stored.files.select(["path", "size", "rows", "deleted_rows"]).to_pylist()
        for number, row in enumerate(rows):
            partition = stored.partitions[number]
            row["partition"] = dict(partition) if partition else None
            row["analyzed"] = analyzed[number]
            row["columns_analyzed"] = analyzed_columns[number]
        return rows

    def _describe_listed_files(self, files: Sequence[DataFile], snapshot: Snapshot, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of `files` of a folder as it is listed now; some of its files are analyzed."""
        analyzed = dict(zip(self._table.list_file_keys(snapshot), rows, strict=True))
        return [analyzed.get(file.key) or summary_rows.describe_new_file(file) for file in files]

    def columns(self, column: str | None = None, at: str | int | datetime | None = None) -> Answer:
        """One row per data file and column that has statistics."""
        answer = self._table.at(at)
        return build_table_answer(self._table, "columns", self._summary.read_files(column, None, answer), answer)

    def frequencies(
        self, column: str, top: int | None = None, file: str | None = None, at: str | int | datetime | None = None
    ) -> Answer:
        """One row per value of a column, most frequent first; null is no value, NaN is one."""
        return self._columns.frequencies(column, top, file, self._table.at(at))

    def histogram(
        self, column: str, bins: int | None = None, file: str | None = None, at: str | int | datetime | None = None
    ) -> Answer:
        """One row per bin of a column; null, NaN and infinite values are in no bin."""
        return self._columns.histogram(column, bins, file, self._table.at(at))

    def quantiles(
        self,
        column: str,
        probabilities: float | Sequence[float] = PROBABILITIES,
        at: str | int | datetime | None = None,
    ) -> Answer:
        """One row per probability: the smallest value that at least this share of the values does not exceed.

        The value is exact if the column has ranks. Else it comes from the histogram, and `error` is the largest
        possible error of its rank, as a share of the values. A column without values has nulls.
        """
        return self._columns.quantiles(column, check_probabilities(probabilities), self._table.at(at))

    def locate(self, column: str, value: Any, at: str | int | datetime | None = None) -> Answer:
        """One row per data file that may hold a value: found by bounds, lists of values and bloom filters.

        If the column has a distribution (`metastore.analyze(..., distribution=True)`), exactly these files hold it.
        """
        return self._columns.locate(column, value, self._table.at(at))

    def prune(self, filter: str) -> PrunedFiles:  # noqa: A002 - as in SQL
        """Return the data files that have to be read for a filter: no row of any other file can match.

        The filter means what it means in Spark. A part of it without a rule skips nothing, and a data file without
        statistics is read. The engine that reads the files still has to filter rows and to apply deletes
        (`with_deletes`).

        Args:
            filter: A condition in Spark's SQL, as after WHERE: `amount > 100 AND country = 'CH'`.

        Raises:
            InvalidArgument: It is no condition, or nested deeper than some thousand parentheses.
            ColumnNotFound: It names a column that the table does not have.
            NoStatistics: The table was never analyzed: a location alone does not say which files it has.
            UnsupportedTable: A directory of Parquet files is partitioned in different ways, so that Spark refuses it.
            AccessDenied: A folder of it cannot be listed.
            LibraryNotFound: sqlglot is not installed: `pip install pyspark-metastore[prune]`.

        Example:
            >>> files = metastore.open("/warehouse/db/sales").prune("amount > 100 AND country = 'CH'")  # doctest: +SKIP
            >>> duckdb.read_parquet(files.paths)  # doctest: +SKIP
        """
        return self._files.prune(filter)

    def layout(self, column: str | None = None) -> Answer:
        """One row per column: how its values are spread over the data files, and how many of these a look-up reads.

        `files_per_lookup` is the number of files that may hold the value of a row: the mean of up to 32 values, with
        its standard error `lookup_error`. `overlap_depth` is the average number of files whose bounds overlap those of
        a file, itself included; `sorted` is the share of files that overlap no other. `advice`, the statement that
        would help, needs Spark: `metastore.layout(spark, "db.sales")`.

        Args:
            column: Its name; all columns if None.

        Raises:
            NoStatistics: The table was never analyzed: a location alone does not say which files it has.
            ColumnNotFound: There is no such column.

        Example:
            >>> metastore.open("/warehouse/db/sales").layout("customer")[0]["files_per_lookup"]  # doctest: +SKIP
            1.5
        """
        return self._files.layout(column)

    def diff(
        self,
        before: str | int | datetime,
        after: str | int | datetime | None = None,
        *,
        distributions: bool = False,
        added: bool = False,
    ) -> Answer:
        """One row per column and measure of the summary that differs between two snapshots, the largest change first.

        Args:
            before: The earlier snapshot, or a time.
            after: The later snapshot; the current one if None.
            distributions: Whether two more rows for each column measure how much its distribution has changed.
            added: Whether only the data files that were added after the earlier snapshot are compared with it.
                Rewritten files do not count; if the added files are unknown, `reason` says why.
        """
        new = self._table.at(after, "after")
        old = self._table.at(before, "before")
        if added:
            rows = self._diff.compare_added(old, new, distributions=distributions)
            return build_table_answer(self._table, "diff", rows, new)
        answer = build_table_answer(self._table, "diff", self._diff.compare(old, new), new)
        if not distributions:
            return answer
        return add_distributions(answer, old.snapshot.id, new.snapshot.id, [self])

    def details(self, column: str, at: str | int | datetime | None = None) -> ColumnDetails:
        """Return the value list and histogram of a column, as they are stored."""
        return self._distributions.read(column, None, self._table.at(at)).details

    def names(self, at: str | int | datetime | None = None) -> list[str]:
        """Return the names of the columns."""
        return [column.name for column in self._table.at(at).columns]

    def snapshots(self) -> Answer:
        """One row per analyzed snapshot, oldest first."""
        rows = []
        for snapshot in self._table.snapshots:
            row = {
                "snapshot": snapshot.id,
                "analyzed_at": summary_rows.parse_instant(snapshot.analyzed_at),
                "files": snapshot.files,
                "files_total": snapshot.files_total,
                "rows": snapshot.rows,
                "columns": len(snapshot.columns),
                "current": self._table.history.is_current(snapshot),
                "size_bytes": snapshot.size_bytes,
                "live_size_bytes": snapshot.live_size_bytes,
            }
            rows.append(row)
        return build_table_answer(self._table, "snapshots", rows)

    def view(self, name: str, column: str | None = None, file: str | None = None) -> pa.Table:
        """Return a view of the data source: the columns of the answer, and the typed columns of docs/format.md."""
        _check_narrowing(name, column, file)
        builders: Mapping[str, BuildView] = {
            "files": self._view_files,
            "snapshots": self._view_snapshots,
            "columns": self._view_columns,
            "ranks": self._view_ranks,
            "summary": self._view_summary,
        }
        build_distributions: BuildView = partial(self._view_distributions, name)
        build = builders.get(name, build_distributions)
        return build(column, file)

    def _view_files(self, *_: str | None) -> pa.Table:
        return self.files().to_arrow()

    def _view_snapshots(self, *_: str | None) -> pa.Table:
        return self.snapshots().to_arrow()

    def _view_columns(self, column: str | None, file: str | None) -> pa.Table:
        answer = self._table.at(None)
        rows = self._summary.read_files(column, file, answer)
        return views.build_view("columns", rows)

    def _view_ranks(self, column: str | None, _: str | None) -> pa.Table:
        answer = self._table.at(None)
        return exact_ranks.build_ranks_view(self._table.store, answer, column, self.table)

    def _view_summary(self, column: str | None, file: str | None) -> pa.Table:
        answer = self._table.at(None)
        rows = self._summary.read(file, answer)
        fields = infer_user_defined_fields(rows)
        if column:
            name = find_column(answer.described, column, self.table).name
            rows = [row for row in rows if row["column_name"] == name]
        return views.build_view("summary", add_user_defined(rows, fields), fields)

    def _view_distributions(self, name: str, column: str | None, file: str | None) -> pa.Table:
        answer = self._table.at(None)
        columns = narrow_columns(answer.columns, column, self.table)
        if not column:
            columns = [candidate for candidate in columns if candidate.encoding]
        distributions = []
        for selected in columns:
            with suppress(NoStatistics):
                distributions.append(self._distributions.read(selected.name, file, answer))
        return views.build_distribution_view(name, distributions, columns, self._table.zone)

    def schema(self, name: str, column: str | None = None, file: str | None = None) -> pa.Schema:
        """Return the columns of a view: those of every table, and in `summary` one for each user-defined statistic."""
        if name == views.WIDE:
            columns = narrow_columns(self._table.at(None).columns, column, self.table)
            return views.make_wide_schema(columns)
        if name == "summary":
            rows = self._summary.read(file, self._table.at(None))
            return pa.schema([*views.VIEWS[name], *infer_user_defined_fields(rows)])
        return views.VIEWS[name]

    def check(self, name: str, column: str | None = None, file: str | None = None) -> None:
        """Check that a view can be read.

        Raises:
            InvalidArgument: The view cannot be narrowed by a column or file, or there is no such file.
            ColumnNotFound: There is no such column.
            NoStatistics: The table was not analyzed.
        """
        _check_narrowing(name, column, file)
        if name not in views.NARROWED:
            return
        answer = self._table.at(None)
        if column:
            selected = find_column(answer.described, column, self.table)
            if name in views.NAMES:
                require_values(selected)
        if file:
            self._table.find_file(file, self._table.read_files(answer.snapshot))

    def to_table_row(self) -> Row:
        """Return the row of this table in `tables`."""
        facts = describe_snapshot(self._table, self._table.find())
        return {
            "table": self.table,
            "format": self._table.discovery.table_format,
            "location": self.location,
            "snapshot": facts.get("snapshot"),
            "current": facts.get("current"),
            "analyzed_at": facts.get("analyzed_at"),
        }

    def describe_columns(self, answer: SnapshotAnswer) -> list[Row]:
        """Return the rows of a summary at a snapshot."""
        return self._summary.read_table(answer)


def add_distributions(diff: Answer, before: str | None, after: str | None, statistics: Sequence[Statistics]) -> Answer:
    """Add the measures of the distributions of each column that both snapshots have.

    Args:
        diff: The other differences.
        before: The snapshot before.
        after: The snapshot after.
        statistics: The statistics of one table, or of the one before and the one after.
    """
    rows = sort_by_change([*diff, *measure_distributions(before, after, statistics)])
    return replace(diff, rows=tuple(rows))


def measure_distributions(before: str | None, after: str | None, statistics: Sequence[Statistics]) -> list[Row]:
    """Compare the distributions of each column that both snapshots have; arguments as of `add_distributions`."""
    old = statistics[0]
    new = statistics[-1]
    former = set(old.names(before))
    names = [name for name in new.names(after) if name in former]
    return compare_distributions(names, partial(old.details, at=before), partial(new.details, at=after))


def compare_answers(before: Summary, after: Summary, statistics: Sequence[Statistics]) -> Answer:
    """Compare two summaries, of one table or of two, and their distributions."""
    answer = build_answer(Answer, "diff", after.subject, compare_summaries(before, after))
    return add_distributions(answer, before.snapshot, after.snapshot, statistics)


def list_tables(location: str) -> Answer:
    """One row per table with statistics under a root of stores, or the one table at a location."""
    root = Folder(location)
    if not root.exists():
        raise report_missing(location)
    rows = [Statistics(discovery).to_table_row() for discovery in discover_all(root)]
    return build_answer(Answer, "tables", location, rows)


def _check_narrowing(view: str, column: str | None, file: str | None) -> None:
    for option, value in (("column", column), ("file", file)):
        if value and option not in views.NARROWED.get(view, ()):
            raise InvalidArgument(option, f"the view {view} cannot be narrowed by it")
