"""Reads the value lists and histograms of columns, of a table or of one of its data files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore.adapters.identifiers import find_column
from metastore.errors import InvalidArgument, NoStatistics
from metastore.reading.detail_objects import make_empty_details, read_file_details, read_table_details
from metastore.reading.snapshot_files import read_statistics

if TYPE_CHECKING:
    from metastore.format.histogram_bins import Histogram
    from metastore.format.table_column import Column
    from metastore.reading.analyzed_table import AnalyzedTable
    from metastore.reading.column_details import ColumnDetails
    from metastore.reading.snapshot import SnapshotAnswer


@dataclass(frozen=True)
class ColumnDistribution:
    """Value list and histogram of a column.

    Attributes:
        exact: Whether they describe exactly the live rows of the requested snapshot.
    """

    details: ColumnDetails
    exact: bool


class DistributionReader:
    """Reads the distributions of columns, and caches the last one: users often ask several questions about a column."""

    def __init__(self, table: AnalyzedTable) -> None:
        self._table = table
        self._last_key: tuple[Any, ...] = ()
        self._last: ColumnDistribution | None = None

    def read(self, column: str, file: str | None, answer: SnapshotAnswer) -> ColumnDistribution:
        """Read the distribution of a column in the table or in one data file.

        Raises:
            ColumnNotFound: There is no such column.
            InvalidArgument: Only counts are stored of its type, or there is no such data file.
            NoStatistics: The column has no statistics.
        """
        key = (column, file, answer.snapshot.id, answer.is_requested)
        if self._last is None or key != self._last_key:
            self._last = self._read(column, file, answer)
            self._last_key = key
        return self._last

    def _read(self, name: str, file: str | None, answer: SnapshotAnswer) -> ColumnDistribution:
        column = find_column(answer.described, name, self._table.name)
        require_values(column)
        distribution = self._read_of_table(column, answer) if file is None else self._read_of_file(column, file, answer)
        if distribution is None:
            raise self._explain_missing("statistics", name)
        return distribution

    def _read_of_table(self, column: Column, answer: SnapshotAnswer) -> ColumnDistribution | None:
        snapshot = answer.snapshot
        details = read_table_details(self._table.store, snapshot, column)
        if details is None and snapshot.files_total == 0:
            details = make_empty_details(self._table.store, column)
        if details is None:
            return None
        covers_all_files = details.summary["files"] == snapshot.files_total
        return ColumnDistribution(details, answer.is_requested and snapshot.exact and covers_all_files)

    def _read_of_file(self, column: Column, file: str, answer: SnapshotAnswer) -> ColumnDistribution | None:
        store = self._table.store
        stored = self._table.read_files(answer.snapshot)
        number = self._table.find_file(file, stored)
        rows = read_statistics(store, stored.restrict_to(number), answer.described, [column]).to_pylist()
        if not rows:
            return None
        details = read_file_details(store, stored, rows[0], number, column)
        has_deletes = stored.files["deletes"][number].as_py() is not None
        return ColumnDistribution(details, answer.is_requested and not has_deletes)

    def require_list(self, distribution: ColumnDistribution, name: str) -> None:
        """Raise if a column with values has no list of them.

        Raises:
            NoStatistics: The column has no list.
        """
        details = distribution.details
        if not details.has_value_list and details.value_count != 0:
            raise self._explain_missing("frequencies", name)

    def find_histogram(self, distribution: ColumnDistribution, name: str) -> Histogram | None:
        """Return the histogram of a column, or None if the column has no values.

        Raises:
            NoStatistics: The column has values and no histogram.
        """
        details = distribution.details
        histogram = details.histogram()
        if histogram is None and details.may_have_values:
            raise self._explain_missing("histogram", name)
        return histogram

    def _explain_missing(self, kind: str, column: str) -> NoStatistics:
        return NoStatistics(self._table.name, detail=f"of this kind ({kind}) for the column {column}", columns=column)


def require_values(column: Column) -> None:
    """Raise if only counts are stored for the type of a column.

    Raises:
        InvalidArgument: The column has such a type.
    """
    if column.encoding is None:
        raise InvalidArgument("column", f"of {column.name}, {column.type}, only counts are kept")
