"""Predicates for which the skipping that Hudi 1.2.0 has on by default loses rows: docs/hudi.md is made from them."""

from __future__ import annotations

import pytest

import metastore
from hudi.conftest import create, location
from planner.plans import conf, rows

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


def found(spark, table, predicate, skipping="true") -> list[int]:
    """By its path: a table of the catalog keeps the settings that it was first read with."""
    reader = spark.read.format("hudi").option("hoodie.enable.data.skipping", skipping)
    return [row.id for row in rows(reader.load(location(spark, table)).where(predicate).select("id"))]


@pytest.mark.parametrize("predicate", LOST)
def test_no_row_is_lost_where_our_statistics_cover_the_table(spark, demonstration, predicate):
    assert found(spark, demonstration, predicate) == LOST[predicate]
    assert [row.id for row in rows(spark.sql(f"SELECT id FROM {demonstration} WHERE {predicate}"))] == LOST[predicate]


def test_hudis_defaults_lose_rows(spark, demonstration):
    with conf(spark, spark__metastore__enabled="false"):
        complete = {predicate: found(spark, demonstration, predicate, skipping="false") for predicate in LOST}
        by_default = {predicate: found(spark, demonstration, predicate) for predicate in LOST}
    assert complete == LOST
    assert [predicate for predicate in LOST if by_default[predicate] == LOST[predicate]] == []


def test_hudis_own_skipping_can_be_had_back(spark, demonstration):
    with conf(spark, spark__metastore__hudi__bypassSkipping="false"):
        assert found(spark, demonstration, "s LIKE 'abc%'") == []
