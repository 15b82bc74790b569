"""Functions in Python and on the JVM that the user gives versions: expressions that call them have statistics."""

from __future__ import annotations

import math

import pytest

import metastore
from metastore.errors import InvalidArgument
from planner.expressions.sample_tables import COLUMNS, ROWS, four_files
from planner.plans import check, conf, files_read

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Where the points of a file lie, no column's bounds tell.
BOX = "cell_of(lon, lat) BETWEEN 2003 AND 2004"


@pytest.fixture(autouse=True)
def without_evaluation():
    """Here values are evaluated: those of several conditions together, too."""


@pytest.fixture
def points(spark, make_table):
    spark.udf.register("cell_of", lambda x, y: math.floor(x) * 1000 + math.floor(y), "bigint")
    with conf(spark, spark__metastore__functions="cell_of:1"):
        table, _ = make_table("iceberg", *four_files())
        metastore.analyze(spark, table, progress=False, expressions=["cell_of(lon, lat)"])
        yield table


@pytest.mark.parametrize(
    "predicate",
    ["cell_of(lon, lat) = 2003", BOX, "f >= 0 AND 2003 = Cell_Of(lon, lat)", "cell_of(lon, lat) IN (2003, 5)"],
)
def test_conditions_on_a_python_function_skip_files(spark, points, predicate):
    check(spark, f"SELECT f, name, lat FROM {points} WHERE {predicate}", [1])


def test_a_function_of_a_function(spark, points):
    metastore.analyze(spark, points, progress=False, expressions=["abs(cell_of(lon, cell_of(lat, lon)))"])
    check(spark, f"SELECT f FROM {points} WHERE abs(cell_of(lon, cell_of(lat, lon))) < -1", [0])


@pytest.mark.slow
def test_another_version_is_another_function(spark, points):
    query = f"SELECT f, name, lat FROM {points} WHERE cell_of(lon, lat) = 2003"
    for other in ("cell_of:2", "", "cell_of", "cells_of:1", "cell_of:"):
        with conf(spark, spark__metastore__functions=other):
            check(spark, query, [4])
    with conf(spark, spark__metastore__functions="cell_of:2"):
        spark.udf.register("cell_of", lambda x, y: int(min(x, y, -1)), "bigint")
        check(spark, query, [4])
        metastore.analyze(spark, points, progress=False, expressions=["cell_of(lon, lat)"])
        check(spark, query, [0])


def test_new_files_and_what_is_there_already(spark, points):
    again = metastore.analyze(spark, points, progress=False, expressions=["cell_of(lon, lat)"])
    assert (again.files_read, again.committed) == (0, False)
    spark.sql(ROWS.format(file=5)).coalesce(1).writeTo(points).append()
    assert metastore.analyze(spark, points, progress=False, expressions=["cell_of(lon, lat)"]).files_read == 1
    check(spark, f"SELECT f, lat FROM {points} WHERE {BOX}", [2])


def test_without_a_version_it_is_refused_with_the_setting_that_helps(spark, points):
    spark.udf.register("other", lambda x: x, "double")
    for text in ("other(lon)", "cell_of(other(lon), lat)"):
        with pytest.raises(InvalidArgument, match=r"spark\.metastore\.functions \(other:1\)"):
            metastore.analyze(spark, points, progress=False, expressions=[text])


def test_a_function_that_is_not_deterministic_is_refused(spark, points):
    from pyspark.sql.functions import udf  # noqa: PLC0415

    spark.udf.register("cell_of", udf(lambda x, y: int(x + y), "bigint").asNondeterministic())
    with pytest.raises(InvalidArgument, match=r"not deterministic|cell_of:1"):
        metastore.analyze(spark, points, progress=False, expressions=["cell_of(lon, lat)"])
    df = spark.sql(f"SELECT f FROM {points} WHERE cell_of(lon, lat) = 2003")
    df.collect()
    assert files_read(df) == [4]


def test_a_function_on_the_jvm(spark, make_table):
    java = spark._jvm.org.apache
    java.iceberg.spark.IcebergSpark.registerBucketUDF(
        spark._jsparkSession, "bucket_of", java.spark.sql.types.DataTypes.IntegerType, 5
    )
    rows = "SELECT CAST(id AS int) a FROM range(400) WHERE bucket_of(CAST(id AS int)) = {n}"
    table, _ = make_table("iceberg", *(rows.format(n=n) for n in range(5)))
    with pytest.raises(InvalidArgument, match=r"bucket_of:1"):
        metastore.analyze(spark, table, progress=False, expressions=["bucket_of(a)"])
    with conf(spark, spark__metastore__functions=" Bucket_Of : 1 "):
        metastore.analyze(spark, table, progress=False, expressions=["bucket_of(a)"])
        check(spark, f"SELECT * FROM {table} WHERE bucket_of(a) = 3", [1])
        check(spark, f"SELECT * FROM {table} WHERE bucket_of(a + 1) = 3", [5])


def test_the_statement_takes_the_functions_of_its_session(spark, make_table):
    table, _ = make_table("iceberg", *four_files())
    spark.udf.register("cell_of", lambda x, y: math.floor(x) * 1000 + math.floor(y), "bigint")
    settings = {"spark__metastore__functions": "cell_of:1", "spark__metastore__expressions": "cell_of(lon, lat)"}
    with conf(spark, **settings):
        spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
        check(spark, f"SELECT f, lat FROM {table} WHERE {BOX}", [1])
        names = [row["column_name"] for row in metastore.summary(spark, table)]
        assert names == [*COLUMNS.split()[::2], "cell_of(lon, lat)"]
