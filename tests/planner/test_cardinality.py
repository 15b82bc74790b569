"""The optimizer's row counts: those of the value counts where all are stored, and never other rows than without."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

import metastore
from planner.plans import conf
from planner.skewed import BINNED, COUNTED, ROWS, binned, counted, skewed
from planner.test_estimates import column_stats, estimate

__all__ = ["binned", "skewed"]

pytestmark = pytest.mark.spark
SEVERAL = [
    "skewed = 1 AND flag", "flag OR price < 1.00", "id < 600 AND day < date'2024-01-10'",
    "word = 'w3' AND st.a = 4", "skewed = st.a", "ratio > 5 AND ratio < price",
]  # fmt: skip


@pytest.mark.parametrize("where", COUNTED)
def test_a_condition_on_one_counted_column_is_estimated_as_it_is(spark, skewed, where):
    query = f"SELECT * FROM {skewed} WHERE {where}"
    true = counted(spark, f"{skewed} WHERE {where}")
    assert estimate(spark.sql(query))[0] == max(1, true)
    assert {row["estimated_from"] for row in metastore.explain(spark, query)} <= {"value counts"}
    (scan,) = [row for row in metastore.estimates(spark, query) if row["source"]]
    assert (scan["exact"], scan["matching_rows"]) == (True, true)


@pytest.mark.parametrize("where", BINNED)
def test_a_condition_on_one_column_is_estimated_by_its_bins(spark, binned, where):
    query = f"SELECT * FROM {binned} WHERE {where}"
    true = counted(spark, f"{binned} WHERE {where}")
    assert estimate(spark.sql(query))[0] == pytest.approx(true, rel=0.02, abs=8)
    (scan,) = [row for row in metastore.estimates(spark, query) if row["source"]]
    assert (scan["exact"], scan["source"]) == (False, "histogram")


@pytest.mark.parametrize("where", SEVERAL)
def test_several_columns_are_taken_to_be_independent_within_a_file(spark, skewed, where):
    expected, _ = estimate(spark.sql(f"SELECT * FROM {skewed} WHERE {where}"))
    true = counted(spark, f"{skewed} WHERE {where}")
    assert true / 3 - 20 <= expected <= true * 3 + 20


def test_files_that_another_column_excludes_take_their_share_with_them(spark, skewed):
    where = "id < 300 AND skewed = 1"
    assert estimate(spark.sql(f"SELECT * FROM {skewed} WHERE {where}"))[0] == pytest.approx(270, rel=0.05)


@pytest.mark.parametrize(
    "where",
    ["word IS NULL AND skewed = 1", "word IS NULL AND word IS NULL AND flag", "isnan(ratio) AND skewed = 1"],
)
def test_rows_without_a_value_are_counted_beside_other_conditions(spark, skewed, where):
    true = counted(spark, f"{skewed} WHERE {where}")
    assert true > 0
    assert estimate(spark.sql(f"SELECT * FROM {skewed} WHERE {where}"))[0] == pytest.approx(true, rel=0.2)


@pytest.mark.parametrize(
    "where", ["skewed = 3 OR word = 'w3'", "price < 1.00 OR skewed IN (2, 3, 4)", "flag OR price < 1.00"]
)
def test_what_spark_estimates_of_alternatives_is_what_they_leave(spark, skewed, where):
    true = counted(spark, f"{skewed} WHERE {where}")
    assert estimate(spark.sql(f"SELECT * FROM {skewed} WHERE {where}"))[0] == pytest.approx(true, rel=0.3)


@pytest.mark.parametrize("column", ["id", "skewed", "price", "ratio"])
def test_a_narrower_range_is_never_estimated_larger(spark, skewed, column):
    draw = random.Random(column)
    ends = sorted(draw.uniform(-10, 6_100 if column == "id" else 45) for _ in range(12))
    queries = [f"SELECT * FROM {skewed} WHERE {column} > {low:.2f} AND {column} <= {ends[-1]:.2f}" for low in ends]
    estimates = [estimate(spark.sql(query))[0] for query in queries]
    assert all(wide >= narrow for wide, narrow in pairwise(estimates)), estimates


def test_nan_takes_nothing_away(spark, skewed):
    ratio_statistics = column_stats(spark.sql(f"SELECT ratio FROM {skewed}"))["ratio"]
    assert (ratio_statistics.min().get(), ratio_statistics.max().get()) == (0.0, 24.75)
    assert estimate(spark.sql(f"SELECT * FROM {skewed} WHERE ratio > 24"))[0] > 0


@pytest.mark.slow
def test_rows_that_were_never_analyzed_may_all_match(spark, new_table):
    table = new_table("id bigint, v int")
    spark.range(1000).selectExpr("id", "cast(id % 10 as int) v").coalesce(1).writeTo(table).append()
    metastore.analyze(spark, table, progress=False)
    spark.range(5000, 9000).selectExpr("id", "cast(id % 10 + 50 as int) v").coalesce(1).writeTo(table).append()
    assert estimate(spark.sql(f"SELECT * FROM {table} WHERE id >= 5000"))[0] >= 4000
    assert estimate(spark.sql(f"SELECT * FROM {table} WHERE v = 55"))[0] >= 400
    assert estimate(spark.sql(f"SELECT * FROM {table} WHERE v = 55 AND id > 10"))[0] >= 400
    assert "v" not in column_stats(spark.sql(f"SELECT * FROM {table} WHERE v = 55"))
    spark.sql(f"INSERT OVERWRITE {table} SELECT id + 20000, 77 FROM range(3000)")
    assert estimate(spark.sql(f"SELECT * FROM {table} WHERE v = 77"))[0] >= 3000


@pytest.mark.parametrize("where", ["id % 1009 = 3", "st.b LIKE '%123%'", "length(st.b) = 2", "reverse(st.b) = '321'"])
def test_few_values_that_do_not_match_are_not_taken_for_none(spark, skewed, where):
    true = counted(spark, f"{skewed} WHERE {where}")
    assert true / 10 <= estimate(spark.sql(f"SELECT * FROM {skewed} WHERE {where}"))[0] <= true * 10 + 10


def test_a_range_within_a_bin_has_two_ends(spark, skewed):
    id_statistics = column_stats(spark.sql(f"SELECT id FROM {skewed} WHERE id > 3001 AND id <= 3005"))["id"]
    assert id_statistics.min().get() <= 3002
    assert id_statistics.max().get() == 3005


def test_columns_are_not_counted_again_in_conditions_on_several(spark, skewed):
    where = "skewed IN (1, 3) AND st.a IN (2, 4) AND ((skewed = 1 AND st.a = 2) OR (skewed = 3 AND st.a = 4))"
    true = counted(spark, f"{skewed} WHERE {where}")
    assert true / 2 <= estimate(spark.sql(f"SELECT * FROM {skewed} WHERE {where}"))[0] <= true * 2


@pytest.mark.slow
def test_estimates_change_no_row(spark, skewed):
    draw = random.Random(16)
    for number in range(8):
        where = " AND ".join(draw.sample(COUNTED + BINNED, 2))
        on = draw.choice(["a.skewed = b.skewed", "a.word = b.word", "a.st.a = b.st.a", "a.id = b.id"])
        filtered = f"(SELECT * FROM {skewed} WHERE {where})"
        query = f"SELECT count(*), sum(a.id), sum(b.id) FROM {filtered} a JOIN {skewed} b ON {on}"
        answers = set()
        for is_estimated in (True, False):
            with conf(
                spark, spark__metastore__cbo__enabled=is_estimated, spark__sql__adaptive__enabled=number % 2 == 0
            ):
                answers.add(tuple(spark.sql(query).head()))
        assert len(answers) == 1, query


def test_what_fails_on_a_value_is_not_estimated(spark, skewed):
    with conf(spark, spark__sql__ansi__enabled=True):
        df = spark.sql(f"SELECT * FROM {skewed} WHERE 1 / (skewed - 1) > 0 AND id < 100")
        assert 1 <= estimate(df)[0] <= ROWS


@pytest.mark.slow
def test_older_snapshots_are_estimated_by_their_own_shares(spark, new_table):
    table = new_table("id bigint, v int")

    def append(start: int, end: int, v: str) -> str:
        spark.range(start, end).selectExpr("id", f"cast({v} as int) v").coalesce(1).writeTo(table).append()
        newest = f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1"
        return str(spark.sql(newest).first()[0])

    def rows(where: str, snapshot: str) -> int:
        return estimate(spark.sql(f"SELECT * FROM {table} VERSION AS OF {snapshot} WHERE {where}"))[0]

    unknown = append(0, 1000, "id % 2")
    spark.sql(f"DELETE FROM {table} WHERE true")
    first = append(0, 1000, "id % 2")
    metastore.analyze(spark, table, progress=False)
    second = append(1000, 11000, "id % 100")
    third = append(11000, 21000, "0")
    metastore.analyze(spark, table, progress=False)
    assert rows("v = 1", first) == 500
    assert rows("v = 77", first) == 1
    assert rows("id < 10", first) == pytest.approx(10, abs=2)
    assert rows("v = 0", third) == 500 + 100 + 10000
    query = f"SELECT * FROM {table} VERSION AS OF {{}} WHERE v = 1"
    assert [row["exact"] for row in metastore.estimates(spark, query.format(first)) if row["source"]] == [True]
    assert 100 <= rows("v = 0", second) <= 11000
    assert 1 <= rows("v = 1", unknown) <= 1000
    assert rows("id >= 0", unknown) == pytest.approx(1000, rel=0.05)


def test_snapshots_older_than_every_analyzed_one_have_the_shares_of_the_newest(spark, new_table):
    table = new_table("id bigint, v int")
    for start, end in ((0, 1000), (1000, 4000)):
        spark.range(start, end).selectExpr("id", "cast(id % 10 as int) v").coalesce(1).writeTo(table).append()
    metastore.analyze(spark, table, progress=False)
    oldest = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at LIMIT 1").first()[0]
    for where, true in {"v = 3": 100, "id < 500": 500, "id >= 1000": 1, "v < 5 AND id < 100": 50}.items():
        query = f"SELECT * FROM {table} VERSION AS OF {oldest} WHERE {where}"
        assert estimate(spark.sql(query))[0] == pytest.approx(true, rel=0.1, abs=2), where
        assert {row["estimate_exact"] for row in metastore.explain(spark, query)} <= {False}


def test_values_that_most_files_leave_out_of_their_lists_are_estimated_by_range(spark, new_table):
    """A file has room for a part of the clerks: the counts in its list say little of the table."""
    table = new_table("id bigint, clerk string")
    clerk = "concat('Clerk#', lpad(CAST(pmod(hash(id), 6000) AS STRING), 9, '0')) AS clerk"
    spark.range(0, 96_000, 1, 8).selectExpr("id", clerk).writeTo(table).append()
    metastore.analyze(spark, table, progress=False)
    listed = metastore.frequencies(spark, table, "clerk")
    assert any(row["error"] is None or row["error"] > row["frequency"] for row in listed)
    true = dict(spark.sql(f"SELECT clerk, count(*) FROM {table} GROUP BY 1 ORDER BY 1 LIMIT 40").collect())
    for clerk, rows in true.items():
        estimated = estimate(spark.sql(f"SELECT * FROM {table} WHERE clerk = '{clerk}'"))[0]
        assert rows / 3 <= estimated <= rows * 3, clerk
