"""One skeleton for jobs over the values of columns: what they route, and what they make of a partition, is theirs.

Tasks read sources of values, a shuffle brings values together, tasks write what they make of them. What tasks have to
say beside the values that they send goes to the first partition.
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


@dataclass(frozen=True)
class TaskFacts:
    """What tasks say beside the values that they send.

    Attributes:
        left_behind: How many values of each column were not sent.
        failures: Why some source of a column could not be read.
    """

    left_behind: Counter[int] = field(default_factory=Counter)
    failures: Mapping[int, Exception] = field(default_factory=dict)

    def __add__(self, other: TaskFacts) -> TaskFacts:
        """What two tasks say."""
        return TaskFacts(self.left_behind + other.left_behind, {**other.failures, **self.failures})


@dataclass(frozen=True)
class RoutedRows:
    """Values of a column that are sent, and the partition of each."""

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
        """The share of two partitions."""
        return PartitionCounts(self.written + other.written, self.singles + other.singles)


@dataclass(frozen=True)
class PartitionResult:
    """What the task of a partition says.

    Attributes:
        facts: What it was told of the tasks before.
        object: What it wrote, if anything.
        heads: The most frequent values, as rows of `table-frequencies` to be sent.
        counts: By the column's place in the snapshot's schema, where columns are spread over partitions.
        lists: What is known of each list, where partitions have whole columns.
        indexed_rows: Of how many rows of each data file lists tell that say where values live, likewise.
    """

    facts: TaskFacts
    object: SummaryRef | None = None
    heads: bytes = b""
    counts: Mapping[int, PartitionCounts] = field(default_factory=dict)
    lists: Mapping[int, ListFacts] = field(default_factory=dict)
    indexed_rows: Mapping[int, NDArray[np.integer]] = field(default_factory=dict)


@dataclass(frozen=True)
class JobResult:
    """What a job did.

    Attributes:
        objects: What it wrote, each with the columns that it holds.
        lists: What is known of each list, by the column's place in the snapshot's schema.
        heads: The most frequent values, as rows of `table-frequencies`.
        skipped: Columns of which some source cannot be read; what is said of them is void.
        indexed_rows: Of how many rows of each data file lists tell that say where values live, by the column's place.
    """

    objects: tuple[SummaryRef, ...]
    lists: Mapping[int, ListFacts]
    heads: pa.Table
    skipped: frozenset[int] = frozenset()
    indexed_rows: Mapping[int, Longs] = field(default_factory=dict)

    def __add__(self, other: JobResult) -> JobResult:
        """What two jobs did, of other columns each."""
        return JobResult(
            self.objects + other.objects,
            {**self.lists, **other.lists},
            pa.concat_tables([self.heads, other.heads]),
            self.skipped | other.skipped,
            {**self.indexed_rows, **other.indexed_rows},
        )

    def select_columns(self, columns: Collection[int]) -> JobResult:
        """What it did of some columns."""
        objects = (replace(ref, columns=tuple(i for i in ref.columns if i in columns)) for ref in self.objects)
        return JobResult(
            tuple(ref for ref in objects if ref.columns),
            {ordinal: facts for ordinal, facts in self.lists.items() if ordinal in columns},
            self.heads.filter(pc.is_in(self.heads["column"], pa.array(sorted(columns), pa.int32()))),
            indexed_rows={ordinal: rows for ordinal, rows in self.indexed_rows.items() if ordinal in columns},
        )


@dataclass(frozen=True)
class ShuffleStrategy(ABC, Generic[C]):
    """What a job does with the values of columns.

    Attributes:
        columns: What it has to know of them, by their places in the snapshot's schema.
        partitions: In so many it brings values together.
        sums_values: Whether equal values of one source are added up before they are sent.
    """

    columns: Mapping[int, C]
    partitions: int
    sums_values: ClassVar[bool] = True

    @abstractmethod
    def route(self, ordinal: int, rows: pa.Table) -> RoutedRows:
        """Choose which values of a column are sent, and where to."""

    @abstractmethod
    def finish(self, store: TaskStore, partition: int, rows: Sequence[pa.Table], facts: TaskFacts) -> PartitionResult:
        """Make lists of what was sent to a partition, and write them."""


def distribute_sources(context: SparkContext, store: TaskStore, sources: Sequence[ValueSource], most: int) -> Sources:
    """Distribute sources over so many tasks at most."""
    slices = max(1, min(len(sources), most))
    return store.distribute_with_content(context, sources, slices, lambda source: source.name)


def run_shuffle(store: TaskStore, sources: Sources, strategy: ShuffleStrategy[Any]) -> list[PartitionResult]:
    """Run a job, and return what each of its partitions became."""
    shared = sources.context.broadcast(strategy)

    def send(some: Iterable[tuple[ValueSource, ReadContent]]) -> Iterator[tuple[int, bytes | TaskFacts]]:
        return _send(some, shared.value)

    def finish(partition: int, sent: Iterable[tuple[int, bytes | TaskFacts]]) -> Iterator[PartitionResult]:
        tables, facts = [], TaskFacts()
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
    for found in read_columns(sources, strategy.columns, sums_values=strategy.sums_values):
        if isinstance(found, TaskFacts):
            facts += found
            continue
        ordinal, rows = found
        routed = strategy.route(ordinal, rows)
        facts += TaskFacts(Counter({ordinal: rows.num_rows - routed.rows.num_rows}))
        yield from _split_by_partition(routed, strategy.partitions)
    yield 0, facts


def read_columns(
    sources: Iterable[tuple[ValueSource, ReadContent]], columns: Collection[int], *, sums_values: bool
) -> Iterator[tuple[int, pa.Table] | TaskFacts]:
    """The values of columns source by source, or why a source has none."""
    for source, content in sources:
        try:
            for rows in source.read_values(content):
                summed = sum_value_rows(rows) if sums_values and not source.is_summed else rows
                yield from ((ordinal, some) for ordinal, some in iterate_columns(summed) if ordinal in columns)
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
    """Write lists as they are or as they are laid out; their reference, and the most frequent values to be sent."""
    rows, groups, extra = layout or (lists, split_evenly(lists.num_rows, ROW_GROUPS), None)
    written = store.write("table-frequencies", rows, groups, extra)
    ordered, heads = put_most_frequent_first(lists)
    columns = tuple(lists["column"].unique().to_pylist())
    return SummaryRef(written, columns, part), rows_to_ipc(ordered.slice(0, heads))


def gather_heads(found: Sequence[PartitionResult]) -> pa.Table:
    """The most frequent values of all partitions."""
    heads = [rows_from_ipc(one.heads) for one in found if one.heads]
    return pa.concat_tables([TABLE_FREQUENCIES.empty_table(), *heads])


def keep_most_frequent(heads: pa.Table) -> pa.Table:
    """The ten most frequent of the partitions' most frequent values, by column."""
    zero = pa.array(np.zeros(heads.num_rows, np.int64))
    again = pa.table([zero if one.name == "listed" else heads[one.name] for one in VALUE_ROWS], schema=VALUE_ROWS)
    ordered, number = put_most_frequent_first(sum_value_rows(again))
    return table_frequency_rows(ordered.slice(0, number), None)


def rows_to_ipc(rows: pa.Table) -> bytes:
    """Rows as bytes, to be sent."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def rows_from_ipc(data: bytes) -> pa.Table:
    """Rows that were sent."""
    return pa.ipc.open_stream(data).read_all()
