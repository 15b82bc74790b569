"""Reads the rows of `summary` and `columns` for a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore.adapters.identifiers import find_column
from metastore.errors import MetastoreError, NoStatistics
from metastore.format.object_schemas import ENCODED_TYPES
from metastore.format.table_column import Column, is_compatible
from metastore.reading import exact_ranks, extra_columns, summary_details
from metastore.reading.answer_shapes import USER_DEFINED
from metastore.reading.snapshot_files import read_statistics
from metastore.reading.summary_rows import QUARTILES, TOP, Row, Scope, build_summary_row, render_bounds
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from metastore.format.manifest import Snapshot
    from metastore.reading.analyzed_table import AnalyzedTable
    from metastore.reading.snapshot import SnapshotAnswer
    from metastore.reading.snapshot_files import SnapshotFiles

    RowsByKey = dict[str, dict[str, Any]]
    """Rows of statistics by the column's key."""

_LOG = get_logger(__name__)
_QUARTILE_SHARES = [percent / 100 for percent in QUARTILES]


@dataclass(frozen=True)
class SummaryReader:
    """Reads statistics of columns, of a table or of one of its data files."""

    table: AnalyzedTable

    def read(self, file: str | None, answer: SnapshotAnswer) -> list[Row]:
        """Read one row for each column, of the table or of one data file."""
        if file:
            return self.read_file(file, answer)
        return self.read_table(answer)

    def read_table(self, answer: SnapshotAnswer) -> list[Row]:
        """Read one row for each column of the table."""
        rows = self._read_table_statistics(answer.snapshot)
        analyzed = {column.key: column for column in answer.snapshot.described}
        summary = []
        for column in answer.described:
            row = None
            if column.key in rows and is_compatible(analyzed[column.key], column):
                row = rows[column.key]
            summary.append(self._build_row(column, row, answer.table_scope))
        return summary

    def _read_table_statistics(self, snapshot: Snapshot) -> RowsByKey:
        """Return the table's statistics, with its most frequent values and exact quartiles."""
        if not snapshot.summary:
            return {}
        store = self.table.store
        columns = snapshot.described
        rows = {}
        tops = summary_details.read_table_tops(store, snapshot)
        for row in store.get(snapshot.summary).to_pylist():
            ordinal = row["column"]
            rows[columns[ordinal].key] = {**row, TOP: tops.get(ordinal)}
        for column in exact_ranks.list_rank_columns(snapshot):
            if column.key in rows:
                self._set_exact_quartiles(rows[column.key], column, snapshot)
        return rows

    def _set_exact_quartiles(self, row: dict[str, Any], column: Column, snapshot: Snapshot) -> None:
        percentiles = row[f"percentiles_{column.encoding}"]
        if not percentiles:
            return
        quartiles = exact_ranks.read_exact_quantiles(self.table.store, snapshot, column, _QUARTILE_SHARES)
        if quartiles is None:
            return
        for percent, value in zip(QUARTILES, quartiles, strict=True):
            percentiles[percent] = value

    def read_file(self, file: str, answer: SnapshotAnswer) -> list[Row]:
        """Read one row for each column of a data file.

        Raises:
            InvalidArgument: The table has no such data file.
            NoStatistics: The data file was not analyzed.
        """
        stored = self.table.read_files(answer.snapshot)
        number = self.table.find_file(file, stored)
        rows = self._read_file_statistics(stored, number, answer.described)
        if not rows:
            raise NoStatistics(self.table.name, detail=f"of the data file {file}")
        (file_row,) = stored.files.slice(number, 1).to_pylist()
        scope = answer.file_scope(file_row)
        return [self._build_row(column, rows.get(column.key), scope) for column in answer.described]

    def _read_file_statistics(self, stored: SnapshotFiles, number: int, columns: tuple[Column, ...]) -> RowsByKey:
        """Return a data file's statistics, with its most frequent values and percentiles."""
        store = self.table.store
        tops = summary_details.read_file_tops(store, stored, number)
        rows = {}
        without_percentiles = {}
        for row in read_statistics(store, stored.restrict_to(number), columns, columns).to_pylist():
            column = columns[row["column"]]
            row[TOP] = tops.get(column.key)
            rows[column.key] = row
            if not any(row[f"percentiles_{encoding}"] for encoding in ENCODED_TYPES):
                without_percentiles[column.key] = (column, row)
        if without_percentiles:
            computed = summary_details.read_file_percentiles(store, stored, number, without_percentiles)
            for key, percentiles in computed.items():
                column, row = without_percentiles[key]
                row[f"percentiles_{column.encoding}"] = percentiles
        return rows

    def _build_row(self, column: Column, statistics: Mapping[str, Any] | None, scope: Scope) -> Row:
        stored = statistics or {}
        user_defined = extra_columns.decode_user_defined(stored.get("extra"))
        return {
            **stored,
            **build_summary_row(column, statistics, scope, self.table.zone),
            USER_DEFINED: user_defined,
            extra_columns.COLUMN: extra_columns.to_json_texts(user_defined),
        }

    def read_files(self, name: str | None, file: str | None, answer: SnapshotAnswer) -> list[Row]:
        """Read one row for each data file and column that has statistics.

        Args:
            name: A column, or None for all.
            file: A data file, or None for all.
            answer: The snapshot that answers.
        """
        table = self.table
        columns = [find_column(answer.described, name, table.name)] if name else answer.columns
        stored = table.read_files(answer.snapshot)
        paths = stored.files.column("path").to_pylist()
        if file is not None:
            stored = stored.restrict_to(table.find_file(file, stored))
        statistics = read_statistics(table.store, stored, answer.described, columns).to_pylist()
        rows = []
        for row in statistics:
            path = paths[row["file"]]
            column = answer.described[row["column"]]
            rows.append(self._build_file_row(row, path, column))
        return rows

    def _build_file_row(self, statistics: Mapping[str, Any], path: str, column: Column) -> Row:
        return {
            **statistics,
            "path": path,
            "column_name": column.name,
            **render_bounds(column, statistics, self.table.zone),
            "null_count": statistics["nulls"],
            "nan_count": statistics["nans"],
            "frequencies_kept": statistics["frequencies"],
        }

    def measure_quartiles(self, answer: SnapshotAnswer) -> Mapping[str, float | None]:
        """Compute the errors of the ranks of quartiles by column name, as shares of the values; empty if unreadable."""
        snapshot = answer.snapshot
        if not answer.is_requested or not snapshot.exact:
            return {}
        try:
            errors = summary_details.measure_rank_errors(self.table.store, snapshot, _QUARTILE_SHARES)
        except MetastoreError as error:
            _LOG.warning("how exact the quartiles of %s are cannot be read: %s", self.table.name, error)
            return {}
        for column in exact_ranks.list_rank_columns(snapshot):
            errors.pop(column.key, None)
        return {column.name: errors[column.key] for column in answer.described if column.key in errors}
