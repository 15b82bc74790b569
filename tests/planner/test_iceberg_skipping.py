"""Rows of NaN and -0.0 that Iceberg's own skipping loses come back where statistics cover the table."""

from __future__ import annotations

import itertools

import pytest

import metastore
from planner.plans import conf, files_read, labels, rows

pytestmark = pytest.mark.spark

# 80 rows in four files: numbers and a NaN, numbers up to -0.0, larger numbers, NaN alone.
X = (
    "CASE WHEN id = 7 OR id >= 60 THEN double('NaN') WHEN id = 39 THEN -0.0D"
    " WHEN id BETWEEN 20 AND 38 THEN id - 40.0D WHEN id >= 40 THEN 1000.0D + id ELSE id + 1.0D END"
)
ROW = (
    f"id, {X} x, CAST({X} AS FLOAT) f, named_struct('x', {X}) st,"
    f" IF(id BETWEEN 20 AND 38, {X}, 1.0D) clean, id % 3 AS part"
)
COLUMNS = "id BIGINT, x DOUBLE, f FLOAT, st STRUCT<x: DOUBLE>, clean DOUBLE, part BIGINT"


@pytest.fixture(scope="module")
def covered(spark):
    """An analyzed table of Iceberg with its usual metrics, and the same rows as nobody can skip them."""
    table, truth = "ice.db.skipping", "skipping_truth"
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg")
    for start in range(0, 80, 20):
        spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range({start}, {start + 20}, 1, 1)")
    metastore.analyze(spark, table, progress=False)
    spark.sql(f"SELECT {ROW} FROM range(80)").createOrReplaceTempView(truth)
    yield table, truth
    spark.sql(f"DROP TABLE {table}")
    spark.catalog.dropTempView(truth)


def ids(spark, table: str, where: str) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {table} WHERE {where}").collect())


# Each with the files that are read.
CONDITIONS = {
    "x > 5000": 2,
    "x >= 5000": 2,
    "x > 5000 AND id < 40": 1,
    "x > 5000 AND id >= 20": 1,
    "NOT (x <= 5000)": 2,
    "x NOT IN (1, 2)": 4,
    "x > 5000 OR id = 25": 3,
    "x BETWEEN 5000 AND double('NaN')": 2,
    "x IN (5000, double('NaN'))": 2,
    "x = double('NaN')": 2,
    "x <=> double('NaN')": 2,
    "x = 0": 1,
    "x IN (0, 5000)": 1,
    "x >= 0 AND id BETWEEN 20 AND 39": 1,
    "x = -0.0D": 1,
    "f > 5000": 2,
    "f = CAST(0 AS FLOAT)": 1,
    "st.x > 5000": 2,
    "st.x = 0": 1,
    "x < -15": 1,
    "x = 1050": 1,
    "x > 5000 AND part = 1": 2,
}


@pytest.mark.parametrize("where", CONDITIONS)
def test_no_row_is_lost(spark, covered, where):
    table, truth = covered
    query = spark.sql(f"SELECT id FROM {table} WHERE {where}")
    assert sorted(row.id for row in query.collect()) == ids(spark, truth, where)
    assert files_read(query) == [CONDITIONS[where]]


def test_iceberg_loses_them(spark, covered):
    """The reason for the setting; the day that this fails, Iceberg needs no repair."""
    table, truth = covered
    for setting in ("spark__metastore__enabled", "spark__metastore__iceberg__bypassSkipping"):
        with conf(spark, **{setting: "false"}):
            assert ids(spark, table, "x > 5000") == []
            assert ids(spark, table, "x = 0") == []
    assert len(ids(spark, truth, "x > 5000")) == 21


def test_all_comparisons(spark, covered):
    table, truth = covered
    literals = ("-20.0D", "-0.0D", "0.0D", "8.0D", "1040.0D", "5000.0D", "double('NaN')")
    operators = ("=", "<", "<=", ">", ">=", "<>", "<=>")
    conditions = [
        f"{column} {operator} CAST({literal} AS {kind})"
        for (column, kind), operator, literal in itertools.product(
            {"x": "DOUBLE", "st.x": "DOUBLE", "f": "FLOAT"}.items(), operators, literals
        )
    ]
    lists = ", ".join(f"sort_array(collect_list(id) FILTER (WHERE {where}))" for where in conditions)
    for where, expected in zip(conditions, spark.sql(f"SELECT {lists} FROM {truth}").first(), strict=True):
        assert ids(spark, table, where) == expected, where


def test_what_loses_nothing_is_asked_of_iceberg(spark, covered):
    table, _ = covered
    for where in ("x < -15", "x = 1050", "clean > 500", "clean > 0", "id > 70", "x <= 5000 AND x IS NOT NULL"):
        assert "not asked" not in labels(spark.sql(f"SELECT * FROM {table} WHERE {where}"))[0], where


def test_explain_tells_what_iceberg_was_not_asked(spark, covered):
    table, _ = covered
    query = f"SELECT * FROM {table} WHERE x > 5000 AND id < 40"
    warning = "Iceberg is not asked about x > 5000.0, for which its bounds are wrong on NaN, -0.0 or UUIDs"
    assert warning in labels(spark.sql(query))[0]
    explained = metastore.explain(spark, query)
    assert {warning in row["sentence"] for row in explained if row["kept"]} == {True}


def test_aggregates_without_reading_count_them_too(spark, covered):
    table, truth = covered
    answered = ["x > 5000 AND id >= 60", "x > 5000 AND id BETWEEN 20 AND 59", "x <= 0", "x >= -20", "st.x > 1000"]
    query = " UNION ALL ".join(f"SELECT count(*), max(id), max(x), count(f) FROM {{0}} WHERE {c}" for c in answered)
    with conf(spark, spark__metastore__aggregates__enabled=True):
        frame = spark.sql(query.format(table))
        assert repr(rows(frame)) == repr(rows(spark.sql(query.format(truth))))
    assert "answered" in labels(frame)[0]


def test_deletes_and_appended_files(spark, covered):
    """Deleted rows stay away; a file without statistics is read."""
    _, truth = covered
    name, properties = "ice.db.skipping_deletes", "'format-version' = '2', 'write.delete.mode' = 'merge-on-read'"
    spark.sql(f"CREATE TABLE {name} USING iceberg TBLPROPERTIES ({properties}) AS SELECT * FROM {truth}")
    try:
        spark.sql(f"DELETE FROM {name} WHERE id = 7")
        metastore.analyze(spark, name, progress=False)
        spark.sql(f"INSERT INTO {name} SELECT 100 + id, x, f, st, clean, part FROM {truth} WHERE id = 61")
        assert ids(spark, name, "x > 5000") == [*range(60, 80), 161]
        assert rows(spark.sql(f"SELECT count(*) FROM {name} WHERE x > 5000"))[0][0] == 21
    finally:
        spark.sql(f"DROP TABLE {name}")
