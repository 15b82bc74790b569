"""Iceberg tables of format version 3, as pyiceberg has opened them."""

from __future__ import annotations

import pytest

import metastore

pyiceberg_table = pytest.importorskip("pyiceberg.table")

pytestmark = pytest.mark.spark

TABLE = "ice.db.engines_vectors"
PROPERTIES = "'format-version' = '3', 'write.delete.mode' = 'merge-on-read'"


@pytest.fixture
def vectors(spark):
    """An analyzed table of three data files, of which one has a deletion vector."""
    spark.sql(f"CREATE TABLE {TABLE} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ({PROPERTIES})")
    for start in range(0, 30, 10):
        spark.sql(f"INSERT INTO {TABLE} SELECT id, 's' || id FROM range({start}, {start} + 10, 1, 1)")
    metastore.analyze(spark, TABLE, progress=False)
    spark.sql(f"DELETE FROM {TABLE} WHERE id = 15")
    logged = spark.sql(f"SELECT file FROM {TABLE}.metadata_log_entries ORDER BY timestamp").collect()
    yield pyiceberg_table.StaticTable.from_metadata(logged[-1][0].removeprefix("file:"))
    spark.sql(f"DROP TABLE {TABLE}")


def test_data_files_with_deletion_vectors_are_named(spark, vectors):
    opened = metastore.open(vectors)
    files = opened.prune("id BETWEEN 12 AND 22")
    assert (len(files), files.total, files.analyzed, files.current) == (2, 3, 3, True)
    deleted = spark.sql(f"SELECT DISTINCT _file FROM {TABLE} WHERE id = 14").first()[0]
    assert files.with_deletes == [deleted.removeprefix("file:")]
    assert opened.summary().column("id")["max"] == 29
    assert {snapshot["current"] for snapshot in opened.snapshots()} == {False}
