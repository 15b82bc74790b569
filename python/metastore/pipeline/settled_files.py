"""Finds data files whose values readers of a table with log files may show in different ways."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metastore.adapters import refusals
from metastore.adapters.spark_rows import find_read_columns
from metastore.adapters.table_facts import Refusal
from metastore.kernel.parquet_file import (
    find_spark_only_reason,
    find_unopened_reason,
    list_plain_columns,
    open_data_file,
)
from metastore.kernel.parquet_schema import FileColumn, UnsupportedDataFile
from metastore.spark_jobs.archive_imports import forget_archives
from metastore.spark_jobs.session_jobs import run_cancellable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile
    from metastore.format.table_column import Column
    from metastore.store.data_file_access import DataFileAccess

    _Content = frozenset[str] | str
    """The keys of a file's columns, or the reason that they are unknown."""


def find_unsettled(
    spark: SparkSession,
    facts: TableFacts,
    expressions: Sequence[Column],
    files: Sequence[DataFile],
    access: DataFileAccess,
) -> list[list[Refusal]]:
    """Find for each expression the data files whose values may differ between readers, each with the reason.

    A file is settled if it has no log file, and has each column that the expression reads in the table's type. Hudi's
    readers treat a column that is missing, or that is cast, in different ways.
    """
    keys_by_expression = find_read_columns(spark, facts, expressions)
    keys = frozenset[str]().union(*keys_by_expression)
    contents = _find_contents(spark, facts, keys, files, access)
    return [_refuse(contents, keys) for keys in keys_by_expression]


def mark_unsettled_columns(
    spark: SparkSession,
    facts: TableFacts,
    columns: Sequence[Column],
    files: Sequence[DataFile],
    access: DataFileAccess,
) -> tuple[DataFile, ...]:
    """Mark the columns of data files with log files that the data file lacks, or has in another type, as unknown.

    Hudi's readers show the same values for all other columns.
    """
    file_columns = [FileColumn.of(column, facts.field_ids) for column in columns]
    to_open = [file for file in files if find_unopened_reason(file, access) is None]
    contents = _list_columns(spark, to_open, file_columns, access)
    return tuple(_mark_unsettled(file, columns, contents.get(file.path, frozenset())) for file in files)


def _mark_unsettled(file: DataFile, columns: Sequence[Column], content: _Content) -> DataFile:
    """Mark the columns that are not among the content of a file; a reason in its place marks all of them."""
    settled = frozenset() if isinstance(content, str) else content
    unsettled = {column.key for column in columns if column.key not in settled}
    return replace(file, unknown=file.unknown | unsettled)


def _find_contents(
    spark: SparkSession, facts: TableFacts, keys: frozenset[str], files: Sequence[DataFile], access: DataFileAccess
) -> dict[str, _Content]:
    """Map the paths of data files to the columns that they have, or to why that is unknown."""
    read_columns = [column for column in facts.columns if column.key in keys]
    columns = [FileColumn.of(column, facts.field_ids) for column in read_columns]
    contents: dict[str, _Content] = {}
    to_open = []
    for file in files:
        reason = _find_reason(file, access)
        if reason is None:
            to_open.append(file)
        else:
            contents[file.path] = reason
    return contents | _list_columns(spark, to_open, columns, access)


def _list_columns(
    spark: SparkSession, files: Sequence[DataFile], columns: Sequence[FileColumn], access: DataFileAccess
) -> dict[str, _Content]:
    """Open data files by tasks, and list the columns that each has in the table's type."""
    if not files:
        return {}

    def open_file(file: DataFile) -> tuple[str, _Content]:
        forget_archives()
        try:
            return file.path, list_plain_columns(open_data_file(file, access), columns)
        except UnsupportedDataFile as error:
            return file.path, str(error)

    slices = min(len(files), 4 * spark.sparkContext.defaultParallelism)
    tasks = spark.sparkContext.parallelize(files, slices).map(open_file)
    return run_cancellable(spark, lambda: dict(tasks.collect()))


def _refuse(contents: Mapping[str, _Content], keys: frozenset[str]) -> list[Refusal]:
    refused = []
    for path, content in contents.items():
        if isinstance(content, str):
            refused.append(Refusal(path, content))
        elif not keys <= content:
            refused.append(Refusal(path, refusals.READERS_DIFFER))
    return refused


def _find_reason(file: DataFile, access: DataFileAccess) -> str | None:
    """Return the reason that a file is not opened by the kernel, or None."""
    if file.deletes is not None or file.has_log_files:
        return refusals.MERGED
    return find_spark_only_reason(file, access)
