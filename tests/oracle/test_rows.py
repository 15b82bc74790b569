"""Whole queries with the extension on, checked against themselves (NoREC, TLP) and against queries without it."""

from __future__ import annotations

import itertools
from random import Random

import pytest

import metastore
from oracle import tables
from oracle.judge import Conditions, draw_predicates
from oracle.truth import matching_files
from oracle.verdicts import Queries

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def asked(spark, tmp_path_factory, request):
    """A table of evolved schema, one with deletes, and predicates over each that raise no error."""
    seed = request.config.getoption("--oracle-seed")
    print(f"\n--oracle-seed={seed}")
    found = []
    for kind in ("evolved", "deletes"):
        rng = Random(f"{seed}/rows/{kind}")
        name = f"ice.db.rows_{kind}"
        subject = tables.iceberg(spark, name, kind, 20, tmp_path_factory.mktemp(kind), rng)
        metastore.analyze(spark, name, progress=False)
        predicates = [p.sql() for p in draw_predicates(subject, 25, Conditions("UTC", ansi=False), rng)]
        spark.conf.set("spark.sql.ansi.enabled", "false")
        truths = matching_files(spark, subject, predicates)
        queries = Queries(spark, subject)
        known = [p for p, truth in zip(predicates, truths, strict=True) if truth is not None]
        forms = "SELECT * FROM {0} WHERE {1}", "SELECT * FROM {0} WHERE NOT {1}", "SELECT * FROM {0} WHERE {1} IS NULL"
        planned = [p for p in known if all(queries.plans_without_us(form.format(name, p)) for form in forms)]
        assert len(planned) > len(predicates) // 2
        found.append((name, planned))
    yield found
    spark.conf.unset("spark.sql.ansi.enabled")


def count(spark, query: str) -> int:
    return int(spark.sql(query).collect()[0][0] or 0)


def is_right(spark, query: str, expected: int) -> bool:
    """Whether a count is the expected one, or Iceberg's own wrong one: its readers lose rows on -0.0 and NaN."""
    counted = count(spark, query)
    if counted == expected:
        return True
    spark.conf.set("spark.metastore.enabled", "false")
    try:
        return counted == count(spark, query)
    finally:
        spark.conf.unset("spark.metastore.enabled")


def test_filtered_rows_are_the_rows_for_which_the_predicate_is_true(spark, asked):
    for table, predicates in asked:
        flags = ", ".join(f"count_if({p})" for p in predicates)
        summed = spark.sql(f"SELECT {flags} FROM {table}").collect()[0]
        for predicate, expected in zip(predicates, summed, strict=True):
            assert is_right(spark, f"SELECT count(*) FROM {table} WHERE {predicate}", expected), predicate


def test_true_false_and_unknown_add_up_to_the_table(spark, asked):
    for table, predicates in asked:
        total = count(spark, f"SELECT count(*) FROM {table}")
        for predicate in predicates:
            parts = [predicate, f"NOT {predicate}", f"{predicate} IS NULL"]
            union = " UNION ALL ".join(f"SELECT * FROM {table} WHERE {part}" for part in parts)
            assert is_right(spark, f"SELECT count(*) FROM ({union})", total), predicate


def test_rows_are_equal_with_and_without_the_metastore(spark, asked):
    for table, predicates in asked:
        for predicate in predicates:
            query = f"SELECT to_json(struct(*)) FROM {table} WHERE {predicate}"
            with_it = sorted(map(str, spark.sql(query).collect()))
            spark.conf.set("spark.metastore.enabled", "false")
            without = sorted(map(str, spark.sql(query).collect()))
            spark.conf.unset("spark.metastore.enabled")
            assert with_it == without, predicate


def test_scans_that_were_pruned_differently_are_not_taken_for_each_other(spark, asked):
    for table, predicates in asked:
        for one, other in itertools.pairwise(predicates):
            both = f"(SELECT count(*) FROM {table} WHERE {one}) - (SELECT count(*) FROM {table} WHERE {other})"
            alone = [count(spark, f"SELECT count(*) FROM {table} WHERE {p}") for p in (one, other)]
            assert count(spark, f"SELECT {both}") == alone[0] - alone[1], (one, other)
