"""Rows of whole queries against the rows themselves (NoREC, TLP), with the Metastore and without it.

The tables hide their values from Iceberg, whose readers would lose rows on -0.0 and NaN: only exact answers pass.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import pytest

from oracle import whole_queries, without_metrics
from oracle.spark_answers import matching_files
from oracle.verdict_checks import Conditions, draw_predicates
from oracle.verdicts import Queries
from planner import plans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KINDS = whole_queries.KINDS[whole_queries.FORMAT]["rows"]
FORMS = ("{}", "NOT {}", "{} IS NULL")


@dataclass(frozen=True)
class TableWithPredicates:
    """A table, a view of its rows as they lie in memory, and predicates over it that raise no error."""

    table: str
    view: str
    predicates: Sequence[str]


@pytest.fixture(scope="module")
def tables_with_predicates(spark, tmp_path_factory, request):
    seed = request.config.getoption("--oracle-seed")
    print(f"\n--oracle-seed={seed}")
    with plans.conf(spark, **whole_queries.CONF):
        yield [
            _table_with_predicates(spark, kind, tmp_path_factory.mktemp(f"rows_{number}"), seed)
            for number, kind in enumerate(KINDS)
        ]
    spark.conf.unset("spark.sql.ansi.enabled")


def _table_with_predicates(spark: SparkSession, kind, folder, seed) -> TableWithPredicates:
    rng = Random(f"{seed}/rows/{kind}")
    subject = whole_queries.create(spark, kind, 20, folder, rng)
    name, view = subject.relation, f"held_{folder.name}"
    if whole_queries.FORMAT == "iceberg":
        assert not any(map(without_metrics.columns_with_metrics, subject.zones)), "Iceberg could lose rows of its own"
    drawn = [p.sql() for p in draw_predicates(subject, 25, Conditions("UTC", ansi=False), rng)]
    spark.conf.set("spark.sql.ansi.enabled", "false")
    conditions = [p for p, truth in zip(drawn, matching_files(spark, subject, drawn), strict=True) if truth is not None]
    queries = Queries(spark, subject)
    plannable = [p for p in conditions if all(queries.plans_without_us(f.format(p)) for f in FORMS)]
    assert len(plannable) > len(drawn) // 2
    spark.sql(f"SELECT * FROM {name}").localCheckpoint().createOrReplaceTempView(view)
    return TableWithPredicates(name, view, plannable)


def rows(spark, relation: str, condition: str) -> list[str]:
    return sorted(row[0] for row in spark.sql(f"SELECT to_json(struct(*)) FROM {relation} WHERE {condition}").collect())


def count(spark, query: str) -> int:
    return int(spark.sql(query).collect()[0][0])


@pytest.mark.slow
def test_filtered_rows_are_the_rows_for_which_the_predicate_is_true(spark, tables_with_predicates):
    for subject in tables_with_predicates:
        flags = ", ".join(f"count_if({p})" for p in subject.predicates)
        summed = spark.sql(f"SELECT {flags} FROM {subject.view}").collect()[0]
        for predicate, expected in zip(subject.predicates, summed, strict=True):
            assert count(spark, f"SELECT count(*) FROM {subject.table} WHERE {predicate}") == expected, predicate


@pytest.mark.slow
def test_true_false_and_unknown_add_up_to_the_table(spark, tables_with_predicates):
    for subject in tables_with_predicates:
        total = count(spark, f"SELECT count(*) FROM {subject.view}")
        for predicate in subject.predicates:
            parts = [f"SELECT * FROM {subject.table} WHERE {form.format(predicate)}" for form in FORMS]
            assert count(spark, f"SELECT count(*) FROM ({' UNION ALL '.join(parts)})") == total, predicate


@pytest.mark.slow
def test_rows_are_those_in_memory_with_and_without_the_metastore(spark, tables_with_predicates):
    for subject in tables_with_predicates:
        for predicate in subject.predicates:
            true = rows(spark, subject.view, predicate)
            assert rows(spark, subject.table, predicate) == true, predicate
            spark.conf.set("spark.metastore.enabled", "false")
            without = rows(spark, subject.table, predicate)
            spark.conf.unset("spark.metastore.enabled")
            assert without == true, f"Spark itself answers otherwise: {predicate}"


@pytest.mark.slow
def test_scans_that_were_pruned_differently_are_not_taken_for_each_other(spark, tables_with_predicates):
    for subject in tables_with_predicates:
        for condition, other in itertools.pairwise(subject.predicates):
            counts = [f"(SELECT count(*) FROM {{0}} WHERE {p})" for p in (condition, other)]
            both = f"SELECT {counts[0]} - {counts[1]}"
            expected = count(spark, both.format(subject.view))
            assert count(spark, both.format(subject.table)) == expected, (condition, other)
