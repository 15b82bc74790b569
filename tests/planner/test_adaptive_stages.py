"""Adaptive execution plans again once a stage has run: what is known of the stage's columns stays known."""

from __future__ import annotations

import pytest

from metastore.demo.executed_plan import iterate_plan_nodes
from planner.plans import check, conf, rows

pytestmark = pytest.mark.spark

QUERY = """
    SELECT a.id, b.s, c.v FROM {table} a JOIN {table} b ON a.id = b.id JOIN {table} c ON b.id = c.id AND a.id = c.id
    WHERE a.v = 3 AND b.x < 100 AND c.n IS NOT NULL
"""


def estimated_joins(spark, query: str) -> list[int]:
    """Rows that the optimizer expects of each join, by the last plan of a query that has run."""
    df = spark.sql(query)
    assert rows(df)
    joins = [node for node in iterate_plan_nodes(df) if node.nodeName() == "BroadcastHashJoin"]
    return [int(join.logicalLink().get().stats().rowCount().get()) for join in joins]


def test_joins_with_a_stage_that_has_run_are_estimated_by_its_columns(spark, analyzed):
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    query = QUERY.format(table=analyzed)
    joins = estimated_joins(spark, query)
    assert len(joins) == 2
    assert all(10 <= rows <= 40 for rows in joins), joins  # 20 rows; 16,000 and more where a stage has no columns
    with conf(spark, spark__metastore__cbo__enabled="false"):
        assert max(estimated_joins(spark, query)) > 1_000
    check(spark, query)
