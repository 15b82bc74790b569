"""Queries that may never lose a row, even if the statistics lie: writes, streams, and everything switched off."""

from __future__ import annotations

import pytest

from metastore.jvm_session import find_shim_package
from planner import written
from planner.conftest import append
from planner.plans import check, conf, files_read, labels, physical, query_number, rows

pytestmark = pytest.mark.spark
COLUMNS = "id bigint, v int, s string, x double, d date, n decimal(12,2), st struct<a: int, b: string>"


def lying(spark, table: str) -> None:
    """Statistics that look right and are wrong: no file holds the values that it holds."""
    written.describe_iceberg_table(spark, table).change("id", written.shifted).write("1")


@pytest.fixture(params=["copy-on-write", "merge-on-read"])
def lied_about(request, spark, new_table):
    modes = [f"'write.{verb}.mode' = '{request.param}'" for verb in ("delete", "update", "merge")]
    table = new_table(COLUMNS, *modes)
    append(spark, table, 0, 400, 4)
    lying(spark, table)
    assert len(spark.sql(f"SELECT * FROM {table} WHERE id = 5").collect()) == 0, "the statistics do not lie"
    with conf(spark, spark__metastore__pruning__rowLevel="off"):
        yield table


def test_delete_reaches_its_rows(spark, lied_about):
    spark.sql(f"DELETE FROM {lied_about} WHERE id < 50")
    assert query_number(spark, f"SELECT count(*) FROM {lied_about}") == 350
    spark.sql(f"DELETE FROM {lied_about} WHERE id IN (SELECT id FROM {lied_about} WHERE id < 60)")
    assert query_number(spark, f"SELECT count(*) FROM {lied_about}") == 340


def test_update_reaches_its_rows(spark, lied_about):
    spark.sql(f"UPDATE {lied_about} SET v = -1 WHERE id BETWEEN 90 AND 110")
    assert query_number(spark, f"SELECT count(*) FROM {lied_about} WHERE v = -1") == 21
    newest = f"(SELECT max(id) FROM {lied_about} WHERE id < 20)"
    spark.sql(f"UPDATE {lied_about} SET v = -2 WHERE id = {newest}")
    assert query_number(spark, f"SELECT count(*) FROM {lied_about} WHERE v = -2") == 1


def test_merge_reaches_its_rows(spark, lied_about):
    source = f"(SELECT id, v FROM {lied_about} WHERE id < 20)"
    spark.sql(
        f"MERGE INTO {lied_about} t USING {source} s ON t.id = s.id AND t.id >= 10 WHEN MATCHED THEN UPDATE SET v = -3"
    )
    assert query_number(spark, f"SELECT count(*) FROM {lied_about} WHERE v = -3") == 10


def test_inserts_read_every_row(spark, lied_about, new_table):
    target = new_table("id bigint, v int")
    spark.sql(f"INSERT INTO {target} SELECT id, v FROM {lied_about} WHERE id < 50")
    assert query_number(spark, f"SELECT count(*) FROM {target}") == 50
    spark.sql(f"INSERT OVERWRITE {target} SELECT id, v FROM {lied_about} WHERE id < 60")
    assert query_number(spark, f"SELECT count(*) FROM {target}") == 60
    spark.sql(f"INSERT INTO {target} SELECT 1, 1 WHERE 5 IN (SELECT id FROM {lied_about} WHERE id = 5)")
    assert query_number(spark, f"SELECT count(*) FROM {target}") == 61
    spark.sql(f"CREATE TABLE {target}_as USING iceberg AS SELECT * FROM {lied_about} WHERE id < 70")
    assert query_number(spark, f"SELECT count(*) FROM {target}_as") == 70
    spark.sql(f"DROP TABLE {target}_as")


def test_reads_inside_inserts_are_pruned_where_asked(spark, analyzed, new_table):
    target = new_table("id bigint, v int")
    with conf(spark, spark__metastore__pruneInsideWrites=True):
        spark.sql(f"INSERT INTO {target} SELECT id, v FROM {analyzed} WHERE id < 50")
        explained = spark.sql(f"EXPLAIN INSERT INTO {target} SELECT id, v FROM {analyzed} WHERE id < 50").first()[0]
    assert query_number(spark, f"SELECT count(*) FROM {target}") == 50
    assert "[Metastore: 4 -> 1 files]" in explained
    explained = spark.sql(f"EXPLAIN INSERT INTO {target} SELECT id, v FROM {analyzed} WHERE id < 50").first()[0]
    assert "->" not in explained
    assert "pruneInsideWrites is false" in explained


def test_row_level_commands_never_prune_their_target(spark, lied_about):
    with conf(spark, spark__metastore__pruneInsideWrites=True):
        spark.sql(f"DELETE FROM {lied_about} WHERE id < 50 AND v >= 0")
    assert query_number(spark, f"SELECT count(*) FROM {lied_about}") == 350


@pytest.mark.parametrize("mode", ["conditions", "all"])
def test_a_command_keeps_the_rows_that_it_does_not_name(spark, lied_about, mode):
    """Statistics that lie may hide rows from a command: rows beside these are in files that it replaces."""
    source = f"(SELECT id, v FROM {lied_about} WHERE id < 20)"
    merge = f"MERGE INTO {lied_about} t USING {source} s ON t.id = s.id WHEN MATCHED THEN DELETE"
    with conf(spark, spark__metastore__pruning__rowLevel=mode):
        spark.sql(f"DELETE FROM {lied_about} WHERE id < 50")
        spark.sql(f"UPDATE {lied_about} SET v = 7 WHERE id IN (3, 103, 203)")
        spark.sql(merge)
    assert query_number(spark, f"SELECT count(*) FROM {lied_about} WHERE id >= 50") == 350
    assert query_number(spark, f"SELECT count(DISTINCT id) - count(*) FROM {lied_about}") == 0


def test_streams_are_left_alone(spark, lied_about, tmp_path):
    query = (
        spark.readStream.format("iceberg").load(lied_about).where("id < 50")
        .writeStream.format("memory").queryName("planner_stream")
        .option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    assert spark.sql("SELECT count(*) FROM planner_stream").first()[0] == 50


def test_switched_off_the_plan_is_that_of_a_spark_without_us(spark, analyzed):
    query = f"SELECT id, v FROM {analyzed} WHERE id = 5"
    for setting in ("spark__metastore__enabled",):
        with conf(spark, **{setting: False}):
            df = spark.sql(query)
            assert "Metastore" not in physical(df)
            relation = df._jdf.queryExecution().optimizedPlan().collectLeaves().head()
            assert relation.scan().getClass().getSimpleName() == "SparkBatchQueryScan"
            assert relation.relation().table().getClass().getSimpleName() == "SparkTable"
            assert len(df.collect()) == 1
            assert files_read(df) == [4]


def test_pruning_alone_can_be_switched_off(spark, analyzed):
    with conf(spark, spark__metastore__pruning__enabled=False):
        df = check(spark, f"SELECT * FROM {analyzed} WHERE id = 5", [4])
        assert labels(df) == ["spark.metastore.pruning.enabled is false"]
    with conf(spark, spark__metastore__pruning__enabled=False, spark__metastore__cbo__enabled=False):
        assert "Metastore" not in physical(spark.sql(f"SELECT * FROM {analyzed} WHERE id = 5"))


def test_damaged_statistics_never_fail_a_query(spark, analyzed):
    folder = written.describe_iceberg_table(spark, analyzed).folder
    for file in (folder / "objects").iterdir():
        file.write_bytes(b"\0" * file.stat().st_size)
    df = spark.sql(f"SELECT * FROM {analyzed} WHERE id = 5")
    assert len(rows(df)) == 1
    manifest = next((folder / "log").iterdir())
    manifest.write_bytes(manifest.read_bytes()[:-3])
    df = check(spark, f"SELECT * FROM {analyzed} WHERE id = 6", [4])
    assert "damaged" in physical(df)


def test_a_query_goes_on_where_memory_ends_and_not_where_it_is_cancelled(spark):
    recoverable = find_shim_package(spark).reason.Recoverable
    java = spark._jvm.java.lang
    of_memory = (java.OutOfMemoryError("x"), java.StackOverflowError())
    for failure in (*of_memory, java.NoSuchMethodError("x"), java.IllegalStateException("x")):
        assert recoverable.unapply(failure).isDefined()
    assert not recoverable.unapply(java.InterruptedException("x")).isDefined()
