"""Automatic ANALYZE after writes: in each format, by each statement that writes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lakes
import metastore
from auto.checks import NUMBERS, PATIENCE, becomes, has_values, is_analyzed, warnings_of
from formats.kinds import FORMATS, KINDS, ROW
from lakes import SPARK
from metastore.format.manifest import Manifest
from metastore.store import Store
from metastore.store.claims import claim
from metastore.store.location import default_store_uri
from pipeline.blocked import blocked, wait_until, wake
from planner.plans import conf, files_read
from processes.drivers import needs_proc

if TYPE_CHECKING:
    from pyspark.sql import Row

pytestmark = pytest.mark.spark


def manifests(spark, kind, name: str) -> list[Manifest]:
    """All that were committed, oldest first."""
    log = Path(kind.location(spark, name).removeprefix("file:")) / "_metastore" / "log"
    return [Manifest.from_bytes(file.read_bytes()) for file in sorted(log.glob("*.json"))]


WRITES = {
    "insert": "INSERT INTO {t} SELECT {row} FROM range(100, 200)",
    "overwrite": "INSERT OVERWRITE {t} SELECT {row} FROM range(100, 200)",
    "update": "UPDATE {t} SET v = 8 WHERE id = 7",
    "delete": "DELETE FROM {t} WHERE id % 2 = 1",
    "merge": "MERGE INTO {t} t USING (SELECT {row} FROM range(90, 120)) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET v = 9 WHEN NOT MATCHED THEN INSERT *",
}


@pytest.mark.parametrize(
    "write",
    [write if write in ("insert", "merge") else pytest.param(write, marks=pytest.mark.slow) for write in WRITES],
)
def test_a_statement_returns_when_its_files_are_analyzed(spark, kind, table, write):
    with conf(spark, spark__metastore__analyze__auto="wait"):
        spark.sql(WRITES[write].format(t=table, row=ROW))
    assert is_analyzed(spark, table)
    df = spark.sql(f"SELECT * FROM {table} WHERE id = 5000")
    assert (df.collect(), files_read(df)) == ([], [0])
    if kind.format != "hudi":
        df = spark.sql(f"SELECT * FROM {table} WHERE id % 1000 = 500")
        assert (df.collect(), files_read(df)) == ([], [0])


def test_it_goes_on_in_the_background(spark, kind, table):
    with conf(spark, spark__metastore__analyze__auto="background"):
        for start in (100, 200, 300):
            spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range({start}, {start + 50}, 1, 1)")
        assert becomes(has_values, spark, table)
    assert len(metastore.files(spark, table)) >= (1 if kind.format == "hudi" else 4)


def test_the_background_reads_footers_before_data(spark, kind, table):
    with conf(spark, spark__metastore__analyze__auto="background"):
        spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range(100, 200, 1, 1)")
        assert becomes(has_values, spark, table)
    first, *_, last = manifests(spark, kind, table)
    assert {block.computed for block in first.blocks} == {"footer"}
    assert {block.computed for block in last.blocks} == {"full"}
    assert first.snapshots[-1].id == last.snapshots[-1].id


def test_what_another_driver_is_at_is_left_to_it(spark, kind, table):
    store_uri = default_store_uri(kind.location(spark, table))
    with claim(Store.open(store_uri, writable=True), "full"):
        with conf(spark, spark__metastore__analyze__auto="wait", spark__metastore__analyze__auto__timeout="1s"):
            spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range(100, 200, 1, 1)")
        assert not is_analyzed(spark, table)
        assert Store.open(store_uri).read() is None
    assert becomes(has_values, spark, table)


@pytest.mark.parametrize(("said", "expected"), [("true", True), ("false", False)])
def test_a_table_speaks_for_itself(spark, kind, table, said, expected):
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('metastore.analyze.auto' = '{said}')")
    with conf(spark, spark__metastore__analyze__auto="off" if expected else "wait"):
        spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range(100, 200)")
    assert becomes(has_values, spark, table) if expected else not is_analyzed(spark, table)


@pytest.mark.slow
@pytest.mark.skipif("iceberg" not in FORMATS, reason="of tables by path one format is enough")
def test_writers_of_data_frames(spark, tmp_path):
    rows = spark.sql(f"SELECT {ROW} FROM range(100)")
    path = str(tmp_path / "by_path")
    with conf(spark, spark__metastore__analyze__auto="wait"):
        rows.writeTo("ice.db.auto_created").using("iceberg").create()
        rows.writeTo("ice.db.auto_created").append()
        rows.write.format("delta").save(path)
        rows.write.format("delta").mode("append").save(path)
        spark.sql(f"CREATE TABLE auto_as_select USING delta AS SELECT {ROW} FROM range(10)")
        rows.write.format("delta").mode("overwrite").saveAsTable("auto_saved")
        rows.write.insertInto("auto_saved")
    try:
        for name in ("ice.db.auto_created", f"delta.`{path}`", "auto_as_select", "auto_saved"):
            assert is_analyzed(spark, name), name
    finally:
        for name in ("ice.db.auto_created", "auto_as_select", "auto_saved"):
            spark.sql(f"DROP TABLE {name}")


needs_iceberg = pytest.mark.skipif("iceberg" not in FORMATS, reason="of Iceberg")


@pytest.fixture
def make_table(spark):
    """Makes Iceberg tables of one data file that nobody analyzed."""
    made = []

    def make(name: str) -> str:
        made.append(f"ice.db.{name}_{next(NUMBERS)}")
        spark.sql(f"CREATE TABLE {made[-1]} (id BIGINT) USING iceberg")
        spark.sql(f"INSERT INTO {made[-1]} SELECT id FROM range(0, 10, 1, 1)")
        return made[-1]

    yield make
    for name in made:
        spark.sql(f"DROP TABLE {name}")


@needs_iceberg
def test_a_catalog_of_one_format_takes_the_provider_for_that_of_files(spark):
    rows = spark.sql(f"SELECT {ROW} FROM range(100)")
    try:
        with conf(spark, spark__metastore__analyze__auto="wait"):
            spark.sql(f"CREATE TABLE ice.db.auto_of_parquet USING parquet AS SELECT {ROW} FROM range(10)")
            rows.write.saveAsTable("ice.db.auto_saved")
            assert is_analyzed(spark, "ice.db.auto_saved")
            rows.write.mode("overwrite").saveAsTable("ice.db.auto_saved")
        assert is_analyzed(spark, "ice.db.auto_saved")
        assert is_analyzed(spark, "ice.db.auto_of_parquet")
    finally:
        for name in ("ice.db.auto_of_parquet", "ice.db.auto_saved"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


@needs_iceberg
@pytest.mark.parametrize(("said", "expected"), [("true", True), ("false", False)])
def test_a_table_that_is_replaced_still_speaks_for_itself(spark, said, expected):
    name = f"ice.db.auto_replaced_{next(NUMBERS)}"
    said = f"TBLPROPERTIES ('metastore.analyze.auto' = '{said}')"
    spark.sql(f"CREATE TABLE {name} USING iceberg {said} AS SELECT {ROW} FROM range(10)")
    assert becomes(has_values, spark, name) if expected else not is_analyzed(spark, name)
    try:
        with conf(spark, spark__metastore__analyze__auto="off" if expected else "wait"):
            spark.sql(f"CREATE OR REPLACE TABLE {name} USING iceberg AS SELECT {ROW} FROM range(20)")
        assert becomes(has_values, spark, name) if expected else not is_analyzed(spark, name)
    finally:
        spark.sql(f"DROP TABLE {name}")


@needs_iceberg
def test_the_log_of_the_driver_names_a_misspelt_property_once(spark, make_table):
    name = make_table("auto_misspelt")
    properties = "'metastore.analyze.auto' = 'true', 'metastore.analyze.atuo' = 'true'"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({properties})")
    with warnings_of(spark, "org.metastore.spark.conf.MetastoreConf") as warnings:
        for start in (10, 20):
            spark.sql(f"INSERT INTO {name} SELECT id FROM range({start}, {start + 10}, 1, 1)")
    problem = "there is no such table property. Did you mean metastore.analyze.auto?"
    expected = f"[METASTORE_INVALID_SETTING] metastore.analyze.atuo of {name}: {problem}"
    assert [line for line in warnings if name in line] == [expected]
    assert becomes(has_values, spark, name)


@pytest.mark.slow
@needs_iceberg
@needs_proc
def test_statements_that_people_type_do_not_wait_for_it(spark, make_table):
    slow, typed = make_table("auto_slow"), make_table("auto_typed")
    (file,) = spark.table(f"{slow}.files").collect()
    with ThreadPoolExecutor(1) as threads, blocked(file.file_path):
        with conf(spark, spark__metastore__analyze__auto="background"):
            spark.sql(f"INSERT INTO {slow} SELECT id FROM range(10, 20, 1, 1)")
        wait_until(lambda: spark.sparkContext.statusTracker().getActiveJobsIds(), "the job runs")
        statement = f"ANALYZE TABLE {typed} COMPUTE STATISTICS FOR ALL COLUMNS"
        report = threads.submit(lambda: spark.sql(statement).collect()[0]).result(PATIENCE)
        assert (report["files"], is_analyzed(spark, slow)) == (1, False)
        wait_until(lambda: wake(file.file_path), "the job reads the file")
    assert is_analyzed(spark, typed)


@pytest.fixture
def called(spark):
    """An Iceberg table of three data files, and how a session that waits for ANALYZE calls a procedure."""
    name = f"ice.db.auto_called_{next(NUMBERS)}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    for start in range(3):
        spark.sql(f"INSERT INTO {name} SELECT id FROM range({start}, {start + 1}, 1, 1)")

    def call(procedure: str, arguments: str, **settings: str) -> list[Row]:
        waiting = {"spark__metastore__analyze__auto": "wait", "spark__metastore__analyze__auto__timeout": "600s"}
        with conf(spark, **{**waiting, **settings}):
            return spark.sql(f"CALL ice.system.{procedure}({arguments.format(t=name.removeprefix('ice.'))})").collect()

    yield name, call
    spark.sql(f"DROP TABLE {name} PURGE")


REWRITE = "rewrite_data_files", "options => map('rewrite-all', 'true'), table => '{t}'"


@needs_iceberg
def test_a_procedure_that_rewrites_files(spark, called):
    name, call = called
    assert call(*REWRITE)[0].rewritten_data_files_count == 3
    assert len(metastore.files(spark, name)) == 1
    assert has_values(spark, name)
    assert len(metastore.snapshots(spark, name)) == 1


@needs_iceberg
def test_a_procedure_for_a_table_that_asks_for_it(spark, called):
    name, call = called
    call(*REWRITE, spark__metastore__analyze__auto="off")
    assert not is_analyzed(spark, name)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('metastore.analyze.auto' = 'true')")
    call(*REWRITE, spark__metastore__analyze__auto="off")
    assert becomes(has_values, spark, name)


@pytest.mark.slow
@needs_iceberg
def test_procedures_that_make_files_live(spark, called, tmp_path):
    name, call = called
    spark.range(10, 20).coalesce(1).write.parquet(str(tmp_path / "files"))
    call("add_files", f"'{{t}}', '`parquet`.`{tmp_path}/files`'")
    assert len(metastore.files(spark, name)) == 4
    assert has_values(spark, name)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    with conf(spark, spark__wap__id="staged"):
        spark.sql(f"INSERT INTO {name} SELECT id FROM range(30, 40)")
    assert is_analyzed(spark, name)
    call("publish_changes", "'{t}', 'staged'")
    assert spark.table(name).count() == 23
    assert has_values(spark, name)


@pytest.mark.skipif("hudi" not in lakes.FORMATS, reason="of Hudi")
@pytest.mark.parametrize(
    ("kind_of_table", "call"),
    [
        ("cow", "run_clustering(table => '{t}')"),
        ("mor", "run_compaction(op => 'scheduleandexecute', table => '{t}', options => '{o}')"),
    ],
)
def test_procedures_of_hudi(spark, kind_of_table, call):
    name = f"auto_called_{kind_of_table}"
    properties = f"'type' = '{kind_of_table}', 'primaryKey' = 'id'"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v INT) USING hudi TBLPROPERTIES ({properties})")
    try:
        spark.sql(f"INSERT INTO {name} SELECT id, 1 FROM range(0, 100, 1, 1)")
        spark.sql(f"UPDATE {name} SET v = 2 WHERE id < 10")
        before = [row["path"] for row in metastore.files(spark, name)]
        with conf(spark, spark__metastore__analyze__auto="wait"):
            spark.sql(f"CALL {call.format(t=name, o='hoodie.compact.inline.max.delta.commits=1')}")
        assert {row["path"] for row in metastore.files(spark, name)}.isdisjoint(before)
        assert is_analyzed(spark, name)
    finally:
        spark.sql(f"DROP TABLE {name}")


@needs_iceberg
def test_procedures_without_new_files_are_left_alone(spark, called):
    name, call = called
    metastore.analyze(spark, name, progress=False)
    first = metastore.snapshots(spark, name)[0]["snapshot"]
    spark.sql(f"INSERT INTO {name} SELECT id FROM range(50, 60, 1, 1)")
    before = manifests(spark, KINDS["iceberg"], name)
    with conf(spark, spark__metastore__analyze__auto="wait"):
        if SPARK != "3.5":  # which cannot explain it
            spark.sql(f"EXPLAIN CALL ice.system.rewrite_data_files('{name.removeprefix('ice.')}')").collect()
        with pytest.raises(Exception, match="no_such"):
            spark.sql("CALL ice.system.rewrite_data_files('db.no_such_table')")
    call("rewrite_manifests", "'{t}', false")
    call("rollback_to_snapshot", f"'{{t}}', {first}")
    assert manifests(spark, KINDS["iceberg"], name) == before
    df = spark.sql(f"SELECT * FROM {name} WHERE id = 1")
    assert ([row.id for row in df.collect()], files_read(df)) == ([1], [1])


@pytest.mark.skipif("iceberg" not in FORMATS, reason="Delta has a statement for it")
def test_files_that_are_rewritten(spark):
    spark.sql("CREATE TABLE auto_optimized (id BIGINT) USING delta")
    try:
        for start in range(3):
            spark.sql(f"INSERT INTO auto_optimized SELECT id FROM range({start}, {start + 1}, 1, 1)")
        with conf(spark, spark__metastore__analyze__auto="wait"):
            spark.sql("OPTIMIZE auto_optimized").collect()
        assert len(metastore.files(spark, "auto_optimized")) == 1
        assert is_analyzed(spark, "auto_optimized")
    finally:
        spark.sql("DROP TABLE auto_optimized")


@pytest.mark.slow
@pytest.mark.skipif("iceberg" not in FORMATS, reason="Delta has statements for it")
@pytest.mark.parametrize("by_path", [False, True])
def test_files_that_are_restored(spark, tmp_path, by_path):
    name, location_clause = (f"delta.`{tmp_path}/t`", "") if by_path else ("auto_restored", f"LOCATION '{tmp_path}/t'")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v INT) USING delta {location_clause}")
    try:
        for value in (1, 2):
            spark.sql(f"INSERT OVERWRITE {name} SELECT id, {value} FROM range(0, 10, 1, 1)")
        with conf(spark, spark__metastore__analyze__auto="wait"):
            spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 1").collect()
            assert is_analyzed(spark, name)
        assert [row.v for row in spark.sql(f"SELECT DISTINCT v FROM {name}").collect()] == [1]
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_a_write_succeeds_whatever_becomes_of_its_analysis(spark, kind, table):
    with conf(spark, spark__metastore__analyze__auto="wait", spark__metastore__store="/proc/nowhere"):
        spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range(100, 200)")
    assert spark.table(table).count() == 200
    with conf(spark, spark__metastore__analyze__auto="wait", spark__metastore__analyze__auto__timeout="0s"):
        spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range(200, 300)")
    assert spark.table(table).count() == 300
    assert becomes(has_values, spark, table)


def test_what_writes_nothing_or_is_switched_off_is_left_alone(spark, kind, table):
    with conf(spark, spark__metastore__analyze__auto="wait", spark__metastore__enabled="false"):
        spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range(100, 200)")
    with conf(spark, spark__metastore__analyze__auto="wait"):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')")
        spark.sql(f"SELECT count(*) FROM {table}").collect()
        plan = spark.sql(f"EXPLAIN INSERT INTO {table} SELECT {ROW} FROM range(100, 200)").first()[0]
    assert "AnalyzeAfterWrite" in plan
    assert not is_analyzed(spark, table)
