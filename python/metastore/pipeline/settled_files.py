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
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.format.table_column import Column


def find_unsettled(
    spark: SparkSession, facts: TableFacts, expressions: Sequence[Column], files: Sequence[DataFile]
) -> list[list[Refusal]]:
    """Find for each expression the data files of which some reader may show other values, and say why.

    A file is settled where no log file belongs to it and it holds each column that the expression reads in the table's
    type: a column that is missing, or that is cast, is another thing to each of Hudi's readers.
    """
    read = find_read_columns(spark, facts, expressions)
    known = frozenset[str]().union(*read)
    columns = [FileColumn.of(column, facts.field_ids) for column in facts.columns if column.key in known]
    reasons = {file.path: _reason(file, facts) for file in files}
    opened = [file for file in files if reasons[file.path] is None]

    def look(file: DataFile) -> tuple[str, frozenset[str] | str]:
        try:
            return file.path, list_plain_columns(str(local_path(file.location)), columns)
        except UnsupportedDataFile as error:
            return file.path, str(error)

    found: dict[str, frozenset[str] | str] = {path: reason for path, reason in reasons.items() if reason is not None}
    if opened:
        tasks = spark.sparkContext.parallelize(opened, min(len(opened), 4 * spark.sparkContext.defaultParallelism))
        found |= run_cancellable(spark, lambda: dict(tasks.map(look).collect()))
    return [_refusals(found, needed) for needed in read]


def _refusals(found: Mapping[str, frozenset[str] | str], needed: frozenset[str]) -> list[Refusal]:
    """Of what each file holds, or why that is not known."""
    return [
        Refusal(path, held if isinstance(held, str) else refusals.READERS_DIFFER)
        for path, held in found.items()
        if isinstance(held, str) or not needed <= held
    ]


def _reason(file: DataFile, facts: TableFacts) -> str | None:
    return refusals.MERGED if file.deletes is not None else find_spark_only_reason(file, local=facts.local)
