"""Statistics and the history of a table, from SQL and from its location: ancestors, branches, expiry, new schemas."""

from __future__ import annotations

import time
from datetime import datetime, timezone

import pytest

import metastore
from metastore.errors import InvalidArgument, NoStatistics, UnsupportedTable
from pipeline.checks import both

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


def visible_rows(row):
    return row["max"], row["count"], row["files"], row["files_total"], row["current"]


def test_each_snapshot_has_its_numbers(spark, warehouse, filled):
    analyze(spark, filled)
    first, between = head(spark, filled), datetime.now(timezone.utc)
    time.sleep(0.05)
    append(spark, filled, 10)
    assert visible_rows(both(spark, warehouse, filled)["id"]) == ("9", 10, 1, 2, False)
    analyze(spark, filled)
    assert visible_rows(both(spark, warehouse, filled)["id"]) == ("19", 20, 2, 2, True)
    for at in (first, str(first), between):
        assert visible_rows(both(spark, warehouse, filled, at=at)["id"]) == ("9", 10, 1, 1, False)
    rows = metastore.snapshots(spark, filled)
    assert [(row["rows"], row["current"]) for row in rows] == [(10, False), (20, True)]


def test_rollback_shows_what_was_there(spark, warehouse, filled):
    analyze(spark, filled)
    first = head(spark, filled)
    append(spark, filled, 10)
    analyze(spark, filled)
    call(spark, "rollback_to_snapshot", filled, f"snapshot_id => {first}")
    assert visible_rows(both(spark, warehouse, filled)["id"]) == ("9", 10, 1, 1, True)
    report = analyze(spark, filled)
    assert report.files_read == 0
    append(spark, filled, 100)
    assert visible_rows(both(spark, warehouse, filled)["id"]) == ("9", 10, 1, 2, False)
    assert analyze(spark, filled).files_read == 1
    assert visible_rows(both(spark, warehouse, filled)["id"]) == ("109", 20, 2, 2, True)


def test_files_total_is_that_of_the_snapshot_asked_for(spark, warehouse, filled):
    append(spark, filled, 10)
    analyze(spark, filled)
    spark.sql(f"DELETE FROM {filled} WHERE id < 10")  # a whole file
    assert visible_rows(both(spark, warehouse, filled)["id"]) == ("19", 20, 1, 1, False)
    append(spark, filled, 30)
    assert visible_rows(both(spark, warehouse, filled)["id"]) == ("19", 20, 1, 2, False)
    assert {row["exact"] for row in both(spark, warehouse, filled).values()} == {False}
    spark.sql(f"DELETE FROM {filled} WHERE id >= 30")  # by the numbers alone it may be one of those analyzed
    by_location = metastore.open(f"{warehouse}/{filled.removeprefix('ice.').replace('.', '/')}").summary()
    assert visible_rows(by_location[0]) == ("19", 20, None, 1, False)
    assert visible_rows(metastore.summary(spark, filled)[0]) == ("19", 20, 1, 1, False)


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
    assert visible_rows(both(spark, warehouse, filled)["id"]) == ("19", 20, 2, 2, True)
    for at, total in (("first", 1), ("audit", 2)):
        assert visible_rows(both(spark, warehouse, filled, at=at)["id"]) == ("9", 10, 1, total, False)
    assert visible_rows(both(spark, warehouse, filled, at="main")["id"]) == ("19", 20, 2, 2, True)


def test_the_ancestor_of_a_branch_is_not_current_though_the_table_is_there(spark, warehouse, filled):
    analyze(spark, filled)
    spark.sql(f"ALTER TABLE {filled} CREATE BRANCH audit")
    assert visible_rows(both(spark, warehouse, filled, at="audit")["id"]) == ("9", 10, 1, 1, True)
    append(spark, f"{filled}.branch_audit", 500)
    assert visible_rows(both(spark, warehouse, filled, at="audit")["id"]) == ("9", 10, 1, 2, False)
    assert visible_rows(both(spark, warehouse, filled, at="main")["id"]) == ("9", 10, 1, 1, True)


@pytest.mark.slow
def test_nothing_of_an_ancestor_is_exact(spark, warehouse, filled):
    analyze(spark, filled, ranks=["id"])
    first, location = head(spark, filled), f"{warehouse}/{filled.removeprefix('ice.').replace('.', '/')}"
    path = metastore.files(spark, filled)[0]["path"]
    append(spark, filled, 5)
    stored = metastore.open(location)

    def exact(**arguments):
        answers = [
            metastore.frequencies(spark, filled, "id", **arguments),
            metastore.quantiles(spark, filled, "id", **arguments),
            metastore.quantiles(spark, filled, "name", [0.0, 1.0], **arguments),
            metastore.frequencies(spark, filled, "id", file=path, **arguments),
            stored.frequencies("id", **arguments),
            stored.quantiles("id", **arguments),
            stored.quantiles("name", [0.0, 1.0], **arguments),
            stored.frequencies("id", file=path, **arguments),
            stored.locate("id", 7, **arguments),
        ]
        return {row["exact"] for answer in answers for row in answer}

    assert exact() == {False}
    assert exact(at=first) == {True}
    for source in (filled, location):
        view = spark.read.format("metastore").option("view", "frequencies").load(source)
        assert {row.exact for row in view.select("exact").distinct().collect()} == {False}


@pytest.mark.parametrize("name", ["branch_audit", "tag_kept", "branch_none"])
def test_analyze_of_what_is_no_table_of_its_own_is_refused_in_one_line(spark, filled, name):
    spark.sql(f"ALTER TABLE {filled} CREATE BRANCH audit")
    spark.sql(f"ALTER TABLE {filled} CREATE TAG kept")
    with pytest.raises(UnsupportedTable, match=name) as raised:
        analyze(spark, f"{filled}.{name}")
    assert "\n" not in str(raised.value)
    if name != "branch_none":  # Spark does not get as far as to ask us
        with pytest.raises(Exception, match=r"METASTORE_UNSUPPORTED_TABLE.*it is a branch, a tag or a snapshot"):
            spark.sql(f"ANALYZE TABLE {filled}.{name} COMPUTE STATISTICS FOR ALL COLUMNS")


def test_a_table_may_be_called_as_a_branch_is(spark):
    spark.sql("CREATE TABLE ice.db.branch_office AS SELECT 1 AS id")
    try:
        assert analyze(spark, "ice.db.branch_office").files == 1
    finally:
        spark.sql("DROP TABLE ice.db.branch_office")


def test_a_branch_that_there_is_not_is_told_of_in_one_line(spark, filled):
    with pytest.raises(UnsupportedTable, match=r"it cannot be loaded: .*none") as raised:
        metastore.summary(spark, f"{filled}.branch_none")
    assert "\n" not in str(raised.value)


def test_an_analyzed_snapshot_that_expired_is_refused_as_such(spark, warehouse, filled):
    analyze(spark, filled)
    first = head(spark, filled)
    append(spark, filled, 10)
    call(spark, "expire_snapshots", filled, "older_than => TIMESTAMP'2100-01-01', retain_last => 1")
    for verb in ("summary", "files"):
        with pytest.raises(InvalidArgument, match=f"no longer has snapshot {first}, which was analyzed: it has exp"):
            getattr(metastore, verb)(spark, filled, at=first)
    location = f"{warehouse}/{filled.removeprefix('ice.').replace('.', '/')}"
    assert metastore.open(location).summary(at=first)[0]["count"] == 10


@pytest.mark.parametrize("at", ["99999999999999999999999", "4102444800.5", "4102444800e0"])
def test_a_number_that_is_no_snapshot_is_no_instant(spark, filled, at):
    analyze(spark, filled)
    with pytest.raises(Exception, match=r"METASTORE_INVALID_ARGUMENT.*has no snapshot"):
        spark.sql(f"SELECT * FROM metastore.summary('{filled}', at => {at})")


def test_ancestors_that_expired_still_answer(spark, warehouse, filled):
    analyze(spark, filled)
    append(spark, filled, 10)
    append(spark, filled, 20)
    call(spark, "expire_snapshots", filled, "older_than => TIMESTAMP'2100-01-01', retain_last => 1")
    assert spark.sql(f"SELECT * FROM {filled}.snapshots").count() == 1
    assert visible_rows(both(spark, warehouse, filled)["id"]) == ("9", 10, 1, 3, False)
    assert analyze(spark, filled).files_read == 2
    assert visible_rows(both(spark, warehouse, filled)["id"]) == ("29", 30, 3, 3, True)


@pytest.mark.slow
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
    assert visible_rows(rows["id"]) == ("9", 10, 1, 1, True)
    assert visible_rows(rows["late"]) == (None, 10, 0, 1, True)
    append(spark, filled, 10, ", 0.5")
    append(spark, filled, 5, ", 1.5")
    assert visible_rows(both(spark, warehouse, filled)["id"]) == ("9", 10, 1, 3, False)
    analyze(spark, filled, columns=["label"])
    rows = both(spark, warehouse, filled)
    assert visible_rows(rows["label"]) == ("n", 30, 3, 3, True)
    assert visible_rows(rows["id"]) == ("9", 30, 1, 3, True)
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
    assert visible_rows(after) == ("19", 20, 1, 1, True)
    for name in ("min", "max", "approx_unique", "avg", "std", "q50", "count", "null_count"):
        assert after[name] == before[name], name


def test_an_overwrite_leaves_only_what_is_there(spark, warehouse, filled):
    analyze(spark, filled)
    spark.sql(f"INSERT OVERWRITE {filled} SELECT 7, 'x'")
    assert analyze(spark, filled).files_read == 1
    assert visible_rows(both(spark, warehouse, filled)["id"]) == ("7", 1, 1, 1, True)
    spark.sql(f"TRUNCATE TABLE {filled}")
    assert analyze(spark, filled).files_read == 0
    assert visible_rows(both(spark, warehouse, filled)["id"]) == (None, 0, 0, 0, True)
