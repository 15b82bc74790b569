"""Hudi's relations on Spark 4.1, known by the names of their classes: tests/hudi has Hudi itself, on Spark 3.5."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakes import SPARK
from metastore.format.manifest import TableIdentity
from planner import written
from planner.hudi_stand_in import Hudi
from planner.plans import conf, files_read, labels, physical, rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(SPARK == "3.5", reason="the stand-in is for a Spark that Hudi's jar cannot be had for"),
]


@pytest.fixture(scope="module")
def hudi(spark):
    return Hudi(spark)


@pytest.fixture
def table(tmp_path):
    """Four base files of a hundred rows, named as Hudi names them, with true statistics."""
    root = tmp_path / "hudi"
    root.mkdir()
    for n in range(4):
        ids = list(range(n * 100, n * 100 + 100))
        keys = pa.array([f"{i:05d}" for i in ids])
        pq.write_table(pa.table({"_hoodie_record_key": keys, "id": ids}), root / name(n))
    statistics(root).write("1")
    return root


def name(number: int) -> str:
    return f"file{number}-0_{number}-1-1_20260101000000000.parquet"


def statistics(root) -> written.Written:
    plain = written.describe_parquet_folder(root)
    identity = TableIdentity("hudi", plain.identity.uuid, plain.identity.location, plain.identity.name)
    return written.Written(identity, [replace(file, modified=None) for file in plain.files])


def ids(frame) -> list[int]:
    return [row.id for row in rows(frame)]


def test_base_files_are_skipped_and_hudi_is_not_asked_about_them(hudi, table):
    index = hudi.index(table)
    for condition in ("id = 250", "_hoodie_record_key = '00250'"):
        frame = hudi.read(table, index).where(condition)
        assert ids(frame) == [250]
        assert (files_read(frame), labels(frame)) == ([1], ["4 -> 1 files"])
    assert all(filters.isEmpty() for filters in index.asked())


def test_slices_with_log_files_are_read(hudi, table):
    frame = hudi.read(table, hudi.index(table, logged=[name(0), name(3)])).where("id = 150")
    assert ids(frame) == [150]
    assert labels(frame) == ["4 -> 3 files"]


def test_hudi_is_asked_about_files_that_the_statistics_do_not_know(spark, hudi, table):
    stored_statistics = statistics(table)
    replace(stored_statistics, files=stored_statistics.files[:3], sequence=2).write("2")
    index = hudi.index(table)
    frame = hudi.read(table, index).where("id = 150")
    assert ids(frame) == [150]
    assert labels(frame) == ["4 -> 2 files"]
    assert not all(filters.isEmpty() for filters in index.asked())
    with conf(spark, spark__metastore__hudi__bypassSkipping="false"):
        index = hudi.index(table)
        assert ids(hudi.read(table, index).where("id = 150")) == [150]
        assert not any(filters.isEmpty() for filters in list(index.asked())[1:])


def test_changes_between_instants_are_left_alone(hudi, table):
    frame = hudi.read(table, hudi.index(table, of="HoodieIncrementalFileIndex")).where("id = 150")
    assert (ids(frame), labels(frame)) == ([150], [])


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"hoodie__bootstrap__base__path": "/elsewhere"}, "bootstrapped"),
        ({"hoodie__table__base__file__format": "ORC"}, "not Parquet"),
        ({"hoodie__table__create__schema": '{"logicalType": "timestamp-millis"}'}, "milliseconds"),
    ],
)
def test_tables_of_which_nothing_can_be_said_are_read_whole(hudi, table, properties, reason):
    frame = hudi.read(table, hudi.index(table, **properties)).where("id = 150")
    assert ids(frame) == [150]
    assert reason in physical(frame)
    assert "->" not in "".join(labels(frame))


def test_schema_on_read_is_refused(hudi, table):
    (table / ".hoodie/.schema").mkdir(parents=True)
    (table / ".hoodie/.schema/20260101000000000.schemacommit").touch()
    frame = hudi.read(table, hudi.index(table)).where("id = 150")
    assert ids(frame) == [150]
    assert "schema-on-read" in physical(frame)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_what_hudis_commands_read_is_not_pruned_whatever_the_statistics_say(spark, hudi, table, adaptive):
    replace(statistics(table).change("id", written.shifted), sequence=2).write("2")
    with conf(spark, spark__sql__adaptive__enabled=adaptive, spark__metastore__pruneInsideWrites="true"):
        assert hudi.read(table, hudi.index(table)).where("id = 150").count() == 0, "the statistics do not lie"
        assert hudi.counted_by_a_command(hudi.read(table, hudi.index(table)).where("id = 150")) == 1
