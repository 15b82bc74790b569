"""FOR COLUMNS a, then FOR COLUMNS b, ... ends in few blocks that say what one FOR ALL COLUMNS says."""

from __future__ import annotations

import pytest

import metastore
from metastore.store import Store, manifest_limits

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COLUMNS = ("id", "name", "price", "code", "day")


@pytest.fixture
def location(spark, table, warehouse):
    schema = "id BIGINT, name STRING, price DOUBLE, code DECIMAL(30, 2), day DATE"
    spark.sql(f"CREATE TABLE {table} ({schema}) USING iceberg")
    for start in (0, 5000):
        spark.sql(
            f"INSERT INTO {table} SELECT id, CAST(id % 700 AS STRING), id / 3, CAST(id % 50 AS DECIMAL(30, 2)), "
            f"DATE_ADD(DATE '2026-01-01', CAST(id % 30 AS INT)) FROM range({start}, {start + 5000}, 1, 1)"
        )
    return warehouse / "db" / table.rpartition(".")[2]


def answers(opened):
    volatile = ("analyzed_at", "snapshot")
    summary = opened.summary().to_dict()["rows"]
    return [
        [{name: value for name, value in row.items() if name not in volatile} for row in summary],
        opened.columns().to_dict()["rows"],
        *(
            verb(column).to_dict()["rows"]
            for verb in (opened.frequencies, opened.histogram, opened.quantiles)
            for column in COLUMNS
        ),
        *(
            function(column, file=file["path"]).to_dict()["rows"]
            for file in opened.files()
            for function in (opened.frequencies, opened.histogram)
            for column in COLUMNS
        ),
        opened.locate("id", 4711).to_dict()["rows"],
        opened.locate("name", "13").to_dict()["rows"],
    ]


def test_columns_analyzed_one_by_one(spark, table, location):
    store = Store.open(str(location / "_metastore"))
    for column in COLUMNS:
        metastore.analyze(spark, table, [column], progress=False)
    assert len(store.read().blocks) == len(COLUMNS)
    answered = answers(metastore.open(str(location)))
    metastore.compact(str(location))
    assert len(store.read().blocks) == 1
    assert {row["state"] for row in metastore.verify(str(location))} == {"ok"}
    assert answers(metastore.open(str(location))) == answered
    # The table level made of the merged block is the same too.
    (location / "_metastore" / "objects" / store.read().snapshots[-1].summary.name).unlink()
    report = metastore.analyze(spark, table, progress=False)
    assert (report.files_read, report.committed) == (0, True)
    assert answers(metastore.open(str(location))) == answered
    spark.sql(f"INSERT INTO {table} VALUES (-1, 'new', 0, 0, DATE '2020-01-01')")
    assert metastore.analyze(spark, table, progress=False).files_read == 1
    assert metastore.summary(spark, table).column("id")["min"] == -1


def test_commits_merge_them(spark, table, location, monkeypatch):
    monkeypatch.setattr(manifest_limits, "MAX_BLOCKS", 2)
    store = Store.open(str(location / "_metastore"))
    for column in COLUMNS[:4]:
        metastore.analyze(spark, table, [column], progress=False)
        assert len(store.read().blocks) <= 2
    assert metastore.analyze(spark, table, progress=False).files_read == 2
    assert not metastore.analyze(spark, table, progress=False).committed
    assert metastore.summary(spark, table).column("id")["max"] == 9999
