"""The general path: Spark reads the rows of files that Python does not open; the same kernel runs on its batches."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from metastore.adapters import refusals
from metastore.adapters.shim_calls import require_unchanged
from metastore.adapters.table_facts import DataFile, Refusal
from metastore.kernel.budget import BUDGET, DEFAULT_DETAIL_LIMITS, DetailLimits
from metastore.kernel.column_kernel import ColumnKernel
from metastore.pipeline.block_task import BlockBuilder, metadata_statistics, unknown_statistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from metastore.format.table_column import Column
    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.pipeline.block_task import BlockDestination, BlockTask, BlockTaskResult
    from metastore.statistics import Statistic


def analyze_spark_rows(rows: DataFrame, destination: BlockDestination, task: BlockTask) -> list[BlockTaskResult]:
    """Run the kernel on rows read by Spark; every partition writes a block."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for record in destination.place.pack_results(analyze_row_batches(batches, destination, task) for _ in range(1)):
            yield pa.record_batch([pa.array([record], pa.binary())], names=["record"])

    done = require_unchanged(rows.mapInArrow(work, "record binary"), destination.table.name)
    return destination.place.collect_rows(done)


def analyze_row_batches(
    batches: Iterable[pa.RecordBatch], destination: BlockDestination, task: BlockTask
) -> BlockTaskResult:
    """Compute the statistics of files whose rows come one file after the other."""
    builder = BlockBuilder(destination, task.depth, task.columns, task.name_mapping)
    expected = {file.location: file for file in task.files}
    runs = ((path, rows) for batch in batches for path, rows in _by_file(batch))
    for path, group in groupby(runs, key=itemgetter(0)):
        file = expected.get(path)
        detail = DEFAULT_DETAIL_LIMITS if file is None else destination.detail(file)
        reading = _Reading(task.columns, (destination.budget, detail), builder.statistics)
        for _, rows in group:
            reading.add(rows)
        if file is not None and file.rows == reading.rows:
            found = reading.statistics(absent_is_null=task.absent_is_null)
            builder.add(file, _with_constants(found, task, file, builder.statistics))
        elif file is not None:
            builder.refuse(Refusal(file.path, refusals.ROWS_DIFFER))
    return builder.finish()


def analyze_matching_rows(
    rows: DataFrame, columns: Sequence[Column], detail: DetailLimits, table: str
) -> list[tuple[int, list[ColumnStatistics]]]:
    """Run the kernel on rows of any data files: of every partition that has some, how many and their statistics."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        reading = _Reading(columns, (BUDGET, detail), ())
        for batch in batches:
            reading.add(batch)
        if reading.rows:
            found = [replace(known, bloom=None) for _, known in reading.statistics(absent_is_null=True)]
            yield pa.record_batch([pa.array([pickle.dumps((reading.rows, found))], pa.binary())], names=["record"])

    done = require_unchanged(rows.mapInArrow(work, "record binary"), table)
    return [pickle.loads(row[0]) for row in done.collect()]  # noqa: S301 - written by our own task


def _with_constants(
    found: Sequence[tuple[int, ColumnStatistics]], task: BlockTask, file: DataFile, statistics: Sequence[Statistic]
) -> Iterator[tuple[int, ColumnStatistics]]:
    """Put in what the table's metadata decides: files that are read by themselves do not hold it."""
    for ordinal, known in found:
        column = task.columns[ordinal]
        if column.key.isdecimal():
            yield ordinal, known
        else:
            held = known if column.encoding else unknown_statistics(column, file.physical_rows)
            yield ordinal, metadata_statistics(column, file, statistics) or held


def _by_file(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    if batch.num_rows == 0:
        return
    codes = batch.column(0).dictionary_encode()
    runs = np.flatnonzero(np.diff(codes.indices.to_numpy())) + 1
    for start, end in zip([0, *runs], [*runs, batch.num_rows], strict=True):
        yield codes[int(start)].as_py(), batch.slice(start, end - start)


class _Reading:
    def __init__(
        self, columns: Sequence[Column], limits: tuple[int, DetailLimits], statistics: Sequence[Statistic]
    ) -> None:
        budget, detail = limits
        self.rows = 0
        self._columns = columns
        share = max(budget // max(len(columns), 1), 1)
        self._kernels = [ColumnKernel(column, share, detail, statistics=statistics) for column in columns]

    def add(self, rows: pa.RecordBatch) -> None:
        self.rows += rows.num_rows
        for kernel, values in zip(self._kernels, rows.columns[2:], strict=True):
            kernel.add(values)

    def statistics(self, *, absent_is_null: bool) -> list[tuple[int, ColumnStatistics]]:
        found = [kernel.finish(self.rows) for kernel in self._kernels]
        if not absent_is_null:
            # A column of nulls may be absent, and a name mapping may change what that means.
            found = [
                unknown_statistics(column, self.rows) if known.nulls == self.rows else known
                for column, known in zip(self._columns, found, strict=True)
            ]
        return list(enumerate(found))
