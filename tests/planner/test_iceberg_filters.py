"""Filters on an Iceberg table of four files: the right rows, and only the files that can hold them."""

from __future__ import annotations

import pytest

from planner.plans import check, labels, metrics, physical, scans

pytestmark = pytest.mark.spark

CASES = {
    "id = 5": 1,
    "id <=> 5": 1,
    "5 = id": 1,
    "id >= 350": 1,
    "id > 150": 3,
    "id BETWEEN 120 AND 130": 1,
    "id BETWEEN 190 AND 210": 2,
    "id IN (1, 399)": 2,
    "id = 5000": 0,
    "v = 3": 4,
    "v = 30": 0,
    "s = 'x0150'": 1,
    "s LIKE 'x039%'": 1,
    "s LIKE '%9'": 4,
    "id < 5 OR id > 395": 2,
    "id < 5 OR s = 'x0399'": 2,
    "NOT (id < 300)": 1,
    "NOT (id >= 100 AND v = 3)": 4,
    "x >= 199.0": 1,
    "d = date'2024-01-02'": 1,
    "year(d) = 2025": 1,
    "n = 250.00": 1,
    "st.a = 250": 1,
    "st.b = 'y250'": 2,
    "id IS NULL": 0,
    "id IS NOT NULL AND id = 7": 1,
    "cast(id AS int) = 7": 4,
    "id = 5 AND rand() < 2": 1,
}


@pytest.mark.parametrize("where", CASES)
def test_reads_only_the_files_that_can_match(spark, analyzed, where):
    if where.startswith(("year", "cast")):
        df = check(spark, f"SELECT * FROM {analyzed} WHERE {where}")
        assert metrics(scans(df)[0])["numSplits"] <= 4
    else:
        check(spark, f"SELECT * FROM {analyzed} WHERE {where}", [CASES[where]])


def test_explain_and_metrics_say_how_many_files(spark, analyzed):
    df = spark.sql(f"SELECT * FROM {analyzed} WHERE id = 5")
    assert labels(df) == ["4 -> 1 files"]
    df.collect()
    read = metrics(scans(df)[0])
    assert (read["metastoreFilesBefore"], read["metastoreFilesAfter"], read["numSplits"]) == (4, 1, 1)


def test_explain_says_why_nothing_was_done(spark, four_files, analyzed):
    assert labels(spark.sql(f"SELECT * FROM {analyzed}")) == ["the scan has no filter"]
    fresh = spark.sql(f"SELECT * FROM {analyzed} WHERE rand() < 2")
    assert len(labels(fresh)) == 1
    assert "->" not in labels(fresh)[0]


def test_a_table_without_statistics_is_read_as_ever(spark, four_files):
    df = check(spark, f"SELECT * FROM {four_files} WHERE id = 5", [4])
    assert "no statistics" in physical(df)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_with_and_without_adaptive_execution(spark, analyzed, adaptive):
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        query = f"SELECT v, count(*) c FROM {analyzed} WHERE id < 150 GROUP BY v"
        assert labels(spark.sql(query)) == ["4 -> 2 files"]
        check(spark, query, [2])
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_self_joins_prune_each_side(spark, analyzed):
    query = f"SELECT a.id FROM {analyzed} a JOIN {analyzed} b ON a.id = b.id - 300 WHERE a.id = 50 AND b.v >= 0"
    df = check(spark, query)
    assert "4 -> 1 files" in labels(df)


def test_sub_queries_prune_their_own_scan(spark, analyzed):
    scalar = f"SELECT * FROM {analyzed} WHERE id = (SELECT max(id) FROM {analyzed} WHERE id < 20)"
    assert "4 -> 1 files" in labels(check(spark, scalar))
    check(spark, f"SELECT count(*) FROM {analyzed} WHERE id IN (SELECT id + 1 FROM {analyzed} WHERE id < 20)")
    exists = f"SELECT * FROM {analyzed} a WHERE EXISTS (SELECT 1 FROM {analyzed} b WHERE b.id = a.v AND b.id < 3)"
    check(spark, exists)


def test_equal_scans_are_reused_and_different_ones_are_not(spark, analyzed):
    part = f"SELECT v, count(*) c FROM {analyzed} WHERE id < {{}} GROUP BY v"
    same = check(spark, f"{part.format(50)} UNION ALL {part.format(50)}")
    assert "ReusedExchange" in same._jdf.queryExecution().executedPlan().toString()
    assert len(scans(same)) == 1
    other = check(spark, f"{part.format(50)} UNION ALL {part.format(150)}")
    assert sorted(metrics(s)["numSplits"] for s in scans(other)) == [1, 2]


def test_a_cached_table_holds_all_rows(spark, analyzed):
    spark.sql(f"CACHE TABLE planner_cached AS SELECT * FROM {analyzed} WHERE id < 150")
    try:
        assert spark.sql("SELECT count(*) FROM planner_cached").first()[0] == 150
        assert spark.sql("SELECT count(*) FROM planner_cached WHERE id = 5").first()[0] == 1
    finally:
        spark.sql("UNCACHE TABLE planner_cached")
    cached = spark.table(analyzed).cache()
    try:
        cached.count()
        assert spark.sql(f"SELECT count(*) FROM {analyzed} WHERE id = 5").first()[0] == 1
        assert spark.sql(f"SELECT count(*) FROM {analyzed}").first()[0] == 400
    finally:
        cached.unpersist()


def test_aggregates_and_limits_are_right(spark, analyzed):
    for query in (
        f"SELECT count(*) FROM {analyzed}",
        f"SELECT min(id), max(id), count(*) FROM {analyzed} WHERE id < 50",
        f"SELECT count(*) FROM {analyzed} WHERE id = 5000",
        f"SELECT max(id) FROM {analyzed} WHERE id = 5000",
    ):
        check(spark, query)
    assert spark.sql(f"SELECT * FROM {analyzed} WHERE id < 10 LIMIT 3").count() == 3


def test_views_and_prepared_filters(spark, analyzed):
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW planner_view AS SELECT id + 1 AS next, s FROM {analyzed}")
    check(spark, "SELECT * FROM planner_view WHERE next = 6")
    df = spark.sql(f"SELECT * FROM {analyzed} WHERE id = :id", args={"id": 5})
    assert labels(df) == ["4 -> 1 files"]
    assert len(df.collect()) == 1
