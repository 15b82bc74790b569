"""Functions that take a query, and names of views: the errors where there is no answer."""

from __future__ import annotations

import re

import pytest
from pyspark.errors import AnalysisException

import metastore
from metastore.errors import NoStatistics

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("function", ["filtered_summary", "explain", "estimates"])
def test_of_a_wrong_query_spark_tells_in_one_line(spark, analyzed, function):
    with pytest.raises(AnalysisException, match=r"\[UNRESOLVED_COLUMN\.WITH_SUGGESTION\].*`id`") as caught:
        spark.sql(f"SELECT * FROM metastore.{function}('SELECT * FROM {analyzed} WHERE idd < 3')")
    assert "\n" not in str(caught.value).split("JVM stacktrace")[0].strip()


def test_of_a_view_it_is_said_what_can_be_asked(spark, analyzed):
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW sql_asked AS SELECT * FROM {analyzed}")
    with pytest.raises(AnalysisException, match="it is a view") as caught:
        spark.sql("SELECT * FROM metastore.summary('sql_asked')")
    (call,) = re.findall(r"metastore\.filtered_summary\(.*\)", str(caught.value))
    assert spark.sql(f"SELECT max(count) FROM {call}").first()[0] == 100


def said(spark, question: str) -> str:
    with pytest.raises(AnalysisException) as caught:
        spark.sql(f"SELECT * FROM metastore.{question}")
    return str(caught.value).split("\n")[0]


def test_of_other_views_it_is_not_said_to_ask_for_a_filtered_summary(spark, analyzed):
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW sql_counted AS SELECT count(*) AS c FROM {analyzed}")
    assert said(spark, "summary('sql_counted')").endswith("it is a view. Ask about the tables that it reads.")
    spark.range(3).createOrReplaceTempView("sql_no_table")
    assert "a view that reads no table with data files, only Range" in said(spark, "summary('sql_no_table')")
    assert "query: it reads Range, not an Iceberg" in said(spark, "filtered_summary('SELECT * FROM sql_no_table')")


def test_global_views_have_no_database_to_miss(spark):
    spark.range(3).createOrReplaceTempView("sql_of_this_session")
    spark.range(3).createOrReplaceGlobalTempView("sql_global")
    try:
        message = said(spark, "summary('global_temp.nothere')")
        assert message.endswith("There is no table global_temp.nothere. Known: global_temp.sql_global.")
    finally:
        spark.catalog.dropGlobalTempView("sql_global")
        spark.catalog.dropTempView("sql_of_this_session")


@pytest.mark.parametrize("files", ["orc", "csv", "json"])
def test_files_of_other_formats_are_named(spark, tmp_path, files):
    spark.range(3).write.format(files).save(f"{tmp_path}/t")
    message = said(spark, f"summary('{files}.`{tmp_path}/t`')")
    assert f"it is read as {files.upper()} files, not as an Iceberg, Delta or Hudi table with data, or a" in message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"": "com.example.Missing"}, "Cannot find catalog plugin class"),
        (
            {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "rest", ".uri": "http://127.0.0.1:1"},
            "Connection refused",
        ),
    ],
)
def test_a_catalog_that_fails_is_told_of_as_such(spark, settings, message):
    session = spark.newSession()
    for key, value in settings.items():
        session.conf.set(f"spark.sql.catalog.sql_failing{key}", value)
    for question in ("summary('sql_failing.db.t')", "columns('sql_failing.db.t')"):
        line = said(session, question)
        assert line.startswith("[METASTORE_CATALOG_FAILED] sql_failing.db.t cannot be looked up: its catalog fails: ")
        assert message in line


def test_of_a_snapshot_that_no_statement_reaches_those_near_it_are_named(spark, table):
    ids = []
    for number in range(5):
        spark.sql(f"INSERT INTO {table} VALUES ({number}, 's', 'p')")
        if number in (1, 2, 3):
            spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
        ids.append(spark.sql(f"SELECT snapshot_id FROM {table}.refs WHERE name = 'main'").first()[0])
    near = f"Nearest analyzed snapshots: {ids[1]}, {ids[2]}, {ids[3]}."
    for question in (f"summary('{table}', at => {ids[0]})", f"diff('{table}', '{ids[0]}')"):
        message = said(spark, question)
        assert message.startswith(
            f"[METASTORE_NO_STATISTICS] {table} has no statistics of columns for snapshot {ids[0]} "
        )
        assert message.endswith(near)
        assert "Run: " not in message
    location = spark.sql(f"DESCRIBE EXTENDED {table}").where("col_name = 'Location'").first()[1]
    with pytest.raises(NoStatistics, match=re.escape(near)):
        metastore.open(location).summary(at=ids[0])
