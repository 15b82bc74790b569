"""Tables that other libraries have opened: their current files are pruned, whatever was analyzed."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.types import LongType

import metastore
from engines.lakes import describe_delta, describe_iceberg, make_delta, make_iceberg, rows
from metastore.errors import ColumnNotFound, InvalidArgument, LibraryNotFound, NoStatistics
from metastore.format.table_column import Column
from planner.written import bounds, describe_parquet_folder, read_store


@pytest.fixture
def iceberg(tmp_path):
    table = make_iceberg(tmp_path / "ice")
    describe_iceberg(table).write(str(table.current_snapshot().snapshot_id))
    return table


@pytest.fixture
def delta(tmp_path):
    table = make_delta(tmp_path / "sales")
    describe_delta(table).write(str(table.version()))
    return table


def count_rows(paths: list[str], filter_: str) -> int:
    return duckdb.read_parquet(paths, hive_partitioning=False).filter(filter_).shape[0]


@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_paths_are_read_by_every_engine(request, format_):
    files = metastore.open(request.getfixturevalue(format_)).prune("amount > 9.5 AND country <> 'C3'")
    assert (len(files), files.total, files.analyzed, files.current, files.unused) == (1, 5, 5, True, {})
    assert count_rows(files.paths, "amount > 9.5 AND country <> 'C3'") == 10
    assert pl.scan_parquet(files, hive_partitioning=False).filter(pl.col("amount") > 9.5).collect().height == 10
    assert pa.dataset.dataset(files.paths).count_rows() == 10
    assert "1 of 5 data files" in repr(files)


@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_new_files_are_read_and_those_that_are_gone_are_not(request, format_):
    table = request.getfixturevalue(format_)
    before = metastore.open(table).prune("id >= 0")
    if format_ == "iceberg":
        table.append(rows(50, 60))
        table.delete("id < 10")
    else:
        from deltalake import write_deltalake  # noqa: PLC0415 - of this case alone

        write_deltalake(table, rows(50, 60), mode="append", partition_by=["part"])
        table.delete("id < 10")
        table = DeltaTable(table.table_uri)
    files = metastore.open(table).prune("id < 5")
    assert [verdict.reason for verdict in files.verdicts].count("KEPT_FILE_UNKNOWN") == 1
    assert len(files) == 1
    assert files.analyzed == 4
    assert len({*before} & {verdict.path for verdict in files.verdicts}) == 4
    assert count_rows(files.paths, "id < 5") == 0


def test_columns_of_iceberg_are_known_by_their_ids(iceberg):
    with iceberg.update_schema() as change:
        change.rename_column("id", "number")
        change.update_column("id", LongType())
        change.delete_column("country")
    with iceberg.update_schema() as change:
        change.add_column("country", LongType())
    statistics = metastore.open(iceberg)
    assert len(statistics.prune("number BETWEEN 11 AND 12")) == 1
    assert {verdict.reason for verdict in statistics.prune("country = 1").verdicts} == {"KEPT_COLUMN_UNKNOWN"}
    with pytest.raises(ColumnNotFound, match="no column 'id'"):
        statistics.prune("id = 1")


def test_other_verbs_know_the_current_snapshot(iceberg, delta):
    for table, snapshot in ((iceberg, str(iceberg.current_snapshot().snapshot_id)), (delta, str(delta.version()))):
        (listed,) = metastore.open(table).snapshots()
        assert (listed["snapshot"], listed["current"]) == (snapshot, True)


@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_without_statistics_all_files_are_read(tmp_path, format_):
    make = {"iceberg": make_iceberg, "delta": make_delta}[format_]
    table = make(tmp_path / "sales", 2)
    files = metastore.open(table).prune("id > 1000")
    assert (len(files), files.total, files.analyzed) == (2, 2, 0)
    assert "there are no statistics of" in files.unused["the whole filter"]
    assert "Not used: the whole filter (there are no statistics of" in repr(files)


@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_statistics_of_a_table_that_was_here_before_are_not_used(request, format_):
    table = request.getfixturevalue(format_)
    store = describe_iceberg(table) if format_ == "iceberg" else describe_delta(table)
    identity = store.identity
    other = type(identity)(identity.format, "00000000-0000-4000-8000-000000000000", identity.location, identity.name)
    type(store)(other, store.files, 2).write("1")
    files = metastore.open(table).prune("id > 1000")
    assert len(files) == 5
    assert "dropped and created again" in files.unused["the whole filter"]


def test_a_file_of_another_size_is_another_file(delta):
    written = read_store(delta.table_uri.removeprefix("file://").rstrip("/"))
    written.files[0].size += 1
    written.files[1].rows += 1
    store = written.folder.parent
    for folder in ("log", "objects"):
        for file in (written.folder / folder).iterdir():
            file.unlink()
    written.write(str(delta.version()))
    reasons = [verdict.reason for verdict in metastore.open(DeltaTable(store)).prune("id > 1000").verdicts]
    assert sorted(reasons) == ["KEPT_COLUMN_UNKNOWN", "KEPT_FILE_UNKNOWN", "SKIPPED", "SKIPPED", "SKIPPED"]


def test_files_with_deletes_are_named(iceberg, delta, monkeypatch):
    from pyiceberg.table import DataScan  # noqa: PLC0415 - of this case alone

    tasks = list(iceberg.scan().plan_files())
    tasks[0].delete_files.add(tasks[1].file)
    monkeypatch.setattr(DataScan, "plan_files", lambda _: tasks)
    files = metastore.open(iceberg).prune("id >= 0")
    assert files.with_deletes == [tasks[0].file.file_path.removeprefix("file://")]
    assert "1 with deletes" in repr(files)

    def refuses(_):
        raise ValueError("PyIceberg does not yet support equality deletes")

    monkeypatch.setattr(DataScan, "plan_files", refuses)
    assert len(metastore.open(iceberg).prune("id < 15").with_deletes) == 2
    assert metastore.open(delta).prune("id < 15").with_deletes == []


def test_a_location_is_asked_for_what_was_analyzed(iceberg, delta):
    here = metastore.open(iceberg.location()).prune("id < 5")
    assert (len(here), here.total, here.current) == (1, 5, None)
    assert "perhaps not current" in repr(here)
    there = metastore.open(delta.table_uri).prune("id < 5")
    assert (len(there), there.total, there.current, there.snapshot) == (1, 5, None, str(delta.version()))


def test_a_folder_is_listed_when_it_is_asked(tmp_path):
    root = tmp_path / "files"
    root.mkdir()
    for number in range(3):
        pq.write_table(rows(number * 10, number * 10 + 10), root / f"{number}.parquet")
        os.utime(root / f"{number}.parquet", (1e9, 1e9))
    describe_parquet_folder(root).write("1")
    statistics = metastore.open(root)
    assert statistics.prune("id = 25").paths == [str(root / "2.parquet")]
    pq.write_table(rows(100, 110), root / "3.parquet")
    os.utime(root / "0.parquet", (1e9 + 1, 1e9 + 1))  # replaced by rows that compress alike
    (root / "1.parquet").unlink()
    files = statistics.prune("id = 25")
    assert [(verdict.path.rpartition("/")[2], verdict.reason) for verdict in files.verdicts] == [
        ("0.parquet", "KEPT_FILE_UNKNOWN"),
        ("2.parquet", "KEPT_MAY_MATCH"),
        ("3.parquet", "KEPT_FILE_UNKNOWN"),
    ]
    assert statistics.prune("id = 25 AND id < 3").scan_paths == [files.paths[0], files.paths[2]]


def move(folder, to):
    folder.rename(to)


def link(folder, to):
    to.symlink_to(folder)


@pytest.mark.parametrize("bring", [shutil.copytree, move, link])
def test_files_are_where_the_folder_is_and_not_where_it_was(tmp_path, delta, bring):
    root, there, old = tmp_path / "files", tmp_path / "there", Path(delta.table_uri.removeprefix("file://"))
    root.mkdir()
    for number in range(3):
        pq.write_table(rows(number * 10, number * 10 + 10), root / f"{number}.parquet")
    describe_parquet_folder(root).write("1")
    bring(root, there)
    pq.write_table(rows(20, 30), there / "new.parquet")
    of_folder = metastore.open(there)
    assert of_folder.location == str(there)
    assert str(there) in repr(of_folder.prune("id = 25"))
    assert of_folder.prune("id = 25").paths == [str(there / "2.parquet"), str(there / "new.parquet")]
    assert metastore.open(there / "_metastore").prune("id = 25").paths == of_folder.prune("id = 25").paths
    before = metastore.open(delta).prune("id < 5").paths
    bring(old, tmp_path / "sales there")
    pruned = metastore.open(f"file:{tmp_path}/sales there").prune("id < 5")
    assert pruned.paths == [path.replace(str(old), f"{tmp_path}/sales there") for path in before]


def test_what_no_engine_can_read_is_no_data_file(tmp_path):
    root = tmp_path / "files"
    root.mkdir()
    pq.write_table(rows(0, 10), root / "0.parquet")
    describe_parquet_folder(root).write("1")
    (root / "empty.parquet").touch()
    (root / "away.parquet").symlink_to("/nowhere/x")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe")
    (root / "a" / "b").mkdir(parents=True)
    pq.write_table(rows(0, 10), root / "a" / "b" / "0.parquet")
    files = metastore.open(root).prune("id = 5")
    assert files.paths == [str(root / "0.parquet")]
    assert count_rows(files.paths, "id = 5") == 1
    assert pl.scan_parquet(files.scan_paths).filter(pl.col("id") == 5).collect().height == 1


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        ("s = '日本'", ["ä", "日本"]),
        ("s = 'ä' AND id = 0", ["ä"]),
        ("s LIKE '日%' AND id = 1", ["日本"]),
        ("s IS NULL", ["ä", "日本"]),
        ("s = 'plain' AND id > 1", ["plain"]),
        ("s <> 'plain' AND id > 1", ["a b"]),
        ("s = 'a b'", ["a b", "ä", "日本"]),
    ],
)
def test_folders_of_other_letters_are_read_as_spark_or_as_others_read_them(tmp_path, filter_, expected):
    names = ["ä", "日本", "plain", "a b"]
    table = pa.table({"id": range(4), "s": names})
    pa.dataset.write_dataset(table, tmp_path / "t", format="parquet", partitioning=["s"], partitioning_flavor="hive")
    written = describe_parquet_folder(tmp_path / "t")
    column = Column(key='["s"]', path=("s",), type="string", encoding="binary")
    for file in written.files:
        value = unquote(file.path.partition("/")[0].removeprefix("s="), "latin-1").encode()  # as Spark reads it
        file.columns[column] = {"rows": 1, "nulls": 0, "nans": 0, "distinct": 1, **bounds(value, value)}
    written.write("1")
    paths = metastore.open(tmp_path / "t").prune(filter_).paths
    assert sorted(unquote(path.split("/")[-2]).removeprefix("s=") for path in paths) == expected
    matching = duckdb.read_parquet(str(tmp_path / "t" / "s=*" / "*.parquet"), hive_partitioning=True).filter(filter_)
    assert {row[0] for row in matching.project("s").fetchall()} <= {*expected}


def test_the_names_of_folders_have_percent_signs_too(tmp_path):
    folder = tmp_path / "a%3Ab=%C3%A4"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "0.parquet")
    written = describe_parquet_folder(tmp_path)
    column = Column(key='["a:b"]', path=("a:b",), type="string", encoding="binary")
    value = "Ã¤".encode()
    written.files[0].columns[column] = {"rows": 1, "nulls": 0, "nans": 0, "distinct": 1, **bounds(value, value)}
    written.write("1")
    assert [len(metastore.open(tmp_path).prune(filter_)) for filter_ in ("`A:b` = 'ä'", "id = 2")] == [1, 0]


def test_engines_get_a_file_where_none_is_left(delta):
    files = metastore.open(delta).prune("id > 1000")
    assert (files.paths, len(files.scan_paths), bool(files)) == ([], 1, False)
    assert count_rows(files.scan_paths, "id > 1000") == 0
    assert {verdict.reason for verdict in files.verdicts} == {"SKIPPED"}
    assert files.explain()[0]["statistic"] == "id"
    with pytest.raises(InvalidArgument, match="is no data file of"):
        files.why("elsewhere.parquet")


def test_damage_keeps_files(delta):
    root = delta.table_uri.removeprefix("file://").rstrip("/")
    for file in os.scandir(f"{root}/_metastore/objects"):
        if file.name.startswith("summary"):
            with Path(file.path).open("r+b") as stream:
                stream.write(b"damaged")
    files = metastore.open(delta).prune("id > 1000")
    assert len(files) == 5
    assert "could not be read" in files.unused["id"]


def test_what_cannot_be_asked_says_so(tmp_path, monkeypatch):
    with pytest.raises(InvalidArgument, match="Give a location, a pyiceberg Table or a DeltaTable"):
        metastore.open(object())
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoStatistics):
        metastore.open(tmp_path / "empty").prune("id > 1")
    root = tmp_path / "files"
    root.mkdir()
    pq.write_table(rows(0, 1), root / "0.parquet")
    describe_parquet_folder(root).write("1")
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(LibraryNotFound, match="pip install sqlglot"):
        metastore.open(root).prune("id > 1")
