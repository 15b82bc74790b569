"""SUM, AVG and counts by the values of a column that the statistics answer."""

from __future__ import annotations

import random

import pytest

import metastore
from formats.kinds import FORMATS
from planner.aggregates.answered import DECIDED, LEAVES, SUMMED, compare, condition, is_answered, new_name
from planner.plans import labels

pytestmark = pytest.mark.spark

GROUPED = [
    "SELECT i AS k, count(*) AS n, count(i) + 1 FROM {t} GROUP BY i HAVING count(*) > 0 ORDER BY n, k LIMIT 9",
    "SELECT count(*) FROM {t} GROUP BY flag",
    "SELECT DISTINCT flag FROM {t}",
    "SELECT count(*) FROM (SELECT DISTINCT id FROM {t})",
    "SELECT k, count(*), 'x' FROM (SELECT st.b AS k, id FROM {t} WHERE id < 200) GROUP BY k",
    "SELECT max(n), count(*) FROM (SELECT zero, count(1) AS n FROM {t} GROUP BY zero)",
    "SELECT a.flag, a.n FROM (SELECT flag, count(*) n FROM {t} GROUP BY flag) a JOIN {t} b ON b.id = a.n",
    "SELECT flag, flag AS again, count(flag) FROM {t} GROUP BY flag",
    "SELECT i, count(*) FROM {t} WHERE id < -5 GROUP BY i",
]


def test_sums_and_means(spark, table):
    for where in DECIDED:
        sums = ", ".join(f"sum({leaf}), avg({leaf})" for leaf in SUMMED)
        compare(spark, f"SELECT {sums}, sum(nothing), avg(nothing) FROM {table} {where}", answered=True)
    assert not is_answered(spark.sql(f"SELECT sum(x) FROM {table}"))


def test_groups(spark, table):
    for query in GROUPED:
        compare(spark, query.format(t=table), answered=None if "JOIN" in query else True)
    query = f"SELECT flag, count(*) FROM {table} WHERE id >= 100 GROUP BY flag"
    assert labels(spark.sql(query)) == ["3 files answered, 0 read"]


@pytest.mark.skipif("iceberg" not in FORMATS, reason="lists are read alike for all formats")
def test_lists_of_other_columns_are_no_hindrance(spark):
    """They stand beside those of the column, and are too many to be merged."""
    name = "ice.db.aggregates_beside"
    rows = spark.range(0, 120_000, 1, 30).selectExpr("id", "id DIV 4000 AS k")
    rows.writeTo(name).using("iceberg").tableProperty("write.distribution-mode", "none").create()
    try:
        metastore.analyze(spark, name, progress=False)
        compare(spark, f"SELECT k, count(*) FROM {name} GROUP BY k", answered=True)
        compare(spark, f"SELECT count(DISTINCT k) FROM {name}", answered=True)
        compare(spark, f"SELECT count(DISTINCT id) FROM {name} WHERE id >= 10000", read=[3])
    finally:
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.slow
def test_groups_of_every_type(spark, table):
    for leaf in LEAVES:
        query = f"SELECT {leaf}, count(*), count({leaf}) FROM {table} WHERE id >= 100 GROUP BY {leaf}"
        compare(spark, query, answered=None if leaf == "long" else True)


@pytest.mark.slow
def test_sums_that_depend_on_their_order(spark, kind, tmp_path):
    """A part of the values can be too much, or a double cannot hold it: Spark adds them as it does without us."""
    name = new_name(kind)
    kind.create(spark, name, tmp_path / "table", "id BIGINT, n BIGINT, m BIGINT, d DECIMAL(38,0), e DECIMAL(5,1)")
    try:
        row = (
            "id, if(id % 2 = 0, 1, -1) * (9223372036854775807 - id DIV 2) AS n, 9007199254740990 + id AS m,"
            " CAST(if(id % 2 = 0, 1, -1) AS DECIMAL(38,0)) * 50000000000000000000000000000000000000BD AS d,"
            " CAST(id / 2 AS DECIMAL(5,1)) AS e"
        )
        kind.append(spark, name, 0, 8, row=row)
        metastore.analyze(spark, name, progress=False)
        for function in ("sum(n)", "avg(n)", "avg(m)", "sum(d)", "avg(d)"):
            assert not is_answered(spark.sql(f"SELECT {function} FROM {name}")), function
        compare(spark, f"SELECT avg(m), try_sum(e) FROM {name}")
        compare(spark, f"SELECT sum(m), sum(e), avg(e) FROM {name}", answered=True)
    finally:
        kind.drop(spark, name)


@pytest.mark.campaign
@pytest.mark.slow
def test_random_groups(spark, table):
    chance = random.Random(21)
    for _ in range(150):
        group = chance.choice(LEAVES)
        compare(spark, f"SELECT {group}, count(*) FROM {table} WHERE {condition(chance)} GROUP BY {group}")
