"""Exact ranks: a distributed sort of whole columns in a fixed number of Spark jobs.

1. Tasks read the columns of their data files as sorted runs, which stay on the executors' disks, and sample them.
2. From the points the driver chooses ranges of about equal size; the runs tell how many values fall into each.
3. The runs are cut and shuffled by range; a task merges those of its ranges, adds the number of values before, writes.

After an append the stored ranks of the files that were there are runs like those of the new files.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.adapters.shim_calls import require_unchanged
from metastore.adapters.spark_rows import read_rows_by_spark
from metastore.format.manifest import RanksRef
from metastore.format.object_schemas import TABLE_RANKS, fill_schema
from metastore.format.objects import ObjectRef, decode_object
from metastore.kernel.parquet_file import find_spark_only_reason, read_column_values
from metastore.kernel.parquet_schema import FileColumn, UnsupportedDataFile
from metastore.spark_jobs.session_jobs import pack_files, ship_package
from metastore.store.location import local_path
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

    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.format.table_column import Column
    from metastore.spark_jobs.task_store import ReadContent, TaskStore

    Columns = tuple[tuple[int, Column], ...]
    Edges = Mapping[int, list[Any]]
    Parts = Mapping[tuple[int, int], int]


RANGE_BYTES = 32 << 20
_READ_BYTES = 64 << 20
_POINTS = 64
_FEWEST_IN_GROUP, _MOST_GROUPS = 1 << 16, 16


@dataclass(frozen=True)
class _FileTask:
    """What a task of the first job reads."""

    files: tuple[DataFile, ...]
    columns: Columns
    defaults: Mapping[str, Any]
    absent_is_null: bool
    field_ids: Mapping[str, int]


@dataclass(frozen=True)
class _RunSample:
    """What a run tells the driver: its column, size and points; or a file that only Spark can read."""

    ordinal: int
    nbytes: int
    points: list[Any]
    unread: str = ""


@dataclass(frozen=True)
class RankSort:
    """The jobs that make the ranks of one snapshot.

    Attributes:
        range_bytes: Size of the values that one task sorts.
    """

    spark: SparkSession
    facts: TableFacts
    place: TaskStore
    range_bytes: int = RANGE_BYTES

    def sort_columns(
        self, ordinals: Sequence[int], files: Sequence[DataFile], known: Sequence[RanksRef] = ()
    ) -> tuple[RanksRef, ...]:
        """Compute and write the ranks of some columns."""
        columns = tuple((ordinal, self.facts.columns[ordinal]) for ordinal in sorted(ordinals))
        ship_package(self.spark.sparkContext)
        context = self.spark.sparkContext
        sources = [self._of_files(columns, [file for file in files if self._is_read_by_python(file, columns)])]
        samples = sources[0].map(_sample_run).collect()
        unreadable = {one.unread for one in samples if one.unread}
        for_spark = [file for file in files if file.path in unreadable or not self._is_read_by_python(file, columns)]
        others = [self._of_spark(columns, for_spark)] if for_spark else []
        others += [self._of_store(columns, known)] if known else []
        for source in others:
            samples += source.map(_sample_run).collect()
        sources += others
        try:
            return self._sorted(context.union(sources), columns, [one for one in samples if not one.unread])
        finally:
            for source in sources:
                source.unpersist()

    def _is_read_by_python(self, file: DataFile, columns: Columns) -> bool:
        whole = file.deletes is None and not any(column.key in file.unknown for _, column in columns)
        return whole and find_spark_only_reason(file, local=self.facts.local) is None

    def _of_files(self, columns: Columns, files: Sequence[DataFile]) -> RDD[Any]:
        context, facts = self.spark.sparkContext, self.facts
        groups = list(pack_files(files, context.defaultParallelism))
        tasks = [_FileTask(group, columns, facts.defaults, facts.absent_is_null, facts.field_ids) for group in groups]
        return _persist(context.parallelize(tasks, max(len(tasks), 1)).flatMap(_read_files))

    def _of_spark(self, columns: Columns, files: Sequence[DataFile]) -> RDD[Any]:
        rows = read_rows_by_spark(self.spark, self.facts, [column for _, column in columns], files, live=True)

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                live = batch.filter(pc.invert(pc.fill_null(batch.column(1), False)))  # noqa: FBT003 - a value
                pairs = zip(live.columns[2:], columns, strict=True)
                runs = [sort_values(values, column).to_bytes() for values, (_, column) in pairs]
                yield pa.record_batch(
                    [pa.array([ordinal for ordinal, _ in columns], pa.int32()), pa.array(runs, pa.binary())],
                    names=["ordinal", "run"],
                )

        runs = require_unchanged(rows.mapInArrow(work, "ordinal int, run binary"), self.facts.name).rdd
        return _persist(runs.map(lambda row: (row.ordinal, bytes(row.run))))

    def _of_store(self, columns: Columns, known: Sequence[RanksRef]) -> RDD[Any]:
        def work(stored: tuple[RanksRef, ReadContent]) -> Iterator[tuple[int, bytes]]:
            ref, content = stored
            rows = decode_object(ref.object, content())
            places = rows.column("column").to_numpy()
            for ordinal, column in columns:
                start, end = np.searchsorted(places, [ordinal, ordinal + 1])
                if start < end:
                    yield ordinal, _of_ranks(rows.slice(start, end - start), column, ref.before(ordinal)).to_bytes()

        context = self.spark.sparkContext
        return _persist(
            self.place.distribute_with_content(context, known, len(known), lambda ref: ref.object.name).flatMap(work)
        )

    def _sorted(self, runs: RDD[Any], columns: Columns, samples: Sequence[_RunSample]) -> tuple[RanksRef, ...]:
        of_columns: dict[int, list[_RunSample]] = defaultdict(list)
        for one in samples:
            of_columns[one.ordinal].append(one)
        edges = {ordinal: self._edges(of_columns[ordinal]) for ordinal, _ in columns}
        sizes: dict[tuple[int, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
        for found in runs.mapPartitions(_count_ranges(edges)).collect():
            for key, (values, nbytes) in found.items():
                sizes[key] = (sizes[key][0] + values, sizes[key][1] + nbytes)
        offsets = _offsets({key: values for key, (values, _) in sizes.items()})
        parts = self._parts({key: nbytes for key, (_, nbytes) in sizes.items()})
        count = max(parts.values(), default=-1) + 1
        if not count:
            return (RanksRef(self._empty(), tuple(dict(columns)), (0,) * len(columns)),)
        cut = runs.flatMap(_cut_runs(edges, parts)).partitionBy(count, int)
        first, *others = self.place.collect(cut.mapPartitions(_write_ranges(self.place, dict(columns), offsets)))
        without = tuple(ordinal for ordinal, _ in columns if (ordinal, 0) not in sizes)
        return (_with_empty(first, without), *others)

    def _empty(self) -> ObjectRef:
        place = self.place
        job = self.spark.sparkContext.parallelize([TABLE_RANKS.empty_table()], 1)
        (written,) = place.collect(job.map(lambda none: place.write("table-ranks", none, [])))
        return written

    def _edges(self, samples: Sequence[_RunSample]) -> list[Any]:
        """The last values of ranges of about equal size, all but the last range's."""
        total = sum(one.nbytes for one in samples)
        count = -(-total // self.range_bytes)
        weighted = sorted((point, one.nbytes / len(one.points)) for one in samples for point in one.points)
        edges: list[Any] = []
        before = 0.0
        for point, weight in weighted:
            before += weight
            if before >= total * (len(edges) + 1) / max(count, 1) and len(edges) + 1 < count:
                edges.append(point)
        return sorted(set(edges))

    def _parts(self, sizes: Mapping[tuple[int, int], int]) -> Parts:
        """The task of each range, in order; small ranges share one."""
        parts, part, held = {}, 0, 0
        for key in sorted(sizes):
            if held and held + sizes[key] > self.range_bytes:
                part, held = part + 1, 0
            parts[key] = part
            held += sizes[key]
        return parts


def _persist(runs: RDD[Any]) -> RDD[Any]:
    from pyspark import StorageLevel  # noqa: PLC0415 - not needed to import this module

    return runs.persist(StorageLevel.DISK_ONLY)


def _read_files(task: _FileTask) -> Iterator[tuple[int, bytes] | _RunSample]:
    for file in task.files:
        try:
            values = _read_runs(task, file)
        except UnsupportedDataFile:
            yield _RunSample(-1, 0, [], file.path)
            continue
        for ordinal, run in values:
            if len(run):
                yield ordinal, run.to_bytes()


def _read_runs(task: _FileTask, file: DataFile) -> Iterator[tuple[int, SortedRun]]:
    """The runs of a file; what cannot be read is found out before the first."""
    if file.rows == 0:
        return iter(())
    constants = [
        (ordinal, column, file.constants[column.key])
        for ordinal, column in task.columns
        if column.key in file.constants
    ]
    wanted = [(ordinal, column) for ordinal, column in task.columns if column.key not in file.constants]
    columns = [FileColumn.of(column, task.field_ids) for _, column in wanted]
    found = read_column_values(str(local_path(file.location)), columns, _READ_BYTES) if wanted else {}
    for place, (ordinal, column) in enumerate(wanted):
        if place not in found:
            if column.key not in task.defaults and not task.absent_is_null:
                raise UnsupportedDataFile("a column is absent")
            constants.append((ordinal, column, task.defaults.get(column.key)))
    of_constants = (
        (ordinal, make_constant_run(value, file.physical_rows, column))
        for ordinal, column, value in constants
        if value is not None
    )
    of_arrays = ((*wanted[place], array) for place, arrays in found.items() for array in arrays)
    return chain(of_constants, ((ordinal, sort_values(array, column)) for ordinal, column, array in of_arrays))


def _sample_run(record: tuple[int, bytes] | _RunSample) -> _RunSample:
    if isinstance(record, _RunSample):
        return record
    run = SortedRun.from_bytes(record[1])
    return _RunSample(record[0], run.nbytes if len(run) else 0, run.sample_values(_POINTS))


def _count_ranges(edges: Edges) -> Callable[[Iterable[Any]], Iterator[dict[tuple[int, int], tuple[int, int]]]]:
    def work(records: Iterable[Any]) -> Iterator[dict[tuple[int, int], tuple[int, int]]]:
        found: dict[tuple[int, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
        for key, run in _split_runs(records, edges):
            found[key] = (found[key][0] + int(run.counts.sum()), found[key][1] + run.nbytes)
        yield dict(found)

    return work


def _cut_runs(edges: Edges, parts: Parts) -> Callable[[Any], Iterator[tuple[int, tuple[tuple[int, int], bytes]]]]:
    def work(record: Any) -> Iterator[tuple[int, tuple[tuple[int, int], bytes]]]:
        for key, run in _split_runs([record], edges):
            yield parts[key], (key, run.to_bytes())

    return work


def _split_runs(records: Iterable[Any], edges: Edges) -> Iterator[tuple[tuple[int, int], SortedRun]]:
    for record in records:
        if isinstance(record, _RunSample):
            continue
        ordinal, data = record
        for place, run in enumerate(SortedRun.from_bytes(data).split_at(edges[ordinal])):
            if len(run):
                yield (ordinal, place), run


def _write_ranges(
    place: TaskStore, columns: Mapping[int, Column], offsets: Mapping[tuple[int, int], int]
) -> Callable[[Iterable[Any]], Iterator[RanksRef]]:
    def work(records: Iterable[Any]) -> Iterator[RanksRef]:
        ranges: dict[tuple[int, int], list[SortedRun]] = defaultdict(list)
        for _, (key, data) in records:
            ranges[key].append(SortedRun.from_bytes(data))
        tables: list[pa.Table] = []
        first: dict[int, int] = {}
        for key in sorted(ranges):
            run = merge_sorted_runs(ranges.pop(key))
            tables.append(_table(key[0], columns[key[0]], run, offsets[key]))
            first.setdefault(key[0], offsets[key])
        if tables:
            rows = pa.concat_tables(tables).combine_chunks()
            size = max(_FEWEST_IN_GROUP, -(-rows.num_rows // _MOST_GROUPS))
            groups = [min(size, rows.num_rows - start) for start in range(0, rows.num_rows, size)]
            ref = place.write("table-ranks", rows, groups)
            yield RanksRef(ref, tuple(first), tuple(first.values()))

    return work


def _table(ordinal: int, column: Column, run: SortedRun, before: int) -> pa.Table:
    kind = TABLE_RANKS.field(f"value_{column.encoding}").type
    given = {
        "column": pa.array(np.full(len(run), ordinal, np.int32)),
        f"value_{column.encoding}": run_to_stored(run).cast(kind),
        "rank": pa.array(before + np.cumsum(run.counts)),
    }
    return fill_schema(TABLE_RANKS, given, len(run))


def _with_empty(ref: RanksRef, columns: tuple[int, ...]) -> RanksRef:
    """The same object, known to hold all ranks of columns without values too."""
    return RanksRef(ref.object, ref.columns + columns, ref.before_first + (0,) * len(columns))


def _of_ranks(rows: pa.Table, column: Column, before: int) -> SortedRun:
    ranks = rows.column("rank").to_numpy()
    values = rows.column(f"value_{column.encoding}").combine_chunks()
    return run_from_stored(values, np.diff(ranks, prepend=before), column)


def _offsets(values: Mapping[tuple[int, int], int]) -> dict[tuple[int, int], int]:
    """How many values of its column come before each range."""
    found, before, ordinal = {}, 0, -1
    for key in sorted(values):
        before = before if key[0] == ordinal else 0
        ordinal = key[0]
        found[key] = before
        before += values[key]
    return found
