"""Odd things in a store, seen by Spark: queries keep their rows, functions answer or say why, ANALYZE goes on."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import metastore
from metastore.errors import MetastoreError
from patience import ends_within
from store.tampering import KINDS, TAMPERINGS, tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

TABLE, OTHER = "ice.db.odd", "ice.db.odd_other"
QUICK = (
    "FIFO as the next manifest",
    "FIFO as objects",
    "link as log",
    "link as the store",
    "manifest 99999999999999999999",
)
NAMED = r"is a (symbolic link|FIFO|socket|device)"


@pytest.fixture(autouse=True)
def impatient():
    with ends_within(120):
        yield


@pytest.fixture(scope="module")
def intact_store(spark, warehouse, tmp_path_factory):
    """A copy of the store of a table, what summary says of it, and how many files it has."""
    for table in (TABLE, OTHER):
        spark.sql(f"DROP TABLE IF EXISTS {table}")
        spark.sql(f"CREATE TABLE {table} (id BIGINT, name STRING) USING iceberg")
        for i in range(4):
            spark.sql(f"INSERT INTO {table} VALUES ({i}, 'n{i}'), ({i + 10}, 'm{i}')")
            spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
    copy = tmp_path_factory.mktemp("odd") / "store"
    shutil.copytree(store_of(warehouse), copy)
    spark.conf.set("spark.metastore.cache.size", "0")
    yield copy, summary_rows(spark), by_data_source(spark)
    spark.conf.unset("spark.metastore.cache.size")
    for table in (TABLE, OTHER):
        spark.sql(f"DROP TABLE {table} PURGE")


def store_of(warehouse: Path, table: str = TABLE) -> Path:
    return warehouse / "db" / table.rpartition(".")[2] / "_metastore"


@pytest.fixture
def store(intact_store, warehouse):
    store_path = store_of(warehouse)
    yield renewed(store_path, intact_store[0])
    renewed(store_path, intact_store[0])


def renewed(store_path: Path, copy: Path) -> Path:
    for path in (store_path, *store_path.parent.glob("aside-*")):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    shutil.copytree(copy, store_path)
    return store_path


def summary_rows(spark):
    columns = "column_name", "min", "max", "count", "approx_unique"
    return spark.sql(f"SELECT {', '.join(columns)} FROM metastore.summary('{TABLE}') ORDER BY 1").collect()


def by_data_source(spark):
    return spark.read.format("metastore").option("table", TABLE).option("view", "files").load().count()


def rows(spark):
    return [row.name for row in spark.sql(f"SELECT name FROM {TABLE} WHERE id = 12").collect()]


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(tampering, id=tampering.name, marks=[] if tampering.name in QUICK else pytest.mark.campaign)
        for tampering in TAMPERINGS
    ],
)
def test_spark_refuses_it_by_name_or_passes_it_over(spark, intact_store, warehouse, store, odd):
    other = store_of(warehouse, OTHER)
    odd.make(store, other)
    before = tree(other)
    assert rows(spark) == ["m2"]
    asks = (summary_rows, by_data_source, lambda spark: metastore.analyze(spark, TABLE, progress=False, repair=True))
    analyze = f"ANALYZE TABLE {TABLE} COMPUTE STATISTICS FOR ALL COLUMNS"
    if odd.refused is not None:
        for ask in asks if odd.refused == "objects" else (*asks, lambda spark: spark.sql(analyze)):  # nothing to read
            with pytest.raises((PySparkException, MetastoreError), match=NAMED):
                ask(spark)
    else:
        assert summary_rows(spark) == intact_store[1]
        assert by_data_source(spark) == intact_store[2]
        assert "-> 1 files" in spark.sql(f"EXPLAIN SELECT name FROM {TABLE} WHERE id = 12").first()[0]
        assert metastore.analyze(spark, TABLE, ranks=["id"], progress=False).committed
        spark.sql(analyze)
        assert summary_rows(spark) == intact_store[1]
    assert rows(spark) == ["m2"]
    assert tree(other) == before


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind == "FIFO" else pytest.mark.campaign) for kind in KINDS]
)
def test_an_object_that_is_none_costs_its_statistics_alone(spark, intact_store, store, kind):
    for gone in [*(store / "objects").glob("table-summary-*"), *(store / "objects").glob("summary-*")]:
        gone.unlink()
        KINDS[kind](gone)
    assert rows(spark) == ["m2"]
    with pytest.raises(PySparkException, match="METASTORE_DAMAGED_OBJECT"):
        summary_rows(spark)
    metastore.analyze(spark, TABLE, progress=False, repair=True)
    assert summary_rows(spark) == intact_store[1]
