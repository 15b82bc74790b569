"""The statistics of the rows that a query keeps are what Spark says of the same rows."""

from __future__ import annotations

import pytest

import metastore
from lakes import SPARK
from metastore.errors import InvalidArgument, NoStatistics

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LEAVES = ("id", "v", "s", "x", "st.a", "st.b", "day")
NULLS = (
    "id, NULL AS v, NULL AS s, CAST('NaN' AS DOUBLE) AS x, NULL AS st,"
    " date_add(DATE '2024-01-01', CAST(id DIV 100 AS INT)) AS day"
)


def expected_summary(spark, table, condition):
    """Compute nulls, NaNs, bounds and distinct values of each column, and the number of rows, by Spark alone."""
    selected = ["count(*) AS n"]
    for leaf in LEAVES:
        value = "nanvl(x, NULL)" if leaf == "x" else leaf
        nans = "count_if(isnan(x))" if leaf == "x" else "0"
        selected.append(
            f"array(CAST(count_if({leaf} IS NULL) AS STRING), CAST({nans} AS STRING), CAST(min({value}) AS STRING),"
            f" CAST(max({value}) AS STRING), CAST(count(DISTINCT {leaf}) AS STRING)) AS `{leaf}`"
        )
    selected.append("percentile_disc(0.5) WITHIN GROUP (ORDER BY id) AS median")
    (row,) = spark.sql(f"SELECT {', '.join(selected)} FROM {table} WHERE {condition}").collect()
    return row.asDict()


def check(spark, table, condition):
    """Compares every column, and returns how many rows were read."""
    answer = metastore.filtered_summary(spark, f"SELECT * FROM {table.name} WHERE {condition}")
    rows = {row["column_name"]: row for row in answer}
    expected = expected_summary(spark, table.name, condition)
    for leaf in LEAVES:
        row, label = rows[leaf], (condition, leaf)
        assert (row["count"], row["exact"]) == (expected["n"], True), label
        if expected["n"]:
            nulls, nans, low, high, distinct = expected[leaf]
            stated = (row["null_count"], row["nan_count"] or 0, row["min"], row["max"])
            assert stated == (int(nulls), int(nans), low, high), label
            assert row["approx_unique"] == pytest.approx(int(distinct), rel=3 * row["distinct_error"]), label
    if expected["n"]:
        assert int(rows["id"]["q50"]) == pytest.approx(expected["median"], abs=max(2, expected["n"] * 0.02)), condition
    return answer[0]["rows_read"]


def test_files_that_match_fully_are_not_read(spark, filled):
    filled.kind.append(spark, filled.name, 400, 500, row=NULLS)
    filled.analyze()
    is_coarse = filled.kind.format == "hudi"  # its rows do not tell their files
    assert check(spark, filled, "id >= 150") == (500 if is_coarse else 100)
    top = metastore.filtered_summary(spark, f"SELECT id FROM {filled.name} WHERE v IN (3, 4) AND id <> 3").column("v")
    assert (top["top_value"], top["top_count"], top["rows_total"]) == (4, 57, 500)
    assert top["rows_read"] == (500 if is_coarse else 400)


@pytest.mark.slow
def test_conditions_on_several_columns_and_on_null(spark, filled):
    filled.kind.append(spark, filled.name, 400, 500, row=NULLS)
    filled.analyze()
    is_coarse = filled.kind.format == "hudi"
    assert check(spark, filled, "x < 37.5 OR s > 's00349'") in ((500,) if is_coarse else (100, 200))
    assert check(spark, filled, "v IS NULL OR id >= 100 AND id < 200") == 0


def test_deleted_rows_and_later_files_are_counted_as_they_are(spark, kind, filled):
    filled.analyze()
    if kind.format != "parquet":
        spark.sql(f"DELETE FROM {filled.name} WHERE id % 50 = 20 AND id < 200")
    filled.kind.append(spark, filled.name, 400, 450)
    check(spark, filled, "id >= 50")
    check(spark, filled, "day >= DATE '2024-01-02'")
    live = spark.table(filled.name).count()
    for condition in ("id >= 50", "id < 0", "true"):
        answer = metastore.filtered_summary(spark, f"SELECT * FROM {filled.name} WHERE {condition}")
        assert {row["rows_total"] for row in answer} == {live}


@pytest.mark.parametrize("condition", ["id < 0", "id = 50 AND v = 0", "st.a IS NULL AND id > 3"])
def test_of_no_row_all_counts_are_zero(spark, filled, condition):
    filled.analyze()
    answer = metastore.filtered_summary(spark, f"SELECT * FROM {filled.name} WHERE {condition}")
    rows = {row["column_name"]: row for row in answer}
    assert set(LEAVES) <= set(rows)
    for leaf in LEAVES:
        row = rows[leaf]
        counts = {name: row[name] for name in ("count", "null_count", "approx_unique", "rows_total")}
        assert counts == {"count": 0, "null_count": 0, "approx_unique": 0, "rows_total": 400}, leaf
        assert (row["nan_count"] or 0, row["min"], row["max"], row["avg"], row["exact"]) == (0, None, None, None, True)


def test_a_view_is_asked_about_as_its_table(spark):
    table = "ice.db.filtered_by_view"
    spark.sql(f"CREATE TABLE {table} USING iceberg AS SELECT id, id % 7 AS v FROM range(0, 400, 1, 4)")
    metastore.analyze(spark, table, progress=False)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW filtered AS SELECT id + 1 AS next, v FROM {table} WHERE id < 300")
    query = "SELECT * FROM metastore.filtered_summary('SELECT v FROM filtered WHERE next > 100 AND v > -1')"
    (row,) = spark.sql(f"{query} WHERE column_name = 'id'").collect()
    assert (row["min"], row["max"], row["count"], row["files_total"]) == ("100", "299", 200, 4)
    all_rows, none = (
        metastore.filtered_summary(spark, f"SELECT id FROM {table} {condition}") for condition in ("", "WHERE id < 0")
    )
    assert [(row["count"], row["rows_read"], row["max"]) for row in all_rows] == [(400, 0, "399"), (400, 0, "6")]
    assert [(row["count"], row["rows_read"], row["max"]) for row in none] == [(0, 0, None), (0, 0, None)]
    spark.sql(f"DROP TABLE {table} PURGE")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT count(*) FROM {t}", "Aggregate"),
        ("SELECT * FROM {t} a JOIN {t} b ON a.id = b.id", "Join"),
        ("SELECT * FROM {t} LIMIT 3", "Limit"),
        ("SELECT * FROM {t} WHERE rand() < 0.5", "deterministic"),
        ("SELECT * FROM {t} WHERE id IN (SELECT max(id) FROM {t})", "sub-query"),
        ("SELECT * FROM range(3)", "it reads Range, not an Iceberg"),
        pytest.param(
            "SELECT * FROM {t} VERSION AS OF {first}",
            "as the name now stands",
            marks=pytest.mark.skipif(SPARK == "3.5", reason="Hudi's extension reads it as its own"),
        ),
    ],
)
def test_other_queries_are_told_what_is_possible(spark, two_snapshots, query, message):
    table, first = two_snapshots
    with pytest.raises(InvalidArgument, match=message) as raised:
        metastore.filtered_summary(spark, query.format(t=table, first=first))
    assert "It has to be SELECT" in str(raised.value)


def test_a_table_without_statistics_says_so(spark, two_snapshots):
    with pytest.raises(NoStatistics):
        metastore.filtered_summary(spark, f"SELECT * FROM {two_snapshots[0]} WHERE id > 3")


@pytest.fixture(scope="module")
def two_snapshots(spark):
    name = "ice.db.filtered_once"
    spark.sql(f"CREATE TABLE {name} USING iceberg AS SELECT id FROM range(10)")
    spark.sql(f"INSERT INTO {name} VALUES (11)")
    yield name, spark.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at").first()[0]
    spark.sql(f"DROP TABLE {name} PURGE")
