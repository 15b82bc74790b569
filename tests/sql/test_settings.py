"""Settings of a session with invalid values: queries go on, commands and functions on statistics fail."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

import metastore
from nightly import others_nightly
from planner.plans import check, conf
from pruning.scala import items, module

pytestmark = pytest.mark.spark
CASES = Path(__file__).parents[1] / "cases" / "settings.json"
INVALID = {
    "enabled": ("maybe", {"analyze", "plan"}),
    "pruning.enabled": ("nein", {"plan"}),
    "cache.size": ("x", {"read", "plan"}),
    "planning.timeout": ("soon", {"plan"}),
    "analyze.formats": ("csv", {"analyze"}),
    "histogram.bins": ("1", {"analyze"}),
}
"""A value that a setting cannot have, and who is told."""


def shown_rows(spark) -> dict[str, object]:
    return {row.name: row for row in spark.sql("SELECT * FROM metastore.settings()").collect()}


def is_told(ask, pattern):
    try:
        ask()
    except Exception as error:  # noqa: BLE001 - of Spark, of py4j or ours
        return bool(re.search(pattern, str(error))) or str(error)
    return False


@pytest.mark.parametrize("key", others_nightly(INVALID, 2))
def test_an_invalid_setting_is_told_to_who_uses_it_and_fails_no_query(spark, analyzed, key):
    value, users = INVALID[key]
    pattern = rf"METASTORE_INVALID_SETTING\] spark.metastore.{key} = '{value}'"
    namespace, query = analyzed.rpartition(".")[0], f"SELECT * FROM {analyzed} WHERE id = 5"
    statements = {
        "analyze": [
            f"ANALYZE TABLE {analyzed} COMPUTE STATISTICS NOSCAN",
            f"ANALYZE TABLES IN {namespace} COMPUTE STATISTICS NOSCAN",
        ],
        "read": [f"SELECT * FROM metastore.summary('{analyzed}')", f"SELECT * FROM metastore_files('{analyzed}')"],
    }
    calls_of_users = {user: [partial(spark.sql, sql) for sql in queries] for user, queries in statements.items()}
    calls_of_users["analyze"].append(partial(metastore.analyze, spark, analyzed, progress=False, depth="files"))
    calls_of_users["read"].append(partial(metastore.summary, spark, analyzed))
    calls_of_users["read"].append(lambda: spark.read.format("metastore").load(analyzed).collect())
    with conf(spark, **{f"spark.metastore.{key}".replace(".", "__"): value}):
        check(spark, query)
        for user, calls in calls_of_users.items():
            assert {is_told(call, pattern) for call in calls} == {user in users}, user
        explained = is_told(lambda: spark.sql("SELECT * FROM metastore.explain(:q)", args={"q": query}), pattern)
        assert explained == bool(users & {"read", "plan"})
        row = shown_rows(spark)[f"spark.metastore.{key}"]
        assert (row.value, row.source) == (row.default, "default")
        assert f"'{value}' (spark) is no value" in row.problem
        (described,) = [setting for setting in metastore.settings(spark) if setting["name"] == f"spark.metastore.{key}"]
        assert (described["value"], described["problem"] is None) == (row.value, False)
        assert spark.sql("SELECT * FROM metastore.help()").count() > 9
        assert spark.sql("SELECT * FROM metastore.version()").count() == 1
    assert {row.problem for row in shown_rows(spark).values()} == {None}


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SET spark.metastore.histogram.bins = 1", r"spark\.metastore\.histogram\.bins = '1': it is no value"),
        ("set spark.metastore.enabled=maybe", r"spark\.metastore\.enabled = 'maybe': it is no value"),
        (
            "SET `spark.metastore.histogram.bin` = 7",
            r"no such setting\. Did you mean spark\.metastore\.histogram\.bins\?",
        ),
    ],
)
def test_set_refuses_what_is_no_setting_or_no_value_of_one(spark, statement, message):
    before = {row.key: row.value for row in spark.sql("SET").collect()}
    with pytest.raises(Exception, match=rf"^\[METASTORE_INVALID_SETTING\] .*{message}"):
        spark.sql(statement)
    assert {row.key: row.value for row in spark.sql("SET").collect()} == before


def test_set_takes_what_it_took(spark):
    for statement in ("SET spark.metastore.histogram.bins = 12", "SET spark.metastore.of.others = 1"):
        spark.sql(statement)
    spark.sql("SET spark.metastore.histogram.bins")
    assert shown_rows(spark)["spark.metastore.histogram.bins"].value == "12"
    for key in ("histogram.bins", "of.others"):
        spark.conf.unset(f"spark.metastore.{key}")


def test_misspelt_names_are_named_by_analyze(spark, table):
    spark.sql(f"INSERT INTO {table} SELECT id, concat('s', id), 'p' FROM range(3)")
    spark.sql(
        f"ALTER TABLE {table} SET TBLPROPERTIES ('metastore.analyze.atuo' = 'true', 'metastore.analyze.auto' = 'on')"
    )
    with conf(spark, spark__metastore__histogram__bin="7"):
        report = metastore.analyze(spark, table, progress=False, depth="files")
        reasons = {refusal.subject: refusal.reason for refusal in report.refused}
        (row,) = spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS NOSCAN").collect()
    no_such, bins = "there is no such", "spark.metastore.histogram.bins"
    assert reasons == {
        "setting spark.metastore.histogram.bin": f"{no_such} setting. Did you mean {bins}?",
        "table property metastore.analyze.atuo": f"{no_such} table property. Did you mean metastore.analyze.auto?",
        "table property metastore.analyze.auto": "'on' is none of true, false",
    }
    assert sorted(row.refused) == sorted(f"{subject}: {reason}" for subject, reason in reasons.items())


def test_the_session_reads_texts_as_python_does(spark):
    shim = module(spark, "org.metastore.spark.conf.MetastoreConf")
    declared = {setting.key().removeprefix("spark.metastore."): setting for setting in items(shim.all())}
    other = []
    for key, text, value in json.loads(CASES.read_text("utf-8")):
        with conf(spark, **{f"spark.metastore.{key}".replace(".", "__"): text}):
            session, setting = shim.fromSession(spark._jsparkSession), declared[key]
            read = None if session.findInvalid(setting).isDefined() else session.get(setting)
        read = items(read) if isinstance(value, list) and read is not None else read
        if (type(read), read) != (type(value), value):
            other.append((key, text, value, read))
    assert not other


def test_an_unknown_setting_is_named(spark):
    with conf(spark, spark__metastore__pruning__enabeld="true"):
        row = shown_rows(spark)["spark.metastore.pruning.enabeld"]
        assert (row.value, row.default) == ("true", None)
        assert row.problem.startswith("there is no such setting. Did you mean spark.metastore.pruning.enabled")


def test_the_conf_says_how_many_frequent_values_are_kept(spark, table):
    spark.sql(f"INSERT INTO {table} SELECT id % 5000, concat('s', id), 'p' FROM range(0, 10000, 1, 1)")
    with conf(spark, spark__metastore__frequencies__top=7):
        spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR COLUMNS id")
        path = spark.sql(f"SELECT path FROM metastore.files('{table}')").first().path
        assert spark.sql(f"SELECT * FROM metastore.frequencies('{table}', 'id', file => '{path}')").count() == 7


def test_the_conf_bounds_the_cache(spark, analyzed):
    cache = module(spark, "org.metastore.spark.statistics.cache.StatisticsCache")
    query = f"SELECT * FROM metastore.summary('{analyzed}')"
    cache.clear()
    spark.sql(query).collect()
    spark.sql(f"SELECT * FROM {analyzed} WHERE id = 5").collect()
    used = cache.size()
    assert used > 1
    with conf(spark, spark__metastore__cache__size="1b"):
        spark.sql(f"SELECT * FROM {analyzed} WHERE id = 6").collect()
        assert cache.size() <= 1
    spark.sql(f"SELECT * FROM {analyzed} WHERE id = 7").collect()
    assert cache.size() > 1
