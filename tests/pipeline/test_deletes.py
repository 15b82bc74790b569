"""Position deletes, deletion vectors, equality deletes: statistics stay physical, counts are live."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import metastore
from formats.spoiled_files import garble_pages
from metastore.adapters import iceberg
from pipeline.checks import Stored, both, check_table
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


def test_many_paths_are_looked_up_in_a_hash_table(spark, table, monkeypatch):
    monkeypatch.setattr(iceberg, "_MOST_COMPARISONS", 1)
    _create(spark, table, 2, "file")
    metastore.analyze(spark, table, progress=False)
    spark.sql(f"DELETE FROM {table} WHERE id BETWEEN 5 AND 15")
    assert metastore.analyze(spark, table, progress=False).rows == 200 - 11
    check_table(spark, table)


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


@contextmanager
def hidden(paths):
    """Data files and delete files out of reach: who opens one of them fails."""
    moved = [(Path(path), Path(f"{path}.hidden")) for path in paths]
    for path, away in moved:
        path.rename(away)
    yield
    for path, away in moved:
        away.rename(path)


def find_paths(spark, table, metadata_table="data_files"):
    """The paths of a table's files by partition."""
    rows = spark.sql(
        f"SELECT partition.p AS p, file_path FROM {table}.{metadata_table} ORDER BY record_count"
    ).collect()
    bounds = {}
    for row in rows:
        bounds.setdefault(row.p, []).append(row.file_path)
    return bounds


@pytest.fixture(autouse=True)
def few_paths(monkeypatch):
    """Conditions on paths are cut into parts as those on hundreds are."""
    monkeypatch.setattr(iceberg, "_COMPARED_PATHS", 1)


def analyze_unchanged(spark, table, rows):
    """ANALYZE of a table whose files are all out of reach, in every form."""
    everything = [*find_paths(spark, table).values(), *find_paths(spark, table, "delete_files").values()]
    with hidden(path for paths in everything for path in paths):
        for form in ("FOR ALL COLUMNS", "", "NOSCAN", "FOR COLUMNS id"):
            (report,) = spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS {form}").collect()
            result = (report.files_read, report.bytes_read, report.committed, report.rows)
            assert result == (0, 0, False, rows), form


def test_equality_deletes_are_counted_once_and_only_in_the_files_that_they_may_change(spark, table):
    _create(spark, table, 2)
    assert metastore.analyze(spark, table, progress=False).files_read == 4
    delete_where_equal(spark, table, "p0", [50, 999])
    files = find_paths(spark, table)
    with hidden(files["p1"]):
        report = metastore.analyze(spark, table, progress=False)
    assert (report.rows, report.committed, report.files_read) == (199, True, 2)
    assert report.bytes_read == sum(Path(path).stat().st_size for path in files["p0"])
    check_table(spark, table)
    analyze_unchanged(spark, table, 199)

    delete_where_equal(spark, table, "p1", [51, 52])  # where 52 is not
    (changed,) = (path for path in files["p1"] if 51 in pq.read_table(path, partitioning=None)["id"].to_pylist())
    with hidden({*files["p0"], *files["p1"]} - {changed}):
        (report,) = spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS").collect()
    assert (report.rows, report.files_read, report.bytes_read) == (198, 1, Path(changed).stat().st_size)
    check_table(spark, table)

    delete_where_equal(spark, table, "p1", [52])  # deletes nothing
    assert metastore.analyze(spark, table, progress=False).files_read == 1
    analyze_unchanged(spark, table, 198)

    spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'p0' FROM range(300, 310)")
    with hidden(path for paths in files.values() for path in paths):
        report = metastore.analyze(spark, table, progress=False)
    assert (report.rows, report.files_read) == (208, 1)
    check_table(spark, table)


def test_lists_of_files_count_no_equality_deletes(spark, table):
    _create(spark, table, 2)
    delete_where_equal(spark, table, "p0", [50])
    with hidden(path for paths in find_paths(spark, table).values() for path in paths):
        (report,) = spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS NOSCAN").collect()
    assert (report.files, report.files_read, report.rows) == (4, 0, None)
    listed = {row["path"]: row["deleted_rows"] for row in metastore.files(spark, table)}
    assert sorted(listed.values(), key=str) == [0, 0, 0, None]  # bounds tell of the other file that 50 is not in it
    (report,) = spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS").collect()
    assert (report.files_read, report.rows, report.committed) == (4, 199, True)
    assert Stored.of(spark, table).snapshot.rows == 199


@pytest.mark.parametrize("depth", ["full", "footer"])
def test_a_data_file_whose_deleted_rows_cannot_be_counted_is_refused(spark, table, depth):
    """Spark reads it to see which of its rows are equal; the error of a garbled page does not name the file."""
    _create(spark, table, 2)
    delete_where_equal(spark, table, "p0", [50, 150])
    spoiled = next(path for path in find_paths(spark, table)["p0"] if 50 in pq.read_table(path)["id"].to_pylist())
    garble_pages(Path(spoiled))
    Path(spoiled).with_name(f".{Path(spoiled).name}.crc").unlink()
    report = metastore.analyze(spark, table, depth=depth, progress=False)
    assert {refusal.subject for refusal in report.refused} == {spoiled}
    assert any(refusal.reason.startswith("its deleted rows are not counted: Spark ") for refusal in report.refused)
    deleted = {row["path"]: row["deleted_rows"] for row in metastore.files(spark, table)}
    assert deleted.pop(spoiled) is None
    assert sorted(deleted.values()) == [0, 0, 1]


def test_data_files_with_a_garbled_delete_file_are_refused(spark, table):
    _create(spark, table, 2)
    spark.sql(f"DELETE FROM {table} WHERE id IN (50, 150)")
    spark.sql(f"DELETE FROM {table} WHERE id IN (51)")
    (garbled,) = find_paths(spark, table, "delete_files")["p0"]
    garble_pages(Path(garbled))
    Path(garbled).with_name(f".{Path(garbled).name}.crc").unlink()
    report = metastore.analyze(spark, table, progress=False)
    assert {refusal.subject for refusal in report.refused} == set(find_paths(spark, table)["p0"])
    assert all(refusal.reason.startswith("its deleted rows are not counted: Spark ") for refusal in report.refused)
    assert report.files_read == 4
    deleted = [row["deleted_rows"] for row in metastore.files(spark, table)]
    assert sorted(deleted, key=str) == [0, 1, None, None]


@pytest.mark.parametrize(
    ("version", "granularity"), [(2, "partition"), pytest.param(2, "file", marks=pytest.mark.slow), (3, "file")]
)
def test_deletes_by_position_are_counted_once(spark, table, version, granularity):
    _create(spark, table, version, granularity)
    for number in (6, 8):
        spark.sql(f"DELETE FROM {table} WHERE id = {number}")
    assert metastore.analyze(spark, table, progress=False).rows == 198
    analyze_unchanged(spark, table, 198)
    earlier = [path for paths in find_paths(spark, table, "delete_files").values() for path in paths]
    spark.sql(f"DELETE FROM {table} WHERE id = 151")
    with hidden([*earlier, *(path for paths in find_paths(spark, table).values() for path in paths)]):
        report = metastore.analyze(spark, table, progress=False)
    assert (report.rows, report.files_read, report.committed) == (197, 0, True)
    check_table(spark, table)
    analyze_unchanged(spark, table, 197)


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
        rows = both(spark, warehouse, table, **arguments)
        return {name: tuple(row[field] for field in names) for name, row in rows.items()}

    def check(live, *, is_known, exact, error):
        path = metastore.files(spark, table)[0]["path"]
        expected = {
            "id": (live, 0, 0.0, live, 1 if exact else None, error, exact),
            "few": (live, 0, 0.0, 1, live, error, exact),
            "some": (live, *is_known, error, exact),
            "none": (live, live, 100.0, 0, None, error, exact),
        }
        assert counted() == counted(file=path) == expected

    metastore.analyze(spark, table, progress=False)
    check(100, is_known=(25, 25.0, 1, 75), exact=True, error=0.0)
    spark.sql(f"DELETE FROM {table} WHERE id < 90")
    metastore.analyze(spark, table, progress=False)
    check(10, is_known=(None, None, 1, None), exact=False, error=None)
