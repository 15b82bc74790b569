"""The files that ANALYZE reads: first run, repetition, appends, columns added, compaction, tables made again."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

import metastore
from metastore.adapters import refusals
from metastore.errors import NoStatistics
from metastore.pipeline import block_task, rounds
from metastore.pipeline.request import AnalyzeStatement
from metastore.store.claims import claim
from pipeline.checks import Stored, check_table, location

pytestmark = pytest.mark.spark


@pytest.fixture
def filled(spark, table):
    spark.sql(f"CREATE TABLE {table} (id INT, name STRING, price DOUBLE) USING iceberg")
    _append(spark, table, 0)
    _append(spark, table, 100)
    return table


def _append(spark, table, start):
    spark.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ CAST(id AS INT), concat('n', id % 7), "
        f"IF(id % 10 = 3, NULL, id / 4) FROM range({start}, {start + 100})"
    )


def test_everything_is_right_after_one_run(spark, filled):
    report = metastore.analyze(spark, filled, progress=False)
    assert (report.files, report.files_read, report.files_total) == (2, 2, 2)
    assert (report.rows, report.columns, report.committed) == (200, 3, True)
    stored = check_table(spark, filled)
    assert stored.snapshot.computed == "full"
    assert stored.snapshot.exact
    assert report.bytes_read == stored.snapshot.size_bytes


def test_repeating_reads_nothing_and_commits_nothing(spark, filled):
    metastore.analyze(spark, filled, progress=False)
    before = Stored.of(spark, filled)
    for depth in ("full", "footer", "files"):
        report = metastore.analyze(spark, filled, progress=False, depth=depth)
        assert (report.files_read, report.committed, report.objects) == (0, False, 0)
    assert Stored.of(spark, filled).manifest == before.manifest


def test_after_an_append_only_the_new_file_is_read(spark, filled):
    metastore.analyze(spark, filled, progress=False)
    _append(spark, filled, 200)
    report = metastore.analyze(spark, filled, progress=False)
    assert (report.files_read, report.files, report.rows) == (1, 3, 300)
    assert len(check_table(spark, filled).manifest.snapshots) == 2


def test_the_columns_of_a_large_file_are_shared_by_tasks(spark, table, monkeypatch):
    monkeypatch.setattr(block_task, "_BYTES_PER_TASK", 1 << 8)
    spark.sql(f"CREATE TABLE {table} (id INT, name STRING, price DOUBLE) USING iceberg")
    for files in (1, 2):
        _append(spark, table, 100 * files)
        report = metastore.analyze(spark, table, progress=False)
        assert (report.files_read, report.files, report.rows) == (1, files, 100 * files)
        stored = check_table(spark, table)
        assert [len(block.columns) for block in stored.manifest.blocks] == [1, 1, 1] * files
    assert metastore.analyze(spark, table, progress=False).files_read == 0


def test_what_another_driver_analyzed_before_the_claim_is_not_read_again(spark, filled, monkeypatch):
    statement = AnalyzeStatement(table=filled, columns=None, partition={}, depth="full")

    @contextmanager
    def claim_late(store, depth):
        assert rounds.run_statement(spark, statement, progress=False).committed
        with claim(store, depth) as is_ours:
            yield is_ours

    monkeypatch.setattr(rounds, "claim", claim_late)
    report = rounds.run_in_turn(spark, statement, progress=False)
    assert (report.files_read, report.committed) == (0, False)


def test_a_rollback_is_followed_without_reading(spark, filled):
    metastore.analyze(spark, filled, progress=False)
    first = Stored.of(spark, filled).snapshot.id
    _append(spark, filled, 200)
    metastore.analyze(spark, filled, progress=False)
    spark.sql(f"CALL ice.system.rollback_to_snapshot('{filled.removeprefix('ice.')}', {first})")
    report = metastore.analyze(spark, filled, progress=False)
    assert (report.files_read, report.committed, Stored.of(spark, filled).snapshot.id) == (0, True, first)
    assert metastore.analyze(spark, filled, progress=False).committed is False
    check_table(spark, filled)


def test_for_columns_adds_columns_to_files_already_analyzed(spark, filled):
    metastore.analyze(spark, filled, columns=["name"], progress=False)
    assert set(Stored.of(spark, filled).table()) == {"name"}
    report = metastore.analyze(spark, filled, columns=["PRICE"], progress=False)
    assert report.columns == 2
    assert set(Stored.of(spark, filled).table()) == {"name", "price"}
    metastore.analyze(spark, filled, progress=False)
    check_table(spark, filled)


def test_a_partition_columns_values_are_counted_from_footers_alone(spark, table):
    spark.sql(f"CREATE TABLE {table} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p)")
    spark.sql(
        f"INSERT INTO {table} SELECT id, element_at(array('p0', 'p1', NULL), CAST(id % 3 AS INT) + 1) FROM range(30)"
    )
    metastore.analyze(spark, table, depth="footer", progress=False)
    summary = Stored.of(spark, table).table()["p"]
    assert (summary["lo"], summary["hi"], summary["nulls"], summary["distinct"]) == ("p0", "p1", 10, 2)
    with pytest.raises(NoStatistics):
        metastore.frequencies(spark, table, "p")
    metastore.analyze(spark, table, progress=False)
    assert [(row["value"], row["frequency"]) for row in metastore.frequencies(spark, table, "p")] == [
        ("p0", 10),
        ("p1", 10),
    ]


def test_depths_only_deepen(spark, filled):
    report = metastore.analyze(spark, filled, depth="files", progress=False)
    assert (report.files_read, report.columns, report.rows) == (0, 0, 200)
    assert Stored.of(spark, filled).snapshot.computed == "files"
    metastore.analyze(spark, filled, depth="footer", progress=False)
    footer = Stored.of(spark, filled)
    assert footer.snapshot.computed == "footer"
    assert (footer.table()["id"]["lo"], footer.table()["id"]["hi"]) == (0, 199)
    assert footer.table()["price"]["lo"] is None
    metastore.analyze(spark, filled, progress=False)
    assert metastore.analyze(spark, filled, depth="footer", progress=False).committed is False
    full = check_table(spark, filled)
    assert full.snapshot.computed == "full"
    assert [block.computed for block in full.manifest.blocks] == ["full"]


def test_files_rewritten_by_compaction_are_read_and_the_old_ones_ignored(spark, filled):
    metastore.analyze(spark, filled, progress=False)
    spark.sql(f"CALL ice.system.rewrite_data_files(table => '{filled}', options => map('rewrite-all', 'true'))")
    report = metastore.analyze(spark, filled, progress=False)
    assert (report.files_read, report.files_total, report.rows) == (1, 1, 200)
    check_table(spark, filled)


def test_a_table_made_again_begins_anew(spark, filled):
    metastore.analyze(spark, filled, progress=False)
    old = Stored.of(spark, filled).manifest
    spark.sql(f"CREATE OR REPLACE TABLE {filled} (id INT) USING iceberg")
    replaced = metastore.analyze(spark, filled, progress=False)
    assert (replaced.files_total, replaced.rows) == (0, 0)
    spark.sql(f"DROP TABLE {filled}")
    spark.sql(f"CREATE TABLE {filled} (id INT, name STRING, price DOUBLE) USING iceberg")
    _append(spark, filled, 0)
    report = metastore.analyze(spark, filled, progress=False)
    new = check_table(spark, filled).manifest
    assert report.files_read == 1
    assert new.table.uuid != old.table.uuid
    assert {block.id for block in new.blocks}.isdisjoint(block.id for block in old.blocks)


def test_a_table_never_written_is_no_error(spark, table):
    spark.sql(f"CREATE TABLE {table} (id INT) USING iceberg")
    report = metastore.analyze(spark, table, progress=False)
    assert (report.files_total, report.rows, report.snapshot, report.committed) == (0, 0, "none", True)
    assert metastore.analyze(spark, table, progress=False).committed is False
    assert Stored.of(spark, table).snapshot.rows == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["files", "summary", "sketches"])
def test_damaged_objects_are_computed_again(spark, filled, kind):
    metastore.analyze(spark, filled, progress=False)
    (damaged,) = Path(location(spark, filled)).glob(f"_metastore/objects/{kind}-*.parquet")
    damaged.write_bytes(b"damage" + damaged.read_bytes()[6:])
    _append(spark, filled, 500)
    report = metastore.analyze(spark, filled, progress=False)
    assert (report.files_read, report.files) == (3, 3)
    check_table(spark, filled)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["files", "summary", "sketches"])
def test_a_statement_about_one_column_restores_what_a_damaged_block_held_of_the_others(spark, filled, kind):
    metastore.analyze(spark, filled, progress=False)
    _damage(spark, filled, kind)
    _append(spark, filled, 500)
    report = metastore.analyze(spark, filled, columns=["id"], progress=False)
    assert report.refused == ()
    # A damaged list of files may have held the new file too.
    assert metastore.analyze(spark, filled, progress=False).files_read == (0 if kind == "files" else 1)
    check_table(spark, filled)


@pytest.mark.slow
@pytest.mark.parametrize("depth", ["files", "footer"])
def test_a_statement_that_reads_no_data_leaves_a_damaged_block_and_says_so(spark, filled, depth):
    metastore.analyze(spark, filled, progress=False)
    _damage(spark, filled, "summary")
    _append(spark, filled, 500)
    report = metastore.analyze(spark, filled, depth=depth, progress=False)
    assert [refusal.reason for refusal in report.refused] == [refusals.DAMAGED]
    assert len(Stored.of(spark, filled).manifest.blocks) > 1
    assert metastore.analyze(spark, filled, progress=False).refused == ()
    check_table(spark, filled)


def _damage(spark, table, kind):
    (damaged,) = Path(location(spark, table)).glob(f"_metastore/objects/{kind}-????????-*.parquet")
    damaged.write_bytes(b"damage" + damaged.read_bytes()[6:])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "files_read"),
    [("files", 2), ("summary", 2), ("sketches", 2), ("table-files", 0), ("table-summary", 0), ("table-sketches", 0)],
)
def test_lost_objects_are_replaced_though_nothing_changed(spark, filled, kind, files_read):
    metastore.analyze(spark, filled, progress=False)
    (lost,) = Path(location(spark, filled)).glob(f"_metastore/objects/{kind}-????????-*.parquet")
    lost.write_bytes(lost.read_bytes()[:-1])
    report = metastore.analyze(spark, filled, progress=False)
    assert (report.files_read, report.files, report.committed) == (files_read, 2, True)
    check_table(spark, filled)
    assert metastore.analyze(spark, filled, progress=False).committed is False
