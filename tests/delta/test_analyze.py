"""ANALYZE of Delta tables, and what the functions say of them afterwards."""

from __future__ import annotations

import pytest

import metastore
from delta.conftest import ROW, append, create, location
from metastore import errors
from metastore.adapters import refusals
from metastore.key_lookup import key_sql as few_keys
from metastore.pipeline import compute
from metastore.table_level import rank_sort
from planner.plans import check, files_read

pytestmark = pytest.mark.spark


def analyze(spark, table, **more):
    return metastore.analyze(spark, table, progress=False, **more)


def summary(spark, table, **more):
    return {row["column_name"]: row for row in metastore.summary(spark, table, **more)}


@pytest.mark.slow
def test_deletion_vectors_leave_physical_bounds_and_live_counts(spark, filled):
    analyze(spark, filled)
    spark.sql(f"DELETE FROM {filled} WHERE id % 10 = 3 OR id = 399")
    report = analyze(spark, filled)
    assert (report.files_read, report.rows) == (0, 359)
    row = summary(spark, filled)["id"]
    assert (row["count"], row["max"], row["exact"], row["current"]) == (359, "399", False, True)
    assert sorted(file["deleted_rows"] for file in metastore.files(spark, filled)) == [10, 10, 10, 11]


@pytest.mark.slow
def test_older_versions_answer_for_themselves(spark, filled):
    first = analyze(spark, filled).snapshot
    append(spark, filled, 400, 500, 1)
    stale = summary(spark, filled)["id"]
    assert (stale["max"], stale["current"], stale["files"]) == ("399", False, 4)
    analyze(spark, filled)
    assert summary(spark, filled)["id"]["max"] == "499"
    assert summary(spark, filled, at=first)["id"]["max"] == "399"
    spark.sql(f"RESTORE TABLE {filled} TO VERSION AS OF {first}")
    report = analyze(spark, filled)
    assert (report.files_read, report.rows) == (0, 400)


@pytest.mark.slow
def test_partitions(spark, table):
    create(spark, table, "id BIGINT, p STRING, n INT, day DATE, t TIMESTAMP", "PARTITIONED BY (p, n, day, t)")
    values = "VALUES (1, 'a b/c%', 1, DATE '2024-02-29', TIMESTAMP '2024-02-29 01:02:03'), (2, NULL, NULL, NULL, NULL)"
    spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM ({values}) AS t(id, p, n, day, t)")
    with pytest.raises(errors.InvalidArgument, match="no data file with p = zz"):
        analyze(spark, table, partition={"p": "zz"})
    with pytest.raises(errors.InvalidArgument, match="id is not a partition column"):
        analyze(spark, table, partition={"id": 1})
    assert analyze(spark, table, partition={"n": 1}).files_read == 1
    assert analyze(spark, table).files == 2
    statistics = summary(spark, table)
    assert (statistics["p"]["min"], statistics["p"]["null_count"]) == ("a b/c%", 1)
    assert (statistics["n"]["max"], statistics["day"]["max"]) == ("1", "2024-02-29")
    for condition in ("p = 'a b/c%'", "n IS NULL", "day >= DATE '2024-01-01'", "t > TIMESTAMP '2024-01-01 00:00:00'"):
        assert spark.sql(f"SELECT id FROM {table} WHERE {condition} AND id < 9").count() == 1, condition


@pytest.mark.slow
def test_a_table_dropped_and_created_again_has_no_statistics(spark, filled):
    table_path = location(spark, filled)
    analyze(spark, filled)
    spark.sql(f"CREATE OR REPLACE TABLE {filled} (id BIGINT) USING delta")
    spark.sql(f"INSERT INTO {filled} VALUES (1)")
    assert location(spark, filled) == table_path
    assert analyze(spark, filled).files_read == 1
    assert list(summary(spark, filled)) == ["id"]


@pytest.mark.slow
def test_shallow_clones_have_statistics_of_their_own(spark, filled):
    clone = f"{filled}_clone"
    spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE {filled}")
    try:
        report = analyze(spark, clone)
        assert (report.files_read, report.rows) == (4, 400)
        assert spark.sql(f"SELECT * FROM {clone} WHERE id = 120").count() == 1
        assert {file["path"].split("/")[0] for file in metastore.files(spark, clone)} == {"file:"}
    finally:
        spark.sql(f"DROP TABLE {clone}")


@pytest.mark.slow
def test_files_that_only_spark_reaches(spark, table, monkeypatch):
    columns = "p INT, many ARRAY<INT>, id BIGINT, s STRING, x DOUBLE, st STRUCT<a: INT, b: STRING>"
    create(spark, table, columns, "PARTITIONED BY (p)")
    row = f"CAST(id DIV 100 AS INT) AS p, array(1) AS many, {ROW}"
    named = "p, many, id, s, x, st"
    for start in (0, 100):
        spark.sql(
            f"INSERT INTO {table} BY NAME SELECT {named} FROM (SELECT {row} FROM range({start}, {start + 100}, 1, 1))"
        )
    spark.sql(f"DELETE FROM {table} WHERE id % 10 = 3")
    analyze(spark, table, ranks=["id"])
    near, exact = summary(spark, table), metastore.open(location(spark, table)).quantiles("id", [0.5])
    spark.sql(f"CREATE OR REPLACE TABLE {table}_far SHALLOW CLONE {table}")
    for module in (compute, rank_sort):
        monkeypatch.setattr(module, "find_spark_only_reason", lambda *_, **__: refusals.REMOTE)
    try:
        report = analyze(spark, f"{table}_far", ranks=["id"])
        assert (report.files_read, [refusal.subject for refusal in report.refused]) == (2, ["many"])
        far = summary(spark, f"{table}_far")
        compared = ("min", "max", "approx_unique", "avg", "count", "null_count", "max_len")
        assert {name: [row[key] for key in compared] for name, row in far.items() if name != "many"} == {
            name: [row[key] for key in compared] for name, row in near.items() if name != "many"
        }
        assert far["many"]["null_count"] is None
        assert list(metastore.open(location(spark, f"{table}_far")).quantiles("id", [0.5])) == list(exact)
    finally:
        spark.sql(f"DROP TABLE {table}_far")


@pytest.mark.slow
def test_a_file_that_a_query_names_is_read_alone(spark, filled):
    analyze(spark, filled)
    named = [row.path for row in spark.sql(f"SELECT DISTINCT _metadata.file_path AS path FROM {filled}").collect()]
    for paths in (named[:1], named[1:3], ["nothing"]):
        texts = ", ".join(f"'{path}'" for path in paths)
        frame = check(spark, f"SELECT id FROM {filled} WHERE _metadata.file_path IN ({texts})")
        assert files_read(frame) in ([len(paths)], [0], [])
    frame = check(spark, f"SELECT id FROM {filled} WHERE _metadata.file_path = '{named[0]}' OR id = 5")
    assert frame.count() in (100, 101)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["planner", "search"])
def test_keys_are_located(spark, filled, by, monkeypatch):
    analyze(spark, filled)
    spark.sql(f"DELETE FROM {filled} WHERE id = 120")
    analyze(spark, filled)
    keys = spark.createDataFrame([(7,), (120,), (305,), (999,)], "id bigint")
    if by == "search":
        monkeypatch.setattr(few_keys, "MOST_KEYS", 0)
    frame = metastore.locate(spark, filled, ["id"], keys)
    rows_by_id = {row.id: row for row in frame.collect()}
    assert files_read(frame) == [3]
    assert sorted(rows_by_id) == [7, 305]
    assert [rows_by_id[7].position, rows_by_id[305].position] == [7, 5]
    assert {row.path for row in rows_by_id.values()} <= {
        f"{location(spark, filled)}/{f['path']}" for f in metastore.files(spark, filled)
    }


@pytest.mark.slow
@pytest.mark.parametrize("by", ["planner", "search"])
@pytest.mark.parametrize("mapping", ["none", "name"])
def test_keys_are_located_without_positions(spark, table, by, mapping, monkeypatch):
    properties = {"delta.enableDeletionVectors": "false", "delta.columnMapping.mode": mapping}
    create(spark, table, **properties)
    append(spark, table, 0, 400, 4)
    analyze(spark, table)
    if by == "search":
        monkeypatch.setattr(few_keys, "MOST_KEYS", 0)
    frame = metastore.locate(spark, table, ["id"], spark.createDataFrame([(7,), (305,), (999,)], "id bigint"))
    rows_by_id = {row.id: row for row in frame.collect()}
    assert files_read(frame) == [2]
    assert sorted(rows_by_id) == [7, 305]
    assert {row.position for row in rows_by_id.values()} == {None}
    assert len({row.path for row in rows_by_id.values()}) == 2


@pytest.mark.slow
def test_generated_columns(spark, table):
    builder = spark._jvm.io.delta.tables.DeltaTable  # SQL of Spark 3.5 has them, but not for Delta
    day = builder.columnBuilder(spark._jsparkSession, "day").dataType("DATE").generatedAlwaysAs("CAST(t AS DATE)")
    made = builder.create(spark._jsparkSession).tableName(table).addColumn("id", "BIGINT").addColumn("t", "TIMESTAMP")
    by = spark._sc._gateway.new_array(spark._jvm.java.lang.String, 1)
    by[0] = "day"
    made.addColumn(day.build()).partitionedBy(by).execute()
    row = "id, TIMESTAMP '2024-01-01' + make_dt_interval(CAST(id DIV 100 AS INT), CAST(id % 24 AS INT)) AS t"
    append(spark, table, 0, 400, files=4, row=row)
    assert analyze(spark, table).files == 4
    assert summary(spark, table)["day"]["max"] == "2024-01-04"
    for where in ("t >= TIMESTAMP '2024-01-04 12:00:00'", "id = 150", "day = DATE '2024-01-02' AND id < 120"):
        check(spark, f"SELECT * FROM {table} WHERE {where}", [1])


@pytest.mark.slow
def test_liquid_clustering_and_restore(spark, table):
    create(spark, table, "id BIGINT, s STRING", "CLUSTER BY (id)", **{"delta.dataSkippingNumIndexedCols": "1"})
    append(spark, table, 0, 400, files=4, row="(id * 37) % 400 AS id, CAST(id AS STRING) AS s")
    first = analyze(spark, table)
    check(spark, f"SELECT * FROM {table} WHERE id = 150 OR s = '151'")
    spark.sql(f"OPTIMIZE {table}")
    check(spark, f"SELECT * FROM {table} WHERE id = 150", [1])
    clustered = analyze(spark, table)
    assert (clustered.files_read, clustered.rows) == (clustered.files, 400)
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {first.snapshot}")
    assert analyze(spark, table).files_read == 0
    check(spark, f"SELECT * FROM {table} WHERE id = 150 OR s = '151'")
