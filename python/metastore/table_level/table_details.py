"""Collects the value lists and histograms of a table column by column, reduces and writes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from metastore.format import object_layout
from metastore.format.histogram_bins import Histogram, compute_percentiles
from metastore.format.manifest import SummaryRef
from metastore.format.object_layout import split_evenly
from metastore.format.object_schemas import TABLE_FREQUENCIES
from metastore.store.block_files import attribute_damage
from metastore.table_level.count_jobs import CountTarget
from metastore.table_level.detail_selection import DetailSlice, read_detail_object
from metastore.table_level.histogram_groups import HistogramFiles, TableHistograms
from metastore.table_level.histogram_sum import make_histogram_of_counts
from metastore.table_level.list_groups import ColumnLists, ListGroups
from metastore.table_level.list_reduction import (
    COMPLETE,
    NONE,
    REDUCE,
    SCATTER,
    THRESHOLD,
    FileValueCounts,
    ListFacts,
    choose_job_algorithm,
    reduce_lists,
)
from metastore.table_level.shuffle_job import JobResult
from metastore.table_level.value_index_job import index_coverage_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from concurrent.futures import Executor, Future

    import pyarrow as pa
    from numpy.typing import NDArray

    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.store import Store
    from metastore.table_level.column_merge import ColumnLevel
    from metastore.table_level.detail_prefetch import DetailPrefetch
    from metastore.table_level.value_jobs import ValueJobs
    from metastore.table_level.value_sources import ValueSource

    Longs = NDArray[np.int64]


_INFINITIES = ("negative_infinities", "positive_infinities")


@dataclass(frozen=True, kw_only=True)
class TableLevelOptions:
    """The options of the table level.

    Attributes:
        bins: The number of bins of a histogram.
        top: The length of a list whose data files list their most frequent values only.
        algorithm: `auto` or `exact`; tests name one of the three algorithms, too.
        threshold: The sum of the files' distinct (or duplicate) values from which on there are too many for a list.
        driver_bytes: Bytes of stored lists that the driver reduces itself.
        expressions: The expressions that have statistics besides the columns.
    """

    bins: int = 1000
    top: int = 1000
    algorithm: str = "auto"
    threshold: int = THRESHOLD
    driver_bytes: int = 64 << 20
    expressions: tuple[Column, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TableDetailResult:
    """The written objects, and the facts that follow from lists and histograms.

    Attributes:
        frequencies: The objects of value lists, once they are written.
        histograms: The object of histograms, if any, once it is written.
        lists: The facts of each list, by the column's ordinal in the snapshot's schema.
        percentiles: The percentiles of the columns with a histogram, from this histogram.
        distribution: The ordinals of the columns whose lists are value indexes.
        index_coverage: The object with the number of indexed rows of each data file, if any.
        nodes: The objects with merged groups of data files.
    """

    frequencies: Future[tuple[SummaryRef, ...]]
    histograms: Future[ObjectRef | None]
    lists: Mapping[int, ListFacts]
    percentiles: dict[int, list[Any]]
    distribution: tuple[int, ...]
    index_coverage: ObjectRef | None = None
    nodes: tuple[ObjectRef, ...] = ()


@dataclass(frozen=True)
class TableLists:
    """The value lists of a table's columns.

    Attributes:
        table: The lists that the driver reduced, still to be written.
        result: The lists that tasks wrote, and the facts of all lists.
    """

    table: pa.Table
    result: JobResult


@dataclass(kw_only=True)
class TableDetailWriter:
    """Collects the levels of columns, and writes their lists and histograms.

    Attributes:
        store: The store of the detail objects and the result.
        early: Objects that are being read.
        nodes: The objects with merged groups of data files.
        jobs: The jobs that reduce lists too long for the driver; None if the driver reduces all.
    """

    store: Store
    options: TableLevelOptions
    threads: Executor
    early: DetailPrefetch
    nodes: Sequence[ObjectRef] = ()
    jobs: ValueJobs | None = None
    _lists: dict[int, ColumnLists] = field(default_factory=dict)
    _files: dict[int, HistogramFiles] = field(default_factory=dict)
    _infinities: dict[int, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look up the stored groups."""
        self._histograms = TableHistograms(self.store, self.nodes, self._read, self.options.bins)
        self._groups = ListGroups(self.store, self.nodes, self._read)

    def add(self, ordinal: int, level: ColumnLevel, statistics: ColumnStatistics) -> None:
        """Add a column."""
        if level.column.encoding is None:
            return
        lists = _count_values(ordinal, level)
        self._lists[ordinal] = ColumnLists(lists, level.sources, self._groups.make_tree(level))
        negative, positive = (statistics.numbers.get(name) or 0 for name in _INFINITIES)
        self._infinities[ordinal] = (negative, positive)
        self._files[ordinal] = _describe_histogram_files(level, lists.values, statistics)
        self._histograms.add(ordinal, level, self._files[ordinal])

    def write(self) -> TableDetailResult:
        """Reduce the lists and histograms of the added columns, and write them."""
        merged = self.threads.submit(self._histograms.merge)
        lists = self._make_lists(merged)
        frequencies = self.threads.submit(self._put_lists, lists)
        histograms = self._replace_by_lists(merged.result(), lists)
        histogram_ref = self.threads.submit(self._put_histograms, histograms)
        indexed = lists.result.indexed_rows
        index_coverage = None
        if indexed:
            index_coverage = self.store.put("table-placed", *index_coverage_rows(indexed))
        return TableDetailResult(
            frequencies=frequencies,
            histograms=histogram_ref,
            lists=lists.result.lists,
            percentiles=self._compute_percentiles(histograms),
            distribution=tuple(sorted(indexed)),
            index_coverage=index_coverage,
            nodes=(*self._histograms.finish(), *self._groups.finish()),
        )

    def _make_lists(self, histograms: Future[dict[int, Histogram]]) -> TableLists:
        results: list[JobResult] = []
        if self.jobs is not None:
            results = self._run_jobs(self.jobs, histograms)
        done: set[int] = set()
        for result in results:
            done.update(result.lists.keys() - result.skipped)
        lists = self._reduce(self._lists.keys() - done)
        total = lists.result
        for result in results:
            total += result.select_columns(done)
        return replace(lists, result=total)

    def _run_jobs(self, jobs: ValueJobs, histograms: Future[dict[int, Histogram]]) -> list[JobResult]:
        """Count and index values by jobs, as far as columns need it."""
        to_index = self._choose_indexed_columns(jobs)
        to_count = self._choose_counted_columns(jobs, histograms, to_index.keys())
        results = []
        if to_count:
            results.append(self._count_by_job(jobs, to_count))
        if to_index:
            results.append(jobs.index_values(self._select(to_index), to_index))
        return results

    def _count_by_job(self, jobs: ValueJobs, targets: dict[int, CountTarget]) -> JobResult:
        complete = {}
        incomplete = {}
        for ordinal, column in self._select(targets).items():
            if column.is_complete:
                complete[ordinal] = column
            else:
                incomplete[ordinal] = column.without_groups()
        self._groups.make_groups(complete.values(), self.options.driver_bytes)
        sources = self._groups.group_sources(complete.values())
        return jobs.count_values({**complete, **incomplete}, targets, sources)

    def _select(self, ordinals: Collection[int]) -> dict[int, ColumnLists]:
        return {ordinal: self._lists[ordinal] for ordinal in ordinals}

    def _choose_indexed_columns(self, jobs: ValueJobs) -> dict[int, CountTarget]:
        """Choose the requested columns whose values can be read in every data file."""
        targets = {}
        for ordinal, column in self._select(jobs.distribution & self._lists.keys()).items():
            has_all_files = len(column.lists.kinds) == len(jobs.files)
            if has_all_files and jobs.can_read_all_values(column):
                targets[ordinal] = CountTarget(column.lists.column, SCATTER, _estimate_values(column.lists))
        return targets

    def _choose_counted_columns(
        self, jobs: ValueJobs, histograms: Future[dict[int, Histogram]], indexed: Collection[int]
    ) -> dict[int, CountTarget]:
        """Choose the columns whose values a job counts."""
        targets: dict[int, CountTarget] = {}
        for ordinal, column in self._lists.items():
            lists = column.lists
            algorithm = choose_job_algorithm(lists, self.options.algorithm, self.options.threshold)
            if algorithm == REDUCE or not lists.values.any() or ordinal in indexed:
                continue
            if jobs.can_read_all_values(column):
                histogram = histograms.result().get(ordinal)
                targets[ordinal] = CountTarget(lists.column, algorithm, _estimate_values(lists), histogram)
        return targets

    def _reduce(self, ordinals: Collection[int]) -> TableLists:
        """Reduce stored lists by the first algorithm, in the driver or, if they are too large, by a job."""
        columns = [self._lists[ordinal] for ordinal in sorted(ordinals)]
        lists = [column.lists for column in columns]
        listed = [column for column in columns if column.lists.have_lists]
        parts = self._groups.select_details(listed)
        size = sum(part.length for part in parts) + self._groups.estimate_bytes(listed)
        no_rows = TABLE_FREQUENCIES.empty_table()
        if self.jobs is not None and size > self.options.driver_bytes:
            self._groups.make_groups(listed, self.options.driver_bytes)
            slices = self._groups.select_details(listed, floors=True)
            sources: list[ValueSource] = [*self._groups.group_sources(listed), *slices]
            return TableLists(no_rows, self.jobs.reduce_lists(sources, lists, self.options.top))
        table, facts = reduce_lists(self._groups.merge_lists(listed, parts), lists, self.options.top)
        return TableLists(table, JobResult((), facts, no_rows))

    def _put_lists(self, lists: TableLists) -> tuple[SummaryRef, ...]:
        ordered, groups = object_layout.table_lists_layout(lists.table, lists.result.heads)
        if not groups:
            return ()
        columns = tuple(sorted(lists.table["column"].unique().to_pylist()))
        ref = self.store.put("table-frequencies", ordered, groups)
        return (SummaryRef(ref, columns), *lists.result.objects)

    def _replace_by_lists(self, histograms: dict[int, Histogram], lists: TableLists) -> dict[int, Histogram]:
        """Replace the histograms of columns whose values are all listed: those made of lists are exact."""
        replaced = dict(histograms)
        ordinals = lists.table["column"].to_numpy()
        for ordinal, histogram in histograms.items():
            start, end = ordinals.searchsorted([ordinal, ordinal + 1]).tolist()
            facts = lists.result.lists.get(ordinal)
            is_complete = facts is not None and facts.kind == COMPLETE
            if not is_complete or start == end:
                continue
            values = lists.table.slice(start, end - start)
            exact = make_histogram_of_counts(values, self._files[ordinal].column, self.options.bins)
            if int(exact.counts.sum()) == int(histogram.counts.sum()):
                replaced[ordinal] = exact
        return replaced

    def _compute_percentiles(self, histograms: dict[int, Histogram]) -> dict[int, list[Any]]:
        percentiles = {}
        for ordinal, histogram in histograms.items():
            below, above = self._infinities[ordinal]
            with_infinities = replace(histogram, below=below, above=above)
            encoding = str(self._files[ordinal].column.encoding)
            percentiles[ordinal] = compute_percentiles(with_infinities, encoding)
        return percentiles

    def _put_histograms(self, histograms: dict[int, Histogram]) -> ObjectRef | None:
        rows = ((ordinal, self._files[ordinal].column, histogram) for ordinal, histogram in histograms.items())
        table = object_layout.table_histogram_rows(rows)
        if not table.num_rows:
            return None
        groups = split_evenly(table.num_rows, object_layout.HISTOGRAM_GROUPS)
        return self.store.put("table-histograms", table, groups)

    def _read(self, part: DetailSlice) -> pa.Table:
        with attribute_damage(part.block):
            rows = self.early.take_rows(part.name)
            if rows is None:
                rows = read_detail_object(part, partial(self.store.read_bytes, part.name))
            return rows


def _describe_histogram_files(level: ColumnLevel, values: Longs, statistics: ColumnStatistics) -> HistogramFiles:
    rows = level.rows
    numbers_without_bin = [statistics.nans, *(statistics.numbers.get(name) for name in _INFINITIES)]
    distinct = statistics.distinct
    if distinct is not None:
        distinct -= sum(map(bool, numbers_without_bin))
    without_bin = _longs(rows, "nans", 0)
    for name in _INFINITIES:
        without_bin = without_bin + _longs(rows, name, 0)
    return HistogramFiles(
        column=level.column,
        values=np.where(values < 0, -1, values - without_bin),
        distinct=distinct,
        estimated=rows["distinct_error"].fill_null(0.0).to_numpy() > 0,
    )


def _estimate_values(lists: FileValueCounts) -> int:
    """Estimate the number of values in complete lists and in the data files of cut lists."""
    return int(np.where(lists.is_truncated, np.maximum(lists.values, 0), lists.estimates).sum())


def _count_values(ordinal: int, level: ColumnLevel) -> FileValueCounts:
    rows = level.rows
    nulls = _longs(rows, "nulls", -1)
    floors = _longs(rows, "frequencies_floor", -1)
    kinds = _list_kinds(level, floors)
    is_complete = np.array([kind == COMPLETE for kind in kinds], np.bool_)
    estimates = _longs(rows, "distinct", 0)
    is_exact = rows["distinct_error"].fill_null(1.0).to_numpy() == 0
    width = pc.max(rows["avg_len"]).as_py()
    return FileValueCounts(
        column=level.column,
        ordinal=ordinal,
        kinds=kinds,
        floors=np.where(is_complete, 0, np.maximum(floors, 0)),
        values=np.where(nulls < 0, -1, _longs(rows, "rows", 0) - nulls),
        distincts=np.where(is_exact, estimates, -1),
        singles=_longs(rows, "singles", -1),
        estimates=estimates,
        los=_list_bounds(rows, f"lo_{level.column.encoding}"),
        his=_list_bounds(rows, f"hi_{level.column.encoding}"),
        width=width or 0.0,
    )


def _list_kinds(level: ColumnLevel, floors: Longs) -> tuple[str, ...]:
    """Return the kind of each file's list."""
    stored = level.rows["frequencies"].to_pylist()
    return tuple(map(_classify_list, stored, floors.tolist()))


def _classify_list(kind: str | None, floor: int) -> str:
    if kind is None:
        return NONE
    if kind in (COMPLETE, NONE):
        return kind
    if floor < 0:
        return NONE
    if floor == 0:
        return COMPLETE
    return kind


def _list_bounds(rows: pa.Table, name: str) -> tuple[Any, ...]:
    """Return the bounds of files without NaN, which lies outside of all bounds; None for other files."""
    bounds = rows[name].to_pylist()
    for file in np.flatnonzero(_longs(rows, "nans", -1)).tolist():
        bounds[file] = None
    return tuple(bounds)


def _longs(rows: pa.Table, name: str, missing: int) -> Longs:
    column = rows[name]
    if column.null_count:
        column = column.fill_null(missing)
    longs: Longs = column.to_numpy().astype(np.int64)
    return longs
