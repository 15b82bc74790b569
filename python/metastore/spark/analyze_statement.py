"""ANALYZE as a SQL statement, for sessions that have no Spark context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore.adapters.catalog import look_up_table
from metastore.adapters.identifiers import quote_name, split_name
from metastore.adapters.shim_calls import translate_errors
from metastore.pipeline.report import AnalyzeReport
from metastore.spark_jobs.progress import Progress, make_progress, show_stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession


_DEPTH_CLAUSES = {"full": " FOR ALL COLUMNS", "footer": "", "files": " NOSCAN"}


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def run_analyze_statement(
    spark: SparkSession,
    table: str,
    columns: Sequence[str] | None,
    partition: Mapping[str, Any] | None,
    depth: str,
    progress: bool | Progress,  # noqa: FBT001 - the public parameter's type
) -> AnalyzeReport:
    """Send the statement and read its one row."""
    look_up_table(spark, table)
    with translate_errors(table, spark), show_stage(make_progress(progress, table), "analyzing on the server"):
        (row,) = spark.sql(write_analyze_statement(table, columns, partition, depth)).collect()
    return AnalyzeReport.from_row(row.asDict())


def write_analyze_statement(
    table: str, columns: Sequence[str] | None, partition: Mapping[str, Any] | None, depth: str
) -> str:
    """Write an ANALYZE statement."""
    partition_clause = ""
    if partition:
        values = [f"{quote_name([name])} = {_literal(value)}" for name, value in partition.items()]
        partition_clause = f" PARTITION ({', '.join(values)})"
    if columns is None:
        columns_clause = _DEPTH_CLAUSES[depth]
    else:
        names = [quote_name(split_name(name)) for name in columns]
        columns_clause = f" FOR COLUMNS {', '.join(names)}"
    return f"ANALYZE TABLE {quote_name(split_name(table))}{partition_clause} COMPUTE STATISTICS{columns_clause}"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (bool, int)):
        return str(value).lower()
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
