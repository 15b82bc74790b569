"""Which columns of a table are reduced by a Spark job, and where the job finds their values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from metastore.kernel.parquet_file import find_spark_only_reason
from metastore.kernel.parquet_schema import FileColumn
from metastore.spark_jobs.session_jobs import ship_package
from metastore.table_level import count_jobs, value_index_job
from metastore.table_level.detail_selection import DetailSelection, DetailSlice
from metastore.table_level.value_sources import DataFileSource, ValueSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark import SparkContext

    from metastore.adapters.table_facts import DataFile
    from metastore.spark_jobs.task_store import TaskStore
    from metastore.table_level.count_jobs import CountTarget
    from metastore.table_level.list_groups import ColumnLists, GroupListSource
    from metastore.table_level.list_reduction import FileValueCounts
    from metastore.table_level.live_statistics import RowSource
    from metastore.table_level.shuffle_job import JobResult
    from metastore.table_level.value_index_job import EarlierIndex

    Longs = NDArray[np.int64]


@dataclass(frozen=True)
class ValueJobs:
    """Where jobs run and what they read.

    Attributes:
        store: Where objects are and lists go.
        files: The data files of the snapshot, by path, in the order of its list.
        local: Whether paths without a scheme are on the local file system.
        distribution: Columns, by their place in the snapshot's schema, of which lists tell where each value lives.
        earlier: Such lists of an earlier snapshot.
        field_ids: As of the table.
    """

    context: SparkContext
    store: TaskStore
    files: Mapping[str, DataFile]
    local: bool
    distribution: frozenset[int] = frozenset()
    earlier: tuple[EarlierIndex, ...] = ()
    field_ids: Mapping[str, int] = field(default_factory=dict)

    def can_read_all_values(self, one: ColumnLists) -> bool:
        """Whether every value of a column is in a complete list or in a file that Python opens."""
        if one.lists.column.is_expression:
            return not one.lists.is_truncated.any()
        paths = zip(_paths(one.sources), one.lists.is_truncated.tolist(), strict=True)
        return all(
            not cut or (path in self.files and find_spark_only_reason(self.files[path], local=self.local) is None)
            for path, cut in paths
        )

    def count_values(
        self, columns: Mapping[int, ColumnLists], targets: Mapping[int, CountTarget], groups: Sequence[GroupListSource]
    ) -> JobResult:
        """Reduce columns."""
        ship_package(self.context)
        floors = {ordinal: np.zeros(len(one.lists.kinds), np.int64) for ordinal, one in columns.items()}
        sources = [*groups, *self._make_sources(columns, floors)]
        return count_jobs.run_count_job(self.context, self.store, sources, targets)

    def reduce_lists(self, sources: Sequence[ValueSource], lists: Sequence[FileValueCounts], top: int) -> JobResult:
        """Reduce lists that may be cut, every column in one task."""
        ship_package(self.context)
        return count_jobs.run_reduce_job(self.context, self.store, sources, lists, top)

    def index_values(self, columns: Mapping[int, ColumnLists], targets: Mapping[int, CountTarget]) -> JobResult:
        """Make lists that tell where each value lives."""
        ship_package(self.context)
        found = self._index_values(columns, targets, self.earlier)
        return self._index_values(columns, targets, ()) if found.skipped and self.earlier else found

    def _index_values(
        self, columns: Mapping[int, ColumnLists], targets: Mapping[int, CountTarget], earlier: Sequence[EarlierIndex]
    ) -> JobResult:
        by_files = {ordinal: one.without_groups() for ordinal, one in columns.items()}
        served = (
            replace(one, ordinals={then: now for then, now in one.ordinals.items() if now in columns})
            for one in earlier
            if not one.columns.isdisjoint(columns)
        )
        sources: list[ValueSource] = [
            *served,
            *self._make_sources(by_files, dict(self._find_places(by_files, earlier))),
        ]
        return value_index_job.run_index_job(self.context, self.store, sources, targets, len(self.files))

    def _find_places(
        self, columns: Mapping[int, ColumnLists], earlier: Sequence[EarlierIndex]
    ) -> Iterator[tuple[int, Longs]]:
        """The places of each column's data files in the snapshot's list; -1: earlier lists tell where values live."""
        places = {path: place for place, path in enumerate(self.files)}
        for ordinal, one in columns.items():
            known = {place for index in earlier if ordinal in index.columns for place in index.files.tolist()}
            found = np.array([places[path] for path in _paths(one.sources)], np.int64)
            yield ordinal, np.where(np.isin(found, list(known)), -1, found)

    def _make_sources(
        self, columns: Mapping[int, ColumnLists], numbers: Mapping[int, Longs]
    ) -> Iterator[DetailSlice | DataFileSource]:
        """Where values are of the data files with a number: in complete lists, or in the files themselves."""
        complete = DetailSelection("frequencies")
        for ordinal, one in columns.items():
            selected = np.where(one.lists.is_truncated, -1, numbers[ordinal])
            complete.add(ordinal, one.sources, one.tree.select_files(selected))
        yield from complete.make_slices()
        for ordinal, one in columns.items():
            of_files = zip(_paths(one.sources), one.lists.is_truncated.tolist(), numbers[ordinal].tolist(), strict=True)
            for path, is_truncated, number in of_files:
                if is_truncated and number >= 0:
                    file = self.files[path]
                    column = FileColumn.of(one.lists.column, self.field_ids, file.names)
                    yield DataFileSource(file.location, ordinal, column, number)


def _paths(sources: Sequence[RowSource]) -> Iterator[str]:
    for source in sources:
        yield from source.block_files.files["path"].take(source.files).to_pylist()
