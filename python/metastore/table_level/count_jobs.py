"""Jobs that count the values of a table's columns, if these or the lists of files are too long for the driver.

Three algorithms: whole columns in one task each, duplicates only, and scatter by range. The driver sees counts, the ten
most frequent values of each partition, and the filters of the duplicates' first step.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
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
    from metastore.format.manifest import SummaryRef
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
    """Reduce lists, every column in one task; raises the error of a damaged source."""
    tasks = min(len(columns), 4 * context.defaultParallelism)
    strategy = ListReduction({lists.ordinal: lists for lists in columns}, tasks, top)
    distributed = distribute_sources(context, store, sources, 8 * context.defaultParallelism)
    results = run_shuffle(store, distributed, strategy)
    lists: dict[int, ListFacts] = {}
    for result in results:
        for failure in result.facts.failures.values():
            raise failure
        lists.update(result.lists)
    return JobResult(_list_objects(results), lists, gather_heads(results))


def _list_objects(results: Sequence[PartitionResult]) -> tuple[SummaryRef, ...]:
    objects = map(attrgetter("object"), results)
    return tuple(filter(None, objects))


@dataclass(frozen=True)
class ListReduction(ShuffleStrategy["FileValueCounts"]):
    """The reduction of lists that may be cut, column by column.

    Attributes:
        top: The length of a list whose data files list their most frequent values only.
    """

    top: int

    def route(self, ordinal: int, rows: pa.Table) -> RoutedRows:
        return RoutedRows(rows, np.full(rows.num_rows, ordinal % self.partitions))

    def finish(self, store: TaskStore, partition: int, rows: Sequence[pa.Table], facts: TaskFacts) -> PartitionResult:
        columns = [lists for ordinal, lists in self.columns.items() if ordinal % self.partitions == partition]
        table, lists = reduce_lists(pa.concat_tables([VALUE_ROWS.empty_table(), *rows]), columns, self.top)
        if facts.failures or not table.num_rows:
            return PartitionResult(facts=facts, lists=lists)
        ref, heads = write_lists(store, table)
        return PartitionResult(facts=facts, object=ref, heads=heads, lists=lists)


@dataclass(frozen=True)
class CountTarget:
    """A column whose values a job counts.

    Attributes:
        algorithm: `duplicates` or `scatter`.
        number: An estimate of the number of values in the sources.
        histogram: The histogram by which numbers are scattered by range; texts, and others without it, go by hash.
    """

    column: Column
    algorithm: str
    number: int
    histogram: Histogram | None = None

    def range_edges(self, parts: int) -> NDArray[Any]:
        """Return the edges between ranges with about equal numbers of distinct values; none if values go by hash."""
        histogram = self.histogram
        if histogram is None or self.column.encoding == "binary":
            return np.empty(0)
        values = histogram.distincts
        if values is None:
            values = histogram.counts
        sums = np.cumsum(values)
        bins = np.searchsorted(sums, np.arange(1, parts) * (sums[-1] / parts))
        return np.unique(np.asarray(histogram.edges)[bins + 1])


def run_count_job(
    context: SparkContext, store: TaskStore, sources: Sequence[ValueSource], targets: Mapping[int, CountTarget]
) -> JobResult:
    """Count the values of columns, and write the lists of the table."""
    values = sum(target.number for target in targets.values())
    partitions = max(context.defaultParallelism, -(-values // ROWS_PER_PARTITION))
    distributed = distribute_sources(context, store, sources, max(4 * context.defaultParallelism, partitions))
    strategy = ValueCounting(targets, partitions, _find_repeats(distributed, targets))
    return gather_results(run_shuffle(store, distributed, strategy), targets)


@dataclass(frozen=True)
class ValueCounting(ShuffleStrategy[CountTarget]):
    """The counting of values: equal values meet in one partition, by their range or their hash.

    Attributes:
        filters: Filters of repeated values, for the columns whose lists have repeated values only.
    """

    filters: Mapping[int, RepeatFilter]

    @cached_property
    def _edges(self) -> dict[int, NDArray[Any]]:
        return {ordinal: target.range_edges(self.partitions) for ordinal, target in self.columns.items()}

    def route(self, ordinal: int, rows: pa.Table) -> RoutedRows:
        """Choose partitions; values that certainly occur once in the table are not sent."""
        column = self.columns[ordinal].column
        edges = self._edges[ordinal]
        hashes = hash_value_rows(rows, column)
        if ordinal in self.filters:
            may_repeat = (rows["frequency"].to_numpy() > 1) | self.filters[ordinal].may_repeat(hashes)
            rows = rows.filter(pa.array(may_repeat))
            hashes = hashes[may_repeat]
        if len(edges):
            values = rows[f"value_{column.encoding}"].to_numpy()
            return RoutedRows(rows, np.searchsorted(edges, values, "right"))
        return RoutedRows(rows, (hashes % np.uint64(self.partitions)).astype(np.int64))

    def finish(self, store: TaskStore, partition: int, rows: Sequence[pa.Table], facts: TaskFacts) -> PartitionResult:  # noqa: ARG002 - all partitions are treated in the same way
        wide = [ordinal for ordinal, target in self.columns.items() if is_wide_decimal(target.column)]
        summed = sum_value_rows(pa.concat_tables([VALUE_ROWS.empty_table(), *rows]), wide)
        counts: dict[int, PartitionCounts] = defaultdict(PartitionCounts)
        for ordinal, singles in facts.left_behind.items():
            counts[ordinal] += PartitionCounts(singles=singles)
        lists = [VALUE_ROWS.empty_table()]
        for ordinal, values in iterate_columns(summed):
            repeated = values.filter(pc.greater(values["frequency"], 1))
            singles = values.num_rows - repeated.num_rows
            listed = values
            if self.columns[ordinal].algorithm == DUPLICATES_ONLY:
                listed = repeated
            counts[ordinal] += PartitionCounts(listed.num_rows, singles)
            lists.append(listed)
        table = table_frequency_rows(pa.concat_tables(lists), None)
        if not table.num_rows:
            return PartitionResult(facts=facts, counts=dict(counts))
        ref, heads = write_lists(store, table)
        return PartitionResult(facts=facts, object=ref, heads=heads, counts=dict(counts))


def _find_repeats(sources: Sources, targets: Mapping[int, CountTarget]) -> dict[int, RepeatFilter]:
    """Make filters of repeated values; tasks merge them, for unfinished filters are too large for the driver."""
    columns = {ordinal: target for ordinal, target in targets.items() if target.algorithm == DUPLICATES_ONLY}
    if not columns:
        return {}

    def build(task_sources: Iterable[tuple[ValueSource, ReadContent]]) -> Iterator[tuple[int, RepeatFilterBuilder]]:
        builders: dict[int, RepeatFilterBuilder] = {}
        for item in read_columns(task_sources, columns, sums_values=True):
            if isinstance(item, TaskFacts):
                continue
            ordinal, rows = item
            target = columns[ordinal]
            if ordinal not in builders:
                builders[ordinal] = RepeatFilterBuilder.for_values(target.number)
            builders[ordinal].add(hash_value_rows(rows, target.column))
        yield from builders.items()

    tasks = {ordinal: task for task, ordinal in enumerate(columns)}
    builders = sources.mapPartitions(build).partitionBy(len(tasks), lambda ordinal: tasks[ordinal])
    return dict(builders.mapPartitions(_merge_filters).collect())


def _merge_filters(builders: Iterable[tuple[int, RepeatFilterBuilder]]) -> Iterator[tuple[int, RepeatFilter]]:
    merged: dict[int, RepeatFilterBuilder] = {}
    for ordinal, builder in builders:
        if ordinal in merged:
            merged[ordinal] = merged[ordinal].merge(builder)
        else:
            merged[ordinal] = builder
    for ordinal, builder in merged.items():
        yield ordinal, builder.finish()


def gather_results(results: Sequence[PartitionResult], targets: Mapping[int, CountTarget]) -> JobResult:
    """Join the results of partitions over which columns are spread."""
    counts: dict[int, PartitionCounts] = defaultdict(PartitionCounts)
    skipped: set[int] = set()
    for result in results:
        skipped.update(result.facts.failures)
        for ordinal, share in result.counts.items():
            counts[ordinal] += share
    return JobResult(
        objects=_list_objects(results),
        lists={ordinal: _list_facts(target, counts[ordinal]) for ordinal, target in targets.items()},
        heads=keep_most_frequent(gather_heads(results)),
        skipped=frozenset(skipped),
    )


def _list_facts(target: CountTarget, counts: PartitionCounts) -> ListFacts:
    if target.algorithm == DUPLICATES_ONLY and counts.singles:
        return ListFacts(DUPLICATES, 1, target.algorithm, counts.written + counts.singles, counts.singles)
    return ListFacts(COMPLETE, 0, target.algorithm, counts.written, counts.singles)
