"""Data files whose rows are what they hold, where log files and readers that cast may show others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore.adapters import refusals
from metastore.adapters.spark_rows import find_read_columns
from metastore.adapters.table_facts import Refusal
from metastore.kernel.parquet_file import find_spark_only_reason, list_plain_columns
from metastore.kernel.parquet_schema import FileColumn, UnsupportedDataFile
from metastore.spark_jobs.session_jobs import run_cancellable
from metastore.store.location import local_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.format.table_column import Column


def find_unsettled(
    spark: SparkSession, facts: TableFacts, expression: Column, files: Sequence[DataFile]
) -> list[Refusal]:
    """Find the data files of which some reader may show other values of an expression, and say why.

    A file is settled where no log file belongs to it and it holds each column that the expression reads in the table's
    type: a column that is missing, or that is cast, is another thing to each of Hudi's readers.
    """
    read = find_read_columns(spark, facts, expression)
    columns = [FileColumn.of(column, facts.field_ids) for column in facts.columns if column.key in read]
    reasons = {file.path: _reason(file, facts) for file in files}
    opened = [file for file in files if reasons[file.path] is None]

    def look(file: DataFile) -> tuple[str, str | None]:
        try:
            held = list_plain_columns(str(local_path(file.location)), columns)
        except UnsupportedDataFile as error:
            return file.path, str(error)
        return file.path, None if held == read else refusals.READERS_DIFFER

    if opened:
        tasks = spark.sparkContext.parallelize(opened, min(len(opened), 4 * spark.sparkContext.defaultParallelism))
        reasons |= run_cancellable(spark, lambda: dict(tasks.map(look).collect()))
    return [Refusal(path, reason) for path, reason in reasons.items() if reason is not None]


def _reason(file: DataFile, facts: TableFacts) -> str | None:
    return refusals.MERGED if file.deletes is not None else find_spark_only_reason(file, local=facts.local)
