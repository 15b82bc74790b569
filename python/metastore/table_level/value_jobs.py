"""Runs the jobs over the values of columns: chooses the sources of values, and the columns that jobs can read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import compress
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

    from metastore.format.data_files import DataFile
    from metastore.spark_jobs.task_store import TaskStore
    from metastore.store.data_file_access import DataFileAccess
    from metastore.table_level.block_summaries import RowSource
    from metastore.table_level.count_jobs import CountTarget
    from metastore.table_level.list_groups import ColumnLists, GroupListSource
    from metastore.table_level.list_reduction import FileValueCounts
    from metastore.table_level.shuffle_job import JobResult
    from metastore.table_level.value_index_job import EarlierIndex

    Longs = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ValueJobs:
    """The jobs over the values of one snapshot.

    Attributes:
        store: The store of the objects to read and of the lists to write.
        files: The data files of the snapshot, by path, in the order of its list.
        access: How tasks open data files.
        distribution: The ordinals of the columns that get a value index.
        earlier: The value indexes of an earlier snapshot.
        field_ids: The field ids of the table's columns.
    """

    context: SparkContext
    store: TaskStore
    files: Mapping[str, DataFile]
    access: DataFileAccess
    distribution: frozenset[int] = frozenset()
    earlier: tuple[EarlierIndex, ...] = ()
    field_ids: Mapping[str, int] = field(default_factory=dict)

    def can_read_all_values(self, column: ColumnLists) -> bool:
        """Return whether every value of a column is in a complete list or in a file that Python opens."""
        if column.lists.column.is_expression:
            return column.is_complete
        truncated_paths = compress(_paths(column.sources), column.lists.is_truncated.tolist())
        return all(map(self._can_open, truncated_paths))

    def _can_open(self, path: str) -> bool:
        if path not in self.files:
            return False
        return find_spark_only_reason(self.files[path], self.access) is None

    def count_values(
        self, columns: Mapping[int, ColumnLists], targets: Mapping[int, CountTarget], groups: Sequence[GroupListSource]
    ) -> JobResult:
        """Count the values of columns."""
        ship_package(self.context)
        # A complete list has no floor.
        floors = {ordinal: np.zeros(len(column.lists.kinds), np.int64) for ordinal, column in columns.items()}
        sources = [*groups, *self._make_sources(columns, floors)]
        return count_jobs.run_count_job(self.context, self.store, sources, targets)

    def reduce_lists(self, sources: Sequence[ValueSource], lists: Sequence[FileValueCounts], top: int) -> JobResult:
        """Reduce lists that may be cut, every column in one task."""
        ship_package(self.context)
        return count_jobs.run_reduce_job(self.context, self.store, sources, lists, top)

    def index_values(self, columns: Mapping[int, ColumnLists], targets: Mapping[int, CountTarget]) -> JobResult:
        """Make value indexes; damaged ones of earlier snapshots are not used."""
        ship_package(self.context)
        result = self._index_values(columns, targets, self.earlier)
        if result.skipped and self.earlier:
            return self._index_values(columns, targets, ())
        return result

    def _index_values(
        self, columns: Mapping[int, ColumnLists], targets: Mapping[int, CountTarget], earlier: Sequence[EarlierIndex]
    ) -> JobResult:
        sources: list[ValueSource] = []
        for index in earlier:
            ordinals = {stored: ordinal for stored, ordinal in index.ordinals.items() if ordinal in columns}
            if ordinals:
                sources.append(replace(index, ordinals=ordinals))
        by_files = {ordinal: column.without_groups() for ordinal, column in columns.items()}
        positions = self._locate_files(by_files, earlier)
        sources += self._make_sources(by_files, positions)
        return value_index_job.run_index_job(self.context, self.store, sources, targets, len(self.files))

    def _locate_files(self, columns: Mapping[int, ColumnLists], earlier: Sequence[EarlierIndex]) -> dict[int, Longs]:
        """Locate each column's data files in the snapshot's list; -1 if an earlier index covers a file."""
        by_path = {path: position for position, path in enumerate(self.files)}
        located = {}
        for ordinal, column in columns.items():
            covered = [index.files for index in earlier if ordinal in index.columns]
            positions = np.array(list(map(by_path.__getitem__, _paths(column.sources))), np.int64)
            is_covered = np.isin(positions, np.concatenate([positions[:0], *covered]))
            located[ordinal] = np.where(is_covered, -1, positions)
        return located

    def _make_sources(
        self, columns: Mapping[int, ColumnLists], numbers: Mapping[int, Longs]
    ) -> Iterator[DetailSlice | DataFileSource]:
        """Yield the sources of the values of data files with a number: complete lists, or the files themselves."""
        complete_lists = DetailSelection("frequencies")
        for ordinal, column in columns.items():
            selected = np.where(column.lists.is_truncated, -1, numbers[ordinal])
            complete_lists.add(ordinal, column.sources, column.tree.select_files(selected))
        yield from complete_lists.make_slices()
        for column in columns.values():
            yield from self._make_file_sources(column, numbers[column.lists.ordinal])

    def _make_file_sources(self, column: ColumnLists, numbers: Longs) -> Iterator[DataFileSource]:
        """Yield the data files with a number whose lists are cut."""
        is_read = column.lists.is_truncated & (numbers >= 0)
        paths = compress(_paths(column.sources), is_read.tolist())
        for path, number in zip(paths, numbers[is_read].tolist(), strict=True):
            file = self.files[path]
            file_column = FileColumn.of(column.lists.column, self.field_ids, file.names)
            yield DataFileSource(file.location, column.lists.ordinal, file_column, number, self.access)


def _paths(sources: Sequence[RowSource]) -> Iterator[str]:
    for source in sources:
        yield from source.block_files.files["path"].take(source.files).to_pylist()
