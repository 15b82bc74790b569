"""Tables with columns that Spark has no type for: every verb names the columns."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

import metastore
from metastore.errors import UnsupportedTable

pytestmark = pytest.mark.spark

TABLE = "ice.db.unreadable_columns"
NAMED = r"Spark cannot read its `?t`? of type time, `?st`?\.`?t`? of type time"
STATEMENTS = (
    "ANALYZE TABLE {} COMPUTE STATISTICS",
    "ANALYZE TABLE {} COMPUTE STATISTICS FOR ALL COLUMNS",
    "ANALYZE TABLE {} COMPUTE STATISTICS FOR COLUMNS id",
    "SELECT * FROM metastore.summary('{}')",
    "SELECT * FROM metastore.files('{}')",
    "SELECT * FROM metastore.locate('{}', 'id', 1)",
)


@pytest.fixture(scope="module")
def table(spark):
    """An Iceberg table with two columns of the type `time`."""
    spark.sql(f"CREATE TABLE {TABLE} (id INT, st STRUCT<a: INT>) USING iceberg")
    java = spark._jvm.org.apache.iceberg
    time = java.types.Types.TimeType.get()
    change = java.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, TABLE).updateSchema()
    change.addColumn("t", time).addColumn("st", "t", time).moveFirst("t").commit()
    yield TABLE
    java.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, TABLE).updateSchema().deleteColumn("t").deleteColumn(
        "st.t"
    ).commit()
    spark.sql(f"DROP TABLE {TABLE}")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_name_the_columns(spark, table, statement):
    with pytest.raises((PySparkException, Exception), match=NAMED) as raised:
        spark.sql(statement.format(table)).collect()
    assert "METASTORE_UNSUPPORTED_TABLE" in str(raised.value)
    assert "ACCESS_DENIED" not in str(raised.value)


@pytest.mark.parametrize("ask", [metastore.analyze, metastore.summary, metastore.files])
def test_python_names_the_columns(spark, table, ask):
    with pytest.raises(UnsupportedTable, match=NAMED):
        ask(spark, table)
