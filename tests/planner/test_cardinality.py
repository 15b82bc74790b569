"""The optimizer's row counts: those of the value counts where all are stored, and never other rows than without."""

from __future__ import annotations

import random
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions

import metastore
from planner.plans import conf
from planner.test_estimates import column_stats, estimate, optimized

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.spark

ROWS = 6_000
FILES = 4
PATIENCE = 60
"""Seconds: more than anything takes that does not hang."""
COLUMNS = {
    "id": "id",
    "skewed": "if(id % 10 < 9, 1, cast(pmod(hash(id), 40) as int))",
    "word": "if(id % 7 = 0, null, concat('w', cast(pmod(hash(id, 1), 30) as string)))",
    "price": "cast(pmod(hash(id, 2), 2000) / 100 as decimal(10,2))",
    "ratio": "if(id < 50, double('NaN'), if(id % 9 = 0, null, pmod(hash(id, 3), 100) / 4.0))",
    "day": "date_add(date'2024-01-01', cast(id div 200 as int))",
    "stamp": "timestamp_seconds(1704067200 + id * 600)",
    "local": "cast(timestamp_seconds(1704067200 + id * 600) as timestamp_ntz)",
    "flag": "pmod(hash(id, 4), 5) = 0",
    "st": "named_struct('a', cast(pmod(hash(id, 5), 25) as int), 'b', cast(id as string))",
    "bytes": "cast(concat('b', cast(pmod(hash(id, 6), 9) as string)) as binary)",
}
COUNTED = [
    "skewed = 1", "skewed = 7", "skewed = -1", "skewed <> 1", "skewed IN (1, 3, 99)", "skewed NOT IN (1, 2)",
    "skewed % 3 = 2", "skewed < 5 OR skewed > 30", "skewed BETWEEN 3 AND 17", "word IS NULL", "word = 'w3'",
    "word LIKE '%1%'", "word LIKE 'w2%'", "upper(word) = 'W11'", "length(word) = 3", "word > 'w2' AND word <= 'w27'",
    "isnan(ratio)", "ratio > 20", "ratio <= 3.25 OR ratio IS NULL", "NOT isnan(ratio) AND ratio >= 24.75",
    "day = date'2024-01-20'", "dayofweek(day) = 2", "year(day) = 2024", "flag", "NOT flag", "st.a = 4",
    "st.a < 10 AND st.a > 2", "bytes = X'6233'", "startswith('w11', word)", "word <> 'w3' AND word >= 'w1'",
    "skewed >= 30 OR skewed <=> NULL", "NOT startswith(word, 'w1')", "ratio < 3.0 OR ratio = double('NaN')",
    "flag <> true",
]  # fmt: skip
"""Of columns whose every value is counted."""
BINNED = [
    "id < 1234", "id >= 5990", "id % 100 = 7", "price < 5.55", "price = 10.01", "price BETWEEN 2.00 AND 3.00",
    "stamp < timestamp'2024-01-15 00:00:00'", "local >= timestamp_ntz'2024-02-01 00:00:00'", "st.b < '3'",
]  # fmt: skip
"""Of columns with too many values for that."""
SEVERAL = [
    "skewed = 1 AND flag", "flag OR price < 1.00", "id < 600 AND day < date'2024-01-10'",
    "word = 'w3' AND st.a = 4", "skewed = st.a", "ratio > 5 AND ratio < price",
]  # fmt: skip


@pytest.fixture(scope="module")
def skewed(spark) -> Iterator[str]:
    table = "ice.db.planner_skewed"
    spark.sql(
        f"CREATE TABLE {table} ("
        "id bigint, skewed int, word string, price decimal(10,2), ratio double, day date, stamp timestamp, "
        "local timestamp_ntz, flag boolean, st struct<a: int, b: string>, bytes binary) USING iceberg"
    )
    for low in range(0, ROWS, ROWS // FILES):
        columns = [f"{expression} AS {name}" for name, expression in COLUMNS.items()]
        spark.range(low, low + ROWS // FILES).selectExpr(*columns).coalesce(1).writeTo(table).append()
    metastore.analyze(spark, table, progress=False)
    with conf(spark, spark__metastore__planning__timeout="60s"):
        yield table
    spark.sql(f"DROP TABLE {table}")


def counted(spark, text: str) -> int:
    return spark.sql(f"SELECT count(*) FROM {text}").head()[0]


@pytest.mark.parametrize("where", COUNTED)
def test_a_condition_on_one_counted_column_is_estimated_as_it_is(spark, skewed, where):
    query = f"SELECT * FROM {skewed} WHERE {where}"
    true = counted(spark, f"{skewed} WHERE {where}")
    assert estimate(spark.sql(query))[0] == max(1, true)
    assert {row["estimated_from"] for row in metastore.explain(spark, query)} <= {"value counts"}
    (scan,) = [row for row in metastore.estimates(spark, query) if row["source"]]
    assert (scan["exact"], scan["matching_rows"]) == (True, true)


@pytest.mark.parametrize("where", BINNED)
def test_a_condition_on_one_column_is_estimated_by_its_bins(spark, skewed, where):
    query = f"SELECT * FROM {skewed} WHERE {where}"
    true = counted(spark, f"{skewed} WHERE {where}")
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
    found = [estimate(spark.sql(query))[0] for query in queries]
    assert all(wide >= narrow for wide, narrow in pairwise(found)), found


def test_nan_takes_nothing_away(spark, skewed):
    known = column_stats(spark.sql(f"SELECT ratio FROM {skewed}"))["ratio"]
    assert (known.min().get(), known.max().get()) == (0.0, 24.75)
    assert estimate(spark.sql(f"SELECT * FROM {skewed} WHERE ratio > 24"))[0] > 0


JOINS = {
    "many to many": "{t} a JOIN {t} b ON a.skewed = b.skewed",
    "of filtered sides": "{t} a JOIN {t} b ON a.skewed = b.skewed WHERE a.skewed <> 1 AND b.flag",
    "texts": "{t} a JOIN {t} b ON a.word = b.word WHERE a.id < 300",
    "a primary key": "{t} a JOIN {t} b ON a.id = b.id WHERE a.flag AND b.skewed = 1",
    "three times": "{t} a JOIN {t} b ON a.id = b.id JOIN {t} c ON b.skewed = c.skewed WHERE c.id < 100",
    "semi": "{t} a LEFT SEMI JOIN {t} b ON a.id = b.id",
    "outer": "{t} a LEFT JOIN {t} b ON a.skewed = b.skewed AND b.id < 60",
}


@pytest.mark.parametrize("name", JOINS)
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
    known = column_stats(spark.sql(f"SELECT id FROM {skewed} WHERE id > 3001 AND id <= 3005"))["id"]
    assert known.min().get() <= 3002
    assert known.max().get() == 3005


def test_columns_are_not_counted_again_in_conditions_on_several(spark, skewed):
    where = "skewed IN (1, 3) AND st.a IN (2, 4) AND ((skewed = 1 AND st.a = 2) OR (skewed = 3 AND st.a = 4))"
    true = counted(spark, f"{skewed} WHERE {where}")
    assert true / 2 <= estimate(spark.sql(f"SELECT * FROM {skewed} WHERE {where}"))[0] <= true * 2


def test_texts_that_begin_alike_are_joined_in_time(spark, new_table):
    table = new_table("k string")
    spark.range(30_000).selectExpr("concat('https://example.com/a/', id % 15000) k").coalesce(1).writeTo(table).append()
    spark.sql(f"INSERT INTO {table} VALUES ('')")
    metastore.analyze(spark, table, progress=False)
    started = time.monotonic()
    estimate(spark.sql(f"SELECT 1 FROM {table} a JOIN {table} b ON a.k = b.k"))
    assert time.monotonic() - started < PATIENCE


@pytest.mark.slow
def test_estimates_change_no_row(spark, skewed):
    draw = random.Random(16)
    for number in range(8):
        where = " AND ".join(draw.sample(COUNTED + BINNED, 2))
        on = draw.choice(["a.skewed = b.skewed", "a.word = b.word", "a.st.a = b.st.a", "a.id = b.id"])
        filtered = f"(SELECT * FROM {skewed} WHERE {where})"
        query = f"SELECT count(*), sum(a.id), sum(b.id) FROM {filtered} a JOIN {skewed} b ON {on}"
        answers = set()
        for told in (True, False):
            with conf(spark, spark__metastore__cbo__enabled=told, spark__sql__adaptive__enabled=number % 2 == 0):
                answers.add(tuple(spark.sql(query).head()))
        assert len(answers) == 1, query


def test_what_fails_on_a_value_is_not_estimated(spark, skewed):
    with conf(spark, spark__sql__ansi__enabled=True):
        df = spark.sql(f"SELECT * FROM {skewed} WHERE 1 / (skewed - 1) > 0 AND id < 100")
        assert 1 <= estimate(df)[0] <= ROWS


def test_operators_and_what_they_gave(spark, skewed):
    query = f"SELECT a.id FROM {skewed} a JOIN {skewed} b ON a.skewed = b.skewed WHERE a.skewed = 3 AND b.id < 3000"
    plan = metastore.estimates(spark, query, analyze=True)
    assert [row["operator"] for row in plan] == list(range(len(plan)))
    assert plan[0]["parent"] is None
    assert all(row["parent"] < row["operator"] for row in plan[1:])
    assert plan[0]["rows"] == counted(spark, f"({query})")
    assert all(row["q_error"] < 1.5 for row in plan if row["q_error"] is not None)
    scans = [row for row in plan if row["source"]]
    assert len(scans) == 2
    assert {row["q_error"] for row in scans} == {None}
    assert {row["name"] for row in plan if row["rows"] is None} == {scans[0]["name"]}
    assert {row["rows"] for row in metastore.estimates(spark, query)} == {None}


def test_below_a_limit_nothing_is_counted(spark, skewed):
    first, *others = metastore.estimates(spark, f"SELECT * FROM {skewed} LIMIT 5", analyze=True)
    assert first["rows"] == 5
    assert {row["rows"] for row in others} == {None}


def test_metrics_of_others_are_left_alone(spark, skewed):
    spark.table(skewed).observe("3", functions.count(functions.lit(1)).alias("n")).createOrReplaceTempView("observed")
    plan = metastore.estimates(spark, "SELECT skewed, count(*) FROM observed WHERE flag GROUP BY skewed", analyze=True)
    assert plan[0]["rows"] == counted(spark, f"(SELECT DISTINCT skewed FROM {skewed} WHERE flag)")


def test_a_command_is_not_run(spark, skewed):
    with pytest.raises(metastore.errors.InvalidArgument, match="a command is not run"):
        metastore.estimates(spark, f"DELETE FROM {skewed}", analyze=True)
    assert counted(spark, skewed) == ROWS


def test_keys_of_joins_have_counts_in_this_query_only(spark, skewed):
    joined = (
        optimized(spark.sql(f"SELECT 1 FROM {skewed} a JOIN {skewed} b ON a.skewed = b.skewed")).collectLeaves().head()
    )
    counts = joined.stats().attributeStats()
    told = {one.name(): int(counts.get(one).get().distinctCount().get()) for one in [joined.output().head()]}
    assert told["skewed"] == 1
    assert int(column_stats(spark.sql(f"SELECT skewed FROM {skewed}"))["skewed"].distinctCount().get()) >= 39


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


def test_a_query_is_run_when_the_call_is_executed(spark, skewed):
    query = f"SELECT id FROM {skewed} WHERE raise_error(concat('run ', id)) IS NULL"
    call = f"metastore.estimates('{query.replace(chr(39), chr(39) * 2)}', analyze => true)"
    lazily = spark.sql(f"SELECT operator, rows FROM {call}")
    assert lazily.columns == ["operator", "rows"]
    spark.sql(f"EXPLAIN SELECT * FROM {call}").collect()
    spark.sql(f"CREATE TEMPORARY VIEW planner_run AS SELECT * FROM {call}")
    with pytest.raises(Exception, match="run "):
        spark.table("planner_run").collect()
    spark.sql("DROP VIEW planner_run")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM metastore.estimates('SELECT * FROM nowhere', analyze => true)")


def test_a_statement_that_names_an_answer_twice_runs_its_query_once(spark, skewed):
    def runs():
        done = spark._jsparkSession.sharedState().statusStore().executionsList()
        plans = [done.apply(place).physicalPlanDescription() for place in range(done.size())]
        return sum("metastore.estimates " in plan for plan in plans)

    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    before = runs()
    call = f"metastore.estimates('SELECT * FROM {skewed} WHERE id < 7 ORDER BY id', analyze => true)"
    twice = spark.sql(f"WITH e AS (SELECT * FROM {call}) SELECT a.rows FROM e a JOIN e b USING (operator)")
    assert 7 in [row.rows for row in twice.collect()]
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert runs() == before + 1
    assert 7 in [row.rows for row in twice.select("rows").distinct().collect()]
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert runs() == before + 2


def test_values_that_most_files_leave_out_of_their_lists_are_estimated_by_range(spark, new_table):
    """A file has room for a quarter of the clerks: the counts in its list say little of the table."""
    table = new_table("id bigint, clerk string")
    clerk = "concat('Clerk#', lpad(CAST(pmod(hash(id), 1000) AS STRING), 9, '0')) AS clerk"
    spark.range(0, 96_000, 1, 16).selectExpr("id", clerk).writeTo(table).append()
    metastore.analyze(spark, table, progress=False)
    listed = metastore.frequencies(spark, table, "clerk")
    assert any(row["error"] is None or row["error"] > row["frequency"] for row in listed)
    true = dict(spark.sql(f"SELECT clerk, count(*) FROM {table} GROUP BY 1 ORDER BY 1 LIMIT 40").collect())
    for clerk, rows in true.items():
        found = estimate(spark.sql(f"SELECT * FROM {table} WHERE clerk = '{clerk}'"))[0]
        assert rows / 2 <= found <= rows * 2, clerk


def test_two_calls_in_one_statement_are_two_answers(spark, skewed):
    calls = [
        f"SELECT max(rows) n FROM metastore.estimates('SELECT * FROM {skewed} WHERE id < {n}', analyze => true)"
        for n in (7, 9)
    ]
    found = spark.sql(f"SELECT a.n, b.n FROM ({calls[0]}) a CROSS JOIN ({calls[1]}) b").first()
    assert tuple(found) == (7, 9)


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
