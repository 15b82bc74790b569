"""Slices with log files: statistics describe the merged rows, as long as the slice has the same log files."""

from __future__ import annotations

from pathlib import Path

import pytest

import metastore
from hudi.conftest import append, create, location
from planner.plans import check, conf, files_read, query_number

pytestmark = pytest.mark.spark

ONLY_LOGS = {"hoodie.compact.inline": "false"}


def analyze(spark, table):
    return metastore.analyze(spark, table, progress=False)


def reasons(spark, query):
    return sorted(row["reason"] for row in metastore.explain(spark, query) if row["kept"])


@pytest.fixture
def logged(spark, table):
    """Four data files of a hundred rows; log files give row 150 another `v`, and delete the rows from 300 on."""
    create(spark, table, kind="mor", **ONLY_LOGS)
    append(spark, table, 0, 400, 4)
    analyze(spark, table)
    spark.sql(f"UPDATE {table} SET v = 9999 WHERE id = 150")
    spark.sql(f"DELETE FROM {table} WHERE id >= 300")
    return table


def test_a_slice_proves_what_its_merged_rows_are(spark, logged):
    report = analyze(spark, logged)
    assert (report.files, report.files_read, report.rows, report.refused) == (4, 2, 300, ())
    check(spark, f"SELECT id FROM {logged} WHERE v = 9999", [1])
    check(spark, f"SELECT id FROM {logged} WHERE id BETWEEN 140 AND 160", [1])
    check(spark, f"SELECT id FROM {logged} WHERE id > 320", [0])
    check(spark, f"SELECT v FROM {logged} WHERE s = 's00150'", [1])
    assert analyze(spark, logged).committed is False
    summary = {row["column_name"]: row for row in metastore.summary(spark, logged)}
    assert (summary["v"]["max"], summary["v"]["count"], summary["v"]["exact"]) == ("9999", 300, True)
    assert (summary["id"]["max"], summary["id"]["approx_unique"]) == ("299", 300)
    located = spark.sql(f"SELECT * FROM metastore.locate('{logged}', 'v', 9999)").collect()
    assert [row.frequency for row in located] == [1]


@pytest.mark.slow
def test_answers_from_statistics_are_those_of_the_merged_rows(spark, logged):
    analyze(spark, logged)
    for query in (
        "SELECT count(*), min(v), max(v), min(id), max(id), count(s) FROM {t}",
        "SELECT count(*) FROM {t} WHERE id >= 100",
        "SELECT count(*) FROM (SELECT id FROM {t} WHERE id >= 250 LIMIT 60)",
        "SELECT id FROM {t} ORDER BY v DESC LIMIT 1",
        "SELECT count(*) FROM {t} a JOIN (SELECT * FROM VALUES (150L), (399L) AS k(k)) ON a.id = k",
    ):
        check(spark, query.format(t=logged))


def test_a_slice_with_later_log_files_is_read_until_it_is_analyzed(spark, logged):
    analyze(spark, logged)
    spark.sql(f"UPDATE {logged} SET v = -5 WHERE id = 150")
    check(spark, f"SELECT id FROM {logged} WHERE v = -5", [1])
    check(spark, f"SELECT id FROM {logged} WHERE v = 9999", [1])
    assert reasons(spark, f"SELECT id FROM {logged} WHERE v = 9999") == ["KEPT_FILE_UNKNOWN"]
    assert analyze(spark, logged).files_read == 1
    check(spark, f"SELECT id FROM {logged} WHERE v = 9999", [0])


@pytest.mark.slow
def test_compaction_writes_a_data_file_for_the_same_rows(spark, logged):
    analyze(spark, logged)
    options = "hoodie.compact.inline.max.delta.commits=1"
    spark.sql(f"CALL run_compaction(op => 'scheduleandexecute', table => '{logged}', options => '{options}')")
    check(spark, f"SELECT id FROM {logged} WHERE v = 9999")
    analyze(spark, logged)
    check(spark, f"SELECT id FROM {logged} WHERE v = 9999", [1])


def read_hudi(spark, table, **options):
    return spark.read.format("hudi").options(**options).load(location(spark, table))


def count_values(frame):
    """The number of rows that each change made: the newest, the first, and the deletion."""
    return [frame.where(where).count() for where in ("v = -5", "v = 9999", "id >= 300")]


@pytest.mark.slow
def test_each_instant_has_its_own_rows(spark, logged):
    second = analyze(spark, logged).snapshot
    first = spark.sql(f"SELECT min(_hoodie_commit_time) FROM {logged}").first()[0]
    spark.sql(f"UPDATE {logged} SET v = -5 WHERE id = 150")
    analyze(spark, logged)
    assert count_values(read_hudi(spark, logged)) == [1, 0, 0]
    assert count_values(read_hudi(spark, logged, **{"as.of.instant": second})) == [0, 1, 0]
    assert count_values(read_hudi(spark, logged, **{"as.of.instant": first})) == [0, 0, 100]


def test_each_way_to_read_has_its_own_rows(spark, logged):
    analyze(spark, logged)
    assert count_values(read_hudi(spark, logged, **{"hoodie.datasource.query.type": "read_optimized"})) == [0, 0, 100]
    unmerged = read_hudi(spark, logged, **{"hoodie.datasource.merge.type": "skip_merge"}).where("id = 150")
    assert sorted(row.v for row in unmerged.collect()) == [3, 9999]
    assert files_read(unmerged) == [2], "other rows than the merged ones: each slice with log files is read"


def test_a_dataframe_from_before_a_write_has_its_own_rows(spark, logged):
    """Hudi refreshes its listing, but reads no record that is later than the DataFrame."""
    analyze(spark, logged)
    frame = spark.table(logged).where("v = 9999")
    spark.sql(f"UPDATE {logged} SET v = -5 WHERE id = 150")
    analyze(spark, logged)
    with conf(spark, spark__metastore__enabled="false"):
        expected = [row.id for row in frame.select("id").collect()]
    assert [row.id for row in frame.select("id").collect()] == expected


@pytest.mark.slow
def test_a_session_that_reads_base_files_alone_describes_these(spark, logged):
    with conf(spark, hoodie__datasource__query__type="read_optimized"):
        spark.sql(f"REFRESH TABLE {logged}")
        report = analyze(spark, logged)
        assert (report.rows, report.refused) == (None, ())
        assert count_values(spark.table(logged)) == [0, 0, 100]
    spark.sql(f"REFRESH TABLE {logged}")
    assert count_values(spark.table(logged)) == [0, 1, 0]
    analyze(spark, logged)
    check(spark, f"SELECT id FROM {logged} WHERE v = 9999", [1])


@pytest.mark.slow
def test_a_slice_that_cannot_be_merged_is_refused_and_unknown(spark, logged):
    root = Path(location(spark, logged).removeprefix("file:"))
    (changed,) = (row._hoodie_file_name for row in spark.sql(f"SELECT * FROM {logged} WHERE id = 150").collect())
    (log_file,) = root.glob(f".{changed.split('_')[0]}*.log*")
    log_file.unlink()
    for _ in range(2):
        report = analyze(spark, logged)
        assert report.rows is None
        assert [refused.subject.split("_")[0] for refused in report.refused] == [changed.split("_")[0]]
    assert {row["count"] for row in metastore.summary(spark, logged)} == {None}
    query = f"SELECT id FROM {logged} WHERE id BETWEEN 20 AND 30"
    assert reasons(spark, query) == ["KEPT_FILE_UNKNOWN", "KEPT_MAY_MATCH"]


@pytest.mark.slow
def test_hudi_is_not_asked_about_later_log_files(spark, table):
    """Its own skipping finds no row of a file whose strings all begin so: apache/hudi#18791."""
    create(spark, table, kind="mor", **ONLY_LOGS)
    append(spark, table, 0, 200, 2)
    analyze(spark, table)
    spark.sql(f"UPDATE {table} SET s = 's0999' WHERE id = 150")
    assert spark.sql(f"SELECT id FROM {table} WHERE s LIKE 's0%'").count() == 200
    assert spark.sql(f"SELECT id FROM {table} WHERE s LIKE 's0999%'").count() == 1


def of_older_tables(spark, table):
    create(spark, table, kind="mor", **ONLY_LOGS, **{"hoodie.write.table.version": "6"})


def merged_by_a_class(spark, table):
    """A table whose records are merged by a class that its properties name."""
    create(spark, table, kind="mor", **ONLY_LOGS)
    folder = Path(location(spark, table).removeprefix("file:"), ".hoodie")
    (folder / ".hoodie.properties.crc").unlink()
    path = folder / "hoodie.properties"
    mode = "hoodie.record.merge.mode="
    text = path.read_text()
    assert f"{mode}EVENT_TIME_ORDERING" in text
    path.write_text(
        text.replace(f"{mode}EVENT_TIME_ORDERING", f"{mode}CUSTOM")
        + "hoodie.record.merge.strategy.id=00000000-0000-0000-0000-000000000000\n"
        + "hoodie.compaction.payload.class=org.apache.hudi.common.model.DefaultHoodieRecordPayload\n"
    )
    spark.sql(f"REFRESH TABLE {table}")


@pytest.mark.parametrize("create_table", [of_older_tables, merged_by_a_class])
@pytest.mark.slow
def test_what_the_same_log_files_may_merge_to_otherwise_is_read(spark, table, create_table):
    create_table(spark, table)
    append(spark, table, 0, 400, 4)
    spark.sql(f"UPDATE {table} SET v = 9999 WHERE id = 150")
    report = analyze(spark, table)
    assert report.rows is None
    query = f"SELECT id FROM {table} WHERE v = 9999"
    check(spark, query, [1])
    assert reasons(spark, query) == ["KEPT_LOG_FILES"]
    check(spark, f"SELECT id FROM {table} WHERE v = 8888", [1])


@pytest.mark.slow
def test_a_column_that_a_data_file_lacks_is_unknown(spark, table):
    create(spark, table, kind="mor", **ONLY_LOGS)
    append(spark, table, 0, 200, 2)
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (added INT)")
    spark.sql(f"UPDATE {table} SET added = 7 WHERE id = 50")
    analyze(spark, table)
    check(spark, f"SELECT id FROM {table} WHERE added = 7", [1])
    check(spark, f"SELECT id FROM {table} WHERE added = 8", [1])
    check(spark, f"SELECT count(*) FROM {table} WHERE added IS NULL")
    check(spark, f"SELECT id FROM {table} WHERE id = 50", [1])
    check(spark, f"SELECT id FROM {table} WHERE id = 500", [0])


@pytest.mark.slow
def test_columns_of_lists_and_of_hudi_itself(spark, table):
    create(spark, table, "id BIGINT, tags ARRAY<INT>, n STRUCT<a: INT>, ts BIGINT", kind="mor", **ONLY_LOGS)
    for part in range(3):
        spark.sql(
            f"INSERT INTO {table} SELECT id, array(1) AS tags, named_struct('a', CAST(id AS INT)) AS n, id AS ts "
            f"FROM range({part * 10}, {part * 10 + 10}, 1, 1)"
        )
    spark.sql(f"UPDATE {table} SET n = named_struct('a', 500), tags = NULL WHERE id = 15")
    analyze(spark, table)
    for where in ("tags IS NULL", "n.a = 500", "n.a = 15", "_hoodie_record_key = '15'", "_hoodie_record_key = '99'"):
        check(spark, f"SELECT id FROM {table} WHERE {where}")
    newest = spark.sql(f"SELECT max(_hoodie_commit_time) FROM {table}").first()[0]
    for where in (f"_hoodie_commit_time = '{newest}'", "_hoodie_file_name LIKE '%.log%'", "_hoodie_commit_seqno > ''"):
        check(spark, f"SELECT id FROM {table} WHERE {where}")
    assert query_number(spark, f"SELECT count(*) FROM {table} WHERE n.a = 15") == 0
