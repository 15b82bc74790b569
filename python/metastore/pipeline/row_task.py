"""Runs the kernel on rows that Spark has read, of data files that Python does not open."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from metastore.adapters import refusals
from metastore.adapters.shim_calls import require_unchanged
from metastore.adapters.table_facts import Refusal
from metastore.kernel.budget import BUDGET
from metastore.kernel.column_kernel import ColumnKernel
from metastore.pipeline.block_task import BlockBuilder, metadata_statistics, unknown_statistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from metastore.format.data_files import DataFile
    from metastore.format.table_column import Column
    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.kernel.detail_limits import DetailLimits
    from metastore.pipeline.block_task import BlockDestination, BlockTask, BlockTaskResult
    from metastore.statistics import Statistic


_RECORD_SCHEMA = "record binary"


def analyze_spark_rows(rows: DataFrame, destination: BlockDestination, task: BlockTask) -> list[BlockTaskResult]:
    """Run the kernel on rows read by Spark; every partition writes a block."""
    store = destination.store
    analyze_partition = partial(analyze_row_batches, destination=destination, task=task)

    def analyze(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        # `map` is lazy: the store has to collect the written objects from the moment the result is computed.
        results = map(analyze_partition, [batches])
        for record in store.pack_results(results):
            yield _record_batch(record)

    records = require_unchanged(rows.mapInArrow(analyze, _RECORD_SCHEMA), destination.table.name)
    return store.collect_rows(records)


def analyze_row_batches(
    batches: Iterable[pa.RecordBatch], destination: BlockDestination, task: BlockTask
) -> BlockTaskResult:
    """Compute the statistics of files whose rows come one file after the other."""
    builder = BlockBuilder(
        destination=destination, depth=task.depth, columns=task.columns, name_mapping=task.name_mapping
    )
    expected = {file.location: file for file in task.files}
    runs = chain.from_iterable(map(_split_by_file, batches))
    for path, group in groupby(runs, key=itemgetter(0)):
        file = expected.get(path)
        if file is None:
            continue
        aggregator = _RowAggregator(task.columns, destination.budget, destination.detail(file), builder.statistics)
        for _, rows in group:
            aggregator.add(rows)
        if aggregator.rows != file.rows:
            builder.refuse(Refusal(file.path, refusals.ROWS_DIFFER))
            continue
        column_statistics = aggregator.finish(absent_is_null=task.absent_is_null)
        builder.add(file, _with_constants(column_statistics, task, file, builder.statistics))
    return builder.finish()


def analyze_matching_rows(
    rows: DataFrame, columns: Sequence[Column], detail: DetailLimits, table: str
) -> list[tuple[int, list[ColumnStatistics]]]:
    """Run the kernel on rows of any data files; return the number of rows and the statistics of each partition."""

    def analyze(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        aggregator = _RowAggregator(columns, BUDGET, detail, ())
        for batch in batches:
            aggregator.add(batch)
        if aggregator.rows == 0:
            return
        column_statistics = [
            replace(statistics, bloom=None) for _, statistics in aggregator.finish(absent_is_null=True)
        ]
        yield _record_batch(pickle.dumps((aggregator.rows, column_statistics)))

    records = require_unchanged(rows.mapInArrow(analyze, _RECORD_SCHEMA), table)
    return [pickle.loads(row[0]) for row in records.collect()]  # noqa: S301 - written by our own task


def _record_batch(record: bytes) -> pa.RecordBatch:
    return pa.record_batch([pa.array([record], pa.binary())], names=["record"])


def _with_constants(
    column_statistics: Iterable[tuple[int, ColumnStatistics]],
    task: BlockTask,
    file: DataFile,
    user_defined: Sequence[Statistic],
) -> Iterator[tuple[int, ColumnStatistics]]:
    """Replace the statistics of columns whose values the table's metadata decides: they are not in the file itself."""
    for ordinal, statistics in column_statistics:
        yield ordinal, _apply_metadata(task.columns[ordinal], statistics, file, user_defined)


def _apply_metadata(
    column: Column, statistics: ColumnStatistics, file: DataFile, user_defined: Sequence[Statistic]
) -> ColumnStatistics:
    if column.key.isdecimal():
        return statistics
    from_metadata = metadata_statistics(column, file, user_defined)
    if from_metadata is not None:
        return from_metadata
    if column.encoding is None:
        return unknown_statistics(column, file.physical_rows)
    return statistics


def _split_by_file(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    if batch.num_rows == 0:
        return
    codes = batch.column(0).dictionary_encode()
    runs = np.flatnonzero(np.diff(codes.indices.to_numpy())) + 1
    for start, end in zip([0, *runs], [*runs, batch.num_rows], strict=True):
        yield codes[int(start)].as_py(), batch.slice(start, end - start)


class _RowAggregator:
    def __init__(
        self, columns: Sequence[Column], budget: int, detail: DetailLimits, statistics: Sequence[Statistic]
    ) -> None:
        self.rows = 0
        self._columns = columns
        share = max(budget // max(len(columns), 1), 1)
        self._kernels = [ColumnKernel(column, share, detail, statistics=statistics) for column in columns]

    def add(self, rows: pa.RecordBatch) -> None:
        self.rows += rows.num_rows
        for kernel, values in zip(self._kernels, rows.columns[2:], strict=True):
            kernel.add(values)

    def finish(self, *, absent_is_null: bool) -> list[tuple[int, ColumnStatistics]]:
        column_statistics = [kernel.finish(self.rows) for kernel in self._kernels]
        if not absent_is_null:
            # A column of nulls may be absent from the file, and then a name mapping may decide its values.
            for ordinal, column in enumerate(self._columns):
                if column_statistics[ordinal].nulls == self.rows:
                    column_statistics[ordinal] = unknown_statistics(column, self.rows)
        return list(enumerate(column_statistics))
