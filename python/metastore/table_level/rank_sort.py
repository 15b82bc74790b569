"""Exact ranks: a distributed sort of whole columns in a fixed number of Spark jobs.

1. Tasks read the columns of their data files as sorted runs, which stay on the executors' disks, and sample them.
2. From the samples the driver chooses ranges of about equal size; a job counts the values of each range.
3. The runs are cut and shuffled by range; a task merges the runs of its ranges, adds the number of values before, and
   writes the ranks.

After an append the stored ranks of the earlier files are runs like those of the new files.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.adapters.shim_calls import require_unchanged
from metastore.adapters.spark_rows import read_rows_by_spark
from metastore.format.data_files import select_files
from metastore.format.manifest import RanksRef
from metastore.format.object_schemas import TABLE_RANKS, fill_schema
from metastore.format.objects import ObjectRef, decode_object
from metastore.kernel.parquet_file import find_spark_only_reason, open_data_file, read_column_values
from metastore.kernel.parquet_schema import FileColumn, UnsupportedDataFile
from metastore.spark_jobs.session_jobs import pack_files, ship_package
from metastore.table_level.sorted_runs import (
    SortedRun,
    make_constant_run,
    merge_sorted_runs,
    run_from_stored,
    run_to_stored,
    sort_values,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark import RDD
    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile
    from metastore.format.table_column import Column
    from metastore.spark_jobs.task_store import ReadContent, TaskStore
    from metastore.store.data_file_access import DataFileAccess

    Columns = tuple[tuple[int, Column], ...]
    """Columns with their ordinals in the snapshot's schema."""
    RangeKey = tuple[int, int]
    """The ordinal of a column, and the number of a range of its values."""
    Edges = Mapping[int, list[Any]]
    """The upper edges of each column's ranges but the last."""


RANGE_BYTES = 32 << 20
_READ_BYTES = 64 << 20
_POINTS = 64
_FEWEST_IN_GROUP = 1 << 16
_MOST_GROUPS = 16
_RUN_SCHEMA = "ordinal int, run binary"


@dataclass(frozen=True, kw_only=True)
class _FileTask:
    """The data files and columns that one task of the first job reads."""

    files: tuple[DataFile, ...]
    columns: Columns
    defaults: Mapping[str, Any]
    absent_is_null: bool
    field_ids: Mapping[str, int]
    access: DataFileAccess


@dataclass(frozen=True)
class _RunSample:
    """The column, size and sampled values of a run; or the path of a file that only Spark can read."""

    ordinal: int
    nbytes: int
    points: list[Any]
    unread: str = ""


class _RangeSize(NamedTuple):
    """The number of values of a range, repeated ones included, and the bytes of its runs."""

    values: int = 0
    nbytes: int = 0

    def plus(self, other: _RangeSize) -> _RangeSize:
        return _RangeSize(self.values + other.values, self.nbytes + other.nbytes)


@dataclass(frozen=True)
class RankSort:
    """The jobs that make the ranks of one snapshot.

    Attributes:
        access: How tasks open data files.
        range_bytes: The size of the values that one task sorts.
    """

    spark: SparkSession
    facts: TableFacts
    store: TaskStore
    access: DataFileAccess
    range_bytes: int = RANGE_BYTES

    def sort_columns(
        self, ordinals: Sequence[int], files: Sequence[DataFile], base: Sequence[RanksRef] = ()
    ) -> tuple[RanksRef, ...]:
        """Compute and write the ranks of columns, of the values of data files and of stored ranks."""
        columns = tuple((ordinal, self.facts.columns[ordinal]) for ordinal in sorted(ordinals))
        context = self.spark.sparkContext
        ship_package(context)
        python_files, spark_files = self._divide_files(files, columns)
        sources = [self._read_by_python(columns, python_files)]
        samples = _sample_runs(sources)
        unread_paths = {sample.unread for sample in samples}
        spark_files += select_files(python_files, unread_paths)
        sources += self._make_other_sources(columns, spark_files, base)
        samples += _sample_runs(sources[1:])
        try:
            return self._sort(context.union(sources), columns, samples)
        finally:
            for source in sources:
                source.unpersist()

    def _make_other_sources(
        self, columns: Columns, files: Sequence[DataFile], base: Sequence[RanksRef]
    ) -> Iterator[RDD[Any]]:
        if files:
            yield self._read_by_spark(columns, files)
        if base:
            yield self._read_stored(columns, base)

    def _divide_files(self, files: Sequence[DataFile], columns: Columns) -> tuple[list[DataFile], list[DataFile]]:
        """Divide data files into those that Python tries to read, and those that only Spark reads."""
        keys = [column.key for _, column in columns]
        python_files = []
        spark_files = []
        for file in files:
            has_values = file.deletes is None and file.unknown.isdisjoint(keys)
            if has_values and find_spark_only_reason(file, self.access) is None:
                python_files.append(file)
            else:
                spark_files.append(file)
        return python_files, spark_files

    def _read_by_python(self, columns: Columns, files: Sequence[DataFile]) -> RDD[Any]:
        context = self.spark.sparkContext
        facts = self.facts
        tasks = []
        for group in pack_files(files, context.defaultParallelism):
            task = _FileTask(
                files=group,
                columns=columns,
                defaults=facts.defaults,
                absent_is_null=facts.absent_is_null,
                field_ids=facts.field_ids,
                access=self.access,
            )
            tasks.append(task)
        return _persist(context.parallelize(tasks, max(len(tasks), 1)).flatMap(_read_files))

    def _read_by_spark(self, columns: Columns, files: Sequence[DataFile]) -> RDD[Any]:
        rows = read_rows_by_spark(self.spark, self.facts, [column for _, column in columns], files, live=True)

        def sort_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                is_deleted = pc.fill_null(batch.column(1), False)  # noqa: FBT003 - a value
                live = batch.filter(pc.invert(is_deleted))
                runs = _sort_columns(live.columns[2:], columns)
                arrays = [pa.array(dict(columns), pa.int32()), pa.array(runs, pa.binary())]
                yield pa.record_batch(arrays, names=["ordinal", "run"])

        runs = require_unchanged(rows.mapInArrow(sort_batches, _RUN_SCHEMA), self.facts.name).rdd
        return _persist(runs.map(lambda row: (row.ordinal, bytes(row.run))))

    def _read_stored(self, columns: Columns, refs: Sequence[RanksRef]) -> RDD[Any]:
        def read(stored: tuple[RanksRef, ReadContent]) -> Iterator[tuple[int, bytes]]:
            ref, read_content = stored
            rows = decode_object(ref.object, read_content())
            row_ordinals = rows.column("column").to_numpy()
            for ordinal, column in columns:
                start, end = np.searchsorted(row_ordinals, [ordinal, ordinal + 1])
                if start < end:
                    run = _run_from_ranks(rows.slice(start, end - start), column, ref.before(ordinal))
                    yield ordinal, run.to_bytes()

        context = self.spark.sparkContext
        objects = self.store.distribute_with_content(context, refs, len(refs), lambda ref: ref.object.name)
        return _persist(objects.flatMap(read))

    def _sort(self, runs: RDD[Any], columns: Columns, samples: Sequence[_RunSample]) -> tuple[RanksRef, ...]:
        edges = self._choose_all_edges(columns, samples)
        sizes = _measure_ranges(runs, edges)
        tasks = self._assign_tasks(sizes)
        if not tasks:
            return (self._write_empty(columns),)
        count = max(tasks.values()) + 1
        cut_runs = runs.flatMap(_cut_runs(edges, tasks)).partitionBy(count, int)
        write = _write_ranges(self.store, dict(columns), _count_before(sizes))
        first, *remaining = self.store.collect(cut_runs.mapPartitions(write))
        without_values = tuple(ordinal for ordinal, _ in columns if (ordinal, 0) not in sizes)
        return (_with_empty_columns(first, without_values), *remaining)

    def _choose_all_edges(self, columns: Columns, samples: Sequence[_RunSample]) -> dict[int, list[Any]]:
        column_samples: dict[int, list[_RunSample]] = defaultdict(list)
        for sample in samples:
            column_samples[sample.ordinal].append(sample)
        return {ordinal: self._choose_edges(column_samples[ordinal]) for ordinal, _ in columns}

    def _write_empty(self, columns: Columns) -> RanksRef:
        store = self.store
        job = self.spark.sparkContext.parallelize([TABLE_RANKS.empty_table()], 1)
        (ref,) = store.collect(job.map(lambda no_rows: store.write("table-ranks", no_rows, [])))
        return RanksRef(ref, tuple(dict(columns)), (0,) * len(columns))

    def _choose_edges(self, samples: Sequence[_RunSample]) -> list[Any]:
        """Return the upper edges of ranges of about equal size; the last range has none."""
        total = sum(sample.nbytes for sample in samples)
        count = -(-total // self.range_bytes)
        weighted: list[tuple[Any, float]] = []
        for sample in samples:
            weight = sample.nbytes / max(len(sample.points), 1)
            weighted += zip(sample.points, repeat(weight))
        edges: list[Any] = []
        before = 0.0
        for point, weight in sorted(weighted):
            before += weight
            number = len(edges) + 1
            if number < count and before >= total * number / count:
                edges.append(point)
        return sorted(set(edges))

    def _assign_tasks(self, sizes: Mapping[RangeKey, _RangeSize]) -> dict[RangeKey, int]:
        """Number the task of each range, in order; small ranges share a task."""
        tasks = {}
        task = 0
        task_bytes = 0
        for key, size in sorted(sizes.items()):
            if task_bytes and task_bytes + size.nbytes > self.range_bytes:
                task += 1
                task_bytes = 0
            tasks[key] = task
            task_bytes += size.nbytes
        return tasks


def _sort_columns(arrays: Sequence[pa.Array], columns: Columns) -> list[bytes]:
    runs = []
    for values, (_, column) in zip(arrays, columns, strict=True):
        runs.append(sort_values(values, column).to_bytes())
    return runs


def _persist(runs: RDD[Any]) -> RDD[Any]:
    from pyspark import StorageLevel  # noqa: PLC0415 - not needed to import this module

    return runs.persist(StorageLevel.DISK_ONLY)


def _read_files(task: _FileTask) -> Iterator[tuple[int, bytes] | _RunSample]:
    for file in task.files:
        try:
            runs = _read_runs(task, file)
        except UnsupportedDataFile:
            yield _RunSample(-1, 0, [], file.path)
            continue
        for ordinal, run in runs:
            if len(run):
                yield ordinal, run.to_bytes()


def _read_runs(task: _FileTask, file: DataFile) -> Iterator[tuple[int, SortedRun]]:
    """Return the runs of a file; a column that cannot be read raises before the first run."""
    if file.rows == 0:
        return iter(())
    columns = [(ordinal, column) for ordinal, column in task.columns if column.key not in file.constants]
    arrays = _read_arrays(task, file, [column for _, column in columns])
    values = dict(file.constants)
    for number, (_, column) in enumerate(columns):
        if number not in arrays:
            values[column.key] = _absent_value(task, column)
    constants = [(ordinal, column) for ordinal, column in task.columns if values.get(column.key) is not None]
    constant_runs = _make_constant_runs(constants, values, file.physical_rows)
    return chain(constant_runs, _sort_arrays(columns, arrays))


def _read_arrays(task: _FileTask, file: DataFile, columns: Sequence[Column]) -> dict[int, Iterator[pa.Array]]:
    """Return the values of the columns that a file has, by their numbers."""
    if not columns:
        return {}
    file_columns = [FileColumn.of(column, task.field_ids) for column in columns]
    return read_column_values(open_data_file(file, task.access), file_columns, _READ_BYTES)


def _absent_value(task: _FileTask, column: Column) -> Any:
    """Return the value of a column in all rows of a file that does not have the column."""
    if column.key not in task.defaults and not task.absent_is_null:
        raise UnsupportedDataFile("a column is absent")
    return task.defaults.get(column.key)


def _make_constant_runs(
    columns: Sequence[tuple[int, Column]], values: Mapping[str, Any], rows: int
) -> Iterator[tuple[int, SortedRun]]:
    for ordinal, column in columns:
        yield ordinal, make_constant_run(values[column.key], rows, column)


def _sort_arrays(
    columns: Sequence[tuple[int, Column]], arrays: Mapping[int, Iterable[pa.Array]]
) -> Iterator[tuple[int, SortedRun]]:
    for number, column_arrays in arrays.items():
        ordinal, column = columns[number]
        for array in column_arrays:
            yield ordinal, sort_values(array, column)


def _sample_runs(sources: Sequence[RDD[Any]]) -> list[_RunSample]:
    """Sample the runs of sources, by a job for each; unread files come as samples, too."""
    samples: list[_RunSample] = []
    for source in sources:
        samples += source.map(_sample_run).collect()
    return samples


def _sample_run(record: tuple[int, bytes] | _RunSample) -> _RunSample:
    if isinstance(record, _RunSample):
        return record
    ordinal, data = record
    run = SortedRun.from_bytes(data)
    if not len(run):
        return _RunSample(ordinal, nbytes=0, points=[])
    return _RunSample(ordinal, run.nbytes, run.sample_values(_POINTS))


def _measure_ranges(runs: RDD[Any], edges: Edges) -> dict[RangeKey, _RangeSize]:
    """Measure the ranges that have values, by a job."""

    def measure(records: Iterable[Any]) -> Iterator[dict[RangeKey, _RangeSize]]:
        sizes: dict[RangeKey, _RangeSize] = defaultdict(_RangeSize)
        for key, run in _split_runs(records, edges):
            sizes[key] = sizes[key].plus(_RangeSize(int(run.counts.sum()), run.nbytes))
        yield dict(sizes)

    total: dict[RangeKey, _RangeSize] = defaultdict(_RangeSize)
    for sizes in runs.mapPartitions(measure).collect():
        for key, size in sizes.items():
            total[key] = total[key].plus(size)
    return total


def _cut_runs(
    edges: Edges, tasks: Mapping[RangeKey, int]
) -> Callable[[Any], Iterator[tuple[int, tuple[RangeKey, bytes]]]]:
    def cut(record: Any) -> Iterator[tuple[int, tuple[RangeKey, bytes]]]:
        for key, run in _split_runs([record], edges):
            yield tasks[key], (key, run.to_bytes())

    return cut


def _split_runs(records: Iterable[Any], edges: Edges) -> Iterator[tuple[RangeKey, SortedRun]]:
    for record in records:
        if isinstance(record, _RunSample):
            continue
        ordinal, data = record
        for number, run in enumerate(SortedRun.from_bytes(data).split_at(edges[ordinal])):
            if len(run):
                yield (ordinal, number), run


def _write_ranges(
    store: TaskStore, columns: Mapping[int, Column], before: Mapping[RangeKey, int]
) -> Callable[[Iterable[Any]], Iterator[RanksRef]]:
    def write(records: Iterable[Any]) -> Iterator[RanksRef]:
        ranges: dict[RangeKey, list[SortedRun]] = defaultdict(list)
        for _, (key, data) in records:
            ranges[key].append(SortedRun.from_bytes(data))
        if not ranges:
            return
        tables: list[pa.Table] = []
        before_first: dict[int, int] = {}
        for key in sorted(ranges):
            ordinal, _ = key
            run = merge_sorted_runs(ranges.pop(key))
            tables.append(_rank_rows(ordinal, columns[ordinal], run, before[key]))
            before_first.setdefault(ordinal, before[key])
        ref = _write_ranks(store, pa.concat_tables(tables).combine_chunks())
        yield RanksRef(ref, tuple(before_first), tuple(before_first.values()))

    return write


def _write_ranks(store: TaskStore, rows: pa.Table) -> ObjectRef:
    size = max(_FEWEST_IN_GROUP, -(-rows.num_rows // _MOST_GROUPS))
    full_groups, remaining = divmod(rows.num_rows, size)
    groups = [size] * full_groups
    if remaining:
        groups.append(remaining)
    return store.write("table-ranks", rows, groups)


def _rank_rows(ordinal: int, column: Column, run: SortedRun, before: int) -> pa.Table:
    value_name = f"value_{column.encoding}"
    columns = {
        "column": pa.array(np.full(len(run), ordinal, np.int32)),
        value_name: run_to_stored(run).cast(TABLE_RANKS.field(value_name).type),
        "rank": pa.array(before + np.cumsum(run.counts)),
    }
    return fill_schema(TABLE_RANKS, columns, len(run))


def _with_empty_columns(ref: RanksRef, columns: tuple[int, ...]) -> RanksRef:
    """Name columns without values as columns of an object: it has all of their ranks."""
    return RanksRef(ref.object, ref.columns + columns, ref.before_first + (0,) * len(columns))


def _run_from_ranks(rows: pa.Table, column: Column, before: int) -> SortedRun:
    ranks = rows.column("rank").to_numpy()
    values = rows.column(f"value_{column.encoding}").combine_chunks()
    return run_from_stored(values, np.diff(ranks, prepend=before), column)


def _count_before(sizes: Mapping[RangeKey, _RangeSize]) -> dict[RangeKey, int]:
    """Return the number of values of its column before each range."""
    counts: dict[RangeKey, int] = {}
    totals: dict[int, int] = defaultdict(int)
    for key, size in sorted(sizes.items()):
        ordinal, _ = key
        counts[key] = totals[ordinal]
        totals[ordinal] += size.values
    return counts
