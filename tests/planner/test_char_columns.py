"""Tables with CHAR columns, which Spark pads above the scan: analyzed and pruned as others, never by a CHAR column."""

from __future__ import annotations

from collections import Counter

import pytest

import metastore
from metastore.key_lookup import key_rows
from parquet.conftest import settle
from planner.plans import check
from pruning.scala import module

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NAME = "char_columns"
COLUMNS = "id BIGINT, c CHAR(5), v VARCHAR(9), st STRUCT<k: CHAR(3), n: INT>"
ROW = "id, concat('c', id % 10) AS c, concat('v', lpad(id, 3, '0')) AS v, named_struct('k', 'x', 'n', 1) AS st"
ON_CHAR = ["c = 'c1'", "c = 'c1   '", "c > 'c5'", "c <> 'c1'", "c IN ('c1', 'c2 ')", "c LIKE 'c1%'", "c IS NULL"]


@pytest.fixture(params=["delta", "parquet"])
def table(request, spark, tmp_path):
    """Four data files of ten rows each, sorted by `id` and `v`."""
    spark.sql(f"CREATE TABLE {NAME} ({COLUMNS}) USING {request.param} LOCATION '{tmp_path / 'table'}'")
    for start in range(0, 40, 10):
        spark.sql(f"INSERT INTO {NAME} SELECT {ROW} FROM range({start}, {start + 10}, 1, 1)")
    settle(tmp_path)
    yield NAME
    spark.sql(f"DROP TABLE {NAME}")


@pytest.mark.parametrize("padding", ["true", pytest.param("false", marks=pytest.mark.campaign)])
def test_they_are_analyzed_and_pruned(spark, table, padding):
    spark.conf.set("spark.sql.readSideCharPadding", padding)
    try:
        metastore.analyze(spark, table, progress=False)
        summary = {row["column_name"]: row for row in metastore.summary(spark, table)}
        assert (summary["c"]["column_type"], summary["c"]["count"], summary["id"]["max"]) == ("string", 40, "39")
        assert len(metastore.files(spark, table)) == 4
        check(spark, f"SELECT * FROM {table} WHERE id = 5", [1])
        check(spark, f"SELECT c FROM {table} WHERE v = 'v025'", [1])
        for condition in ON_CHAR:
            is_padded = padding == "true" and "NULL" not in condition
            check(spark, f"SELECT * FROM {table} WHERE {condition}", [4] if is_padded else None)
            check(spark, f"SELECT * FROM {table} WHERE {condition} AND id >= 20")
        check(spark, f"SELECT * FROM {table} WHERE st.k = 'x' AND id = 5")
    finally:
        spark.conf.unset("spark.sql.readSideCharPadding")


def test_analyze_in_sql(spark, table):
    path = spark.sql(f"DESCRIBE FORMATTED {table}").where("col_name = 'Location'").first().data_type
    provider = spark.sql(f"DESCRIBE FORMATTED {table}").where("col_name = 'Provider'").first().data_type
    name = table if provider == "delta" else f"{provider}.`{path}`"
    assert spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS").first().rows == 40


@pytest.fixture(params=["delta", pytest.param("parquet", marks=pytest.mark.campaign)])
def mixed(request, spark, tmp_path):
    """Data files with values that are padded, and one whose writer knew nothing of CHAR."""
    folder = tmp_path / "table"
    spark.sql(f"CREATE TABLE {NAME} ({COLUMNS}) USING {request.param} LOCATION '{folder}'")
    for start in (0, 20):
        spark.sql(f"INSERT INTO {NAME} SELECT {ROW} FROM range({start}, {start + 10}, 1, 1)")
    spark.conf.set("spark.sql.legacy.charVarcharAsString", "true")
    bare = "struct<k: string, n: int>"
    rows = spark.range(40, 50, 1, 1).selectExpr("id", "concat('c', id % 10) c", "'v' v", f"CAST(('x', 1) AS {bare}) st")
    if request.param == "delta":
        spark.conf.unset("spark.sql.legacy.charVarcharAsString")
    rows.write.format(request.param).mode("append").save(str(folder))
    spark.conf.unset("spark.sql.legacy.charVarcharAsString")
    spark.sql(f"REFRESH TABLE {NAME}")
    settle(tmp_path)
    metastore.analyze(spark, NAME, progress=False)
    yield NAME
    spark.sql(f"DROP TABLE {NAME}")


def _of_files(table, text):
    return f"SELECT substring_index(_metadata.file_path, '/', -1) AS file FROM {table} WHERE c = '{text}'"


CHARS = ["c1", "c1 ", "c1   ", "c1       ", "c", "", "c1x", " c1"]


@pytest.mark.parametrize("padding", ["true", pytest.param("false", marks=pytest.mark.campaign)])
def test_values_are_found_whatever_blanks_are_behind_them(spark, mixed, padding, monkeypatch):
    monkeypatch.setattr(key_rows, "_NEARLY_ALL", 2)
    spark.conf.set("spark.sql.readSideCharPadding", padding)
    try:
        for text in CHARS:
            truth = Counter(row.file for row in spark.sql(_of_files(mixed, text)).collect())
            located = spark.sql(f"SELECT * FROM metastore.locate('{mixed}', 'c', '{text}')").collect()
            assert {row.path: row.frequency for row in located} == truth, text
        sql = spark.sql(f"SELECT sum(frequency) AS n FROM metastore.locate('{mixed}', 'st.k', 'x ')")
        assert sql.first().n == 30
    finally:
        spark.conf.unset("spark.sql.readSideCharPadding")


@pytest.mark.slow
@pytest.mark.parametrize("padding", ["true", "false"])
@pytest.mark.parametrize("mixed", ["parquet"], indirect=True)
def test_keys_are_found_whatever_blanks_are_behind_them(spark, mixed, padding, monkeypatch):
    monkeypatch.setattr(key_rows, "_NEARLY_ALL", 2)
    spark.conf.set("spark.sql.readSideCharPadding", padding)
    try:
        for text in CHARS:
            keys = spark.createDataFrame([(text, "x ", 1)], "c string, `st.k` string, `st.n` int")
            truth = Counter(row.file for row in spark.sql(_of_files(mixed, text)).collect())
            for columns in (["c"], ["c", "st.n"], ["c", "st.k"]):
                rows = metastore.locate(spark, mixed, columns, keys).collect()
                assert Counter(row.path.rpartition("/")[2] for row in rows) == truth, (text, columns)
        assert metastore.locate(spark, mixed, "st.k", keys).count() == 30
    finally:
        spark.conf.unset("spark.sql.readSideCharPadding")


def test_iceberg_has_varchar_as_strings(spark):
    table = "ice.db.char_columns"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, v VARCHAR(9)) USING iceberg")
    try:
        for start in (0, 10):
            spark.sql(
                f"INSERT INTO {table} SELECT id, concat('v', lpad(id, 3, '0')) FROM range({start}, {start + 10}, 1, 1)"
            )
        assert metastore.analyze(spark, table, progress=False).rows == 20
        check(spark, f"SELECT * FROM {table} WHERE v = 'v013'", [1])
    finally:
        spark.sql(f"DROP TABLE {table}")


@pytest.mark.parametrize(
    ("columns", "all_columns"),
    [
        ("*", True),
        ("id, c, v, st", True),
        ("id, rpad(c, 5, ' ') AS c, v, st", False),
        ("id, substring(c, 1, 1) AS c, v, st", False),
        ("id, 'c1   ' AS c, v, st", False),
        ("id, v AS c, v, st", False),
        ("id, c, v", False),
        ("id, c, v, named_struct('k', 'x  ', 'n', st.n) AS st", False),
    ],
)
def test_padding_alone_is_no_mask(spark, table, columns, all_columns):
    relation = spark.table(table)._jdf.queryExecution().analyzed()
    read = module(spark, "org.metastore.spark.tables.FullProjection")
    while relation.nodeName() == "SubqueryAlias":
        relation = relation.children().head()
    assert relation.nodeName() == "Project", "Spark pads"
    assert read.isFull(relation.projectList(), relation.children().head())
    selected = spark.sql(f"SELECT {columns} FROM {table}")._jdf.queryExecution().analyzed()
    assert read.isFull(selected.projectList(), selected.children().head()) == all_columns
