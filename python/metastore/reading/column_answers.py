"""Answers about the values of one column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore.adapters.descriptors import WITH_LOG_FILES
from metastore.adapters.identifiers import find_column
from metastore.errors import InvalidArgument
from metastore.format.value_encoding import to_stored_value
from metastore.reading import candidates, distribution_rows, value_lookup
from metastore.reading.answer_shapes import build_table_answer
from metastore.reading.detail_objects import read_table_details
from metastore.reading.evidence import UNKNOWN
from metastore.reading.exact_ranks import build_exact_quantile_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.answers import Answer
    from metastore.format.manifest import Snapshot
    from metastore.format.table_column import Column
    from metastore.reading.analyzed_table import AnalyzedTable
    from metastore.reading.column_distributions import DistributionReader
    from metastore.reading.snapshot import SnapshotAnswer
    from metastore.reading.summary_rows import Row


class ColumnAnswers:
    """Answers about the distribution of a column, and which data files may hold a value."""

    def __init__(self, table: AnalyzedTable, distributions: DistributionReader) -> None:
        self._table = table
        self._distributions = distributions

    def frequencies(self, column: str, top: int | None, file: str | None, answer: SnapshotAnswer) -> Answer:
        """Answer `frequencies`."""
        distribution = self._distributions.read(column, file, answer)
        self._distributions.require_list(distribution, column)
        details = distribution.details
        rows = distribution_rows.build_frequency_rows(details, top, self._table.zone, exact=distribution.exact)
        return self._build_answer("frequencies", rows, answer, details.column)

    def histogram(self, column: str, bins: int | None, file: str | None, answer: SnapshotAnswer) -> Answer:
        """Answer `histogram`."""
        distribution = self._distributions.read(column, file, answer)
        details = distribution.details
        histogram = self._distributions.find_histogram(distribution, column)
        rows: list[Row] = []
        if histogram is not None:
            rows = distribution_rows.build_histogram_rows(
                details, histogram, bins, self._table.zone, exact=distribution.exact
            )
        return self._build_answer("histogram", rows, answer, details.column)

    def quantiles(self, column: str, probabilities: Sequence[float], answer: SnapshotAnswer) -> Answer:
        """Answer `quantiles`: by exact ranks if the column has them, else by its histogram."""
        distribution = self._distributions.read(column, None, answer)
        details = distribution.details
        zone = self._table.zone
        rows = build_exact_quantile_rows(self._table.store, answer, details.column, probabilities, zone)
        if rows is None:
            histogram = self._distributions.find_histogram(distribution, column)
            rows = distribution_rows.build_quantile_rows(
                details, histogram, probabilities, zone, exact=distribution.exact
            )
        return self._build_answer("quantiles", rows, answer, details.column)

    def locate(self, name: str, value: Any, answer: SnapshotAnswer) -> Answer:
        """Answer `locate`."""
        column = find_column(answer.columns, name, self._table.name)
        if column.encoding is None:
            raise InvalidArgument("column", f"of {name}, {column.type}, only counts are kept")
        try:
            stored_value = to_stored_value(value, column, self._table.zone)
        except ValueError as e:
            raise InvalidArgument("value", str(e)) from None
        rows = self._locate_rows(column, stored_value, answer)
        return self._build_answer("locate", rows, answer, column)

    def _locate_rows(self, column: Column, value: Any, answer: SnapshotAnswer) -> list[Row]:
        """Make one row for each data file that may hold a value."""
        stored = self._table.read_files(answer.snapshot)
        located = self._look_up(answer.snapshot, column, value)
        if located is None:
            located = candidates.find_candidate_files(self._table.store, stored, column, value)
        frequencies = dict(zip(located.files.tolist(), located.frequencies.tolist(), strict=True))
        files = stored.files.select(["path", "deletes"]).to_pylist()
        if self._table.discovery.table_format in WITH_LOG_FILES:
            changed = [number for number, file in enumerate(files) if file["deletes"] is not None]
            frequencies |= dict.fromkeys(changed, UNKNOWN)
        return [
            _build_located_row(files[number], frequency, answer) for number, frequency in sorted(frequencies.items())
        ]

    def _look_up(self, snapshot: Snapshot, column: Column, value: Any) -> candidates.CandidateFiles | None:
        """Look up the data files of a value in the value index; None if the column has none."""
        if not snapshot.distribution:
            return None
        details = read_table_details(self._table.store, snapshot, column)
        if details is None:
            return None
        return value_lookup.look_up_value(
            self._table.store,
            snapshot,
            column,
            value,
            distinct_count=details.summary.get("distinct"),
            value_count=details.value_count,
        )

    def _build_answer(self, verb: str, rows: Sequence[Row], answer: SnapshotAnswer, column: Column) -> Answer:
        return build_table_answer(self._table, verb, rows, answer, column_name=column.name)


def _build_located_row(file: Mapping[str, Any], frequency: int, answer: SnapshotAnswer) -> Row:
    is_known = frequency != UNKNOWN
    return {
        "path": file["path"],
        "frequency": frequency if is_known else None,
        "exact": answer.is_requested and is_known and file["deletes"] is None,
    }
