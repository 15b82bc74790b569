"""Answers of Spark as Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore._tables.lines import installed_spark_line

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def collect_arrow(frame: DataFrame) -> pa.Table:
    """Collect a DataFrame as an Arrow table."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    return _by_batches(frame)  # Spark 3.5


def create_frame(spark: SparkSession, table: pa.Table, schema: StructType | None = None) -> DataFrame:
    """A DataFrame of an Arrow table, small enough for the driver."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - not needed to import this module

    if installed_spark_line() >= (4, 0):
        return spark.createDataFrame(table, schema) if schema else spark.createDataFrame(table)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return spark.createDataFrame(rows, schema or from_arrow_schema(table.schema))


def _by_batches(frame: DataFrame) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - only where Spark is old
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - as above

    batches = frame._collect_as_arrow()  # type: ignore[operator] # noqa: SLF001 - what its own toPandas calls
    return pa.Table.from_batches(batches, schema=to_arrow_schema(frame.schema))
