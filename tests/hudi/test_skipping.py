"""Predicates for which the skipping that Hudi 1.2.0 has on by default loses rows: docs/hudi.md is made from them."""

from __future__ import annotations

import re

import pytest

import metastore
from hudi.conftest import create, location, write
from planner.plans import conf, files_read, rows

pytestmark = pytest.mark.spark

COLUMNS = (
    "id BIGINT, s STRING, lo STRING, up STRING, i INT, d DOUBLE, t TIMESTAMP, b BIGINT, dt DATE, n DOUBLE, l STRING,"
    " ts BIGINT"
)
SPECIAL = (
    "(1, 'abc1', 'B', 'apple', -5, 10D, TIMESTAMP '2024-01-15 00:00:00', 50, DATE '2024-01-01', 5D,"
    " repeat('k', 5000), 1),"
    " (2, 'abc9', 'a', 'Z', 3, 40D, TIMESTAMP '2024-02-01 00:00:00', 70, DATE '2024-02-01', double('NaN'),"
    " concat(repeat('k', 5000), 'x'), 1)"
)
OTHER = "(3, 'zzz', 'q', 'q', 100, -100D, TIMESTAMP '2024-03-20 00:00:00', 1031, DATE '2024-03-01', -7D, 'a', 1)"
LATER = "(4, 'b', 'r', 'r', 7, 0D, TIMESTAMP '2024-04-20 00:00:00', 5000, DATE '2024-04-01', 0D, 'b', 1)"
LOST = {  # predicate: the rows that match
    "s LIKE 'abc%'": [1, 2],
    "lower(lo) = 'a'": [2],
    "upper(up) = 'APPLE'": [1],
    "i * -1 = 5": [1],
    "d / -1 < -35": [2],
    "date_format(t, 'dd') = '01'": [2],
    "from_unixtime(b, 'ss') = '10'": [2],
    "datediff(DATE '2024-02-01', dt) = 0": [2],
    "n = 5D": [1],
    "n > 8D": [2],
    "n = double('NaN')": [2],
    "l = repeat('k', 5000)": [1],
    "l LIKE 'k%'": [1, 2],
}


@pytest.fixture(scope="module")
def demonstration(spark):
    table = "hudi_demonstration"
    create(spark, table, COLUMNS)
    for values in (SPECIAL, OTHER):
        spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
    metastore.analyze(spark, table, progress=False)
    yield table
    spark.sql(f"DROP TABLE {table}")


def read(spark, path, predicate, skipping="true"):
    """By its path: a table of the catalog keeps the settings that it was first read with."""
    reader = spark.read.format("hudi").option("hoodie.enable.data.skipping", skipping)
    return reader.load(path).where(predicate).select("id")


def matching_ids(spark, table, predicate, skipping="true") -> list[int]:
    return [row.id for row in rows(read(spark, location(spark, table), predicate, skipping))]


@pytest.mark.parametrize("predicate", LOST)
def test_no_row_is_lost_where_our_statistics_cover_the_table(spark, demonstration, predicate):
    assert matching_ids(spark, demonstration, predicate) == LOST[predicate]
    assert [row.id for row in rows(spark.sql(f"SELECT id FROM {demonstration} WHERE {predicate}"))] == LOST[predicate]


def test_hudis_defaults_lose_rows(spark, demonstration):
    with conf(spark, spark__metastore__enabled="false"):
        complete = {predicate: matching_ids(spark, demonstration, predicate, skipping="false") for predicate in LOST}
        by_default = {predicate: matching_ids(spark, demonstration, predicate) for predicate in LOST}
    assert complete == LOST
    assert [predicate for predicate in LOST if by_default[predicate] == LOST[predicate]] == []


@pytest.fixture(scope="module")
def partly_analyzed(spark, tmp_path_factory):
    """The same rows, of which some columns were analyzed; then a file more, which widens the type of one of them."""
    path = str(tmp_path_factory.mktemp("partly") / "table")
    names = re.sub(r" [A-Z]+", "", COLUMNS)
    for values, f in ((SPECIAL, "CAST(1.3 AS FLOAT)"), (OTHER, "CAST(1.3 AS FLOAT)"), (LATER, "2.5D")):
        if values == LATER:
            metastore.analyze(spark, f"hudi.`{path}`", columns=["id", "s", "lo", "n", "l", "f"], progress=False)
        write(path, spark.sql(f"SELECT *, {f} AS f FROM VALUES {values} AS of({names})").coalesce(1))
    return path


BESIDE_UNKNOWN = {  # conjuncts of analyzed columns, and of columns of which the first two files are unknown
    "s LIKE 'abc%' AND b = 50": [1],
    "s LIKE 'abc%' AND f > 1D": [1, 2],
    "lower(lo) = 'a' AND b = 70": [2],
    "n = 5D AND b > 0": [1],
    "l = repeat('k', 5000) AND ts = 1": [1],
    "f = 1.3D": [1, 2, 3],
}
OF_UNKNOWN = {"b = 1031": ([3], 1), "b < 60 AND up LIKE '%e'": ([1], 1), "up = 'q' AND b > 0": ([3], 1)}


@pytest.mark.parametrize("predicate", BESIDE_UNKNOWN)
def test_columns_that_were_not_analyzed_bring_no_losses_back(spark, partly_analyzed, predicate):
    assert [row.id for row in rows(read(spark, partly_analyzed, predicate))] == BESIDE_UNKNOWN[predicate]


@pytest.mark.parametrize("predicate", OF_UNKNOWN)
def test_a_query_of_no_analyzed_column_reads_as_without_us(spark, partly_analyzed, predicate):
    ids, files = OF_UNKNOWN[predicate]
    for enabled in ("true", "false"):
        with conf(spark, spark__metastore__enabled=enabled):
            query = read(spark, partly_analyzed, predicate)
            assert [row.id for row in rows(query)] == ids, enabled
            assert files_read(query) == [files], enabled


def test_hudis_own_skipping_can_be_had_back(spark, demonstration):
    with conf(spark, spark__metastore__hudi__bypassSkipping="false"):
        assert matching_ids(spark, demonstration, "s LIKE 'abc%'") == []


@pytest.fixture(scope="module")
def in_partitions(spark, tmp_path_factory):
    """Three partitions, one with a NaN: Hudi keeps statistics of partitions too."""
    path = str(tmp_path_factory.mktemp("partitions") / "table")
    columns = (
        "id",
        "IF(id = 3, double('NaN'), double(id)) AS d",
        "concat('abc', id) AS s",
        "CAST(concat('k', id) AS BINARY) AS b",
        "CAST(id AS INT) AS x",
        "concat('p', id DIV 10) AS p",
        "id AS ts",
    )
    rows_of = spark.range(0, 30, 1, 1).selectExpr(*columns)
    write(path, rows_of, **{"hoodie.datasource.write.partitionpath.field": "p"})
    metastore.analyze(spark, f"hudi.`{path}`", progress=False)
    spark.sql(f"CREATE TABLE hudi_in_partitions USING hudi LOCATION '{path}'")
    yield path
    spark.sql("DROP TABLE hudi_in_partitions")


LOST_IN_PARTITIONS = {
    "d = 5D": 1,
    "d > 8D": 22,
    "d = double('NaN')": 1,
    "d > 1000D": 1,
    "x = 5 AND d >= 5D": 1,
    "s LIKE 'abc%'": 30,
    "p = 'p0' AND d = 5D": 1,
}


def test_statistics_of_partitions_lose_rows_without_us_alone(spark, in_partitions):
    by_path = spark.read.format("hudi").load(in_partitions)
    for where, count in LOST_IN_PARTITIONS.items():
        with conf(spark, spark__metastore__enabled="false"):
            assert len(spark.read.format("hudi").load(in_partitions).where(where).collect()) < count, where
        assert len(by_path.where(where).collect()) == count, where
        for _ in range(2):  # the catalog keeps what the first query has listed
            assert len(spark.sql(f"SELECT id FROM hudi_in_partitions WHERE {where}").collect()) == count, where


def test_hudi_cannot_compare_binary_columns_of_partitions(spark, in_partitions):
    """Hudi's rule of the optimizer fails before ours runs."""
    for enabled in ("true", "false"):
        with conf(spark, spark__metastore__enabled=enabled):
            reader = spark.read.format("hudi")
            with pytest.raises(Exception, match="HeapByteBuffer cannot be cast"):
                reader.load(in_partitions).where("b = X'6B35'").collect()
            unskipped = reader.option("hoodie.enable.data.skipping", "false").load(in_partitions)
            assert len(unskipped.where("b = X'6B35'").collect()) == 1


def test_the_record_index_loses_keys_that_were_inserted_twice(spark, tmp_path):
    """We do not use it for data files that our statistics know."""
    path = str(tmp_path / "table")
    indexed = {"hoodie.metadata.global.record.level.index.enable": "true"}
    write(path, spark.range(0, 40, 1, 4).selectExpr("id", "id AS v", "id AS ts"), **indexed)
    write(path, spark.range(10, 20, 1, 1).selectExpr("id", "-id AS v", "id AS ts"), **indexed)
    metastore.analyze(spark, f"hudi.`{path}`", progress=False)
    query = spark.read.format("hudi").load(path).where("id = 15")
    assert sorted(row.v for row in query.collect()) == [-15, 15]
    assert files_read(query) == [2]
    with conf(spark, spark__metastore__enabled="false"):
        alone = spark.read.format("hudi").load(path).where("id = 15")
        assert [row.v for row in alone.collect()] == [-15]
