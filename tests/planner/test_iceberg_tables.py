"""Iceberg tables with a history: snapshots, branches, deletes, schemas that changed."""

from __future__ import annotations

import pytest

from planner import written
from planner.conftest import append
from planner.plans import check, conf, files_read, labels, physical, rows

pytestmark = pytest.mark.spark


def snapshots(spark, table: str) -> list[int]:
    snapshots = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()
    return [row[0] for row in snapshots]


def test_files_that_statistics_do_not_know_are_read(spark, analyzed):
    append(spark, analyzed, 0, 100, 1)
    check(spark, f"SELECT * FROM {analyzed} WHERE id = 5", [2])
    check(spark, f"SELECT * FROM {analyzed} WHERE id = 350", [2])


def test_time_travel_branches_and_tags(spark, analyzed):
    first, *_, last = snapshots(spark, analyzed)
    spark.sql(f"ALTER TABLE {analyzed} CREATE BRANCH audit")
    spark.sql(f"ALTER TABLE {analyzed} CREATE TAG v1 AS OF VERSION {first}")
    spark.sql(f"DELETE FROM {analyzed} WHERE id < 100")
    check(spark, f"SELECT * FROM {analyzed} WHERE id = 5", [0])
    for version in (f"{last}", "'audit'"):
        check(spark, f"SELECT * FROM {analyzed} VERSION AS OF {version} WHERE id = 5", [1])
    check(spark, f"SELECT * FROM {analyzed} VERSION AS OF 'v1' WHERE id = 350", [0])
    check(spark, f"SELECT * FROM {analyzed}.branch_audit WHERE id = 5", [1])
    check(spark, f"SELECT * FROM {analyzed}.tag_v1 WHERE id = 5", [1])
    check(spark, f"SELECT * FROM {analyzed}.snapshot_id_{last} WHERE id = 5", [1])
    spark.conf.set("spark.wap.branch", "audit")
    try:
        check(spark, f"SELECT * FROM {analyzed} WHERE id >= 390")
    finally:
        spark.conf.unset("spark.wap.branch")


def test_scans_that_are_equal_to_iceberg_are_pruned_each_by_its_own_filter(spark, analyzed):
    first, *_ = snapshots(spark, analyzed)
    scan = f"SELECT id, v FROM {analyzed} WHERE id + 1 ="
    check(spark, f"{scan} 6 UNION ALL {scan} 351 UNION ALL {scan} 6", [1, 1, 1])
    count = "SELECT count(*) FROM {} WHERE id + 1 > 0"
    check(
        spark, f"{count.format(analyzed)} UNION ALL {count.format(f'{analyzed} VERSION AS OF {first}')}", [4, 1]
    )  # fmt: skip


@pytest.mark.parametrize("version", ["2", "3"])
def test_deleted_rows_stay_deleted(spark, new_table, version):
    table = new_table(
        "id bigint, v int, s string, x double, d date, n decimal(12,2), st struct<a: int, b: string>",
        f"'format-version' = '{version}'", "'write.delete.mode' = 'merge-on-read'",
    )  # fmt: skip
    append(spark, table, 0, 400, 4)
    written.describe_iceberg_table(spark, table).write("1")
    spark.sql(f"DELETE FROM {table} WHERE id IN (5, 150)")
    check(spark, f"SELECT * FROM {table} WHERE id = 5", [1])
    check(spark, f"SELECT count(*), sum(id) FROM {table} WHERE id < 150", [2])
    check(spark, f"SELECT id FROM {table} WHERE id BETWEEN 149 AND 151", [1])
    plan = spark.sql(f"SELECT * FROM {table} WHERE id < 100")._jdf.queryExecution().optimizedPlan()
    assert int(plan.collectLeaves().head().stats().rowCount().get()) == 99


def test_a_column_that_was_added_again_is_another_column(spark, new_table):
    table = new_table("id bigint, v int")
    for low in (0, 100):
        spark.range(low, low + 100).selectExpr("id", "cast(id as int) v").coalesce(1).writeTo(table).append()
    written.describe_iceberg_table(spark, table).write("1")
    check(spark, f"SELECT * FROM {table} WHERE v = 5", [1])
    spark.sql(f"ALTER TABLE {table} DROP COLUMN v")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN v int")
    df = check(spark, f"SELECT * FROM {table} WHERE v = 5")
    assert "->" not in physical(df) or labels(df) == ["2 -> 2 files"]
    assert len(rows(spark.sql(f"SELECT * FROM {table} WHERE v IS NULL"))) == 200
    spark.sql(f"INSERT INTO {table} SELECT 5L, 5")
    check(spark, f"SELECT * FROM {table} WHERE v = 5")
    last = snapshots(spark, table)[1]
    check(spark, f"SELECT * FROM {table} VERSION AS OF {last} WHERE v = 5", [1])


def test_renamed_swapped_and_promoted_columns(spark, new_table):
    table = new_table("id bigint, a int, b int")
    for low in (0, 100):
        spark.range(low, low + 100).selectExpr("id", "cast(id as int) a", "cast(-id as int) b").coalesce(1).writeTo(
            table
        ).append()
    written.describe_iceberg_table(spark, table).write("1")
    for change in ("RENAME COLUMN a TO c", "RENAME COLUMN b TO a", "RENAME COLUMN c TO b"):
        spark.sql(f"ALTER TABLE {table} {change}")
    check(spark, f"SELECT * FROM {table} WHERE a = -5", [1])
    check(spark, f"SELECT * FROM {table} WHERE b = 105", [1])
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN b TYPE bigint")
    check(spark, f"SELECT * FROM {table} WHERE b = 105", [1])
    check(spark, f"SELECT * FROM {table} WHERE b > 3000000000", [0])


def test_partitioned_tables_and_evolved_partitions(spark, new_table):
    table = new_table("id bigint, p int, v int", partitioned="PARTITIONED BY (p)")
    spark.range(200).selectExpr("id", "cast(id div 100 as int) p", "cast(id as int) v").repartition(1).writeTo(
        table
    ).append()
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(2, id)")
    spark.range(200, 300).selectExpr("id", "2 p", "cast(id as int) v").repartition(1).writeTo(table).append()
    written.describe_iceberg_table(spark, table).write("1")
    check(spark, f"SELECT * FROM {table} WHERE v = 150", [1])
    check(spark, f"SELECT * FROM {table} WHERE p = 2 AND v = 150", [0])


def test_dynamic_partition_pruning_acts_after_us(spark, new_table):
    facts = new_table("id bigint, p int, v int", partitioned="PARTITIONED BY (p)")
    spark.range(400).selectExpr("id", "cast(id % 4 as int) p", "cast(id as int) v").repartition(1).writeTo(
        facts
    ).append()
    spark.range(400, 800).selectExpr("id", "cast(id % 4 as int) p", "cast(id as int) v").repartition(1).writeTo(
        facts
    ).append()
    written.describe_iceberg_table(spark, facts).write("1")
    dim = new_table("p int, name string")
    spark.sql(f"INSERT INTO {dim} VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    query = f"SELECT f.id FROM {facts} f JOIN {dim} d ON f.p = d.p WHERE d.name = 'one' AND f.v >= 400"
    for enabled, label in (("true", "8 -> 1 files, join"), ("false", "8 -> 4 files")):
        with conf(spark, spark__metastore__pruning__join__enabled=enabled):
            df = check(spark, query)
            assert label in labels(df)
            assert files_read(df)[0] == 1


def test_copies_of_a_scan_plan_their_partitions_once(spark, analyzed):
    def broadcasts() -> int:
        """How many there were when the query was planned: Iceberg broadcasts its table with the partitions."""
        first = spark.sparkContext._jsc.broadcast("").id()
        df = spark.sql(f"SELECT a.v FROM {analyzed} a JOIN {analyzed} b ON a.id = b.id WHERE a.id < 150")
        df._jdf.queryExecution().executedPlan()
        return spark.sparkContext._jsc.broadcast("").id() - first - 1

    ours = broadcasts()
    with conf(spark, spark__metastore__enabled=False):
        assert 0 < ours < broadcasts()


def test_joins_without_a_shuffle_stay_so(spark, new_table):
    tables = [new_table("id bigint, v int", partitioned="PARTITIONED BY (bucket(4, id))") for _ in range(2)]
    for table in tables:
        for low in (0, 1000):
            spark.range(low, low + 100).selectExpr("id", "cast(id as int) v").repartition(1).sortWithinPartitions(
                "id"
            ).writeTo(table).append()
        written.describe_iceberg_table(spark, table).write("1")
    settings = {
        "spark.sql.iceberg.planning.preserve-data-grouping": "true",
        "spark.sql.sources.v2.bucketing.enabled": "true",
        "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        query = f"SELECT a.id, b.v FROM {tables[0]} a JOIN {tables[1]} b ON a.id = b.id WHERE a.v < 500"
        df = check(spark, query)
        assert "Exchange" not in df._jdf.queryExecution().executedPlan().toString()
        assert "8 -> 4 files" in labels(df)
    finally:
        for key in settings:
            spark.conf.unset(key)


def test_statistics_of_a_table_that_was_created_again_are_not_used(spark, analyzed):
    old = written.describe_iceberg_table(spark, analyzed)
    spark.sql(f"DROP TABLE {analyzed} PURGE")
    spark.sql(f"CREATE TABLE {analyzed} (id bigint, v int) USING iceberg")
    spark.sql(f"INSERT INTO {analyzed} VALUES (5, 5)")
    old.write()
    df = check(spark, f"SELECT * FROM {analyzed} WHERE id = 5000 OR v = 5", [1])
    assert "dropped and created again" in physical(df)


def test_a_file_with_other_rows_than_the_table_says_is_read(spark, four_files):
    truth = written.describe_iceberg_table(spark, four_files)
    truth.files[2].rows -= 1
    truth.write("1")
    check(spark, f"SELECT * FROM {four_files} WHERE id = 5", [2])


def test_metadata_tables_are_left_alone(spark, analyzed):
    for view in ("files", "snapshots", "history", "partitions"):
        assert labels(spark.sql(f"SELECT * FROM {analyzed}.{view}")) == ["metadata tables are left alone"]
    assert spark.sql(f"SELECT count(*) FROM {analyzed}.files WHERE record_count = 100").first()[0] == 4


def test_incremental_reads_are_left_alone(spark, analyzed):
    first, second, *_ = snapshots(spark, analyzed)
    df = (
        spark.read.format("iceberg")
        .option("start-snapshot-id", first).option("end-snapshot-id", second)
        .load(analyzed).where("id = 150")
    )  # fmt: skip
    assert len(df.collect()) == 1
    assert labels(df) == ["incremental and change reads are left alone"]
