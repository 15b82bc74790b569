"""Frequencies of a table, exact and not, from ANALYZE to SQL, against Spark's own GROUP BY."""

from __future__ import annotations

import pytest

import metastore

pytestmark = pytest.mark.spark

COLUMNS = {
    "skewed": "CAST(10000 / (1 + id % 997) AS INT)",
    "near_unique": "CAST(hash(id) % 100000 AS BIGINT)",
    "key": "id",
    "random": "CAST(uuid() AS STRING)",
}


@pytest.fixture
def filled(spark, table):
    made = ", ".join(f"{sql} AS {name}" for name, sql in COLUMNS.items())
    spark.sql(f"CREATE TABLE {table} USING iceberg AS SELECT {made} FROM range(0, 20000, 1, 4)")
    return table


def check(spark, table, algorithms):
    view = spark.read.format("metastore").option("view", "summary").load(table)
    summary = {row["column_name"]: row for row in view.collect()}
    for name in COLUMNS:
        rows = spark.sql(f"SELECT CAST({name} AS STRING), count(*) FROM {table} GROUP BY 1").collect()
        truth = {row[0]: row[1] for row in rows}
        answer = metastore.frequencies(spark, table, name)
        listed = {row["value"]: row["frequency"] for row in answer}
        assert all(row["exact"] for row in answer)
        assert listed in (truth, {value: n for value, n in truth.items() if n > 1}), name
        assert (summary[name]["approx_unique"], summary[name]["distinct_error"]) == (len(truth), 0)
        assert summary[name]["frequencies_algorithm"] in algorithms
        assert summary[name]["singles"] == sum(n == 1 for n in truth.values())


@pytest.mark.slow
def test_asked_for(spark, filled):
    metastore.analyze(spark, filled, progress=False)
    report = metastore.analyze(spark, filled, progress=False, frequencies="exact")
    assert report.files_read == 0
    assert report.committed
    check(spark, filled, {"reduce", "duplicates", "scatter"})
    assert not metastore.analyze(spark, filled, progress=False, frequencies="exact").committed
    assert not metastore.analyze(spark, filled, progress=False).committed


@pytest.mark.slow
def test_asked_for_by_a_setting(spark, filled):
    spark.conf.set("spark.metastore.frequencies.algorithm", "exact")
    try:
        spark.sql(f"ANALYZE TABLE {filled} COMPUTE STATISTICS FOR ALL COLUMNS")
    finally:
        spark.conf.unset("spark.metastore.frequencies.algorithm")
    check(spark, filled, {"reduce", "duplicates", "scatter"})


def test_lists_that_are_cut_say_by_how_much_they_may_be_wrong(spark, filled):
    metastore.analyze(spark, filled, progress=False)
    for name in COLUMNS:
        rows = spark.sql(f"SELECT CAST({name} AS STRING), count(*) FROM {filled} GROUP BY 1").collect()
        truth = {row[0]: row[1] for row in rows}
        for row in metastore.frequencies(spark, filled, name):
            assert row["frequency"] <= truth[row["value"]] <= row["frequency"] + row["error"]
            assert row["exact"] == (row["error"] == 0)
