from __future__ import annotations

from datetime import datetime, timezone

import pytest

import metastore
from metastore.errors import ColumnNotFound, InvalidArgument, NoStatistics, TableNotFound, UnsupportedTable
from metastore.format.manifest import Manifest, TableIdentity
from metastore.format.table_column import Column
from metastore.reading import views
from metastore.reading.summary_changes import compare_summaries
from metastore.store import Store
from reading.stores import ID, NAME, UUID, block, ids, metadata, snapshot


def test_summary_has_the_columns_of_the_sql_function(location):
    names = [name for name in views.SUMMARY.names if name != "user_defined"]  # in Python columns of their own
    assert metastore.open(str(location)).summary().columns == tuple(names)


def test_summary_of_the_table(location):
    summary = metastore.open(str(location)).summary()
    row = summary[0]
    assert (row["column_name"], row["column_type"], row["min"], row["max"]) == ("id", "bigint", "-5", "10")
    assert (row["q25"], row["q50"], row["q75"], row["avg"], row["std"]) == ("20", "45", "70", 2.5, 2.0)
    assert (row["count"], row["null_count"], row["null_percentage"]) == (20, 0, 0.0)
    assert (row["files"], row["files_total"], row["exact"], row["current"]) == (2, 2, True, True)
    assert (summary.snapshot, summary.current) == ("2", True)
    assert [row["column_name"] for row in summary] == ["id", "who.`na.me`", "tags"]
    assert summary[1]["null_percentage"] == 20.0
    assert summary[1]["max"] == "z" * 64 + "…"
    assert (summary[2]["min"], summary[2]["null_count"]) == (None, 0)


def test_values_are_typed_on_demand(location):
    row = metastore.open(str(location)).summary().column("id")
    assert (row["min"], row["max"], row["q50"]) == (-5, 10, 45)
    with pytest.raises(ColumnNotFound, match="Did you mean id"):
        metastore.open(str(location)).summary().column("idd")


def test_summary_of_one_file_takes_the_deepest_block(location):
    row = metastore.open(str(location)).summary(file="t/b.parquet")[0]
    assert (row["min"], row["max"], row["count"], row["files_total"]) == ("-5", "5", 10, 1)


def test_a_file_that_is_not_live_is_unknown(location):
    with pytest.raises(InvalidArgument, match=r"t/gone\.parquet is no data file of cat\.db\.t"):
        metastore.open(str(location)).summary(file="t/gone.parquet")


def test_an_older_snapshot_by_id_and_by_instant(location):
    opened = metastore.open(str(location))
    by_id = opened.summary(at=1)
    by_instant = opened.summary(at=datetime(2026, 1, 2, 12, tzinfo=timezone.utc))
    assert by_id.snapshot == by_instant.snapshot == "1"
    assert (by_id.current, by_id[0]["count"]) == (False, 10)
    assert opened.summary(at="2026-01-03T01:00:00Z").snapshot == "2"


@pytest.mark.parametrize("at", [7, "7", "2020-01-01"])
def test_what_was_not_analyzed_is_named(location, at):
    with pytest.raises(InvalidArgument, match=r"was not analyzed\. Analyzed: 1, 2"):
        metastore.open(str(location)).summary(at=at)


def test_files_of_other_formats_are_not_told_to_be_analyzed(tmp_path):
    (tmp_path / "t" / "p=1").mkdir(parents=True)
    (tmp_path / "t" / "p=1" / "part-0.snappy.orc").touch()
    with pytest.raises(UnsupportedTable, match="it holds ORC files, not an Iceberg, Delta or Hudi table or Parquet"):
        metastore.open(str(tmp_path / "t")).summary()
    (tmp_path / "t" / "p=1" / "part-0.parquet").touch()
    with pytest.raises(NoStatistics, match="Run: ANALYZE TABLE parquet"):
        metastore.open(str(tmp_path / "t")).summary()


def test_errors_of_diff_name_its_arguments(location):
    opened = metastore.open(str(location))
    with pytest.raises(InvalidArgument, match=r"before: 7 was not analyzed"):
        opened.diff(7)
    with pytest.raises(InvalidArgument, match=r"after: 7 was not analyzed"):
        opened.diff("1", 7)


def test_files_and_what_is_known_of_them(location):
    rows = list(metastore.open(str(location)).files())
    assert [(row["path"], row["rows"], row["analyzed"], row["columns_analyzed"]) for row in rows] == [
        ("t/a.parquet", 10, True, 2),
        ("t/b.parquet", 10, True, 2),
    ]
    assert rows[0]["partition"] == {"day": "d0"}


def test_columns_by_file(location):
    opened = metastore.open(str(location))
    assert opened.columns().columns == tuple(views.COLUMNS.names)
    assert [(r["path"], r["column_name"], r["min"], r["null_count"]) for r in opened.columns()] == [
        ("t/a.parquet", "id", "1", 0),
        ("t/a.parquet", "who.`na.me`", "ann", 2),
        ("t/b.parquet", "id", "-5", 0),
        ("t/b.parquet", "who.`na.me`", "bob", 2),
    ]
    assert [row["path"] for row in opened.columns("ID")] == ["t/a.parquet", "t/b.parquet"]
    with pytest.raises(ColumnNotFound, match=r"has no column 'idd'. Did you mean id"):
        opened.columns("idd")


def test_views_are_typed(location):
    opened = metastore.open(str(location))
    rows = opened.view("columns", column="id", file="t/b.parquet").to_pylist()
    assert [(row["lo_long"], row["hi_long"], row["lo_exact"]) for row in rows] == [(-5, 5, True)]
    with pytest.raises(InvalidArgument, match=r"t/none.parquet is no data file"):
        opened.view("columns", file="t/none.parquet")
    assert opened.view("summary").schema == views.VIEWS["summary"]


def test_snapshots(location):
    rows = list(metastore.open(str(location)).snapshots())
    assert [(row["snapshot"], row["files"], row["rows"], row["current"]) for row in rows] == [
        ("1", 1, 10, False),
        ("2", 2, 20, True),
    ]


def test_current_follows_the_table(location):
    metadata(location, 4, 3, {1: None, 2: 1, 3: 2})
    appended = metastore.open(str(location)).summary()
    assert (appended.snapshot, appended.current) == ("2", False)
    metadata(location, 5, 1, {1: None, 2: 1, 3: 2})
    rolled_back = metastore.open(str(location)).summary()
    assert (rolled_back.snapshot, rolled_back.current) == ("1", True)


def test_a_lagging_version_hint_does_not_deceive(location):
    metadata(location, 4, 3, {1: None, 2: 1, 3: 2})
    (location / "metadata" / "version-hint.text").write_text("3")
    assert metastore.open(str(location)).summary().current is False


def test_current_is_unknown_where_a_catalog_decides(location):
    catalogs = location / "metadata" / "00004-7d2a3a3e-0000-4000-8000-00000000000a.metadata.json"
    catalogs.write_text("{}")
    summary = metastore.open(str(location)).summary()
    assert (summary.snapshot, summary.current) == ("2", None)
    with pytest.raises(InvalidArgument, match="no instant is known"):
        metastore.open(str(location)).summary(at="2026-01-02T12:00:00Z")


def test_damaged_metadata_leaves_current_unknown(location):
    (location / "metadata" / "v9.metadata.json").write_text("{")
    assert metastore.open(str(location)).summary().current is None


def test_statistics_of_a_dropped_table_do_not_count(location):
    metadata(location, 9, 1, {1: None}, uuid="another")
    with pytest.raises(NoStatistics, match="a table that was here before"):
        metastore.open(str(location)).summary()


def test_values_of_a_changed_type_do_not_speak_for_the_column(tmp_path):
    store = Store.open(f"{tmp_path}/_metastore", writable=True)
    single_block = block(store, 1, [("a", 10)], [ids(0, 1, 10)], columns=(ID, NAME))
    changed = Column(key="1", path=("id",), type="string", encoding="binary")
    identity = TableIdentity("iceberg", UUID, str(tmp_path), "t")
    now = snapshot(store, 1, [("a", 100, 10, {})], columns=(changed,))
    store.commit(identity, lambda _: Manifest(table=identity, blocks=(single_block,), snapshots=(now,)))
    assert list(metastore.open(str(tmp_path)).columns()) == []


def test_deletes_make_a_summary_inexact(tmp_path):
    store = Store.open(f"{tmp_path}/_metastore", writable=True)
    single_block = block(store, 1, [("a", 10)], [ids(0, 1, 10)])
    deleted = {"deletes": "x", "deleted_rows": 3}
    identity = TableIdentity("iceberg", UUID, str(tmp_path), "t")
    now = snapshot(
        store, 1, [("a", 100, 10, deleted)], columns=(ID,), summary=(ids(0, 1, 10, files=1),), exact=False, rows=7
    )
    store.commit(identity, lambda _: Manifest(table=identity, blocks=(single_block,), snapshots=(now,)))
    opened = metastore.open(str(tmp_path))
    for row in (opened.summary()[0], opened.summary(file="a")[0]):
        assert (row["count"], row["exact"], row["max"]) == (7, False, "10")


def test_after_noscan_there_is_only_a_list_of_files(tmp_path):
    store = Store.open(f"{tmp_path}/_metastore", writable=True)
    listed = block(store, 1, [("a", None)], [], columns=(), computed="files")
    identity = TableIdentity("iceberg", UUID, str(tmp_path), "db.t")
    now = snapshot(store, 1, [("a", 100, 10, {})], columns=(ID,), computed="files")
    store.commit(identity, lambda _: Manifest(table=identity, blocks=(listed,), snapshots=(now,)))
    opened = metastore.open(str(tmp_path))
    assert [(row["analyzed"], row["columns_analyzed"]) for row in opened.files()] == [(True, 0)]
    with pytest.raises(NoStatistics, match=r"Run: ANALYZE TABLE db\.t COMPUTE STATISTICS FOR ALL COLUMNS"):
        opened.summary()


def test_a_place_without_statistics(tmp_path):
    opened = metastore.open(str(tmp_path))
    assert len(opened.snapshots()) == len(opened.files()) == 0
    with pytest.raises(NoStatistics):
        opened.summary()
    with pytest.raises(TableNotFound):
        metastore.open(str(tmp_path / "nothing"))


def test_by_location_by_store_and_by_root(location, tmp_path):
    beside = location / "_metastore"
    root = tmp_path / "root"
    root.mkdir()
    beside.rename(root / f"iceberg-{UUID}")
    for where, table in ((root / f"iceberg-{UUID}", None), (root, None), (root, "db.t"), (root, UUID)):
        assert metastore.open(str(where), table).summary().snapshot == "2"
    with pytest.raises(TableNotFound, match="There is no table other"):
        metastore.open(str(root), "other")


def test_a_named_table_is_that_table_or_none(location, tmp_path):
    assert metastore.open(str(location), "cat.db.t").summary().snapshot == "2"
    with pytest.raises(TableNotFound, match=r"There is no table no\.such\. Did you mean cat\.db\.t"):
        metastore.open(str(location), "no.such")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableNotFound, match=r"There is no table no\.such\."):
        metastore.open(str(tmp_path / "empty"), "no.such")


@pytest.mark.parametrize("nothing", ["", " "])
def test_a_location_says_something(nothing):
    with pytest.raises(InvalidArgument, match="location"):
        metastore.open(nothing)


def test_an_analyzed_table_without_rows(tmp_path):
    store = Store.open(f"{tmp_path}/_metastore", writable=True)
    identity = TableIdentity("iceberg", UUID, str(tmp_path), "db.t")
    counts = {"files": 0, "files_total": 0, "rows": 0, "physical_rows": 0}
    now = snapshot(store, 1, [("gone", 1, 1, {})], columns=(ID,), **counts)
    store.commit(identity, lambda _: Manifest(table=identity, blocks=(), snapshots=(now,)))
    opened = metastore.open(str(tmp_path))
    assert len(opened.frequencies("id")) == len(opened.histogram("id")) == 0
    assert [(row["value"], row["exact"]) for row in opened.quantiles("id", 0.5)] == [(None, True)]
    with pytest.raises(ColumnNotFound):
        opened.frequencies("no")


def test_the_setting_leads_to_the_store(location, tmp_path, monkeypatch):
    root = tmp_path / "root"
    root.mkdir()
    (location / "_metastore").rename(root / f"iceberg-{UUID}")
    monkeypatch.setenv("METASTORE_STORE", str(root))
    assert metastore.open(f"file:{location}").summary().snapshot == "2"


def test_a_uri_means_the_same_as_a_path(location):
    assert metastore.open(f"file://{location}/").summary().snapshot == "2"


def test_a_zone_that_is_none(location):
    with pytest.raises(InvalidArgument, match="zone"):
        metastore.open(str(location), zone="Nowhere")


@pytest.mark.parametrize(
    ("measure", "before", "after", "differs"),
    [
        ("std", 2.5, 2.5 * (1 + 1e-12), False),
        ("std", 2.5, 2.5 * (1 + 1e-8), True),
        ("std", 0.0, 1e-12, True),
        ("avg", 1e-17, -3e-17, False),
        ("avg", 1e-6, -3e-6, True),
        ("null_percentage", 50.0, 50.00000001, True),
    ],
)
def test_rounding_is_no_difference(measure, before, after, differs):
    rows = [[{"column_name": "d", "column_type": "double", "std": 2.5, measure: value}] for value in (before, after)]
    assert [row["measure"] for row in compare_summaries(*rows)] == ([measure] if differs else [])
