"""Calls of Spark that differ between versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore import jvm_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from metastore.adapters.table_facts import TableFacts


def installed_spark_line() -> tuple[int, int]:
    """Return major and minor version of the installed Spark."""
    import pyspark  # noqa: PLC0415 - not needed to import this module

    major, minor = pyspark.__version__.split(".")[:2]
    return int(major), int(minor)


def read_time_zone(spark: SparkSession) -> str:
    """Return the time zone in which a session reads and shows times."""
    return spark.conf.get("spark.sql.session.timeZone") or "UTC"


def select_at_snapshot(
    spark: SparkSession, facts: TableFacts, selected: Sequence[str], where: str | None = None
) -> DataFrame:
    """Select SQL expressions from a table at its snapshot, from all rows or those that satisfy a condition."""
    if facts.snapshot_options:
        rows = _load_with_options(spark, facts)
        if where is not None:
            rows = rows.where(where)
        return rows.selectExpr(*selected)
    condition = "" if where is None else f" WHERE {where}"
    return spark.sql(f"SELECT {', '.join(selected)} FROM {facts.snapshot_sql}{condition}")


def _load_with_options(spark: SparkSession, facts: TableFacts) -> DataFrame:
    reader = spark.read.options(**facts.snapshot_options)
    if "path" in facts.snapshot_options:
        return reader.format(facts.format).load()
    return reader.table(facts.snapshot_sql)


def collect_arrow(frame: DataFrame) -> pa.Table:
    """Collect a DataFrame as an Arrow table."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    return _collect_batches(frame)  # Spark 3.5


def collect_local_arrow(frame: DataFrame) -> pa.Table:
    """Collect a DataFrame whose rows are in the driver already as an Arrow table; tasks would be sent all rows."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    fails_on_duplicates, has_large_types = True, False
    flags = [fails_on_duplicates]
    if installed_spark_line() >= (4, 0):
        flags.append(has_large_types)
    streams = jvm_session.encode_local_rows(frame, flags)
    if streams is None:
        return collect_arrow(frame)
    return pa.concat_tables(pa.ipc.open_stream(stream).read_all() for stream in streams)


def create_frame(spark: SparkSession, table: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Create a DataFrame from an Arrow table, small enough for the driver."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - not needed to import this module

    if installed_spark_line() >= (4, 0):
        return spark.createDataFrame(table, schema)
    rows = [tuple(row.values()) for row in table.to_pylist(maps_as_pydicts="strict")]
    return spark.createDataFrame(rows, schema or from_arrow_schema(table.schema))


def _collect_batches(frame: DataFrame) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - only Spark 3.5 needs it
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - as above

    batches = frame._collect_as_arrow()  # type: ignore[operator] # noqa: SLF001 - what its own toPandas calls
    return pa.Table.from_batches(batches, schema=to_arrow_schema(frame.schema))
