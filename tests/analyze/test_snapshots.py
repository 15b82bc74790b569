"""Statistics and the history of a table, from SQL and from its location: ancestors, branches, expiry, new schemas."""

from __future__ import annotations

import time
from datetime import datetime, timezone

import pytest

import metastore
from metastore.errors import NoStatistics

pytestmark = pytest.mark.spark


@pytest.fixture
def filled(spark, table):
    spark.sql(f"CREATE TABLE {table} (id INT, name STRING) TBLPROPERTIES ('format-version' = '3')")
    append(spark, table, 0)
    return table


def append(spark, table, start, more=""):
    spark.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'n'{more} FROM range({start}, {start + 10})"
    )


def call(spark, procedure, table, arguments):
    spark.sql(f"CALL ice.system.{procedure}(table => '{table.removeprefix('ice.')}', {arguments})")


def analyze(spark, table, **more):
    return metastore.analyze(spark, table, progress=False, **more)


def head(spark, table, of="main"):
    return spark.sql(f"SELECT snapshot_id FROM {table}.refs WHERE name = '{of}'").first()[0]


def both(spark, warehouse, table, **arguments):
    """The rows by column, asserted to be the same from SQL and from the location."""
    by_sql = metastore.summary(spark, table, **arguments)
    location = f"{warehouse}/{table.removeprefix('ice.').replace('.', '/')}"
    by_location = metastore.open(location).summary(**arguments)
    assert list(by_sql) == list(by_location)
    return {row["column_name"]: row for row in by_sql}


def seen(row):
    return row["max"], row["count"], row["files"], row["files_total"], row["current"]


def test_each_snapshot_has_its_numbers(spark, warehouse, filled):
    analyze(spark, filled)
    first, between = head(spark, filled), datetime.now(timezone.utc)
    time.sleep(0.05)
    append(spark, filled, 10)
    assert seen(both(spark, warehouse, filled)["id"]) == ("9", 10, 1, 1, False)
    analyze(spark, filled)
    assert seen(both(spark, warehouse, filled)["id"]) == ("19", 20, 2, 2, True)
    for at in (first, str(first), between):
        assert seen(both(spark, warehouse, filled, at=at)["id"]) == ("9", 10, 1, 1, False)
    rows = metastore.snapshots(spark, filled)
    assert [(row["rows"], row["current"]) for row in rows] == [(10, False), (20, True)]


def test_rollback_shows_what_was_there(spark, warehouse, filled):
    analyze(spark, filled)
    first = head(spark, filled)
    append(spark, filled, 10)
    analyze(spark, filled)
    call(spark, "rollback_to_snapshot", filled, f"snapshot_id => {first}")
    assert seen(both(spark, warehouse, filled)["id"]) == ("9", 10, 1, 1, True)
    report = analyze(spark, filled)
    assert report.files_read == 0
    append(spark, filled, 100)
    assert seen(both(spark, warehouse, filled)["id"]) == ("9", 10, 1, 1, False)
    assert analyze(spark, filled).files_read == 1
    assert seen(both(spark, warehouse, filled)["id"]) == ("109", 20, 2, 2, True)


def test_a_sibling_is_no_ancestor(spark, warehouse, filled):
    first = head(spark, filled)
    append(spark, filled, 10)
    analyze(spark, filled)
    call(spark, "rollback_to_snapshot", filled, f"snapshot_id => {first}")
    with pytest.raises(NoStatistics):
        metastore.summary(spark, filled)
    location = f"{warehouse}/{filled.removeprefix('ice.').replace('.', '/')}"
    with pytest.raises(NoStatistics):
        metastore.open(location).summary()
    with pytest.raises(NoStatistics):
        metastore.open(location).summary(at=first)


def test_branches_and_tags(spark, warehouse, filled):
    analyze(spark, filled)
    spark.sql(f"ALTER TABLE {filled} CREATE TAG first")
    spark.sql(f"ALTER TABLE {filled} CREATE BRANCH audit")
    append(spark, filled, 10)
    analyze(spark, filled)
    append(spark, f"{filled}.branch_audit", 500)
    assert seen(both(spark, warehouse, filled)["id"]) == ("19", 20, 2, 2, True)
    for at in ("first", "audit"):
        assert seen(both(spark, warehouse, filled, at=at)["id"]) == ("9", 10, 1, 1, False)
    assert seen(both(spark, warehouse, filled, at="main")["id"]) == ("19", 20, 2, 2, True)


def test_ancestors_that_expired_still_answer(spark, warehouse, filled):
    analyze(spark, filled)
    append(spark, filled, 10)
    append(spark, filled, 20)
    call(spark, "expire_snapshots", filled, "older_than => TIMESTAMP'2100-01-01', retain_last => 1")
    assert spark.sql(f"SELECT * FROM {filled}.snapshots").count() == 1
    assert seen(both(spark, warehouse, filled)["id"]) == ("9", 10, 1, 1, False)
    assert analyze(spark, filled).files_read == 2
    assert seen(both(spark, warehouse, filled)["id"]) == ("29", 30, 3, 3, True)


def test_older_snapshots_leave_the_manifest(spark, filled, warehouse):
    spark.conf.set("spark.metastore.snapshots.keep", "2")
    try:
        ids = []
        for start in range(0, 40, 10):
            append(spark, filled, start)
            analyze(spark, filled)
            ids.append(str(head(spark, filled)))
    finally:
        spark.conf.unset("spark.metastore.snapshots.keep")
    assert [row["snapshot"] for row in metastore.snapshots(spark, filled)] == ids[-2:]
    with pytest.raises(NoStatistics):
        metastore.summary(spark, filled, at=ids[0])
    location = f"{warehouse}/{filled.removeprefix('ice.').replace('.', '/')}"
    with pytest.raises(NoStatistics):
        metastore.open(location).summary(at=ids[0])


def test_what_still_holds_after_schema_changes_stays(spark, warehouse, filled):
    spark.sql(f"ALTER TABLE {filled} ADD COLUMN gone INT")
    analyze(spark, filled)
    spark.sql(f"ALTER TABLE {filled} RENAME COLUMN name TO label")
    spark.sql(f"ALTER TABLE {filled} ALTER COLUMN id TYPE BIGINT")
    spark.sql(f"ALTER TABLE {filled} DROP COLUMN gone")
    spark.sql(f"ALTER TABLE {filled} ADD COLUMN late DOUBLE")
    rows = both(spark, warehouse, filled)
    assert list(rows) == ["id", "label", "late"]
    assert (rows["id"]["column_type"], rows["label"]["max"]) == ("bigint", "n")
    assert seen(rows["id"]) == ("9", 10, 1, 1, True)
    assert seen(rows["late"]) == (None, 10, 0, 1, True)
    append(spark, filled, 10, ", 0.5")
    append(spark, filled, 5, ", 1.5")
    assert seen(both(spark, warehouse, filled)["id"]) == ("9", 10, 1, 1, False)
    analyze(spark, filled, columns=["label"])
    rows = both(spark, warehouse, filled)
    assert seen(rows["label"]) == ("n", 30, 3, 3, True)
    assert seen(rows["id"]) == ("9", 30, 1, 3, True)
    assert rows["id"]["exact"] is False
    assert (rows["id"]["avg_len"], rows["id"]["approx_unique"]) == (8.0, 10)


def test_live_rows_and_sizes(spark, filled):
    append(spark, filled, 10)
    analyze(spark, filled)
    (before,) = metastore.snapshots(spark, filled)
    assert before["live_size_bytes"] == before["size_bytes"]
    spark.sql(f"ALTER TABLE {filled} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    spark.sql(f"DELETE FROM {filled} WHERE id < 5")
    report = analyze(spark, filled)
    assert (report.files_read, report.rows) == (0, 15)
    after = metastore.snapshots(spark, filled)[-1]
    assert (after["rows"], after["size_bytes"], after["current"]) == (15, before["size_bytes"], True)
    assert after["live_size_bytes"] == pytest.approx(before["size_bytes"] * 0.75, abs=2)
    assert metastore.summary(spark, filled).column("id")["exact"] is False


def test_compaction_of_the_table_keeps_the_numbers(spark, warehouse, filled):
    append(spark, filled, 10)
    analyze(spark, filled)
    before = both(spark, warehouse, filled)["id"]
    call(spark, "rewrite_data_files", filled, "options => map('rewrite-all', 'true')")
    assert analyze(spark, filled).files_read == 1
    after = both(spark, warehouse, filled)["id"]
    assert seen(after) == ("19", 20, 1, 1, True)
    for name in ("min", "max", "approx_unique", "avg", "std", "q50", "count", "null_count"):
        assert after[name] == before[name], name


def test_an_overwrite_leaves_only_what_is_there(spark, warehouse, filled):
    analyze(spark, filled)
    spark.sql(f"INSERT OVERWRITE {filled} SELECT 7, 'x'")
    assert analyze(spark, filled).files_read == 1
    assert seen(both(spark, warehouse, filled)["id"]) == ("7", 1, 1, 1, True)
    spark.sql(f"TRUNCATE TABLE {filled}")
    assert analyze(spark, filled).files_read == 0
    assert seen(both(spark, warehouse, filled)["id"]) == (None, 0, 0, 0, True)
