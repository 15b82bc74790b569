"""Settings of a session that have no value they can have: queries go on, who asks about statistics is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import metastore
from metastore.errors import InvalidSetting
from planner.plans import check, conf
from pruning.scala import items, module

pytestmark = pytest.mark.spark
CASES = Path(__file__).parents[1] / "cases" / "settings.json"
INVALID = {
    "enabled": "maybe",
    "pruning.enabled": "nein",
    "cache.size": "x",
    "planning.timeout": "soon",
    "analyze.formats": "csv",
    "histogram.bins": "1",
}


def shown(spark) -> dict[str, object]:
    return {row.name: row for row in spark.sql("SELECT * FROM metastore.settings()").collect()}


@pytest.mark.parametrize(("key", "value"), INVALID.items())
def test_an_invalid_setting_is_told_and_fails_no_query(spark, analyzed, key, value):
    with conf(spark, **{f"spark.metastore.{key}".replace(".", "__"): value}):
        check(spark, f"SELECT * FROM {analyzed} WHERE id = 5")
        told = rf"METASTORE_INVALID_SETTING\] spark.metastore.{key} = '{value}'"
        for statement in (
            f"ANALYZE TABLE {analyzed} COMPUTE STATISTICS NOSCAN",
            f"ANALYZE TABLES IN {analyzed.rpartition('.')[0]} COMPUTE STATISTICS NOSCAN",
            f"SELECT * FROM metastore.summary('{analyzed}')",
            f"SELECT * FROM metastore_files('{analyzed}')",
        ):
            with pytest.raises(Exception, match=told):
                spark.sql(statement)
        with pytest.raises(InvalidSetting, match=told):
            metastore.analyze(spark, analyzed, progress=False)
        with pytest.raises(InvalidSetting, match=told):
            metastore.summary(spark, analyzed)
        with pytest.raises(Exception, match=told):
            spark.read.format("metastore").load(analyzed).collect()
        row = shown(spark)[f"spark.metastore.{key}"]
        assert (row.value, row.source) == (row.default, "default")
        assert f"'{value}' (spark) is no value" in row.problem
        assert spark.sql("SELECT * FROM metastore.help()").count() > 9
        assert spark.sql("SELECT * FROM metastore.version()").count() == 1
    assert {row.problem for row in shown(spark).values()} == {None}


def test_the_session_reads_texts_as_python_does(spark):
    shim = module(spark, "org.metastore.spark.conf.MetastoreConf")
    declared = {one.key().removeprefix("spark.metastore."): one for one in items(shim.all())}
    other = []
    for key, text, value in json.loads(CASES.read_text("utf-8")):
        with conf(spark, **{f"spark.metastore.{key}".replace(".", "__"): text}):
            session, setting = shim.of(spark._jsparkSession), declared[key]
            read = None if session.findInvalid(setting).isDefined() else session.get(setting)
        read = items(read) if isinstance(value, list) and read is not None else read
        if (type(read), read) != (type(value), value):
            other.append((key, text, value, read))
    assert not other


def test_an_unknown_setting_is_named(spark):
    with conf(spark, spark__metastore__pruning__enabeld="true"):
        row = shown(spark)["spark.metastore.pruning.enabeld"]
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
