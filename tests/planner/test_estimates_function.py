"""`metastore.estimates`: what was expected of the operators of a query, and what came."""

from __future__ import annotations

import pytest
from pyspark.sql import functions

import metastore
from planner.skewed import ROWS, counted, skewed

__all__ = ["skewed"]

pytestmark = pytest.mark.spark


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
    first, *deeper = metastore.estimates(spark, f"SELECT * FROM {skewed} LIMIT 5", analyze=True)
    assert first["rows"] == 5
    assert {row["rows"] for row in deeper} == {None}


def test_metrics_of_others_are_left_alone(spark, skewed):
    spark.table(skewed).observe("3", functions.count(functions.lit(1)).alias("n")).createOrReplaceTempView("observed")
    plan = metastore.estimates(spark, "SELECT skewed, count(*) FROM observed WHERE flag GROUP BY skewed", analyze=True)
    assert plan[0]["rows"] == counted(spark, f"(SELECT DISTINCT skewed FROM {skewed} WHERE flag)")


def test_a_command_is_not_run(spark, skewed):
    with pytest.raises(metastore.errors.InvalidArgument, match="a command is not run"):
        metastore.estimates(spark, f"DELETE FROM {skewed}", analyze=True)
    assert counted(spark, skewed) == ROWS


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
        plans = [done.apply(number).physicalPlanDescription() for number in range(done.size())]
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


def test_two_calls_in_one_statement_are_two_answers(spark, skewed):
    calls = [
        f"SELECT max(rows) n FROM metastore.estimates('SELECT * FROM {skewed} WHERE id < {n}', analyze => true)"
        for n in (7, 9)
    ]
    both_counts = spark.sql(f"SELECT a.n, b.n FROM ({calls[0]}) a CROSS JOIN ({calls[1]}) b").first()
    assert tuple(both_counts) == (7, 9)
