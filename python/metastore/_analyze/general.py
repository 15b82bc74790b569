"""The general path: Spark reads the rows of files that Python does not open; the same kernel runs on its batches."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from metastore._analyze.kernel import ColumnKernel
from metastore._analyze.worker import BlockBuilder, Unread
from metastore._tables import refusals
from metastore._tables.names import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from metastore._analyze.kernel import ColumnStatistics
    from metastore._analyze.worker import Destination, TaskResult
    from metastore._format.columns import Column
    from metastore._tables.model import DataFile, TableFacts

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


def run_general(
    rows: DataFrame, destination: Destination, columns: Sequence[Column], files: Sequence[DataFile]
) -> list[TaskResult]:
    """Run the kernel on rows read by Spark; every task writes a block.

    Args:
        rows: From `read_rows`.
        destination: Where the blocks go.
        columns: The columns, in the order of `c0`, `c1`, ….
        files: The files expected.

    Returns:
        The results of the tasks; a file whose rows do not add up is refused.

    Example:
        >>> run_general(rows, destination, columns, files)[0].block  # doctest: +SKIP
    """
    expected = {file.path: file for file in files}

    def work(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        result = analyze_batches(batches, destination, tuple(columns), expected)
        yield pa.record_batch([pa.array([pickle.dumps(result)])], names=["result"])

    return [pickle.loads(row.result) for row in rows.mapInArrow(work, "result binary").collect()]  # noqa: S301 - written by our own task


def analyze_batches(
    batches: Iterable[pa.RecordBatch],
    destination: Destination,
    columns: tuple[Column, ...],
    expected: Mapping[str, DataFile],
) -> TaskResult:
    """Compute the statistics of files whose rows come one file after the other.

    Args:
        batches: Columns `_file`, `_deleted`, `c0`, `c1`, ….
        destination: Where the block goes.
        columns: The columns.
        expected: The files by path.

    Returns:
        The block, and the files whose number of rows is not the stated one.

    Example:
        >>> analyze_batches([], destination, columns, {}).block is None  # doctest: +SKIP
        True
    """
    builder = BlockBuilder(destination, "full", columns)
    current: _File | None = None
    for batch in batches:
        for path, rows in _by_file(batch):
            if current is None or current.path != path:
                _finish(current, expected, builder)
                current = _File(path, columns, destination.budget)
            current.add(rows)
    _finish(current, expected, builder)
    return builder.finish()


def _by_file(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    if batch.num_rows == 0:
        return
    codes = batch.column(0).dictionary_encode()
    runs = np.flatnonzero(np.diff(codes.indices.to_numpy())) + 1
    for start, end in zip([0, *runs], [*runs, batch.num_rows], strict=True):
        yield codes[int(start)].as_py(), batch.slice(start, end - start)


class _File:
    def __init__(self, path: str, columns: Sequence[Column], budget: int) -> None:
        self.path = path
        self.rows = 0
        share = max(budget // max(len(columns), 1), 1)
        self._kernels = [ColumnKernel(column, share) for column in columns]

    def add(self, rows: pa.RecordBatch) -> None:
        self.rows += rows.num_rows
        for kernel, values in zip(self._kernels, rows.columns[2:], strict=True):
            kernel.add(values)

    def statistics(self) -> list[tuple[int, ColumnStatistics]]:
        return [(place, kernel.finish(self.rows)) for place, kernel in enumerate(self._kernels)]


def _finish(current: _File | None, expected: Mapping[str, DataFile], builder: BlockBuilder) -> None:
    if current is None or current.path not in expected:
        return
    file = expected[current.path]
    if current.rows == file.rows:
        builder.add(file, current.statistics())
    else:
        builder.refuse(Unread(file.path, refusals.ROWS_DIFFER))
