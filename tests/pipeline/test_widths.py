"""Bins of equal width where they are asked for: the same by SQL, by location and in the data source."""

from __future__ import annotations

import pytest

import metastore
from pipeline.checks import location

pytestmark = pytest.mark.spark


@pytest.fixture
def filled(spark, table):
    spark.sql(f"CREATE TABLE {table} (id BIGINT, name STRING, price DOUBLE) USING iceberg")
    _append(spark, table, 0)
    spark.conf.set("spark.metastore.histogram.kind", "equi_width")
    spark.conf.set("spark.metastore.histogram.bins", "10")
    yield table
    spark.conf.unset("spark.metastore.histogram.kind")
    spark.conf.unset("spark.metastore.histogram.bins")


def _append(spark, table, start):
    spark.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id * id, concat('k-', lpad(id, 4, '0')), "
        f"IF(id % 10 = 3, double('NaN'), id / 4) FROM range({start}, {start + 100})"
    )


def test_shown_alike_and_merged(spark, filled):
    metastore.analyze(spark, filled, progress=False)
    opened = metastore.open(location(spark, filled))
    bars = list(opened.histogram("id"))
    assert [(row["lo"], row["hi"]) for row in bars][:2] == [("0", "980"), ("980", "1960")]
    assert [row["count"] for row in bars] == [32, 13, 10, 8, 8, 6, 6, 6, 5, 6]
    path = opened.files()[0]["path"]
    assert [row["count"] for row in opened.histogram("id", file=path)] == [32, 13, 10, 8, 8, 6, 6, 6, 5, 6]
    for column in ("id", "name", "price"):
        for file in (None, path):
            assert list(metastore.histogram(spark, filled, column, file=file)) == list(
                opened.histogram(column, file=file)
            )
    assert sum(row["count"] for row in opened.histogram("price")) == 90
    kinds = spark.read.format("metastore").option("view", "histograms").load(filled).select("kind").distinct().collect()
    assert [row.kind for row in kinds] == ["equi_width"]


def test_files_of_both_kinds_make_bins_of_equal_width(spark, filled):
    spark.conf.unset("spark.metastore.histogram.kind")
    metastore.analyze(spark, filled, progress=False)
    spark.conf.set("spark.metastore.histogram.kind", "equi_width")
    _append(spark, filled, 100)
    metastore.analyze(spark, filled, progress=False)
    bars = list(metastore.open(location(spark, filled)).histogram("id"))
    edges = [int(row["hi"]) for row in bars]
    assert edges == [39_601 * i // 10 for i in range(1, 11)]
    ranks = [sum(n * n <= edge for n in range(200)) for edge in edges]
    total = 0
    for row, rank in zip(bars, ranks, strict=True):
        total += row["count"]
        assert abs(total - rank) <= 10 + 32
    assert total == 200
