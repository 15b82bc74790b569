"""The skeleton of jobs over the values of columns; a strategy routes values and reduces each partition.

Tasks read sources of values, a shuffle brings values together, and tasks reduce and write them. Facts about the first
tasks go to the first partition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject
from metastore.format.manifest import SummaryRef
from metastore.format.object_layout import ROW_GROUPS, put_most_frequent_first, split_evenly
from metastore.format.object_schemas import TABLE_FREQUENCIES
from metastore.kernel.parquet_schema import UnsupportedDataFile
from metastore.store.block_files import BlockDamageError
from metastore.table_level.list_reduction import ListFacts, table_frequency_rows
from metastore.table_level.value_rows import VALUE_ROWS, iterate_columns, sum_value_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark import RDD, SparkContext

    from metastore.spark_jobs.task_store import ReadContent, TaskStore
    from metastore.table_level.value_sources import ValueSource

    Longs = NDArray[np.int64]
    Sources = RDD[tuple[ValueSource, ReadContent]]


C = TypeVar("C")
T = TypeVar("T")


@dataclass(frozen=True)
class TaskFacts:
    """Facts that tasks send beside values.

    Attributes:
        left_behind: The number of values of each column that were not sent.
        failures: A failure for each column of which a source could not be read.
    """

    left_behind: Counter[int] = field(default_factory=Counter)
    failures: Mapping[int, Exception] = field(default_factory=dict)

    def __add__(self, other: TaskFacts) -> TaskFacts:
        """Join the facts of two tasks."""
        return TaskFacts(self.left_behind + other.left_behind, {**other.failures, **self.failures})


@dataclass(frozen=True)
class RoutedRows:
    """The values of a column to send, and the partition of each."""

    rows: pa.Table
    partitions: Longs


@dataclass(frozen=True)
class PartitionCounts:
    """One column's share of a partition.

    Attributes:
        singles: Values that occur once, written or not.
    """

    written: int = 0
    singles: int = 0

    def __add__(self, other: PartitionCounts) -> PartitionCounts:
        """Add up the shares of two partitions."""
        return PartitionCounts(self.written + other.written, self.singles + other.singles)


@dataclass(frozen=True, kw_only=True)
class PartitionResult:
    """The result of the task of one partition; columns go by their ordinals in the snapshot's schema.

    Attributes:
        facts: The facts that the first tasks sent.
        object: The object that it wrote, if any.
        heads: The most frequent values, as rows of `table-frequencies` in bytes.
        counts: The share of each column, if columns are spread over partitions.
        lists: The facts of each list, if a partition has whole columns.
        indexed_rows: For each value index the number of indexed rows of each data file.
    """

    facts: TaskFacts
    object: SummaryRef | None = None
    heads: bytes = b""
    counts: Mapping[int, PartitionCounts] = field(default_factory=dict)
    lists: Mapping[int, ListFacts] = field(default_factory=dict)
    indexed_rows: Mapping[int, NDArray[np.integer]] = field(default_factory=dict)


@dataclass(frozen=True)
class JobResult:
    """The result of a job; columns go by their ordinals in the snapshot's schema.

    Attributes:
        objects: The objects that it wrote, with the columns of each.
        lists: The facts of each list.
        heads: The most frequent values, as rows of `table-frequencies`.
        skipped: Columns of which a source could not be read; their lists are not valid.
        indexed_rows: For each value index the number of indexed rows of each data file.
    """

    objects: tuple[SummaryRef, ...]
    lists: Mapping[int, ListFacts]
    heads: pa.Table
    skipped: frozenset[int] = frozenset()
    indexed_rows: Mapping[int, Longs] = field(default_factory=dict)

    def __add__(self, other: JobResult) -> JobResult:
        """Join the results of two jobs over different columns."""
        return JobResult(
            objects=self.objects + other.objects,
            lists={**self.lists, **other.lists},
            heads=pa.concat_tables([self.heads, other.heads]),
            skipped=self.skipped | other.skipped,
            indexed_rows={**self.indexed_rows, **other.indexed_rows},
        )

    def select_columns(self, columns: Collection[int]) -> JobResult:
        """Return the result for these columns only; objects without any of them are left out."""
        objects = []
        for ref in self.objects:
            ordinals = tuple(ordinal for ordinal in ref.columns if ordinal in columns)
            if ordinals:
                objects.append(replace(ref, columns=ordinals))
        is_selected = pc.is_in(self.heads["column"], pa.array(sorted(columns), pa.int32()))
        return JobResult(
            objects=tuple(objects),
            lists=_select(self.lists, columns),
            heads=self.heads.filter(is_selected),
            indexed_rows=_select(self.indexed_rows, columns),
        )


def _select(by_ordinal: Mapping[int, T], columns: Collection[int]) -> dict[int, T]:
    return {ordinal: value for ordinal, value in by_ordinal.items() if ordinal in columns}


@dataclass(frozen=True)
class ShuffleStrategy(ABC, Generic[C]):
    """The routing of values, and the reduction of a partition.

    Attributes:
        columns: The descriptions of the columns, by their ordinals in the snapshot's schema.
        partitions: The number of partitions.
        sums_values: Whether equal values of one source are added up before they are sent.
    """

    columns: Mapping[int, C]
    partitions: int
    sums_values: ClassVar[bool] = True

    @abstractmethod
    def route(self, ordinal: int, rows: pa.Table) -> RoutedRows:
        """Choose the values of a column to send, and their partitions."""

    @abstractmethod
    def finish(self, store: TaskStore, partition: int, rows: Sequence[pa.Table], facts: TaskFacts) -> PartitionResult:
        """Reduce the values of a partition to lists, and write these."""


def distribute_sources(context: SparkContext, store: TaskStore, sources: Sequence[ValueSource], most: int) -> Sources:
    """Distribute sources over tasks, at most `most`."""
    slices = max(1, min(len(sources), most))
    return store.distribute_with_content(context, sources, slices, lambda source: source.name)


def run_shuffle(store: TaskStore, sources: Sources, strategy: ShuffleStrategy[Any]) -> list[PartitionResult]:
    """Run a job, and return the result of each partition."""
    shared = sources.context.broadcast(strategy)

    def send(task_sources: Iterable[tuple[ValueSource, ReadContent]]) -> Iterator[tuple[int, bytes | TaskFacts]]:
        return _send(task_sources, shared.value)

    def finish(partition: int, sent: Iterable[tuple[int, bytes | TaskFacts]]) -> Iterator[PartitionResult]:
        tables = []
        facts = TaskFacts()
        for _, content in sent:
            if isinstance(content, TaskFacts):
                facts += content
            else:
                tables.append(rows_from_ipc(content))
        yield shared.value.finish(store, partition, tables, facts)

    try:
        sent = sources.mapPartitions(send).partitionBy(strategy.partitions, int)
        return store.collect(sent.mapPartitionsWithIndex(finish))
    finally:
        shared.unpersist()


def _send(
    sources: Iterable[tuple[ValueSource, ReadContent]], strategy: ShuffleStrategy[Any]
) -> Iterator[tuple[int, bytes | TaskFacts]]:
    facts = TaskFacts()
    for item in read_columns(sources, strategy.columns, sums_values=strategy.sums_values):
        if isinstance(item, TaskFacts):
            facts += item
            continue
        ordinal, rows = item
        routed = strategy.route(ordinal, rows)
        facts += TaskFacts(Counter({ordinal: rows.num_rows - routed.rows.num_rows}))
        yield from _split_by_partition(routed, strategy.partitions)
    yield 0, facts


def read_columns(
    sources: Iterable[tuple[ValueSource, ReadContent]], columns: Collection[int], *, sums_values: bool
) -> Iterator[tuple[int, pa.Table] | TaskFacts]:
    """Read the values of columns source by source; for a source that cannot be read, its failure."""
    for source, content in sources:
        is_to_sum = sums_values and not source.is_summed
        try:
            for rows in source.read_values(content):
                summed = sum_value_rows(rows) if is_to_sum else rows
                for ordinal, column_rows in iterate_columns(summed):
                    if ordinal in columns:
                        yield ordinal, column_rows
        except (DamagedObject, BlockDamageError, UnsupportedDataFile) as failure:
            yield TaskFacts(failures=dict.fromkeys(source.columns, failure))


def _split_by_partition(routed: RoutedRows, partitions: int) -> Iterator[tuple[int, bytes]]:
    order = np.argsort(routed.partitions, kind="stable")
    ordered = routed.rows.take(pa.array(order))
    ends = np.searchsorted(routed.partitions[order], np.arange(partitions + 1))
    for partition in np.flatnonzero(np.diff(ends)).tolist():
        yield partition, rows_to_ipc(ordered.slice(ends[partition], ends[partition + 1] - ends[partition]))


def write_lists(
    store: TaskStore,
    lists: pa.Table,
    layout: tuple[pa.Table, list[int], Mapping[str, str]] | None = None,
    part: tuple[int, int] | None = None,
) -> tuple[SummaryRef, bytes]:
    """Write lists in their order or in a layout; return the reference, and the most frequent values in bytes."""
    rows, groups, extra = layout or (lists, split_evenly(lists.num_rows, ROW_GROUPS), None)
    written = store.write("table-frequencies", rows, groups, extra)
    ordered, heads = put_most_frequent_first(lists)
    columns = tuple(lists["column"].unique().to_pylist())
    return SummaryRef(written, columns, part), rows_to_ipc(ordered.slice(0, heads))


def gather_heads(results: Sequence[PartitionResult]) -> pa.Table:
    """Return the most frequent values of all partitions."""
    heads = [rows_from_ipc(result.heads) for result in results if result.heads]
    return pa.concat_tables([TABLE_FREQUENCIES.empty_table(), *heads])


def keep_most_frequent(heads: pa.Table) -> pa.Table:
    """Return the ten most frequent of the partitions' most frequent values, by column."""
    columns = {name: heads[name] for name in VALUE_ROWS.names if name != "listed"}
    columns["listed"] = pa.array(np.zeros(heads.num_rows, np.int64))
    rows = pa.table([columns[name] for name in VALUE_ROWS.names], schema=VALUE_ROWS)
    ordered, number = put_most_frequent_first(sum_value_rows(rows))
    return table_frequency_rows(ordered.slice(0, number), None)


def rows_to_ipc(rows: pa.Table) -> bytes:
    """Encode rows as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def rows_from_ipc(data: bytes) -> pa.Table:
    """Decode rows of `rows_to_ipc`."""
    return pa.ipc.open_stream(data).read_all()
