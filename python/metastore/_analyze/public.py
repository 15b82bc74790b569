"""`metastore.analyze`: in process where the session is classic, as SQL where it is Spark Connect's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore._analyze.report import AnalyzeReport
from metastore._tables.names import quote, split_name
from metastore.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore._analyze.progress import Progress

_DEPTHS = ("full", "footer", "files")


def analyze(
    spark: SparkSession,
    table: str,
    columns: Sequence[str] | None = None,
    partition: Mapping[str, Any] | None = None,
    progress: bool | Progress = True,  # noqa: FBT001, FBT002 - part of the public interface
    depth: str = "full",
) -> AnalyzeReport:
    """Computes the statistics of a table, of what changed since the last time.

    Args:
        spark: A session, classic or Connect.
        table: A name as in SQL.
        columns: Names of columns or structs; all if None.
        partition: Partition column to value, to analyze only the data files there.
        progress: Whether to show progress on stderr.
        depth: "full" reads data; "footer" takes counts and bounds from Parquet footers; "files" lists files.

    Returns:
        What was done, and what was left out and why.

    Raises:
        TableNotFound: There is no such table.
        ColumnNotFound: The table has no such column; nothing was written.
        UnsupportedTable: A table of a kind that is not handled.
        StoreNotWritable: The place of the statistics cannot be written.
        AnalyzeFailed: The Spark job failed; the statistics that were there are untouched.

    Example:
        >>> metastore.analyze(spark, "db.sales", columns=["price"]).files_read  # doctest: +SKIP
        12
    """
    if depth not in _DEPTHS:
        raise InvalidArgument("depth", f"{depth!r} is none of {', '.join(_DEPTHS)}")
    if columns is not None and depth != "full":
        raise InvalidArgument("columns", f"depth {depth!r} does not look at single columns")
    if isinstance(columns, str):
        raise InvalidArgument("columns", "a list of names is expected")
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return _by_sql(spark, table, _statement(table, columns, partition, depth))
    from metastore._analyze import run  # noqa: PLC0415 - Spark is needed only here

    return run(
        spark,
        table,
        columns=columns,
        all_columns=columns is None and depth == "full",
        noscan=depth == "files",
        partition=partition,
        progress=progress,
    )


def _statement(table: str, columns: Sequence[str] | None, partition: Mapping[str, Any] | None, depth: str) -> str:
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


def _by_sql(spark: SparkSession, table: str, statement: str) -> AnalyzeReport:
    from metastore._spark.failures import translated  # noqa: PLC0415 - needed only here

    with translated(table):
        (row,) = spark.sql(statement).collect()
    return AnalyzeReport.from_row(row.asDict())
