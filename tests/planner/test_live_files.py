"""EXPLAIN, `metastore.explain` and a scan's metrics: all live data files of the snapshot, whoever leaves them out."""

from __future__ import annotations

import pytest

from planner import written
from planner.conftest import append
from planner.plans import files_read, labels, metrics, rows, scans

pytestmark = pytest.mark.spark
PARTITIONS = "SELECT id, CAST(id % 10 AS INT) AS v, 'p' || id DIV 100 AS p FROM range(800)"


def explained(spark, query: str) -> list[tuple[bool, str]]:
    """The decision of `metastore.explain` on each file, in order."""
    explained_rows = spark.sql("SELECT * FROM metastore.explain(:query)", args={"query": query}).collect()
    assert len({row.path for row in explained_rows}) == len(explained_rows)
    return sorted((row.kept, row.reason) for row in explained_rows)


@pytest.fixture
def partitioned(spark, new_table):
    """800 rows in eight partitions of one file each, of which Iceberg knows the partition alone."""
    name = new_table("id bigint, v int, p string", partitioned="PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} {PARTITIONS} DISTRIBUTE BY p")
    written.describe_iceberg_table(spark, name).write("1")
    return name


@pytest.mark.parametrize(
    ("where", "label", "skipped"),
    [
        ("p = 'nowhere'", "8 -> 0 files, 8 by Iceberg", {"SKIPPED_BY_FORMAT": 8}),
        ("p = 'p3' AND id = 310", "8 -> 1 files, 7 by Iceberg", {"SKIPPED_BY_FORMAT": 7}),
        ("p IN ('p3', 'p4') AND id = 310", "8 -> 1 files, 6 by Iceberg", {"SKIPPED_BY_FORMAT": 6, "SKIPPED": 1}),
        ("id = 310", "8 -> 1 files", {"SKIPPED": 7}),
    ],
)
def test_files_that_iceberg_skips_are_counted_and_listed(spark, partitioned, where, label, skipped):
    query = f"SELECT * FROM {partitioned} WHERE {where}"
    df = spark.sql(query)
    assert labels(df) == [label]
    has_rows = len(df.collect()) > 0
    decisions = explained(spark, query)
    assert len(decisions) == 8
    assert [reason for is_kept, reason in decisions if is_kept] == ["KEPT_MAY_MATCH"] * has_rows
    assert {reason: decisions.count((False, reason)) for is_kept, reason in decisions if not is_kept} == skipped
    if scans(df):
        read = metrics(scans(df)[0])
        files_in_history = (read["metastoreFilesBefore"], read["metastoreFilesAfter"], read["metastoreFilesByFormat"])
        assert files_in_history == (8, has_rows, skipped.get("SKIPPED_BY_FORMAT", 0))


def test_the_files_are_those_of_the_snapshot_that_is_read(spark, partitioned):
    first = spark.sql(f"SELECT snapshot_id FROM {partitioned}.snapshots").first()[0]
    spark.sql(f"INSERT INTO {partitioned} VALUES (900, 0, 'p9')")
    spark.sql(f"DELETE FROM {partitioned} WHERE id = 0")
    now = f"SELECT * FROM {partitioned} WHERE p = 'nowhere'"
    then = f"SELECT * FROM {partitioned} VERSION AS OF {first} WHERE p = 'nowhere'"
    assert labels(spark.sql(now)) == ["9 -> 0 files, 9 by Iceberg"]
    assert labels(spark.sql(then)) == ["8 -> 0 files, 8 by Iceberg"]
    assert (len(explained(spark, now)), len(explained(spark, then))) == (9, 8)


def test_files_that_the_query_names_are_not_said_to_be_skipped_by_iceberg(spark, partitioned):
    path = spark.sql(f"SELECT file_path FROM {partitioned}.files ORDER BY 1").first()[0]
    query = f"SELECT id, _file FROM {partitioned} WHERE _file = '{path}' AND id >= 0"
    assert labels(spark.sql(query)) == ["8 -> 1 files, 7 by the query"]
    assert len(explained(spark, query)) == 8


@pytest.mark.parametrize("shared", ["a.id < 50 AND b.id < 50", "a.v = 5 AND b.v = 5 AND a.id < 250 AND b.id < 250"])
def test_icebergs_metrics_say_what_each_scan_reads(spark, four_files, analyzed, shared):
    df = spark.sql(f"SELECT a.id, b.s FROM {analyzed} a JOIN {analyzed} b ON a.id = b.id WHERE {shared}")
    rows(df)
    read = [metrics(scan) for scan in scans(df)]
    files = files_read(df)
    assert files in ([1, 1], [3, 3], [1], [3])
    assert [metric["resultDataFiles"] for metric in read] == files
    assert [metric["skippedDataFiles"] for metric in read] == [4 - number for number in files]
    size = spark.sql(f"SELECT max(file_size_in_bytes), sum(file_size_in_bytes) FROM {analyzed}.files").first()
    for metric, number in zip(read, files, strict=True):
        assert 0 < metric["totalDataFileSize"] <= size[0] * number
    all_rows = spark.sql(f"SELECT * FROM {analyzed}")
    all_rows.collect()
    metric = metrics(scans(all_rows)[0])
    assert (metric["resultDataFiles"], metric["totalDataFileSize"]) == (4, size[1])


def test_deleted_rows_change_no_number_of_files(spark, new_table):
    name = new_table(
        "id bigint, v int, s string, x double, d date, n decimal(12,2), st struct<a: int, b: string>",
        "'write.delete.mode' = 'merge-on-read'",
        "'format-version' = '2'",
    )
    append(spark, name, 0, 400, 4)
    spark.sql(f"DELETE FROM {name} WHERE id % 100 = 7")
    written.describe_iceberg_table(spark, name).write("1")
    df = spark.sql(f"SELECT * FROM {name} WHERE id < 150")
    assert labels(df) == ["4 -> 2 files"]
    assert len(df.collect()) == 148
    read = metrics(scans(df)[0])
    assert (read["resultDataFiles"], read["numSplits"]) == (2, 2)
    assert 0 < read["resultDeleteFiles"] <= 4


def test_files_that_delta_skips(spark):
    spark.sql(f"CREATE TABLE live_delta USING delta PARTITIONED BY (p) AS {PARTITIONS} DISTRIBUTE BY p")
    try:
        spark.sql("ANALYZE TABLE live_delta COMPUTE STATISTICS FOR ALL COLUMNS")
        query = "SELECT * FROM live_delta WHERE p IN ('p3', 'p4') AND v >= 0 AND id = 310"
        df = spark.sql(query)
        assert labels(df) in (["8 -> 1 files, 6 by Delta"], ["8 -> 1 files, 7 by Delta"])
        assert len(df.collect()) == 1
        decisions = explained(spark, query)
        assert len(decisions) == 8
        assert sum(kept for kept, _ in decisions) == 1
        assert_partition_alone(spark, "live_delta", "Delta")
    finally:
        spark.sql("DROP TABLE live_delta")


def test_partitions_that_spark_does_not_list(spark, tmp_path):
    folder = f"{tmp_path}/live"
    spark.sql(PARTITIONS).repartition("p").write.partitionBy("p").parquet(folder)
    written.describe_parquet_folder(tmp_path / "live").write("1")
    query = f"SELECT * FROM parquet.`{folder}` WHERE p IN ('p3', 'p4') AND id = 310"
    df = spark.sql(query)
    assert labels(df) == ["8 -> 1 files, 6 by Spark"]
    assert len(df.collect()) == 1
    decisions = explained(spark, query)
    assert [decisions.count((False, reason)) for reason in ("SKIPPED_BY_FORMAT", "SKIPPED")] == [6, 1]
    assert_partition_alone(spark, f"parquet.`{folder}`", "Spark")


def assert_partition_alone(spark, relation, by):
    """A filter of the partition is the format's: it is said how many files are left all the same."""
    query = f"SELECT * FROM {relation} WHERE p = 'p3'"
    assert labels(spark.sql(query)) == [f"8 -> 1 files, 7 by {by}"]
    decisions = explained(spark, query)
    assert (decisions.count((False, "SKIPPED_BY_FORMAT")), decisions.count((True, "KEPT_MAY_MATCH"))) == (7, 1)
    assert labels(spark.sql(f"SELECT * FROM {relation}")) == ["the scan has no filter"]
