"""The optimizer's row counts of joins and of groups of their rows."""

from __future__ import annotations

import time

import pytest

import metastore
from planner.plans import conf
from planner.skewed import ROWS, counted, skewed
from planner.test_estimates import column_stats, estimate, optimized

__all__ = ["skewed"]

pytestmark = pytest.mark.spark


PATIENCE = 60
"""Seconds: more than anything takes that does not hang."""


def test_keys_of_joins_that_are_not_null_drop_no_file(spark, new_table):
    table = new_table("k bigint, flag string")
    iceberg_drops_a_file = "'write.metadata.metrics.default' = 'full'"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({iceberg_drops_a_file})")
    for flag in ("if(id % 2 = 0, 'A', 'R')", "'N'"):
        rows = spark.range(1000).selectExpr("if(id % 5 = 0, null, id) k", f"{flag} flag")
        rows.coalesce(1).writeTo(table).append()
    metastore.analyze(spark, table, progress=False)
    query = f"SELECT * FROM {table} WHERE flag = 'R'"
    assert estimate(spark.sql(f"{query} AND k IS NOT NULL"))[0] == pytest.approx(400, rel=0.01)
    joined = spark.sql(f"SELECT 1 FROM {table} a JOIN ({query}) b ON a.k = b.k")
    assert estimate(joined)[0] == pytest.approx(800, rel=0.2)


JOINS = {
    "many to many": "{t} a JOIN {t} b ON a.skewed = b.skewed",
    "of filtered sides": "{t} a JOIN {t} b ON a.skewed = b.skewed WHERE a.skewed <> 1 AND b.flag",
    "texts": "{t} a JOIN {t} b ON a.word = b.word WHERE a.id < 300",
    "a primary key": "{t} a JOIN {t} b ON a.id = b.id WHERE a.flag AND b.skewed = 1",
    "three times": "{t} a JOIN {t} b ON a.id = b.id JOIN {t} c ON b.skewed = c.skewed WHERE c.id < 100",
    "semi": "{t} a LEFT SEMI JOIN {t} b ON a.id = b.id",
    "outer": "{t} a LEFT JOIN {t} b ON a.skewed = b.skewed AND b.id < 60",
}


@pytest.mark.parametrize(
    "name", [pytest.param(join, marks=pytest.mark.campaign) if join == "many to many" else join for join in JOINS]
)
def test_joins_are_estimated_by_the_values_of_both_sides(spark, skewed, name):
    text = JOINS[name].format(t=skewed)
    expected, _ = estimate(spark.sql(f"SELECT a.id FROM {text}"))
    true = max(1, counted(spark, text))
    assert true / 2 <= expected <= true * 2, (expected, true)


SEMI_JOINS = {
    "in": "{t} WHERE skewed IN (SELECT skewed FROM {t} WHERE skewed > 20)",
    "not in": "{t} WHERE skewed NOT IN (SELECT skewed FROM {t} WHERE skewed > 20)",
    "exists": "{t} a WHERE EXISTS (SELECT 1 FROM {t} b WHERE a.word = b.word AND b.word < 'w2')",
    "not exists": "{t} a WHERE NOT EXISTS (SELECT 1 FROM {t} b WHERE a.word = b.word AND b.word < 'w2')",
    "conditions on both sides": "{t} WHERE flag AND skewed IN (SELECT skewed FROM {t} WHERE id < 20)",
    "another column's condition": "{t} WHERE id IN (SELECT id FROM {t} WHERE flag)",
    "written out": "{t} a LEFT ANTI JOIN (SELECT * FROM {t} WHERE skewed = 1) b ON a.skewed = b.skewed",
    "few in common": "{t} WHERE id >= 100 AND id IN (SELECT id FROM {t} WHERE id < 130)",
    "conditions of which nothing is known": "{t} WHERE skewed NOT IN (SELECT skewed FROM {t} WHERE rand(3) < 0)",
    "an unknown side": "{t} WHERE id IN (SELECT max(id) OVER () FROM {t})",
}


@pytest.mark.parametrize("name", SEMI_JOINS)
def test_semi_joins_leave_the_rows_whose_values_are_found(spark, skewed, name):
    text = SEMI_JOINS[name].format(t=skewed)
    expected, _ = estimate(spark.sql(f"SELECT * FROM {text}"))
    true = max(1, counted(spark, text))
    assert expected == ROWS if "unknown" in name or "nothing" in name else true / 1.5 <= expected <= true * 1.5, (
        expected,
        true,
    )


def test_a_scan_below_a_semi_join_tells_its_own_rows(spark, skewed):
    query = f"SELECT * FROM {skewed} WHERE flag AND skewed IN (SELECT skewed FROM {skewed} WHERE skewed > 20)"
    filters = [row for row in metastore.estimates(spark, query, analyze=True) if row["name"] == "Filter"]
    assert [row["q_error"] for row in filters] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("condition", "matching"),
    [
        ("year = 165", 4_000),
        ("year = 165 OR year = 166 AND month = 5", 4_330),
        ("year >= 100", 20_000),
        ("year >= 0", 20_000),
    ],
)
def test_conditions_on_a_calendar_mean_the_days_that_the_facts_have(spark, new_table, condition, matching):
    calendar, facts = new_table("k bigint, year int, month int"), new_table("k bigint, v int")
    day = ["id AS k", "cast(id div 365 as int) AS year", "cast(id % 365 div 31 as int) AS month"]
    days = spark.range(73_000).selectExpr(*day)
    days.coalesce(1).writeTo(calendar).append()
    rows = spark.range(20_000).selectExpr("60000 + id % 1825 AS k", "cast(id as int) AS v")
    rows.coalesce(1).writeTo(facts).append()
    for table in (calendar, facts):
        metastore.analyze(spark, table, progress=False)
    joined = spark.sql(f"SELECT 1 FROM {facts} f JOIN {calendar} c ON f.k = c.k WHERE {condition}")
    assert estimate(joined)[0] == pytest.approx(matching, rel=0.1)


GROUPINGS = {
    "plain": "SELECT a.skewed, count(*) FROM {join} GROUP BY a.skewed",
    "renamed": "SELECT k, count(*) FROM (SELECT b.skewed AS k, a.id FROM {join}) GROUP BY k",
    "distinct": "SELECT DISTINCT a.skewed FROM {join}",
}


@pytest.mark.parametrize("name", GROUPINGS)
def test_groups_of_a_join_key_are_not_underestimated(spark, skewed, name):
    join = f"{skewed} a JOIN {skewed} b ON a.skewed = b.skewed"
    assert estimate(spark.sql(GROUPINGS[name].format(join=join)))[0] >= 40 / 4


def test_texts_that_begin_alike_are_joined_in_time(spark, new_table):
    table = new_table("k string")
    spark.range(30_000).selectExpr("concat('https://example.com/a/', id % 15000) k").coalesce(1).writeTo(table).append()
    spark.sql(f"INSERT INTO {table} VALUES ('')")
    metastore.analyze(spark, table, progress=False)
    started = time.monotonic()
    estimate(spark.sql(f"SELECT 1 FROM {table} a JOIN {table} b ON a.k = b.k"))
    assert time.monotonic() - started < PATIENCE


def test_keys_of_joins_have_counts_in_this_query_only(spark, skewed):
    joined = (
        optimized(spark.sql(f"SELECT 1 FROM {skewed} a JOIN {skewed} b ON a.skewed = b.skewed")).collectLeaves().head()
    )
    counts = joined.stats().attributeStats()
    estimated = {
        attribute.name(): int(counts.get(attribute).get().distinctCount().get())
        for attribute in [joined.output().head()]
    }
    assert estimated["skewed"] == 1
    assert int(column_stats(spark.sql(f"SELECT skewed FROM {skewed}"))["skewed"].distinctCount().get()) >= 39


@pytest.mark.slow
def test_groups_of_generated_values(spark, skewed):
    for text in (
        "SELECT w, count(*) FROM {t} LATERAL VIEW explode(split(word, '1')) x AS w GROUP BY w",
        "SELECT w, st.a, count(*) FROM {t} LATERAL VIEW OUTER explode(array(id, 1)) x AS w WHERE flag GROUP BY w, st.a",
        "SELECT a.w FROM (SELECT explode(array(id, id + 1)) w FROM {t}) a JOIN {t} b ON a.w = b.id GROUP BY a.w",
    ):
        query = text.format(t=skewed)
        plan = metastore.estimates(spark, query, analyze=True)
        assert all(row["estimated_rows"] is None or row["estimated_rows"] > 0 for row in plan)
        assert all(row["estimated_bytes"] > 0 for row in plan)
        with conf(spark, spark__metastore__cbo__enabled=False):
            without = spark.sql(query).count()
        assert spark.sql(query).count() == without
