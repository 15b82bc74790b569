"""UUIDs of Iceberg: its own skipping compares their bounds in another order than they were written in."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

import metastore
from planner.plans import conf, labels, rows

pytestmark = pytest.mark.spark

TABLE = "ice.db.uuid_columns"
LOW, HIGH, LAST = (
    f"{first}fffffff-0000-4000-{last}000-00000000abcd" for first, last in (("7", "7"), ("8", "8"), ("f", "8"))
)
LEAST = "00000000-0000-4000-8000-000000000001"
UUIDS = [[LOW, HIGH], [LOW, LAST], [LEAST, HIGH.replace("ffff", "0000")], [None, LAST]]
CONDITIONS = (
    "u = '{0}'", "u <=> '{0}'", "u IN ('{0}', '{1}')", "u < '{0}'", "u <= '{0}'", "u > '{0}'", "u >= '{0}'",
    "u <> '{0}'", "NOT (u = '{0}')", "u BETWEEN '{0}' AND '{1}'", "u = '{0}' OR id = 5", "upper(u) = upper('{0}')",
)  # fmt: skip


@pytest.fixture(scope="module")
def table(spark):
    """A table of UUIDs, partitioned by their buckets from the third file on, and the same rows as texts in memory."""
    spark.sql(f"CREATE TABLE {TABLE} (id INT) USING iceberg")
    java = spark._jvm.org.apache.iceberg
    loaded = java.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, TABLE)
    loaded.updateSchema().addColumn("u", java.types.Types.UUIDType.get()).commit()
    spark.sql(f"REFRESH TABLE {TABLE}")
    for number, values in enumerate(UUIDS):
        if number == 2:
            spark.sql(f"ALTER TABLE {TABLE} ADD PARTITION FIELD bucket(2, u)")
        listed = ", ".join(
            f"({number * 2 + at}, {'NULL' if uuid_ is None else repr(uuid_)})" for at, uuid_ in enumerate(values)
        )
        spark.sql(f"INSERT INTO {TABLE} SELECT /*+ COALESCE(1) */ * FROM VALUES {listed}")
    metastore.analyze(spark, TABLE, progress=False)
    numbered = list(enumerate(itertools.chain(*UUIDS)))
    spark.createDataFrame(numbered, "id INT, u STRING").createOrReplaceTempView("uuid_truth")
    yield TABLE
    spark.sql(f"DROP TABLE {TABLE}")
    spark.catalog.dropTempView("uuid_truth")


def test_no_row_of_an_analyzed_snapshot_is_lost(spark, table):
    for condition in CONDITIONS:
        for literal in (LOW, HIGH, LEAST):
            where = condition.format(literal, LAST)
            matching = rows(spark.sql(f"SELECT id, u FROM {table} WHERE {where}"))
            assert matching == rows(spark.sql(f"SELECT id, u FROM uuid_truth WHERE {where}")), where


def test_iceberg_alone_loses_rows(spark, table):
    """When this fails, Iceberg compares its bounds as it writes them, and may prune UUIDs again."""
    query = f"SELECT id FROM {table} WHERE u = '{LOW}' ORDER BY id"
    assert [row.id for row in spark.sql(query).collect()] == [0, 2]
    with conf(spark, spark__metastore__enabled="false"):
        assert spark.sql(query).collect() == []


def test_aggregates_order_and_joins(spark, table):
    for query in (
        "SELECT min(u), max(u), count(u), count(*) FROM {0} WHERE id >= 0",  # of all Iceberg would tell, and fails
        "SELECT u FROM {0} WHERE u IS NOT NULL ORDER BY u LIMIT 2",
        "SELECT u FROM {0} ORDER BY u DESC LIMIT 1",
        f"SELECT count(*), max(id) FROM {{0}} WHERE u <= '{LOW}'",
        f"SELECT /*+ BROADCAST(k) */ a.id FROM {{0}} a JOIN (SELECT '{LOW}' u) k ON a.u = k.u",
    ):
        assert rows(spark.sql(query.format(table))) == rows(spark.sql(query.format("uuid_truth"))), query


def test_the_plan_says_what_iceberg_is_not_asked(spark, table):
    (label,) = labels(spark.sql(f"SELECT * FROM {table} WHERE u = '{LOW}'"))
    assert "Iceberg is not asked about" in label
    (label,) = labels(spark.sql(f"SELECT * FROM {table} WHERE u IS NOT NULL AND id > 1"))
    assert "not asked" not in label


@pytest.fixture(params=["no partitions", "buckets"])
def written_by_pyiceberg(request, spark, table, warehouse, tmp_path):
    """The same rows in a table that pyiceberg wrote."""
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    types = pytest.importorskip("pyiceberg.types")
    schema = pytest.importorskip("pyiceberg.schema").Schema(
        types.NestedField(1, "id", types.IntegerType()), types.NestedField(2, "u", types.UUIDType())
    )
    name = f"{table.rpartition('.')[2]}_of_pyiceberg_{request.param.replace(' ', '_')}"
    path = warehouse / "db" / name
    catalog = catalogs.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    written = catalog.create_table(f"db.{name}", schema, location=path.as_uri())
    if request.param == "buckets":
        with written.update_spec() as spec:
            spec.add_field("u", pytest.importorskip("pyiceberg.transforms").BucketTransform(4))
    numbers = itertools.count()
    for values in UUIDS:
        stored = pa.array([value and UUID(value).bytes for value in values], pa.binary(16))
        columns = [pa.array([next(numbers) for _ in values], pa.int32()), stored.cast(pa.uuid())]
        written.append(pa.table(columns, written.schema().as_arrow()))
    # As a catalog of Hadoop finds the newest metadata.
    metadata = Path(written.metadata_location.removeprefix("file://"))
    shutil.copy(metadata, metadata.with_name("v1.metadata.json"))
    metadata.with_name("version-hint.text").write_text("1")
    yield f"ice.db.{name}"
    catalog.drop_table(f"db.{name}")
    shutil.rmtree(path)


def test_no_row_that_pyiceberg_wrote_is_lost(spark, written_by_pyiceberg):
    query = f"SELECT id FROM {written_by_pyiceberg} WHERE u = '{LOW}' ORDER BY id"
    if not written_by_pyiceberg.endswith("buckets"):  # files of one value have right bounds
        assert spark.sql(query).collect() == []  # as Iceberg alone answers
    metastore.analyze(spark, written_by_pyiceberg, progress=False)
    for condition in CONDITIONS[::2]:
        where = condition.format(LOW, LAST)
        matching = rows(spark.sql(f"SELECT id, u FROM {written_by_pyiceberg} WHERE {where}"))
        assert matching == rows(spark.sql(f"SELECT id, u FROM uuid_truth WHERE {where}")), where
    (label,) = labels(spark.sql(f"SELECT * FROM {written_by_pyiceberg} WHERE u = '{LEAST}'"))
    assert " -> 1 files" in label
