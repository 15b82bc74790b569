"""Algorithms whose lists never fit in one place: duplicates only, and scatter by range. Both are Spark jobs.

Tasks read the values, a shuffle brings equal values together, tasks reduce and write them. The driver sees counts, the
ten most frequent values of each part, and the filters of the first step.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject
from metastore.format.manifest_references import SummaryRef
from metastore.format.object_layout import ROW_GROUPS, put_most_frequent_first, split_evenly
from metastore.format.object_schemas import TABLE_FREQUENCIES
from metastore.format.sortable_values import is_wide_decimal
from metastore.store.block_damage import BlockDamageError
from metastore.table_level.detail_selection import DetailSlice
from metastore.table_level.list_reduction import DUPLICATES_ONLY, ListFacts, reduce_lists, table_frequency_rows
from metastore.table_level.repeat_filter import RepeatFilter, RepeatFilterBuilder
from metastore.table_level.value_rows import VALUE_ROWS, iterate_columns, sum_value_rows
from metastore.table_level.value_sources import (
    UnreadableColumns,
    hash_value_rows,
    object_of_source,
    read_source_values,
    read_stored_values,
    rows_from_ipc,
    rows_to_ipc,
    split_by_partition,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark import RDD, SparkContext

    from metastore.format.histogram_bins import Histogram
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.spark_jobs.task_store import ReadContent, TaskStore
    from metastore.table_level.count_bounds import FileValueCounts
    from metastore.table_level.list_groups import GroupListSource
    from metastore.table_level.value_sources import ValueSource


@dataclass(frozen=True)
class ReduceJobResult:
    """What tasks made of the lists of columns.

    Attributes:
        objects: What they wrote, each with the columns that it holds.
        lists: What is known of each list, by the column's place in the snapshot's schema.
        heads: The most frequent values, as rows of `table-frequencies`.
        damaged: The failure, where an object is not what is named.
    """

    objects: tuple[tuple[ObjectRef, tuple[int, ...]], ...]
    lists: dict[int, ListFacts]
    heads: pa.Table
    damaged: BlockDamageError | DamagedObject | None


def run_reduce_job(
    context: SparkContext,
    store: TaskStore,
    parts: Sequence[DetailSlice | GroupListSource],
    columns: Sequence[FileValueCounts],
    top: int,
) -> ReduceJobResult:
    """Reduce lists, every column in one task."""
    tasks = min(len(columns), 4 * context.defaultParallelism)
    shared = context.broadcast({lists.ordinal: lists for lists in columns})

    def send(some: Iterable[tuple[DetailSlice | GroupListSource, ReadContent]]) -> Iterator[tuple[int, Any]]:
        for part, content in some:
            try:
                rows = sum_value_rows(read_stored_values(part, content))
            except DamagedObject as damage:
                yield 0, (part.block if isinstance(part, DetailSlice) else None, part.name, damage.reason)
                continue
            yield from ((ordinal % tasks, rows_to_ipc(of_column)) for ordinal, of_column in iterate_columns(rows))

    def reduce(task: int, sent: Iterable[tuple[int, Any]]) -> Iterator[Any]:
        mine = [lists for ordinal, lists in sorted(shared.value.items()) if ordinal % tasks == task]
        yield _reduced_columns(store, mine, [content for _, content in sent], top)

    slices = min(len(parts), 8 * context.defaultParallelism)
    spread = store.distribute_with_content(context, parts, slices, lambda part: part.name).mapPartitions(send)
    found = store.collect(spread.partitionBy(tasks, int).mapPartitionsWithIndex(reduce))
    shared.unpersist()
    heads = [rows_from_ipc(one[2]) for one in found if one[0] is not None]
    whole = pa.concat_tables(heads) if heads else TABLE_FREQUENCIES.empty_table()
    return ReduceJobResult(
        tuple(
            (one[0], tuple(rows_from_ipc(one[2])["column"].unique().to_pylist())) for one in found if one[0] is not None
        ),
        {ordinal: known for one in found for ordinal, known in one[1].items()},
        whole,
        next((_failure(*one[3]) for one in found if one[3]), None),
    )


def _failure(block: str | None, name: str, reason: str) -> BlockDamageError | DamagedObject:
    damage = DamagedObject(name, reason)
    return damage if block is None else BlockDamageError(block, str(damage))


def _reduced_columns(store: TaskStore, columns: Sequence[FileValueCounts], sent: Sequence[Any], top: int) -> Any:
    damaged = next((content for content in sent if isinstance(content, tuple)), None)
    tables = [rows_from_ipc(content) for content in sent if isinstance(content, bytes)]
    table, known = reduce_lists(pa.concat_tables(tables) if tables else VALUE_ROWS.empty_table(), columns, top)
    if damaged or not table.num_rows:
        return None, known, None, damaged
    ref = store.write("table-frequencies", table, split_evenly(table.num_rows, ROW_GROUPS))
    ordered, heads = put_most_frequent_first(table)
    return ref, known, rows_to_ipc(ordered.slice(0, heads)), None


ROWS_PER_PARTITION = 2_000_000
READ_BUDGET = 256 << 20


@dataclass(frozen=True)
class CountTarget:
    """A column that is reduced by a job.

    Attributes:
        column: The column.
        algorithm: `duplicates` or `scatter`.
        number: About how many values the pieces hold.
        histogram: Its histogram, by which numbers are scattered by range; without it, and of texts, by hash.
    """

    column: Column
    algorithm: str
    number: int
    histogram: Histogram | None = None

    def range_edges(self, parts: int) -> NDArray[Any]:
        """The numbers that cut its range into parts of about equally many distinct values; none: parts by hash."""
        if self.histogram is None or self.column.encoding == "binary":
            return np.empty(0)
        sums = np.cumsum(self.histogram.counts if self.histogram.distincts is None else self.histogram.distincts)
        places = np.searchsorted(sums, np.arange(1, parts) * (sums[-1] / parts))
        return np.unique(np.asarray(self.histogram.edges)[places + 1])


@dataclass(frozen=True)
class PartitionCounts:
    """One column's share of a part.

    Attributes:
        written: Values written.
        singles: Values that occur once, written or not.
    """

    written: int = 0
    singles: int = 0

    def __add__(self, other: PartitionCounts) -> PartitionCounts:
        """The share of two parts."""
        return PartitionCounts(self.written + other.written, self.singles + other.singles)


@dataclass(frozen=True)
class JobResult:
    """What a job did.

    Attributes:
        objects: What it wrote, each with the columns that it holds.
        columns: By the column's place in the snapshot's schema.
        heads: The most frequent values, as rows of `table-frequencies`.
        unreadable: Columns of which some data file cannot be read again; what is said of them is void.
        indexed_rows: Of how many rows of each data file lists tell that say where values live, by the column's place.
    """

    objects: tuple[SummaryRef, ...]
    columns: Mapping[int, PartitionCounts]
    heads: pa.Table
    unreadable: frozenset[int]
    indexed_rows: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)


def run_count_job(
    context: SparkContext, store: TaskStore, pieces: Sequence[ValueSource], targets: Mapping[int, CountTarget]
) -> JobResult:
    """Reduce columns to lists of the table."""
    whole = sum(target.number for target in targets.values())
    parts = max(context.defaultParallelism, -(-whole // ROWS_PER_PARTITION))
    slices = min(len(pieces), max(4 * context.defaultParallelism, parts))
    source = store.distribute_with_content(context, pieces, slices, object_of_source)
    filters = _filters(source, targets)
    edges = {ordinal: target.range_edges(parts) for ordinal, target in targets.items()}
    shared = context.broadcast((targets, filters, edges))

    def scatter(some: Iterable[tuple[ValueSource, ReadContent]]) -> Iterator[tuple[int, Any]]:
        return _scattered(some, *shared.value, parts)

    def reduce(part: int, sent: Iterable[tuple[int, Any]]) -> Iterator[Any]:  # noqa: ARG001 - Spark's signature
        yield _reduced(store, shared.value[0], (content for _, content in sent))

    try:
        scattered = source.mapPartitions(scatter).partitionBy(parts, int)
        found = store.collect(scattered.mapPartitionsWithIndex(reduce))
    finally:
        shared.unpersist()
    return gather_results(found)


def _filters(
    source: RDD[tuple[ValueSource, ReadContent]], targets: Mapping[int, CountTarget]
) -> dict[int, RepeatFilter]:
    """Which values may repeat: merged in tasks, for a filter is too large to reach the driver as it is."""
    wanted = {ordinal: one for ordinal, one in targets.items() if one.algorithm == DUPLICATES_ONLY}
    if not wanted:
        return {}

    def see(some: Iterable[tuple[ValueSource, ReadContent]]) -> Iterator[tuple[int, RepeatFilterBuilder]]:
        seen: dict[int, RepeatFilterBuilder] = {}
        for ordinal, rows in _columns(some, wanted, set()):
            if ordinal not in seen:
                seen[ordinal] = RepeatFilterBuilder.for_values(wanted[ordinal].number)
            seen[ordinal].add(hash_value_rows(rows, wanted[ordinal].column))
        yield from seen.items()

    tasks = {ordinal: task for task, ordinal in enumerate(wanted)}
    sent = source.mapPartitions(see).partitionBy(len(tasks), lambda ordinal: tasks[ordinal])
    return dict(sent.mapPartitions(_merge_sightings).collect())


def _merge_sightings(sent: Iterable[tuple[int, RepeatFilterBuilder]]) -> Iterator[tuple[int, RepeatFilter]]:
    merged: dict[int, RepeatFilterBuilder] = {}
    for ordinal, seen in sent:
        merged[ordinal] = merged[ordinal].merge(seen) if ordinal in merged else seen
    return ((ordinal, one.finish()) for ordinal, one in merged.items())


def _columns(
    pieces: Iterable[tuple[ValueSource, ReadContent]], targets: Mapping[int, CountTarget], unreadable: set[int]
) -> Iterator[tuple[int, pa.Table]]:
    for piece, content in pieces:
        for values in read_source_values(piece, content, READ_BUDGET):
            if isinstance(values, UnreadableColumns):
                unreadable |= values.columns
                continue
            yield from ((ordinal, rows) for ordinal, rows in iterate_columns(values) if ordinal in targets)


def _scattered(
    pieces: Iterable[tuple[ValueSource, ReadContent]],
    targets: Mapping[int, CountTarget],
    filters: Mapping[int, RepeatFilter],
    edges: Mapping[int, NDArray[Any]],
    parts: int,
) -> Iterator[tuple[int, Any]]:
    """Rows by part; values that surely occur once in the table are counted and stay behind."""
    unreadable: set[int] = set()
    singles: dict[int, int] = defaultdict(int)
    for ordinal, values in _columns(pieces, targets, unreadable):
        rows, hashed = values, hash_value_rows(values, targets[ordinal].column)
        if ordinal in filters:
            kept = (rows["frequency"].to_numpy() > 1) | filters[ordinal].may_repeat(hashed)
            singles[ordinal] += int((~kept).sum())
            rows, hashed = rows.filter(pa.array(kept)), hashed[kept]
        if len(edges[ordinal]):
            places = np.searchsorted(
                edges[ordinal], rows[f"value_{targets[ordinal].column.encoding}"].to_numpy(), "right"
            )
        else:
            places = (hashed % np.uint64(parts)).astype(np.int64)
        yield from split_by_partition(rows, places, parts)
    yield 0, (dict(singles), frozenset(unreadable))


def _reduced(store: TaskStore, targets: Mapping[int, CountTarget], sent: Iterable[Any]) -> Any:
    tables = []
    singles: dict[int, int] = defaultdict(int)
    unreadable: frozenset[int] = frozenset()
    for content in sent:
        if isinstance(content, bytes):
            tables.append(rows_from_ipc(content))
        else:
            for ordinal, number in content[0].items():
                singles[ordinal] += number
            unreadable |= content[1]
    rows = pa.concat_tables(tables) if tables else VALUE_ROWS.empty_table()
    rows = sum_value_rows(rows, [ordinal for ordinal, one in targets.items() if is_wide_decimal(one.column)])
    columns = {ordinal: PartitionCounts(singles=number) for ordinal, number in singles.items()}
    kept = []
    for ordinal, of_column in iterate_columns(rows):
        frequent = of_column.filter(pc.greater(of_column["frequency"], 1))
        single = of_column.num_rows - frequent.num_rows
        listed = frequent if targets[ordinal].algorithm == DUPLICATES_ONLY else of_column
        columns[ordinal] = columns.get(ordinal, PartitionCounts()) + PartitionCounts(listed.num_rows, single)
        kept.append(listed)
    table = table_frequency_rows(pa.concat_tables(kept) if kept else rows, None)
    if not table.num_rows:
        return None, columns, None, unreadable
    ref = store.write("table-frequencies", table, split_evenly(table.num_rows, ROW_GROUPS))
    ordered, heads = put_most_frequent_first(table)
    held = SummaryRef(ref, tuple(table["column"].unique().to_pylist()))
    return held, columns, rows_to_ipc(ordered.slice(0, heads)), unreadable


def gather_results(found: Sequence[Any]) -> JobResult:
    """What the tasks of a job did, together."""
    columns: dict[int, PartitionCounts] = defaultdict(PartitionCounts)
    unreadable: frozenset[int] = frozenset()
    heads, objects = [], []
    for ref, reduced, sent, missing in found:
        unreadable |= missing
        for ordinal, one in reduced.items():
            columns[ordinal] += one
        if ref is not None:
            objects.append(ref)
            heads.append(rows_from_ipc(sent))
    whole = pa.concat_tables(heads) if heads else table_frequency_rows(VALUE_ROWS.empty_table(), None)
    return JobResult(tuple(objects), dict(columns), _most_frequent(whole), unreadable)


def _most_frequent(heads: pa.Table) -> pa.Table:
    """The ten most frequent of the parts' most frequent values, by column."""
    zero = pa.array(np.zeros(heads.num_rows, np.int64))
    again = pa.table([zero if one.name == "listed" else heads[one.name] for one in VALUE_ROWS], schema=VALUE_ROWS)
    ordered, number = put_most_frequent_first(sum_value_rows(again))
    return table_frequency_rows(ordered.slice(0, number), None)
