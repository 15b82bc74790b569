"""ANALYZE into a store on S3: tasks and driver write with the credentials of Spark's own configuration."""

from __future__ import annotations

import pytest

import metastore
from metastore.errors import StoreNotWritable
from metastore.store import Store
from metastore.store.verification import list_unchecked, verify_manifest
from store import s3

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def address():
    with s3.running() as server:
        yield server


@pytest.fixture
def settings(spark, address):
    settings = {
        "spark.metastore.store": f"s3a://{s3.BUCKET}/central",
        "fs.s3a.access.key": s3.KEY,
        "fs.s3a.secret.key": s3.SECRET,
        "fs.s3a.endpoint": address,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.endpoint.region": "us-east-1",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield spark.conf
    for key in settings:
        spark.conf.unset(key)


@pytest.mark.parametrize("how", ["python", "sql"])
def test_analyze_into_s3(spark, table, settings, address, capfd, how):
    spark.sql(f"CREATE TABLE {table} (id INT, name STRING) USING iceberg")
    spark.sql(f"INSERT INTO {table} SELECT CAST(id AS INT), concat('n', id) FROM range(100)")
    if how == "python":
        metastore.analyze(spark, table, progress=False)
    else:
        spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
    uuid = _uuid(spark, table)
    store = Store.open(f"s3a://{s3.BUCKET}/central/iceberg-{uuid}", access=s3.access(address))
    manifest = store.read()
    assert manifest.snapshots[-1].rows == 100
    checked = list(verify_manifest(store, manifest))
    assert {finding.state for finding in [*checked, *list_unchecked(store, checked)]} == {"ok"}
    assert spark.table(table).where("id = 7").count() == 1  # this Spark has no S3A: planned without statistics
    output = "".join(capfd.readouterr())
    assert s3.SECRET not in output


def test_wrong_addresses_are_one_clear_error(spark, table, settings, capfd):
    spark.conf.set("spark.metastore.store", "s3a://nowhere/central")
    spark.sql(f"CREATE TABLE {table} (id INT) USING iceberg")
    spark.sql(f"INSERT INTO {table} VALUES (1)")
    with pytest.raises(metastore.MetastoreError) as refused:
        metastore.analyze(spark, table, progress=False)
    assert isinstance(refused.value, StoreNotWritable) or "NOT_READABLE" in str(refused.value)
    assert s3.SECRET not in str(refused.value) + "".join(capfd.readouterr())


def _uuid(spark, table):
    loaded = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    return loaded.uuid().toString()
