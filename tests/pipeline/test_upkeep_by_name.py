"""`verify`, `gc` and `compact` by table name say what they say by location."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

import metastore
from metastore.errors import InvalidArgument, NoStatistics, TableNotFound
from metastore.pipeline import rounds
from metastore.pipeline.request import AnalyzeStatement

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def location(spark, table, warehouse):
    spark.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg")
    for start in (0, 10, 20):
        spark.sql(f"INSERT INTO {table} SELECT id FROM range({start}, {start + 10}, 1, 1)")
        metastore.analyze(spark, table, progress=False)
    return warehouse / "db" / table.rpartition(".")[2]


def rows(answer):
    return answer.to_dict()["rows"]


def left_behind(store: Path) -> Path:
    leftover = store / "log" / ".00000000-0000-4000-8000-000000000000.tmp"
    leftover.write_bytes(b"half")
    os.utime(leftover, (0, 0))
    return leftover


def test_they_answer_as_by_location(spark, table, location):
    garbage = left_behind(location / "_metastore")
    assert rows(metastore.verify(spark, table)) == rows(metastore.verify(str(location)))
    assert rows(metastore.gc(spark, table)) == rows(metastore.gc(str(location)))
    assert [row["path"] for row in metastore.gc(spark, table, delete=True)] == [f"log/{garbage.name}"]
    assert not garbage.exists()
    done = metastore.compact(spark, table)
    assert (done["subject"], done["blocks_before"], done["blocks_after"], done["committed"]) == (table, 3, 1, True)
    assert metastore.compact(str(location))["committed"] is False
    assert metastore.summary(spark, table).column("id")["max"] == 29


def test_a_central_store_is_found_by_the_session_s_setting(spark, table, location, tmp_path):
    spark.conf.set("spark.metastore.store", str(tmp_path))
    try:
        with pytest.raises(NoStatistics):
            metastore.verify(spark, table)
        metastore.analyze(spark, table, progress=False)
        assert rows(metastore.verify(spark, table)) == rows(metastore.verify(str(tmp_path), table))
    finally:
        spark.conf.unset("spark.metastore.store")


@pytest.mark.parametrize("verb", ["verify", "gc", "compact"])
def test_a_table_without_statistics(spark, table, warehouse, verb):
    spark.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg")
    argument_sets = [{"delete": True}, {}] if verb == "gc" else [{}]
    for options in argument_sets:
        with pytest.raises(NoStatistics, match=table):
            getattr(metastore, verb)(spark, table, **options)
    assert not (warehouse / "db" / table.rpartition(".")[2] / "_metastore").exists()


def test_statistics_of_a_dropped_table_are_not_those_of_its_successor(spark, table, location):
    backup = location.with_name("kept")
    (location / "_metastore").rename(backup)
    spark.sql(f"DROP TABLE {table} PURGE")
    spark.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg")
    backup.rename(location / "_metastore")
    for verb in (metastore.verify, metastore.compact):
        with pytest.raises(NoStatistics):
            verb(spark, table)
    assert rows(metastore.gc(spark, table)) == []


def test_names_that_stand_for_nothing(spark):
    with pytest.raises(TableNotFound):
        metastore.gc(spark, "ice.db.nothing_here")
    with pytest.raises(InvalidArgument, match="no table is named"):
        metastore.verify(spark)


@pytest.mark.parametrize(("days", "every", "remaining"), [(2, 1, 2), (0.5, 1, 4), (2, 3, 4)])
def test_writes_that_are_followed_leave_nothing_that_is_old(
    spark, table, location, monkeypatch, days, every, remaining
):
    monkeypatch.setattr(rounds, "_TIDY_EVERY", every)
    log = location / "_metastore" / "log"
    for file in (location / "_metastore").rglob("*.*"):
        os.utime(file, (time.time() - days * 86_400,) * 2)
    spark.sql(f"INSERT INTO {table} SELECT id FROM range(30, 40, 1, 1)")
    assert rounds.run_in_turn(
        spark, AnalyzeStatement(table=table, columns=None, partition={}, depth="full"), progress=False
    ).committed
    assert len(list(log.glob("*.json"))) == remaining
    assert {row["state"] for row in rows(metastore.verify(spark, table))} == {"ok"}
    assert metastore.summary(spark, table).column("id")["max"] == 39
