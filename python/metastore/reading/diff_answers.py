"""Answers about what differs between two snapshots or two tables."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from metastore.errors import InvalidArgument
from metastore.reading.analyzed_table import AnalyzedTable
from metastore.reading.distribution_changes import MEASURES, compare_distributions, explain_unknown
from metastore.reading.snapshot import SnapshotAnswer
from metastore.reading.summary_changes import compare_summaries, sort_by_change
from metastore.reading.summary_reader import SummaryReader
from metastore.reading.summary_rows import FileCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.format.data_files import FileKey
    from metastore.format.manifest import Snapshot
    from metastore.reading.added_files import AddedFiles
    from metastore.reading.column_details import ColumnDetails
    from metastore.reading.column_distributions import DistributionReader
    from metastore.reading.summary_rows import Row


class DiffAnswers:
    """Compares two snapshots of a table."""

    def __init__(self, table: AnalyzedTable, distributions: DistributionReader) -> None:
        self._table = table
        self._distributions = distributions

    def compare(self, before: SnapshotAnswer, after: SnapshotAnswer) -> list[Row]:
        """List the measures of the summaries that differ."""
        summary = SummaryReader(self._table)
        new_rows = summary.read_table(after)
        return compare_summaries(summary.read_table(before), new_rows, self._table.zone)

    def compare_added(self, before: SnapshotAnswer, after: SnapshotAnswer, *, distributions: bool) -> list[Row]:
        """List how the data files that came after a snapshot differ from the table at it."""
        from metastore.reading.added_files import (  # noqa: PLC0415 - no other answer merges statistics
            UnknownAddedFilesError,
            find_added_files,
            reduce_added_files,
        )

        table = self._table
        snapshots = self._list_between(before.snapshot, after.snapshot)
        try:
            keys = find_added_files(table.store, snapshots)
        except UnknownAddedFilesError as error:
            columns = [column.name for column in after.columns] if distributions else []
            return _explain_unknown(columns, str(error))
        added = reduce_added_files(table.store, table.manifest, after.snapshot, keys, table.name)
        old_rows = SummaryReader(table).read_table(before)
        rows = compare_summaries(old_rows, self._summarize_added(added, keys, after), table.zone)
        if not distributions:
            return rows
        names = _list_common_names(before, after)
        distances = compare_distributions(names, partial(self._read_details, before), added.details)
        return sort_by_change([*rows, *distances])

    def _summarize_added(self, added: AddedFiles, keys: Sequence[FileKey], after: SnapshotAnswer) -> list[Row]:
        discovery = self._table.discovery
        manifest = replace(self._table.manifest, snapshots=(added.snapshot,))
        table = AnalyzedTable(replace(discovery, store=added.store, manifest=manifest), self._table.zone)
        answer = SnapshotAnswer(
            added.snapshot,
            current=after.current,
            columns=after.columns,
            is_requested=True,
            files=FileCounts.of_same_files(len(keys)),
        )
        return SummaryReader(table).read_table(answer)

    def _read_details(self, answer: SnapshotAnswer, column: str) -> ColumnDetails:
        return self._distributions.read(column, None, answer).details

    def _list_between(self, first: Snapshot, last: Snapshot) -> list[Snapshot]:
        """Return the analyzed snapshots from one to another, in the order in which they were made."""
        table = self._table
        ids = [snapshot.id for snapshot in table.snapshots]
        start = ids.index(first.id)
        end = ids.index(last.id)
        if start > end:
            raise InvalidArgument("added", f"snapshot {last.id} was analyzed before {first.id}", "Exchange the two.")
        if start == end:
            return [first]
        between = table.snapshots[start + 1 : end]
        ancestors = table.history.list_ancestors(last.id)
        if ancestors:
            between = [snapshot for snapshot in between if snapshot.id in ancestors]
        return [first, *between, last]


def _list_common_names(before: SnapshotAnswer, after: SnapshotAnswer) -> list[str]:
    former = {column.name for column in before.columns}
    return [column.name for column in after.columns if column.name in former]


def _explain_unknown(columns: Sequence[str], reason: str) -> list[Row]:
    """Return the rows of added files that are unknown: one of the table, and one for each measure of a distribution."""
    rows = [explain_unknown(None, "count", reason)]
    for column in columns:
        rows += [explain_unknown(column, measure, reason) for measure in MEASURES]
    return rows
