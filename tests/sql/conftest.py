"""A table with two snapshots, the first of them analyzed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROWS = (
    "id, concat('s', id) AS s, named_struct('a', CAST(id AS INT), 'b.c', id / 2) AS n, "
    "array(id) AS l, 'p' || id % 2 AS p"
)


@pytest.fixture(scope="session")
def analyzed(spark: SparkSession) -> Iterator[str]:
    """The name of an analyzed table of 100 rows in two files; tests do not change it."""
    spark.sql(f"CREATE TABLE ice.db.sql_analyzed USING iceberg PARTITIONED BY (p) AS SELECT {ROWS} FROM range(100)")
    spark.sql("ANALYZE TABLE ice.db.sql_analyzed COMPUTE STATISTICS FOR ALL COLUMNS")
    yield "ice.db.sql_analyzed"
    spark.sql("DROP TABLE ice.db.sql_analyzed")


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """The name of a new, empty table that the test may do with what it likes."""
    spark.sql("CREATE TABLE ice.db.sql_scratch (id BIGINT, s STRING, p STRING) USING iceberg PARTITIONED BY (p)")
    yield "ice.db.sql_scratch"
    spark.sql("DROP TABLE ice.db.sql_scratch")


def location_of(spark: SparkSession, table: str) -> str:
    """Return the location of a table."""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    return next(row.data_type for row in rows if row.col_name == "Location")


def rows_of(spark: SparkSession, call: str) -> list[dict[str, Any]]:
    """The rows that a function of ours gives in SQL."""
    return [row.asDict() for row in spark.sql(f"SELECT * FROM metastore.{call}").collect()]


@contextmanager
def analyzed_table(spark: SparkSession, name: str, query: str) -> Iterator[str]:
    """Makes an Iceberg table of a query's rows, analyzes it, and gives its location; it ends with the block."""
    spark.sql(f"CREATE TABLE {name} USING iceberg AS {query}")
    try:
        spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")
        yield location_of(spark, name)
    finally:
        spark.sql(f"DROP TABLE {name}")
