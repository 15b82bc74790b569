"""Position deletes, deletion vectors, equality deletes: statistics stay physical, counts are live."""

from __future__ import annotations

import pytest

import metastore
from pipeline.checks import both, check_table
from pipeline.internals import delete_where_equal

pytestmark = pytest.mark.spark


def _create(spark, table, version, granularity="partition"):
    spark.sql(
        f"CREATE TABLE {table} (id INT, p STRING) USING iceberg PARTITIONED BY (p) TBLPROPERTIES ("
        f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read', "
        f"'write.delete.granularity' = '{granularity}')"
    )
    for start in (0, 100):
        spark.sql(
            f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ CAST(id AS INT), concat('p', id % 2) "
            f"FROM range({start}, {start + 100})"
        )


@pytest.mark.parametrize(
    ("version", "granularity"), [pytest.param(2, "partition", marks=pytest.mark.campaign), (2, "file"), (3, "file")]
)
def test_deletes_by_position(spark, table, version, granularity):
    _create(spark, table, version, granularity)
    metastore.analyze(spark, table, progress=False)
    first = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()[-1].snapshot_id
    for low, high in ((5, 15), (12, 20), (150, 151)):
        spark.sql(f"DELETE FROM {table} WHERE id BETWEEN {low} AND {high}")
    report = metastore.analyze(spark, table, progress=False)
    assert (report.files_read, report.rows, report.committed) == (0, 200 - 18, True)
    stored = check_table(spark, table)
    assert not stored.snapshot.exact
    assert stored.snapshot.physical_rows == 200
    assert stored.snapshot.live_size_bytes < stored.snapshot.size_bytes
    spark.sql(f"CALL ice.system.rollback_to_snapshot('{table}', {first})")
    assert metastore.analyze(spark, table, progress=False).rows == 200


def test_a_table_upgraded_from_position_deletes_to_deletion_vectors(spark, table):
    _create(spark, table, 2)
    spark.sql(f"DELETE FROM {table} WHERE id IN (1, 2, 3)")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '3')")
    spark.sql(f"DELETE FROM {table} WHERE id IN (3, 4, 5, 101)")
    assert metastore.analyze(spark, table, progress=False).rows == 194
    check_table(spark, table)


def test_equality_deletes(spark, table):
    _create(spark, table, 2)
    spark.sql(f"DELETE FROM {table} WHERE id IN (50, 52)")
    delete_where_equal(spark, table, "p0", [50, 60, 999])
    report = metastore.analyze(spark, table, progress=False)
    assert report.rows == 197
    check_table(spark, table)


def test_merged_and_updated_rows(spark, table):
    _create(spark, table, 3)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.merge.mode' = 'merge-on-read')")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT CAST(id AS INT) AS id FROM range(190, 210)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET p = 'new' WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 'new')"
    )
    assert metastore.analyze(spark, table, progress=False).rows == 210
    check_table(spark, table)


def test_counts_are_those_of_live_rows_or_unknown(spark, warehouse, table):
    spark.sql(
        f"CREATE TABLE {table} (id INT, few INT, some INT, none INT) USING iceberg TBLPROPERTIES ("
        "'format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    spark.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 1, IF(id % 4 = 0, NULL, 1), NULL "
        "FROM range(100)"
    )

    def counted(**arguments):
        names = ("count", "null_count", "null_percentage", "approx_unique", "top_count", "distinct_error", "exact")
        found = both(spark, warehouse, table, **arguments)
        return {name: tuple(row[one] for one in names) for name, row in found.items()}

    def check(live, *, some, exact, error):
        path = metastore.files(spark, table)[0]["path"]
        expected = {
            "id": (live, 0, 0.0, live, 1 if exact else None, error, exact),
            "few": (live, 0, 0.0, 1, live, error, exact),
            "some": (live, *some, error, exact),
            "none": (live, live, 100.0, 0, None, error, exact),
        }
        assert counted() == counted(file=path) == expected

    metastore.analyze(spark, table, progress=False)
    check(100, some=(25, 25.0, 1, 75), exact=True, error=0.0)
    spark.sql(f"DELETE FROM {table} WHERE id < 90")
    metastore.analyze(spark, table, progress=False)
    check(10, some=(None, None, 1, None), exact=False, error=None)
