"""Jobs that make the value lists of a table which never fit in one place, or whose files' lists do not.

Three algorithms: whole columns in one task each, duplicates only, and scatter by range. The driver sees counts, the ten
most frequent values of each partition, and the filters of the duplicates' first step.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.sortable_values import is_wide_decimal
from metastore.table_level.list_reduction import (
    COMPLETE,
    DUPLICATES,
    DUPLICATES_ONLY,
    FileValueCounts,
    ListFacts,
    reduce_lists,
    table_frequency_rows,
)
from metastore.table_level.repeat_filter import RepeatFilter, RepeatFilterBuilder
from metastore.table_level.shuffle_job import (
    JobResult,
    PartitionCounts,
    PartitionResult,
    RoutedRows,
    ShuffleStrategy,
    TaskFacts,
    distribute_sources,
    gather_heads,
    keep_most_frequent,
    read_columns,
    run_shuffle,
    write_lists,
)
from metastore.table_level.value_rows import VALUE_ROWS, iterate_columns, sum_value_rows
from metastore.table_level.value_sources import ValueSource, hash_value_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark import SparkContext

    from metastore.format.histogram_bins import Histogram
    from metastore.format.table_column import Column
    from metastore.spark_jobs.task_store import ReadContent, TaskStore
    from metastore.table_level.shuffle_job import Sources


ROWS_PER_PARTITION = 2_000_000


def run_reduce_job(
    context: SparkContext,
    store: TaskStore,
    sources: Sequence[ValueSource],
    columns: Sequence[FileValueCounts],
    top: int,
) -> JobResult:
    """Reduce lists, every column in one task; what is damaged is raised."""
    tasks = min(len(columns), 4 * context.defaultParallelism)
    strategy = ListReduction({lists.ordinal: lists for lists in columns}, tasks, top)
    distributed = distribute_sources(context, store, sources, 8 * context.defaultParallelism)
    found = run_shuffle(store, distributed, strategy)
    for failure in (failure for one in found for failure in one.facts.failures.values()):
        raise failure
    objects = tuple(one.object for one in found if one.object is not None)
    return JobResult(objects, {i: known for one in found for i, known in one.lists.items()}, gather_heads(found))


@dataclass(frozen=True)
class ListReduction(ShuffleStrategy["FileValueCounts"]):
    """Lists that may be cut are reduced column by column.

    Attributes:
        top: Values kept of a column of which some file keeps its most frequent ones only.
    """

    top: int

    def route(self, ordinal: int, rows: pa.Table) -> RoutedRows:
        return RoutedRows(rows, np.full(rows.num_rows, ordinal % self.partitions))

    def finish(self, store: TaskStore, partition: int, rows: Sequence[pa.Table], facts: TaskFacts) -> PartitionResult:
        mine = [lists for ordinal, lists in sorted(self.columns.items()) if ordinal % self.partitions == partition]
        table, known = reduce_lists(pa.concat_tables([VALUE_ROWS.empty_table(), *rows]), mine, self.top)
        if facts.failures or not table.num_rows:
            return PartitionResult(facts, lists=known)
        return PartitionResult(facts, *write_lists(store, table), lists=known)


@dataclass(frozen=True)
class CountTarget:
    """A column that is reduced by a job.

    Attributes:
        algorithm: `duplicates` or `scatter`.
        number: About how many values the sources hold.
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


def run_count_job(
    context: SparkContext, store: TaskStore, sources: Sequence[ValueSource], targets: Mapping[int, CountTarget]
) -> JobResult:
    """Reduce columns to lists of the table."""
    whole = sum(target.number for target in targets.values())
    partitions = max(context.defaultParallelism, -(-whole // ROWS_PER_PARTITION))
    distributed = distribute_sources(context, store, sources, max(4 * context.defaultParallelism, partitions))
    strategy = ValueCounting(targets, partitions, _find_repeats(distributed, targets))
    return gather_results(run_shuffle(store, distributed, strategy), targets)


@dataclass(frozen=True)
class ValueCounting(ShuffleStrategy[CountTarget]):
    """Equal values meet in one partition, by their range or their hash, and are counted there.

    Attributes:
        filters: Which values may repeat, of the columns whose repeated values alone are listed.
    """

    filters: Mapping[int, RepeatFilter]

    @cached_property
    def _edges(self) -> dict[int, NDArray[Any]]:
        return {ordinal: target.range_edges(self.partitions) for ordinal, target in self.columns.items()}

    def route(self, ordinal: int, rows: pa.Table) -> RoutedRows:
        """Choose partitions; values that surely occur once in the table stay behind."""
        column, edges = self.columns[ordinal].column, self._edges[ordinal]
        hashed = hash_value_rows(rows, column)
        if ordinal in self.filters:
            kept = (rows["frequency"].to_numpy() > 1) | self.filters[ordinal].may_repeat(hashed)
            rows, hashed = rows.filter(pa.array(kept)), hashed[kept]
        if len(edges):
            return RoutedRows(rows, np.searchsorted(edges, rows[f"value_{column.encoding}"].to_numpy(), "right"))
        return RoutedRows(rows, (hashed % np.uint64(self.partitions)).astype(np.int64))

    def finish(self, store: TaskStore, partition: int, rows: Sequence[pa.Table], facts: TaskFacts) -> PartitionResult:  # noqa: ARG002 - all are alike
        wide = [ordinal for ordinal, one in self.columns.items() if is_wide_decimal(one.column)]
        summed = sum_value_rows(pa.concat_tables([VALUE_ROWS.empty_table(), *rows]), wide)
        counts = defaultdict(PartitionCounts, {i: PartitionCounts(singles=n) for i, n in facts.left_behind.items()})
        kept = [VALUE_ROWS.empty_table()]
        for ordinal, of_column in iterate_columns(summed):
            frequent = of_column.filter(pc.greater(of_column["frequency"], 1))
            listed = frequent if self.columns[ordinal].algorithm == DUPLICATES_ONLY else of_column
            counts[ordinal] += PartitionCounts(listed.num_rows, of_column.num_rows - frequent.num_rows)
            kept.append(listed)
        table = table_frequency_rows(pa.concat_tables(kept), None)
        if not table.num_rows:
            return PartitionResult(facts, counts=dict(counts))
        return PartitionResult(facts, *write_lists(store, table), counts=dict(counts))


def _find_repeats(sources: Sources, targets: Mapping[int, CountTarget]) -> dict[int, RepeatFilter]:
    """Which values may repeat: merged in tasks, for a filter is too large to reach the driver as it is."""
    wanted = {ordinal: one for ordinal, one in targets.items() if one.algorithm == DUPLICATES_ONLY}
    if not wanted:
        return {}

    def see(some: Iterable[tuple[ValueSource, ReadContent]]) -> Iterator[tuple[int, RepeatFilterBuilder]]:
        seen: dict[int, RepeatFilterBuilder] = {}
        for found in read_columns(some, wanted, sums_values=True):
            if not isinstance(found, TaskFacts):
                ordinal, rows = found
                if ordinal not in seen:
                    seen[ordinal] = RepeatFilterBuilder.for_values(wanted[ordinal].number)
                seen[ordinal].add(hash_value_rows(rows, wanted[ordinal].column))
        yield from seen.items()

    tasks = {ordinal: task for task, ordinal in enumerate(wanted)}
    sent = sources.mapPartitions(see).partitionBy(len(tasks), lambda ordinal: tasks[ordinal])
    return dict(sent.mapPartitions(_merge_filters).collect())


def _merge_filters(sent: Iterable[tuple[int, RepeatFilterBuilder]]) -> Iterator[tuple[int, RepeatFilter]]:
    merged: dict[int, RepeatFilterBuilder] = {}
    for ordinal, seen in sent:
        merged[ordinal] = merged[ordinal].merge(seen) if ordinal in merged else seen
    return ((ordinal, one.finish()) for ordinal, one in merged.items())


def gather_results(found: Sequence[PartitionResult], targets: Mapping[int, CountTarget]) -> JobResult:
    """What the tasks of a job that spreads columns over partitions did, together."""
    counts: dict[int, PartitionCounts] = defaultdict(PartitionCounts)
    for one in found:
        for ordinal, of_part in one.counts.items():
            counts[ordinal] += of_part
    return JobResult(
        tuple(one.object for one in found if one.object is not None),
        {ordinal: _list_facts(target, counts[ordinal]) for ordinal, target in targets.items()},
        keep_most_frequent(gather_heads(found)),
        frozenset(ordinal for one in found for ordinal in one.facts.failures),
    )


def _list_facts(target: CountTarget, found: PartitionCounts) -> ListFacts:
    if target.algorithm == DUPLICATES_ONLY and found.singles:
        return ListFacts(DUPLICATES, 1, target.algorithm, found.written + found.singles, found.singles)
    return ListFacts(COMPLETE, 0, target.algorithm, found.written, found.singles)
