"""ANALYZE as a SQL statement, for sessions that have no Spark context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore._analyze.progress import progress_of, speaking
from metastore._analyze.report import AnalyzeReport
from metastore._tables.catalog import describe
from metastore._tables.failures import translated
from metastore._tables.names import quote, split_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore._analyze.progress import Progress


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is Spark Connect's."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def analyze(
    spark: SparkSession,
    table: str,
    columns: Sequence[str] | None,
    partition: Mapping[str, Any] | None,
    depth: str,
    progress: bool | Progress,  # noqa: FBT001 - the public parameter's type
) -> AnalyzeReport:
    """Sends the statement and reads its one row."""
    describe(spark, table)
    with translated(table, spark), speaking(progress_of(progress, table), "analyzing on the server"):
        (row,) = spark.sql(statement(table, columns, partition, depth)).collect()
    return AnalyzeReport.from_row(row.asDict())


def statement(table: str, columns: Sequence[str] | None, partition: Mapping[str, Any] | None, depth: str) -> str:
    """Writes an ANALYZE statement."""
    if columns is not None:
        what = " FOR COLUMNS " + ", ".join(quote(split_name(name)) for name in columns)
    else:
        what = {"full": " FOR ALL COLUMNS", "footer": "", "files": " NOSCAN"}[depth]
    where = ", ".join(f"{quote([name])} = {_literal(value)}" for name, value in (partition or {}).items())
    part = f" PARTITION ({where})" if where else ""
    return f"ANALYZE TABLE {quote(split_name(table))}{part} COMPUTE STATISTICS{what}"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (bool, int)):
        return str(value).lower()
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
