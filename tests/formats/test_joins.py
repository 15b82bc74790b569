"""The keys of a join's small side choose the files of the other side when the query runs, whatever the format."""

from __future__ import annotations

import pytest

from planner.plans import conf, files_read, labels, plain, rows, scans

pytestmark = pytest.mark.spark

# Queries of a table of four files, joined with a table of ids; and the files of it that are read.
QUERIES = {
    "SELECT f.id, f.s FROM {t} f JOIN join_ids d ON f.id = d.id WHERE d.name = 'n250'": 1,
    "SELECT f.id FROM {t} f JOIN join_ids d ON f.id = d.id WHERE d.name IN ('n50', 'n350', 'none')": 2,
    "SELECT f.id FROM {t} f LEFT SEMI JOIN join_ids d ON f.id = d.id AND d.name = 'n250'": 1,
    "SELECT f.id FROM {t} f WHERE f.id IN (SELECT id FROM join_ids WHERE name = 'n250') AND f.v >= 0": 1,
    "SELECT f.id FROM {t} f JOIN join_ids d ON f.id = d.id AND f.v = d.v WHERE d.name = 'n250'": 1,
    "SELECT f.id FROM {t} f JOIN join_ids d ON f.id = d.id WHERE d.name = 'none'": 0,
    "SELECT f.id, d.name FROM {t} f LEFT JOIN join_ids d ON f.id = d.id AND d.name = 'n250'": 4,
    "SELECT f.id FROM {t} f LEFT ANTI JOIN (SELECT * FROM join_ids WHERE name = 'n250') d ON f.id = d.id": 4,
    "SELECT f.id FROM (SELECT * FROM {t} LIMIT 400) f JOIN join_ids d ON f.id = d.id WHERE d.name = 'n250'": 4,
}


@pytest.fixture
def ids(spark, tmp_path):
    """A small table of the numbers of all rows."""
    rows_of = spark.sql("SELECT id, CAST(id % 7 AS INT) v, concat('n', id) name FROM range(400)")
    rows_of.coalesce(1).write.parquet(str(tmp_path / "ids"))
    spark.read.parquet(str(tmp_path / "ids")).createOrReplaceTempView("join_ids")
    yield
    spark.catalog.dropTempView("join_ids")


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=pytest.mark.campaign)])
def test_keys_choose_files(filled, ids, adaptive):
    filled.analyze()
    spark, table = filled.spark, filled.name.rpartition(".")[2]
    with conf(spark, spark__sql__adaptive__enabled=adaptive):
        for text, files in QUERIES.items():
            query = text.format(t=filled.name)
            df = spark.sql(query)
            assert rows(df) == plain(spark, query), query
            read = [n for n, scan in zip(files_read(df), scans(df), strict=True) if table in scan.toString()]
            assert sum(read) == files, query


def test_the_plan_says_it_and_the_setting(filled, ids):
    filled.analyze()
    query = next(iter(QUERIES)).format(t=filled.name)
    assert "4 -> 4 files, join" in labels(filled.spark.sql(query))
    with conf(filled.spark, spark__metastore__pruning__join__enabled=False):
        assert not any("join" in label for label in labels(filled.spark.sql(query)))
