"""The general path: Spark reads the rows of files that Python does not open; the same kernel runs on its batches."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from metastore._analyze.kernel import DETAIL, ColumnKernel, with_own
from metastore._analyze.worker import BlockBuilder, Unread, unknown
from metastore._tables import refusals
from metastore._tables.names import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from metastore._analyze.kernel import ColumnStatistics, Detail
    from metastore._analyze.worker import Destination, Task, TaskResult
    from metastore._format.columns import Column
    from metastore._tables.model import DataFile, TableFacts
    from metastore.statistics import Statistic

_FILE, _DELETED = "_file", "_deleted"


def read_rows(
    spark: SparkSession, facts: TableFacts, columns: Sequence[Column], files: Sequence[DataFile]
) -> DataFrame:
    """Read all physical rows of some data files as Spark sees them.

    `_deleted` is asked for because Iceberg then returns deleted rows too, marked, instead of leaving them out.

    Args:
        spark: The session.
        facts: The table.
        columns: What to read: column i of the answer is named `c<i>`.
        files: Of which files.

    Returns:
        Rows ordered by file, all rows of a file in one partition.

    Example:
        >>> read_rows(spark, facts, facts.columns, facts.files).columns[:2]  # doctest: +SKIP
        ['_file', '_deleted']
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the usual name, not needed to import this module

    chosen = [f"{_expression(column)} AS c{place}" for place, column in enumerate(columns)]
    rows = spark.sql(f"SELECT {', '.join([_FILE, _DELETED, *chosen])} FROM {facts.pinned}")
    if len(files) < len(facts.files):
        rows = rows.where(F.col(_FILE).isin([file.path for file in files]))
    partitions = min(len(files), 4 * spark.sparkContext.defaultParallelism)
    return rows.repartition(partitions, _FILE).sortWithinPartitions(_FILE)


def _expression(column: Column) -> str:
    name = quote(column.path)
    return name if column.encoding else f"IF({name} IS NULL, NULL, true)"


def run_general(rows: DataFrame, destination: Destination, task: Task) -> list[TaskResult]:
    """Run the kernel on rows read by Spark; every partition writes a block.

    Args:
        rows: From `read_rows`.
        destination: Where the blocks go.
        task: The columns, in the order of `c0`, `c1`, …, and all files expected.

    Returns:
        The results of the partitions; a file whose rows do not add up is refused.

    Example:
        >>> run_general(rows, destination, task)[0].block  # doctest: +SKIP
    """

    def work(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for record in destination.place.packed(analyze_batches(batches, destination, task) for _ in range(1)):
            yield pa.record_batch([pa.array([record], pa.binary())], names=["record"])

    return destination.place.collect_rows(rows.mapInArrow(work, "record binary"))


def analyze_batches(batches: Iterable[pa.RecordBatch], destination: Destination, task: Task) -> TaskResult:
    """Compute the statistics of files whose rows come one file after the other.

    Args:
        batches: Columns `_file`, `_deleted`, `c0`, `c1`, ….
        destination: Where the block goes.
        task: The columns and the files expected.

    Returns:
        The block, and the files whose number of rows is not the stated one.

    Example:
        >>> analyze_batches([], destination, task).block is None  # doctest: +SKIP
        True
    """
    builder = BlockBuilder(destination, task.depth, task.columns)
    expected = {file.path: file for file in task.files}
    runs = ((path, rows) for batch in batches for path, rows in _by_file(batch))
    for path, group in groupby(runs, key=itemgetter(0)):
        file = expected.get(path)
        detail = DETAIL if file is None else destination.detail(file)
        reading = _Reading(task.columns, (destination.budget, detail), builder.statistics)
        for _, rows in group:
            reading.add(rows)
        if file is not None and file.rows == reading.rows:
            builder.add(file, reading.statistics(absent_is_null=task.absent_is_null))
        elif file is not None:
            builder.refuse(Unread(path, refusals.ROWS_DIFFER))
    return builder.finish()


def _by_file(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    if batch.num_rows == 0:
        return
    codes = batch.column(0).dictionary_encode()
    runs = np.flatnonzero(np.diff(codes.indices.to_numpy())) + 1
    for start, end in zip([0, *runs], [*runs, batch.num_rows], strict=True):
        yield codes[int(start)].as_py(), batch.slice(start, end - start)


class _Reading:
    def __init__(self, columns: Sequence[Column], limits: tuple[int, Detail], statistics: Sequence[Statistic]) -> None:
        budget, detail = limits
        self.rows = 0
        self._columns = columns
        share = max(budget // max(len(columns), 1), 1)
        self._kernels = [with_own(ColumnKernel(column, share, detail), column, statistics, share) for column in columns]

    def add(self, rows: pa.RecordBatch) -> None:
        self.rows += rows.num_rows
        for kernel, values in zip(self._kernels, rows.columns[2:], strict=True):
            kernel.add(values)

    def statistics(self, *, absent_is_null: bool) -> list[tuple[int, ColumnStatistics]]:
        found = [kernel.finish(self.rows) for kernel in self._kernels]
        if not absent_is_null:
            # A column of nulls may be absent, and a name mapping may change what that means.
            found = [
                unknown(column, self.rows) if known.nulls == self.rows else known
                for column, known in zip(self._columns, found, strict=True)
            ]
        return list(enumerate(found))
