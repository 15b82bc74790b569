"""Behaviours that all table formats share."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

import metastore
from formats.kinds import ROW
from metastore import errors
from metastore.key_lookup import key_sql as few_keys
from planner.plans import check, conf, labels, scans

pytestmark = pytest.mark.spark

ALL = "iceberg,delta,hudi,parquet"
FILES = {
    "id = 5": 1,
    "id <=> 399": 1,
    "id BETWEEN 190 AND 210": 2,
    "id IN (1, 399)": 2,
    "s LIKE 's0039%'": 1,
    "x >= 99.75": 1,
    "st.a = 250 OR id < 10": 2,
    "v = 3": 4,
    "v = 9": 0,
    "NOT (id < 300)": 1,
    "day = DATE '2024-01-02'": 1,
    "id IS NULL": 0,
}

CORRELATED = [
    "SELECT k, (SELECT count(*) FROM {t} t WHERE t.v = o.k) AS n FROM {o} o",
    "SELECT k FROM {o} o WHERE (SELECT count(*) FROM {t} t WHERE t.v = o.k) = 0",
    "SELECT k, (SELECT count(t.v) + 1 FROM {t} t WHERE t.v = o.k AND t.id >= 0) FROM {o} o",
]


def statement(table, columns: str = "FOR ALL COLUMNS"):
    with conf(table.spark, spark__metastore__analyze__formats=ALL):
        (row,) = table.spark.sql(f"ANALYZE TABLE {table.name} COMPUTE STATISTICS {columns}").collect()
    return row


def test_sql_and_python_answer_alike_and_repeating_does_nothing(filled):
    row = statement(filled)
    assert (row.format, row.files, row.files_read, row.rows) == (filled.kind.format, 4, 4, 400)
    own_columns = sum(
        row["column_name"].startswith(filled.kind.column_prefix) for row in metastore.summary(filled.spark, filled.name)
    )
    assert (row.columns - own_columns, row.committed) == (7, True)
    again = filled.analyze()
    assert (again.files_read, again.committed, again.refused) == (0, False, ())
    assert statement(filled, "FOR COLUMNS id, s").committed is False


def test_numbers_are_those_of_the_rows(filled):
    filled.analyze()
    summary = filled.summary()
    assert list(summary) == ["id", "v", "s", "x", "st.a", "st.b", "day"]
    assert summary["id"]["approx_unique"] == summary["id"]["count"] == 400
    assert (summary["s"]["min"], summary["s"]["max"]) == ("s00000", "s00399")
    assert (summary["x"]["min"], summary["x"]["max"], summary["x"]["avg"]) == ("0.0", "99.75", 49.875)
    assert (summary["day"]["min"], summary["day"]["max"], summary["st.a"]["max"]) == ("2024-01-01", "2024-01-04", "399")
    assert {(row["exact"], row["current"]) for row in summary.values()} == {(True, True)}


def test_a_path_is_the_same_table(filled):
    filled.analyze()
    path = f"{filled.kind.format}.`{filled.location.removeprefix('file:')}`"
    if filled.lacks("path", lambda: metastore.analyze(filled.spark, path, progress=False)):
        return
    again = metastore.analyze(filled.spark, path, progress=False)
    assert (again.files_read, again.committed) == (0, False)
    rows = {row["column_name"]: row for row in metastore.summary(filled.spark, path)}
    assert {name: row for name, row in rows.items() if name in filled.summary()} == filled.summary()
    if filled.kind.reads_paths:
        check(filled.spark, f"SELECT * FROM {path} WHERE id = 5", [1])


def test_queries_read_fewer_files_and_get_the_same_rows(filled):
    filled.analyze()
    for where, files in FILES.items():
        frame = check(filled.spark, f"SELECT * FROM {filled.name} WHERE {where}")
        assert labels(frame) == [f"4 -> {files} files"], where


def test_without_statistics_no_file_is_skipped(filled):
    assert "->" not in "".join(labels(check(filled.spark, f"SELECT * FROM {filled.name} WHERE id = 5")))


def test_the_optimizer_knows_the_rows_of_the_files_that_are_kept(filled):
    filled.analyze()
    plan = filled.spark.sql(f"SELECT * FROM {filled.name} WHERE id < 100")._jdf.queryExecution().optimizedPlan()
    assert plan.collectLeaves().head().stats().rowCount().get() == 100


def test_after_an_append_only_the_new_file_is_read(filled):
    first = filled.analyze().snapshot
    filled.fill(400, 450)
    stale = filled.summary()["id"]
    assert (stale["max"], stale["current"], stale["files"]) == ("399", False, 4)
    assert sorted(f["analyzed"] for f in metastore.files(filled.spark, filled.name)) == [False] + [True] * 4
    frame = check(filled.spark, f"SELECT * FROM {filled.name} WHERE id IN (5, 410)")
    assert labels(frame) == ["5 -> 2 files"]
    report = filled.analyze()
    assert (report.files, report.files_read, report.rows) == (5, 1, 450)
    assert [row["current"] for row in metastore.snapshots(filled.spark, filled.name)] == [False, True]
    if not filled.lacks("snapshots", lambda: filled.summary(at=first)):
        assert filled.summary(at=first)["id"]["max"] == "399"
    assert filled.summary()["id"]["max"] == "449"


def test_an_overwrite_leaves_only_what_is_there(filled):
    filled.analyze()
    filled.spark.sql(f"INSERT OVERWRITE {filled.name} SELECT {ROW} FROM range(1000, 1050, 1, 1)")
    filled.kind.settle(filled.spark, filled.name)
    check(filled.spark, f"SELECT * FROM {filled.name} WHERE id IN (5, 1005)", [1])
    assert filled.analyze().files == 1
    assert (filled.summary()["id"]["min"], filled.summary()["id"]["count"]) == ("1000", 50)


def test_a_table_made_again_at_its_place_begins_anew(filled, again):
    filled.analyze()
    again(filled, "id STRING, s BIGINT")
    with pytest.raises(errors.NoStatistics):
        filled.summary()
    filled.kind.append(filled.spark, filled.name, 0, 50, row="CAST(-id AS STRING), id")
    check(filled.spark, f"SELECT * FROM {filled.name} WHERE id = '-7'", [1])
    assert filled.analyze().files_read == 1
    assert {name: row["max"] for name, row in filled.summary().items()} == {"id": "0", "s": "49"}


def test_tables_that_were_never_written(empty):
    report = empty.analyze()
    assert (report.files, report.rows) == (0, 0)
    id_summary = empty.summary()["id"]
    assert (id_summary["count"], id_summary["min"], id_summary["current"]) == (0, None, True)
    assert check(empty.spark, f"SELECT * FROM {empty.name} WHERE id = 5").count() == 0


def test_a_partition_limits_the_files(parted):
    assert parted.analyze(partition={"day": "2024-01-02"}).files_read == 1
    assert parted.summary()["id"]["files"] == 1
    with conf(parted.spark, spark__metastore__analyze__formats=ALL):
        columns = "PARTITION (day = DATE '2024-01-03') COMPUTE STATISTICS FOR COLUMNS id"
        (row,) = parted.spark.sql(f"ANALYZE TABLE {parted.name} {columns}").collect()
    assert row.files_read == 1
    assert parted.analyze().files_read == 3
    assert parted.summary()["day"]["max"] == "2024-01-04"
    for where in ("day = DATE '2024-01-02' AND id = 150", "day > DATE '2024-01-02' AND id = 150"):
        check(parted.spark, f"SELECT * FROM {parted.name} WHERE {where}")


@pytest.mark.parametrize(
    ("partition", "error", "says"),
    [
        ({"day": "1999-01-01"}, errors.InvalidArgument, "no data file with day = 1999-01-01"),
        ({"id": 1}, errors.InvalidArgument, "id is not a partition column"),
        ({"dya": "2024-01-01"}, errors.ColumnNotFound, "day"),
    ],
)
def test_mistakes_in_a_partition_write_nothing(parted, partition, error, says):
    with pytest.raises(error, match=says):
        parted.analyze(partition=partition)
    with pytest.raises(errors.NoStatistics):
        parted.summary()


def test_unknown_columns_are_refused_with_near_names(filled):
    with pytest.raises(errors.ColumnNotFound, match="day"):
        filled.analyze(columns=["dya"])
    with pytest.raises(errors.NoStatistics):
        filled.summary()


def test_depths_deepen(filled):
    assert statement(filled, "NOSCAN").files_read == 0
    with pytest.raises(errors.NoStatistics):
        filled.summary()
    assert statement(filled, "").columns > 0
    footer = filled.summary()["id"]
    assert (footer["min"], footer["max"], footer["approx_unique"]) == ("0", "399", None)
    check(filled.spark, f"SELECT * FROM {filled.name} WHERE id = 5", [1])
    assert filled.analyze().files_read == 4
    assert filled.summary()["id"]["approx_unique"] == 400


def test_every_function_answers(filled):
    filled.analyze()
    spark, name = filled.spark, filled.name
    assert [row["frequency"] for row in metastore.frequencies(spark, name, "v", 2)] == [58, 57]
    assert sum(row["count"] for row in metastore.histogram(spark, name, "id", 10)) == 400
    assert abs(int(metastore.quantiles(spark, name, "id", [0.5])[0]["value"]) - 199) <= 1
    assert len(metastore.files(spark, name)) == 4
    named = f"SELECT column_name FROM metastore.columns('{name}')"
    assert sum(not row.column_name.startswith(filled.kind.column_prefix) for row in spark.sql(named).collect()) == 4 * 7
    (located,) = spark.sql(f"SELECT * FROM metastore.locate('{name}', 'id', 250)").collect()
    assert (located.frequency, located.exact) == (1, True)
    query = f"SELECT * FROM {name} WHERE id = 250"
    explained = spark.sql("SELECT kept FROM metastore.explain(:q)", args={"q": query}).collect()
    assert sorted(row.kept for row in explained) == [False, False, False, True]


def test_the_data_source_reads_by_name_and_by_location(filled):
    filled.analyze()
    if filled.lacks("source", lambda: filled.spark.read.format("metastore").load(filled.name)):
        return
    for source in (filled.name, filled.location):
        for view, rows in {"summary": 7, "columns": 28, "files": 4, "snapshots": 1}.items():
            frame = filled.spark.read.format("metastore").option("view", view).load(source)
            assert frame.count() == rows, (source, view)


@pytest.mark.parametrize("by", ["planner", "search"])
def test_keys_are_located(filled, by, monkeypatch):
    if by == "search":
        monkeypatch.setattr(few_keys, "MOST_KEYS", 0)
    filled.analyze()
    keys = filled.spark.createDataFrame([(7,), (305,), (999,)], "id bigint")

    def ask():
        return metastore.locate(filled.spark, filled.name, ["id"], keys).collect()

    if filled.lacks("locate", ask):
        return
    located = ask()
    positions = [7, 5] if filled.kind.format != "hudi" else [None, None]  # which shows no row's position
    assert [(row.id, row.position) for row in sorted(located)] == list(zip([7, 305], positions, strict=True))
    by_statistics = (f"SELECT path FROM metastore.locate('{filled.name}', 'id', {key})" for key in (7, 305))
    for row, expected in zip(sorted(located), by_statistics, strict=True):
        assert row.path.endswith(
            filled.spark.sql(expected).first().path
        )  # which statistics may know below the table alone


def test_deleted_rows_leave_physical_bounds_and_live_counts(filled):
    if filled.lacks("deletes"):
        return
    filled.analyze()
    filled.spark.sql(f"DELETE FROM {filled.name} WHERE id % 10 = 3")
    report = filled.analyze()
    assert report.rows == 360
    id_summary = filled.summary()["id"]
    assert (id_summary["count"], id_summary["null_count"], id_summary["null_percentage"]) == (360, 0, 0.0)
    assert id_summary["approx_unique"] <= 360
    for where in ("id = 13", "id = 14", "id > 390"):
        check(filled.spark, f"SELECT * FROM {filled.name} WHERE {where}")


@contextmanager
def hidden_data_files(table):
    """The data files out of reach, but listed: who opens one of them finds no Parquet file."""
    root = Path(table.location.removeprefix("file:"))
    data_files = (
        path for path in root.rglob("*.parquet") if not {"_metastore", "_delta_log", ".hoodie"} & {*path.parts}
    )
    contents = [(path, path.read_bytes(), path.stat()) for path in data_files]
    for path, data, about in contents:
        path.write_bytes(b"x" * len(data))
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    yield
    for path, data, about in contents:
        path.write_bytes(data)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def test_an_unchanged_table_is_not_read(filled):
    filled.analyze()
    if not filled.lacks("deletes"):
        filled.spark.sql(f"DELETE FROM {filled.name} WHERE id % 10 = 3")
    rows = filled.analyze().rows
    with hidden_data_files(filled):
        for form in ("FOR ALL COLUMNS", "FOR COLUMNS id", "", "NOSCAN"):
            report = statement(filled, form)
            result = (report.files_read, report.bytes_read, report.committed, report.rows)
            assert result == (0, 0, False, rows), form


def test_renamed_dropped_and_added_again(filled):
    if filled.lacks("evolution"):
        return
    with filled.kind.evolving(filled.spark):
        filled.analyze()
        for change in (("rename", "x", "number"), ("drop", "s"), ("add", "s", "STRING")):
            filled.kind.alter(filled.spark, filled.name, *change)
        moved = ROW.replace(" concat('s', lpad(CAST(id AS STRING), 5, '0')) AS s,", "") + ", 'new' AS s"
        filled.kind.append(filled.spark, filled.name, 400, 401, row=moved)
        filled.analyze()
        summary = filled.summary()
        assert (summary["number"]["max"], summary["s"]["min"], summary["s"]["null_count"]) == ("100.0", "new", 400)
        for where in ("number = 1.25", "s = 's00005'", "s = 'new'", "s IS NULL"):
            check(filled.spark, f"SELECT * FROM {filled.name} WHERE {where}")


def test_columns_of_a_type_that_was_widened(filled):
    if filled.lacks("widening"):
        return
    filled.analyze()
    filled.kind.widen(filled.spark, filled.name, "v", "BIGINT")
    row = ROW.replace("CAST(id % 7 AS INT) AS v", "3000000000 AS v")
    filled.kind.append_wider(filled.spark, filled.name, 400, 401, row)
    filled.analyze()
    assert (filled.summary()["v"]["min"], filled.summary()["v"]["max"]) == ("0", "3000000000")
    for where in ("v = 3", "v > 2000000000", "v < 0"):
        check(filled.spark, f"SELECT * FROM {filled.name} WHERE {where}")


def test_upkeep_by_name(filled):
    filled.analyze()
    by_name = metastore.verify(filled.spark, filled.name).to_dict()
    assert by_name["rows"] == metastore.verify(filled.location).to_dict()["rows"]
    assert len(by_name["rows"]) > 0


@pytest.mark.parametrize("query", CORRELATED)
def test_counts_in_correlated_sub_queries(filled, query):
    filled.analyze()
    with conf(filled.spark, spark__metastore__aggregates__enabled=True, hoodie__enable__data__skipping=False):
        check(filled.spark, query.format(t=filled.name, o="(SELECT explode(array(1, 2, 99)) AS k)"))


def test_what_a_scan_reads_is_counted_once(filled):
    """No second scan, no second listing: the plan has the scans of the query and no other."""
    filled.analyze()
    frame = check(filled.spark, f"SELECT a.id FROM {filled.name} a JOIN {filled.name} b ON a.id = b.id WHERE a.id < 50")
    assert len(scans(frame)) == 2


def test_all_tables_of_a_namespace(filled):
    namespace = ".".join(filled.name.split(".")[:-1]) or "spark_catalog.default"
    with conf(filled.spark, spark__metastore__analyze__formats=ALL):
        rows = filled.spark.sql(f"ANALYZE TABLES IN {namespace} COMPUTE STATISTICS NOSCAN").collect()
    (row,) = (row for row in rows if row.table.split(".")[-1] == filled.name.split(".")[-1])
    assert (row.format, row.files_total, row.refused) == (filled.kind.format, 4, [])


def test_tables_with_statistics_are_listed(filled):
    namespace = ".".join(filled.name.split(".")[:-1]) or "spark_catalog.default"

    def listed():
        listed = metastore.tables(filled.spark, namespace)
        return [row for row in listed if row["table"].split(".")[-1] == filled.name.split(".")[-1]]

    assert listed() == []
    report = filled.analyze()
    (row,) = listed()
    assert (row["format"], row["snapshot"], row["current"]) == (filled.kind.format, report.snapshot, True)
    assert row["location"].removeprefix("file:") == filled.location.removeprefix("file:")
    filled.fill(400, 450)
    assert [row["current"] for row in listed()] == [False]
