"""Errors of the JVM in our planning, such as a lack of memory: a query goes on, and says once what failed."""

from __future__ import annotations

import itertools
from contextlib import contextmanager

import pytest

import metastore
from auto.checks import warnings_below
from metastore.jvm_session import find_shim_package
from nightly import others_nightly
from planner.conftest import NO_METRICS
from planner.plans import conf, files_read, labels, plain, rows

pytestmark = pytest.mark.spark

ERRORS = [
    "java.lang.OutOfMemoryError",
    "java.lang.StackOverflowError",
    "java.lang.NoSuchMethodError",
    "java.lang.NoClassDefFoundError",
]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    """An Iceberg table, a directory of Parquet files and one key to join with; their statistics lie in one store."""
    folder = tmp_path_factory.mktemp("fatal")
    store = folder / "stores"
    names = {"iceberg": "ice.db.fatal_errors", "parquet": "fatal_errors"}
    spark.sql(f"CREATE TABLE {names['iceberg']} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ({NO_METRICS})")
    spark.sql(f"CREATE TABLE {names['parquet']} (id BIGINT, s STRING) USING parquet LOCATION '{folder / 'files'}'")
    spark.range(1).selectExpr("id + 210 AS id").createOrReplaceTempView("fatal_key")
    with conf(spark, spark__metastore__store=store):
        for name in names.values():
            for first in range(0, 400, 100):
                rows_of_file = f"SELECT id, 's' || id FROM range({first}, {first + 100}, 1, 1)"
                spark.sql(f"INSERT INTO {name} {rows_of_file}")
            metastore.analyze(spark, name, progress=False)
    yield names, store
    for name in names.values():
        spark.sql(f"DROP TABLE {name}")
    spark.catalog.dropTempView("fatal_key")


@contextmanager
def injected(spark, place: str, error: str):
    """Throws an error at a place of ours; it must have been thrown, and the log says so, no line twice."""
    injection = find_shim_package(spark).reason.Injection
    with warnings_below(spark, "org.metastore") as lines:
        injection.arm(place, error)
        try:
            yield
        finally:
            times = injection.disarm()
    assert times > 0, "nothing passed the place"
    failures = [line for line in lines if error.rpartition(".")[2] in line]
    assert failures, lines
    assert len(failures) == len(set(failures)), "a line comes twice"


@contextmanager
def failing_store(spark, store):
    """Statistics that are read through a file system of the tests, which nobody has opened before."""
    shim = find_shim_package(spark)
    shim.statistics.cache.StatisticsCache.clear()  # equal objects are read once, wherever they are
    settings = {
        "fs.failing.impl": shim.files.FailingFiles._fqn,
        "spark.metastore.store": f"failing://store{next(_numbers)}{store}",
    }
    with conf(spark, **{key.replace(".", "__"): value for key, value in settings.items()}):
        yield


@pytest.mark.parametrize("error", others_nightly(ERRORS))
@pytest.mark.parametrize("place", ["connect", "list log", "open log", "read log", "open objects", "read objects"])
@pytest.mark.parametrize("form", ["iceberg", "parquet"])
def test_while_statistics_are_read(spark, tables, form, place, error):
    names, store = tables
    query = f"SELECT * FROM {names[form]} WHERE id = 210"
    expected = plain(spark, query)
    assert len(expected) == 1
    with failing_store(spark, store), injected(spark, place, error):
        frame = spark.sql(query)
        assert rows(frame) == expected
        assert files_read(frame) == [4]
    with failing_store(spark, store):
        frame = spark.sql(query)
        assert rows(frame) == expected
        assert files_read(frame) == [1]


FILTERED = "SELECT * FROM {} WHERE failing(id) = 210 AND id > 5"
QUERIES = {
    "LogicalScanRule": FILTERED,
    "IcebergPruning": FILTERED,
    "PhysicalScanRule": FILTERED,
    "JoinPruningRule": "SELECT t.id, s FROM {} t JOIN fatal_key k ON failing(t.id) = k.id",
    "ours": "SELECT t.id, s FROM {} t JOIN fatal_key k ON failing(t.id) = k.id WHERE failing(t.id) > 5",
}
PLACES = [
    ("IcebergPruning", "iceberg"),
    ("LogicalScanRule", "parquet"),
    ("PhysicalScanRule", "parquet"),
    ("JoinPruningRule", "iceberg"),
    ("JoinPruningRule", "parquet"),
    ("ours", "iceberg"),
    ("ours", "parquet"),
]


@pytest.mark.parametrize("error", others_nightly(ERRORS))
@pytest.mark.parametrize(("rule", "form"), PLACES)
@pytest.mark.parametrize("adaptive", others_nightly(["true", "false"]))
def test_while_a_rule_looks_at_the_plan(spark, tables, rule, form, adaptive, error):
    names, store = tables
    find_shim_package(spark).scan.FailingIdentity.register(spark._jsparkSession, "failing")
    query = QUERIES[rule].format(names[form])
    expected = plain(spark, query)
    assert len(expected) == 1
    with conf(spark, spark__metastore__store=store, spark__sql__adaptive__enabled=adaptive):
        with injected(spark, rule, error):
            frame = spark.sql(query)
            assert rows(frame) == expected
        frame = spark.sql(query)
        assert rows(frame) == expected
        assert labels(frame)
