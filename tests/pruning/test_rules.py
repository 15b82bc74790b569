"""The planner's rules are those of contract/rules.json, and what they leave out has no row that matches."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from metastore.jvm_session import find_shim_package
from planner.plans import conf
from pruning.scala import items
from rules import NAN, NULL, RULES

pytestmark = pytest.mark.spark

SOURCES = Path(__file__).parents[2] / "jvm-shim/src/main/scala/org/metastore/spark/pruning"
EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
PATTERN = re.compile(r"\bcase\s(?!class|object)(.*?)=>", re.DOTALL)
WITHOUT_RULE = {"GetStructField", "OuterReference", "RegExpReplace", "StringSplit", "UnscaledValue"}
"""Expressions that the sources match for other reasons: columns, what is refused, what the optimizer writes."""


@pytest.fixture(scope="module", autouse=True)
def utc(spark):
    with conf(spark, spark__sql__session__timeZone="UTC"):
        yield


def probe(spark, rule, needed):
    probes = find_shim_package(spark).pruning.PruningProbe
    statistics = rule.statistics(needed)
    return probes.ofZones(spark._jsparkSession, rule.schema, json.dumps([statistics]))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rows_match_where_the_file_stays(spark, rule):
    counts = spark.sql(rule.rows).selectExpr(*(f"count_if({filter_})" for filter_ in rule.filters)).first()
    matching = [filter_ for filter_, count in zip(rule.filters, counts, strict=True) if count]
    assert matching == rule.stays


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_planner_leaves_out_what_it_is_said_to(spark, rule):
    with_bounds, with_values = probe(spark, rule, "bounds"), probe(spark, rule, "values")
    kept_by_bounds = [filter_ for filter_ in rule.filters if with_bounds.kept(filter_) == "1"]
    kept_by_values = [filter_ for filter_ in rule.filters if with_values.kept(filter_) == "1"]
    assert kept_by_bounds == (rule.stays if rule.spark == "bounds" else rule.filters)
    assert kept_by_values == rule.stays


def test_rows_are_sorted_by_every_column(spark):
    """The first and the last value are the bounds."""
    unsorted = []
    for rule in RULES:
        for name, column in rule.columns.items():
            plain = [value for value in column["values"] if value not in (NULL, NAN)]
            sorted_values = f"array_sort(array({', '.join(plain)}))"
            if plain and not spark.sql(f"SELECT {sorted_values} = array({', '.join(plain)})").first()[0]:
                unsorted.append((rule.name, name))
    assert unsorted == []


def test_every_rule_is_in_the_contract(spark):
    """Each of Spark's expressions that the sources match is in a filter of some rule."""
    matched = set()
    for file in SOURCES.glob("*.scala"):
        code = file.read_text("utf-8")
        matched.update(re.findall(r"\bclassOf\[(\w+)\]", code))
        for pattern in PATTERN.findall(code):
            matched.update(re.findall(r"\b[A-Z]\w+", pattern))
    tried = set()
    for rule in RULES:
        filters = probe(spark, rule, "bounds").filters()
        for filter_ in rule.filters:
            tried |= classes(filters.analyzed(filter_).condition())
            for conjunct in items(filters.conjuncts(filter_)):
                tried |= classes(conjunct)
    without_rule = {name for name in matched - tried if is_expression(spark, name)}
    assert without_rule <= WITHOUT_RULE


def classes(expression):
    """The names of Spark's expressions in one."""
    return set(re.findall(rf'"class":"{re.escape(EXPRESSIONS)}(\w+)"', expression.toJSON()))


def is_expression(spark, name):
    """Whether a name is that of one of Spark's expressions, not of many."""
    java = spark._jvm.java.lang
    try:
        expression_class = java.Class.forName(EXPRESSIONS + name)
    except Py4JJavaError:
        return False
    is_abstract = java.reflect.Modifier.isAbstract(expression_class.getModifiers())
    return not is_abstract and java.Class.forName(f"{EXPRESSIONS}Expression").isAssignableFrom(expression_class)
