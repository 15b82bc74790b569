"""The value lists and histograms of a table: collected column by column, reduced, written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.format import object_layout
from metastore.format.histogram_bins import EQUI_HEIGHT, Histogram, compute_percentiles
from metastore.format.manifest import FULL, SummaryRef
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
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from concurrent.futures import Executor, Future

    import pyarrow as pa
    from numpy.typing import NDArray

    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.store import Store
    from metastore.store.prefetch import DetailPrefetch
    from metastore.table_level.live_statistics import ColumnLevel
    from metastore.table_level.value_jobs import ValueJobs
    from metastore.table_level.value_sources import ValueSource

    Longs = NDArray[np.int64]


_INFINITIES = ("negative_infinities", "positive_infinities")


@dataclass(frozen=True)
class TableLevelOptions:
    """How the table level is made.

    Attributes:
        top: Values kept of a column of which some file keeps its most frequent ones only.
        algorithm: `auto`, `exact`, `reduce`, `duplicates` or `scatter`.
        threshold: Below it a sum of the files' distinct (or duplicate) counts is small.
        driver_bytes: Bytes of stored lists that the driver reduces itself.
        kind: Of histograms, `equi_height` or `equi_width`.
        expressions: What it tells of besides the columns.
    """

    bins: int = 1000
    top: int = 1000
    algorithm: str = "auto"
    threshold: int = THRESHOLD
    driver_bytes: int = 64 << 20
    kind: str = EQUI_HEIGHT
    expressions: tuple[Column, ...] = ()


@dataclass(frozen=True)
class TableDetailResult:
    """What was written.

    Attributes:
        frequencies: The objects of value lists, once they are written.
        histograms: That of histograms, if any, likewise.
        lists: What is known of the lists, by the column's place in the snapshot's schema.
        percentiles: Those of the columns that have a histogram of equal height: they are taken from it.
        distribution: Columns, by their place, of which the lists tell where each value lives.
        index_coverage: The object that says of how many rows of each data file they tell, if any.
        nodes: The objects that keep what groups of data files were merged to.
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
        table: Those made here, to be written.
        made: Those that tasks wrote, and what is known of all.
    """

    table: pa.Table
    made: JobResult


@dataclass
class TableDetailWriter:
    """Collects what is known of columns, and writes their lists and histograms.

    Attributes:
        store: Where detail objects are and the result goes.
        early: Objects that are being read.
        nodes: Objects that keep what groups of data files were merged to.
        jobs: Where lists that are too long for one place are reduced; None: all are reduced here.
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
        """Read which groups are kept."""
        self._histograms = TableHistograms(self.store, self.nodes, self._read, self.options.bins, self.options.kind)
        self._kept = ListGroups(self.store, self.nodes, self._read)

    def add(self, ordinal: int, known: ColumnLevel, found: ColumnStatistics) -> None:
        """Take a column."""
        if known.column.encoding is None:
            return
        lists = _lists_of(ordinal, known)
        self._lists[ordinal] = ColumnLists(lists, known.sources, self._kept.make_tree(known))
        below, above = (_longs(known.rows, name, 0) for name in _INFINITIES)
        others = _longs(known.rows, "nans", 0) + below + above
        values = np.where(lists.values < 0, -1, lists.values - others)
        infinities = [found.numbers.get(name) or 0 for name in _INFINITIES]
        without_bin = sum(map(bool, (found.nans, *infinities)))
        distinct = None if found.distinct is None else found.distinct - without_bin
        los, his = (tuple(known.rows[f"{end}_{known.column.encoding}"].to_pylist()) for end in ("lo", "hi"))
        estimated = known.rows["distinct_error"].fill_null(0.0).to_numpy() > 0
        mixed = _may_mix_infinities(known.rows, known.column)
        self._infinities[ordinal] = (infinities[0], infinities[1])
        self._files[ordinal] = HistogramFiles(
            column=known.column,
            values=values,
            los=los,
            his=his,
            distinct=distinct,
            estimated=estimated,
            mixed=mixed,
        )
        self._histograms.add(ordinal, known, self._files[ordinal])

    def write(self) -> TableDetailResult:
        """Reduce and write what was collected."""
        merged = self.threads.submit(self._histograms.merge)
        lists = self._make_lists(merged)
        frequencies = self.threads.submit(self._put_lists, lists)
        histograms = self._with_lists(merged.result(), lists)
        ref = self.threads.submit(self._put_histograms, histograms)
        indexed = lists.made.indexed_rows
        placed = self.store.put("table-placed", *index_coverage_rows(indexed)) if indexed else None
        nodes = (*self._histograms.finish(), *self._kept.finish())
        percentiles = self._percentiles(histograms)
        return TableDetailResult(frequencies, ref, lists.made.lists, percentiles, tuple(sorted(indexed)), placed, nodes)

    def _make_lists(self, histograms: Future[dict[int, Histogram]]) -> TableLists:
        indexed = self._placed_targets()
        targets = self._targets(histograms, indexed.keys())
        results = []
        if self.jobs is not None and targets:
            results.append(self._by_job(self.jobs, targets))
        if self.jobs is not None and indexed:
            results.append(self.jobs.index_values(self._only(indexed), indexed))
        done = {ordinal for result in results for ordinal in result.lists.keys() - result.skipped}
        found = self._reduce(self._lists.keys() - done)
        return replace(found, made=sum((one.select_columns(done) for one in results), found.made))

    def _by_job(self, jobs: ValueJobs, targets: dict[int, CountTarget]) -> JobResult:
        columns = self._only(targets)
        whole = [one for one in columns.values() if one.is_complete]
        self._kept.make_groups(whole, self.options.driver_bytes)
        by_files = {ordinal: one if one.is_complete else one.without_groups() for ordinal, one in columns.items()}
        return jobs.count_values(by_files, targets, self._kept.group_sources(whole))

    def _only(self, targets: Collection[int]) -> dict[int, ColumnLists]:
        return {ordinal: self._lists[ordinal] for ordinal in targets}

    def _placed_targets(self) -> dict[int, CountTarget]:
        """The columns of which it is asked where each value lives, as far as every data file can tell."""
        if self.jobs is None:
            return {}
        return {
            ordinal: CountTarget(one.lists.column, SCATTER, _number(one.lists))
            for ordinal, one in self._only(self.jobs.distribution & self._lists.keys()).items()
            if len(one.lists.kinds) == len(self.jobs.files) and (one.is_complete or self.jobs.can_read_all_values(one))
        }

    def _targets(self, histograms: Future[dict[int, Histogram]], but: Collection[int]) -> dict[int, CountTarget]:
        """The columns that a job reduces."""
        found: dict[int, CountTarget] = {}
        for ordinal, one in self._lists.items():
            lists = one.lists
            algorithm = choose_job_algorithm(lists, self.options.algorithm, self.options.threshold)
            if self.jobs is None or algorithm == REDUCE or not lists.values.any() or ordinal in but:
                continue
            if self.jobs.can_read_all_values(one):
                found[ordinal] = CountTarget(lists.column, algorithm, _number(lists), histograms.result().get(ordinal))
        return found

    def _reduce(self, ordinals: Collection[int]) -> TableLists:
        """The first algorithm, here or in tasks."""
        columns = [self._lists[ordinal] for ordinal in sorted(ordinals)]
        lists, known = [one.lists for one in columns], [one for one in columns if one.lists.is_known]
        parts = self._kept.select_details(known)
        size = sum(part.length for part in parts) + self._kept.estimate_bytes(known)
        none = TABLE_FREQUENCIES.empty_table()
        if self.jobs is not None and size > self.options.driver_bytes:
            self._kept.make_groups(known, self.options.driver_bytes)
            slices = self._kept.select_details(known, floors=True)
            sources: list[ValueSource] = [*self._kept.group_sources(known), *slices]
            return TableLists(none, self.jobs.reduce_lists(sources, lists, self.options.top))
        table, facts = reduce_lists(self._kept.merge_lists(known, parts), lists, self.options.top)
        return TableLists(table, JobResult((), facts, none))

    def _put_lists(self, lists: TableLists) -> tuple[SummaryRef, ...]:
        ordered, groups = object_layout.table_lists_layout(lists.table, lists.made.heads)
        if not groups:
            return ()
        columns = tuple(sorted(lists.table["column"].unique().to_pylist()))
        return (SummaryRef(self.store.put("table-frequencies", ordered, groups), columns), *lists.made.objects)

    def _with_lists(self, histograms: dict[int, Histogram], lists: TableLists) -> dict[int, Histogram]:
        """The histograms, but for columns of which all values are listed: theirs say what the lists say."""
        found, table = dict(histograms), lists.table
        ordinals = table["column"].to_numpy()
        for ordinal, one in histograms.items():
            start, end = ordinals.searchsorted([ordinal, ordinal + 1]).tolist()
            known = lists.made.lists.get(ordinal)
            if known and known.kind == COMPLETE and one.kind == EQUI_HEIGHT and end > start:
                listed = make_histogram_of_counts(
                    table.slice(start, end - start), self._files[ordinal].column, self.options.bins
                )
                if int(listed.counts.sum()) == int(one.counts.sum()):
                    found[ordinal] = listed
        return found

    def _percentiles(self, histograms: dict[int, Histogram]) -> dict[int, list[Any]]:
        found = {}
        for ordinal, histogram in histograms.items():
            if histogram.kind == EQUI_HEIGHT:
                below, above = self._infinities[ordinal]
                of_all_values = replace(histogram, below=below, above=above)
                found[ordinal] = compute_percentiles(of_all_values, str(self._files[ordinal].column.encoding))
        return found

    def _put_histograms(self, histograms: dict[int, Histogram]) -> ObjectRef | None:
        rows = ((ordinal, self._files[ordinal].column, one) for ordinal, one in histograms.items())
        table = object_layout.table_histogram_rows(rows)
        groups = split_evenly(table.num_rows, object_layout.HISTOGRAM_GROUPS)
        return self.store.put("table-histograms", table, groups) if table.num_rows else None

    def _read(self, part: DetailSlice) -> pa.Table:
        with attribute_damage(part.block):
            early = self.early.take_rows(part.name)
            return read_detail_object(part, partial(self.store.read_bytes, part.name)) if early is None else early


def _may_mix_infinities(rows: pa.Table, column: Column) -> NDArray[np.bool_]:
    """Of which files infinite values were not counted, and may be in the bins: a bound of theirs is infinite."""
    if column.encoding != "double":
        return np.zeros(rows.num_rows, np.bool_)
    is_counted = np.asarray(rows[_INFINITIES[0]].is_valid())
    bounds = [rows[f"{end}_double"].fill_null(0.0).to_numpy() for end in ("lo", "hi")]
    found: NDArray[np.bool_] = ~is_counted & (np.isinf(bounds[0]) | np.isinf(bounds[1]))
    return found


def _number(lists: FileValueCounts) -> int:
    """About how many values the files' lists and the files behind cut lists hold."""
    return int(np.where(lists.is_truncated, np.maximum(lists.values, 0), lists.estimates).sum())


def _lists_of(ordinal: int, known: ColumnLevel) -> FileValueCounts:
    rows, encoding = known.rows, known.column.encoding
    nulls, nans = _longs(rows, "nulls", -1), _longs(rows, "nans", -1)
    values = np.where(nulls < 0, -1, _longs(rows, "rows", 0) - nulls)
    floors = _longs(rows, "frequencies_floor", -1)
    stored = zip(rows["frequencies"].to_pylist(), floors.tolist(), _has_lists(known), strict=True)
    kinds = [_kind(kind, floor) if has else NONE for kind, floor, has in stored]
    is_cut = np.array([kind != COMPLETE for kind in kinds], np.bool_)
    estimates = _longs(rows, "distinct", 0)
    exact = rows["distinct_error"].fill_null(1.0).to_numpy() == 0
    # NaN lies outside of all bounds.
    bounded = nans == 0
    los, his = (
        tuple(
            value if inside else None
            for value, inside in zip(rows[f"{end}_{encoding}"].to_pylist(), bounded, strict=True)
        )
        for end in ("lo", "hi")
    )
    lengths = rows["avg_len"].drop_null().to_numpy()
    return FileValueCounts(
        known.column,
        ordinal,
        tuple(kinds),
        np.where(is_cut, np.maximum(floors, 0), 0),
        values,
        np.where(exact, estimates, -1),
        _longs(rows, "singles", -1),
        estimates,
        los,
        his,
        float(lengths.max()) if len(lengths) else 0.0,
    )


def _has_lists(known: ColumnLevel) -> Iterator[bool]:
    """Whether each row's block has lists: those of footers alone once said so of constants, and had none."""
    for source in known.sources:
        yield from repeat(source.indexed.block.computed == FULL, len(source.files))


def _kind(kind: str | None, floor: int) -> str:
    if kind is None or (floor < 0 and kind != COMPLETE):
        return NONE
    return COMPLETE if floor == 0 and kind != NONE else kind


def _longs(rows: pa.Table, name: str, missing: int) -> Longs:
    known = rows[name]
    found: Longs = (known.fill_null(missing) if known.null_count else known).to_numpy().astype(np.int64)
    return found
