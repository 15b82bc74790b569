"""Iceberg, Delta and Hudi in one session on Spark 3.5: each analyzed, pruned, and joined with the others."""

from __future__ import annotations

import pytest

import gaps
import metastore
from delta import conftest as delta
from hudi.conftest import append, create
from planner.plans import conf, labels, rows

pytestmark = pytest.mark.spark

BLIND = "'write.metadata.metrics.default' = 'none', 'write.delete.mode' = 'merge-on-read'"
TABLES = {"iceberg": "ice.db.beside", "delta": "delta_beside", "hudi": "hudi_beside"}


@pytest.fixture(scope="module")
def analyzed(spark):
    """A table of each format: three files of a hundred rows."""
    spark.sql(f"CREATE TABLE {TABLES['iceberg']} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ({BLIND})")
    for start in (0, 100, 200):
        spark.sql(
            f"INSERT INTO {TABLES['iceberg']} SELECT id, concat('s', id) FROM range({start}, {start + 100}, 1, 1)"
        )
    delta.create(spark, TABLES["delta"])
    delta.append(spark, TABLES["delta"], 0, 300, 3)
    create(spark, TABLES["hudi"])
    append(spark, TABLES["hudi"], 0, 300, 3)
    for table in TABLES.values():
        spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
    yield TABLES
    for table in TABLES.values():
        spark.sql(f"DROP TABLE {table}")


@pytest.mark.parametrize("kind", TABLES)
def test_each_is_described_and_pruned(spark, analyzed, kind):
    table = analyzed[kind]
    id_summary = {row["column_name"]: row for row in metastore.summary(spark, table)}["id"]
    assert (id_summary["min"], id_summary["max"], id_summary["approx_unique"], id_summary["current"]) == (
        "0",
        "299",
        300,
        True,
    )
    frame = spark.sql(f"SELECT id FROM {table} WHERE id = 150")
    assert [row.id for row in frame.collect()] == [150]
    assert labels(frame) == ["3 -> 1 files"]
    assert metastore.analyze(spark, table, progress=False).files_read == 0


def test_joins_across_formats_have_the_same_rows_and_fewer_files(spark, analyzed):
    query = (
        "SELECT a.id, b.id, c.v FROM {iceberg} a JOIN {delta} b ON a.id = b.id JOIN {hudi} c ON b.id = c.id "
        "WHERE a.id BETWEEN 120 AND 130"
    ).format(**analyzed)
    frame = spark.sql(query)
    mine = rows(frame)
    assert len(mine) == 11
    assert labels(spark.sql(query)) == ["3 -> 1 files"] * 3
    with conf(spark, spark__metastore__enabled="false"):
        assert mine == rows(spark.sql(query))


def test_deletes_and_snapshots_of_iceberg(spark, analyzed):
    table = analyzed["iceberg"]
    first = metastore.snapshots(spark, table)[0]["snapshot"]
    spark.sql(f"DELETE FROM {table} WHERE id = 299")
    try:
        assert metastore.analyze(spark, table, progress=False).rows == 299
        assert spark.sql(f"SELECT id FROM {table} WHERE id >= 250").count() == 49
        assert spark.sql(f"SELECT id FROM {table}.snapshot_id_{first} WHERE id = 299").count() == 1
        keys = spark.createDataFrame([(7,), (299,)], "id bigint")
        assert [row.id for row in metastore.locate(spark, table, ["id"], keys).collect()] == [7]
    finally:
        spark.sql(f"INSERT INTO {table} VALUES (299, 's299')")
        metastore.analyze(spark, table, progress=False)


def test_gaps_raise_what_is_declared(spark, analyzed):
    declared = gaps.find_gap("source", "iceberg", "3.5").raised
    with pytest.raises(Exception, match=declared):
        spark.read.format("metastore").load(analyzed["iceberg"])


def test_parameters(spark, analyzed):
    named = spark.sql("SELECT value FROM metastore.frequencies(:t, 'v', 1)", args={"t": analyzed["hudi"]})
    assert named.count() == 1
    assert spark.sql(f"SELECT count(*) FROM {analyzed['delta']} WHERE id < ?", args=[10]).first()[0] == 10
