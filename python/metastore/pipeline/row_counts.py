"""Row counts of data files whose table does not say how many rows they have, such as directories of Parquet files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from metastore.adapters import refusals
from metastore.adapters.identifiers import LOCATION, escape_glob
from metastore.adapters.spark_errors import leave_out_unreadable
from metastore.adapters.spark_rows import count_by_file, read_merged_rows
from metastore.adapters.table_facts import Refusal, TableFacts
from metastore.errors import AnalyzeFailed
from metastore.format.counts import join_counts
from metastore.format.data_files import divide_by_log_files, leave_out_files, read_file_keys
from metastore.kernel.parquet_file import count_rows_of_file, find_spark_only_reason
from metastore.spark_jobs.archive_imports import forget_archives
from metastore.spark_jobs.session_jobs import run_cancellable, ship_package
from metastore.store.block_files import BlockDamageError, BlockFiles, BlockFilesCache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore.format.data_files import DataFile, FileKey
    from metastore.format.manifest import Manifest
    from metastore.store.data_file_access import DataFileAccess

_SLICES_OF_A_CORE = 4


def count_rows(
    spark: SparkSession, facts: TableFacts, manifest: Manifest, indexed: BlockFilesCache, access: DataFileAccess
) -> TableFacts:
    """Count the rows of the data files whose number of rows is unknown.

    Numbers that statistics already store are used first. Tasks read the footers of the other files, and Spark reads the
    files that Python cannot. A file that Spark cannot read either is refused.
    """
    if all(file.rows is not None for file in facts.files):
        return facts
    stored = _read_row_counts(manifest, indexed)
    files = [_with_rows(file, stored.get(file.key)) for file in facts.files]
    counts = _count_by_footers(spark, files, access)
    files = [_with_rows(file, counts.get(file.location)) for file in files]
    files, unmerged = _count_merged_rows(spark, facts, files)
    counted, unreadable = _count_by_spark(spark, files)
    return replace(facts, files=counted, refused=facts.refused + unmerged + unreadable)


def _count_merged_rows(
    spark: SparkSession, facts: TableFacts, files: Sequence[DataFile]
) -> tuple[list[DataFile], tuple[Refusal, ...]]:
    """Count the rows of data files with log files. What Spark cannot merge is refused, and has no version."""
    merged_files, _ = divide_by_log_files(files)
    uncounted = [file for file in merged_files if file.rows is None]
    parts, unreadable = leave_out_unreadable(uncounted, partial(_count_versions, spark, facts), python_errors={})
    counts = join_counts(parts)
    unreadable_paths = {refusal.subject for refusal in unreadable}
    replaced = _refuse_replaced(leave_out_files(uncounted, unreadable_paths), counts)
    refused = (*unreadable, *replaced)
    refused_paths = {refusal.subject for refusal in refused}
    counted = []
    for file in files:
        if file.path in refused_paths:
            counted.append(_without_version(file))
        else:
            counted.append(_with_rows(file, counts.get(file.location)))
    return counted, refused


def _without_version(file: DataFile) -> DataFile:
    """Return the data file as one whose log files change an unknown number of rows."""
    return replace(file, modified=None, has_log_files=False, deletes=str(file.modified), deleted_rows=None)


def _refuse_replaced(files: Sequence[DataFile], counts: Mapping[str, int]) -> list[Refusal]:
    """Refuse the files that were not counted, because they have other log files by now."""
    return [Refusal(file.path, refusals.REPLACED) for file in files if file.location not in counts]


def _count_versions(spark: SparkSession, facts: TableFacts, files: Sequence[DataFile]) -> dict[str, int]:
    """Count the rows of data files with log files by location; a file that has other log files by now is missing."""
    rows = read_merged_rows(spark, facts, (), files)
    counts = dict.fromkeys(rows.inputFiles(), 0)
    for location, count in run_cancellable(spark, count_by_file(rows).collect):
        if location not in counts:  # a count of 0 is believed, so no row may be of an unknown file
            raise AnalyzeFailed(facts.name, f"Spark read rows of {location}, which is not among the files to read")
        counts[location] = count
    return counts


def _count_by_spark(spark: SparkSession, files: Sequence[DataFile]) -> tuple[tuple[DataFile, ...], tuple[Refusal, ...]]:
    """Count the rows of the remaining files by Spark; files that Spark cannot read are refused."""
    uncounted = [file for file in files if file.rows is None]
    parts, unreadable = leave_out_unreadable(uncounted, partial(_count_all_rows, spark), python_errors={})
    counts = join_counts(parts)
    refused_paths = {refusal.subject for refusal in unreadable}
    readable = leave_out_files(files, refused_paths)
    return tuple(_with_rows(file, counts.get(file.location, 0)) for file in readable), unreadable


def _with_rows(file: DataFile, rows: int | None) -> DataFile:
    """Return the file with this number of rows, if its own is unknown."""
    return replace(file, rows=rows) if file.rows is None else file


def _read_row_counts(manifest: Manifest, indexed: BlockFilesCache) -> Mapping[FileKey, int]:
    counts: dict[FileKey, int] = {}
    for block in manifest.blocks:
        try:
            (block_files,) = indexed.read([block])
        except BlockDamageError:
            continue
        counts |= _list_row_counts(block_files)
    return counts


def _list_row_counts(block_files: BlockFiles) -> dict[FileKey, int]:
    files = block_files.files
    counted = files.filter(pc.is_valid(files["rows"]))
    return dict(zip(read_file_keys(counted), counted["rows"].to_pylist(), strict=True))


def _count_by_footers(spark: SparkSession, files: Sequence[DataFile], access: DataFileAccess) -> Mapping[str, int]:
    """Count the rows of files that tasks open: Spark would read the path of every row."""
    uncounted = [file for file in files if file.rows is None]
    locations = [file.location for file in uncounted if find_spark_only_reason(file, access) is None]
    if not locations:
        return {}
    context = spark.sparkContext
    ship_package(context)

    def count(location: str) -> tuple[str, int | None]:
        forget_archives()
        return location, count_rows_of_file(location, access)

    slices = min(len(locations), _SLICES_OF_A_CORE * context.defaultParallelism)
    counts = run_cancellable(spark, context.parallelize(locations, slices).map(count).collect)
    return {location: rows for location, rows in counts if rows is not None}


def _count_all_rows(spark: SparkSession, files: Sequence[DataFile]) -> dict[str, int]:
    paths = [escape_glob(file.location) for file in files]
    # Without a schema Spark would infer one, and not name the file that it cannot read.
    rows = spark.read.schema("`any` INT").parquet(*paths).selectExpr(f"{LOCATION} AS path")
    counts = rows.groupBy("path").count().collect()
    return {row["path"]: row["count"] for row in counts}
