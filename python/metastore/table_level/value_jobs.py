"""Which columns of a table are reduced by a Spark job, and where the job finds their values."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from metastore.kernel.parquet_file import find_spark_only_reason
from metastore.kernel.parquet_schema import FileColumn
from metastore.spark_jobs.session_jobs import ship_package
from metastore.table_level import count_jobs, value_index_job
from metastore.table_level.count_bounds import COMPLETE, DUPLICATES
from metastore.table_level.detail_selection import DetailSelection
from metastore.table_level.list_reduction import DUPLICATES_ONLY, REDUCE, SCATTER, ListFacts, choose_algorithm
from metastore.table_level.value_index_job import IndexFileSource
from metastore.table_level.value_sources import DataFileSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark import SparkContext

    from metastore.adapters.table_facts import DataFile
    from metastore.spark_jobs.task_store import TaskStore
    from metastore.table_level.count_bounds import FileValueCounts
    from metastore.table_level.count_jobs import CountTarget, JobResult
    from metastore.table_level.list_groups import ColumnLists, GroupListSource
    from metastore.table_level.live_statistics import RowSource
    from metastore.table_level.value_index_job import EarlierIndex
    from metastore.table_level.value_sources import ValueSource


AUTO, EXACT = "auto", "exact"


def choose_job_algorithm(lists: FileValueCounts, option: str, threshold: int) -> str:
    """The algorithm for a column.

    Lists that are cut are reduced as they are, unless exact frequencies are asked for: finding what they lack means
    to read the column again in every data file.
    """
    if option == EXACT:
        found = choose_algorithm(lists, threshold)
        return SCATTER if found == REDUCE and lists.is_truncated.any() else found
    if option == AUTO:
        return REDUCE if lists.is_truncated.any() else choose_algorithm(lists, threshold)
    return option


@dataclass(frozen=True)
class ValueJobs:
    """Where jobs run and what they read.

    Attributes:
        context: Where they run.
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
        return count_jobs.run_count_job(self.context, self.store, [*groups, *self._pieces(columns)], targets)

    def _pieces(self, columns: Mapping[int, ColumnLists]) -> Iterator[ValueSource]:
        complete = DetailSelection("frequencies")
        again: dict[str, dict[int, FileColumn]] = defaultdict(dict)
        for ordinal, one in columns.items():
            complete.add(ordinal, one.sources, one.tree.select_files(np.where(one.lists.is_truncated, -1, 0)))
            for path, cut in zip(_paths(one.sources), one.lists.is_truncated.tolist(), strict=True):
                if cut:
                    again[path][ordinal] = FileColumn.of(one.lists.column, self.field_ids)
        yield from complete.make_slices()
        for path, wanted in again.items():
            yield DataFileSource(self.files[path].location, wanted)

    def index_values(self, columns: Mapping[int, ColumnLists], targets: Mapping[int, CountTarget]) -> JobResult:
        """Make lists that tell where each value lives."""
        ship_package(self.context)
        files = len(self.files)
        found = value_index_job.run_index_job(
            self.context, self.store, list(self._placed(columns, self.earlier)), targets, files
        )
        if found.unreadable and self.earlier:
            found = value_index_job.run_index_job(
                self.context, self.store, list(self._placed(columns, ())), targets, files
            )
        return found

    def _placed(
        self, columns: Mapping[int, ColumnLists], earlier: Sequence[EarlierIndex]
    ) -> Iterator[value_index_job.IndexSource]:
        places = {path: place for place, path in enumerate(self.files)}
        complete = DetailSelection("frequencies")
        again: dict[str, dict[int, FileColumn]] = defaultdict(dict)
        for ordinal, listing in columns.items():
            lists, sources = listing.lists, listing.sources
            told = {place for one in earlier if ordinal in one.ordinals.values() for place in one.files.tolist()}
            paths = list(_paths(sources))
            at = np.array([-1 if places[path] in told else places[path] for path in paths], np.int64)
            complete.add(ordinal, sources, np.where(lists.is_truncated, -1, at))
            for path, cut, place in zip(paths, lists.is_truncated.tolist(), at.tolist(), strict=True):
                if cut and place >= 0:
                    again[path][ordinal] = FileColumn.of(lists.column, self.field_ids)
        for one in earlier:
            ordinals = {then: now for then, now in one.ordinals.items() if now in columns}
            if ordinals:
                yield replace(one, ordinals=ordinals)
        yield from complete.make_slices()
        for path, wanted in again.items():
            yield IndexFileSource(places[path], DataFileSource(self.files[path].location, wanted))


def list_facts_of_job(target: CountTarget, found: count_jobs.PartitionCounts) -> ListFacts:
    """What is known of a list that a job made."""
    if target.algorithm == DUPLICATES_ONLY and found.singles:
        return ListFacts(DUPLICATES, 1, target.algorithm, found.written + found.singles, found.singles)
    return ListFacts(COMPLETE, 0, target.algorithm, found.written, found.singles)


def _paths(sources: Sequence[RowSource]) -> Iterator[str]:
    for source in sources:
        yield from source.indexed.files["path"].take(source.files).to_pylist()
