"""Aggregates that the statistics answer: the same rows and types as without us, and no file is read."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import metastore
from formats.kinds import KINDS
from lakes import SPARK
from metastore.jvm_session import find_shim_package
from planner import written
from planner.aggregates.answered import (
    DECIDED,
    LEAVES,
    NUMBERS,
    SUMMED,
    compare,
    condition,
    fill,
    is_answered,
    new_name,
)
from planner.plans import conf, labels, physical

pytestmark = pytest.mark.spark

OPEN = ["i > 0", "s LIKE '%1'", "rand(1) >= 0.1 AND id > 5", "id IN (SELECT 7)", "id = (SELECT 7)"]
FUNCTIONS = [
    "sum(x)", "avg(f)", "sum(i + 1)", "count(DISTINCT i, s)", "sum(DISTINCT i)",
    "max(i + 1)", "max(upper(s))", "count(i, s)", "first(i)", "max(long)",
    "count(*) FILTER (WHERE id > 5)", "count(st)", "max(struct(id))",
]  # fmt: skip
NOT_ALL_ROWS = [
    "SELECT flag, max(id) FROM {t} GROUP BY flag",
    "SELECT flag, i, count(*) FROM {t} GROUP BY flag, i",
    "SELECT upper(s), count(*) FROM {t} GROUP BY 1",
    "SELECT flag, count(*) FROM {t} GROUP BY flag WITH ROLLUP",
    "SELECT flag, count(i) FROM {t} GROUP BY flag",
    "SELECT flag, count(*) FILTER (WHERE id > 5) FROM {t} GROUP BY flag",
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 7)",
    "SELECT count(*) FROM {t} a JOIN {t} b USING (id)",
    "SELECT count(*) FROM (SELECT explode(array(1, 2)) FROM {t})",
    "SELECT max(id) FROM {t} TABLESAMPLE (50 PERCENT)",
    "SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM {t})",
]
ABOVE_AND_BELOW = [
    "SELECT count(*) + max(id) AS n, concat(min(s), '!') FROM {t} HAVING max(id) > 5 ORDER BY n",
    "SELECT max(k), count(*) FROM (SELECT id AS k FROM {t} WHERE id >= 100) WHERE k < 300 HAVING count(*) > 999",
    "SELECT count(*) c FROM {t} WHERE id >= 0 UNION ALL SELECT max(id) FROM {t} ORDER BY c",
    "SELECT a.n, b.n FROM (SELECT count(s) n FROM {t}) a JOIN (SELECT max(id) + 1 n FROM {t}) b ON a.n = b.n",
    "SELECT (SELECT max(id) FROM {t}) AS most, (SELECT min(d) FROM {t} WHERE id >= 300)",
    "SELECT max(n) FROM (SELECT count(id) AS n FROM {t})",
    "SELECT m, count(*) OVER () FROM (SELECT max(id) AS m FROM {t})",
]


@pytest.fixture
def own_table(spark, kind, tmp_path):
    """Two files of few columns, not analyzed, of one test alone."""
    columns = "id BIGINT, i INT, x DOUBLE, s STRING"
    row = "id, CAST(id * 31 % 1000 AS INT) AS i, if(id % 5 = 0, NULL, id / 4) AS x, concat('s', lpad(id, 5, '0')) AS s"
    name = fill(spark, kind, tmp_path / "table", files=2, columns=columns, row=row)
    yield name
    kind.drop(spark, name)


def test_counts_and_bounds_of_every_type(spark, table):
    every = ", ".join(f"count({leaf})" for leaf in LEAVES)
    for where in DECIDED:
        compare(spark, f"SELECT count(*), count(many), {every} FROM {table} {where}", answered=True)
    bounds = [f"min({leaf}), max({leaf}) AS {leaf.replace('.', '_')}" for leaf in LEAVES]
    exact_bounds = [bound for bound in bounds if "(long)" not in bound and "(zero)" not in bound]
    compare(spark, f"SELECT {', '.join(exact_bounds)}, count(1) c FROM {table} WHERE id >= 200", answered=True)
    compare(spark, f"SELECT {', '.join(bounds)} FROM {table} WHERE id < -1", answered=True)
    compare(spark, f"SELECT max(zero), min(nan), max(nan), {', '.join(exact_bounds)} FROM {table}", answered=True)
    for bound in ("min(zero)", "max(long)"):
        assert not is_answered(spark.sql(f"SELECT {bound} FROM {table} WHERE id >= 100"))
    compare(spark, f"SELECT min(id), max(s), count(i) FROM {table} WHERE id >= 150", answered=False)
    for leaf in ("i", "s", "zero"):
        compare(spark, f"SELECT count(DISTINCT {leaf}), max(id) FROM {table} WHERE id >= 100", answered=True)
    compare(spark, ABOVE_AND_BELOW[0].format(t=table), answered=True)


@pytest.mark.slow
def test_different_values_of_every_type(spark, table):
    for leaf in LEAVES:
        for where in DECIDED:
            compare(spark, f"SELECT count(DISTINCT {leaf}), count(*) FROM {table} {where}", answered=None)
        if leaf not in ("nan", "long"):
            assert is_answered(spark.sql(f"SELECT count(DISTINCT {leaf}) FROM {table}")), leaf
    with conf(spark, spark__metastore__enabled=False):
        many = spark.sql(f"SELECT count(DISTINCT s) FROM {table}").first()[0]
    assert spark.sql(f"SELECT count(DISTINCT s) FROM {table}").first()[0] == many == 400


@pytest.mark.slow
def test_where_most_files_are_open_nothing_is_answered(spark, table):
    for query in (
        *(f"SELECT min(id), max(s), count(i) FROM {table} WHERE {where}" for where in OPEN),
        *(f"SELECT {function}, count(*) FROM {table}" for function in FUNCTIONS),
        *(query.format(t=table) for query in NOT_ALL_ROWS),
    ):
        assert "StatisticsAnswer" not in physical(spark.sql(query)), query


@pytest.mark.slow
def test_values_of_files_with_nan_are_read(spark, table):
    query = f"SELECT count(DISTINCT nan), count(*) FROM {table}"
    assert set(labels(compare(spark, query))) == {"2 files answered, 2 read"}


@pytest.mark.slow
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_what_stands_above_and_below(spark, table, adaptive):
    with conf(spark, spark__sql__adaptive__enabled=adaptive):
        for query in ABOVE_AND_BELOW:
            compare(spark, query.format(t=table), answered=True)
        query = f"SELECT id FROM {table} WHERE id = (SELECT max(id) FROM {table})"
        compare(spark, query)
        assert "StatisticsAnswer" in physical(spark.sql(query))


def test_it_says_what_was_answered(spark, table):
    query = f"SELECT max(id) FROM {table} WHERE id >= 100"
    assert labels(spark.sql(query)) == ["3 files answered, 0 read"]
    explained = [(row["reason"], row["kept"]) for row in metastore.explain(spark, query)]
    assert sorted(explained) == [("ANSWERED_BY_STATISTICS", False)] * 3 + [("SKIPPED", False)]
    for setting in ("aggregates.enabled", "pruning.enabled", "enabled"):
        with conf(spark, **{f"spark.metastore.{setting}": False}):
            assert not is_answered(spark.sql(query))


@pytest.mark.slow
def test_damaged_statistics_answer_nothing(spark, kind, own_table):
    metastore.analyze(spark, own_table, progress=False)
    location = kind.location(spark, own_table).removeprefix("file:")
    for part in (Path(location) / "_metastore" / "objects").rglob("*.parquet"):
        part.write_bytes(part.read_bytes()[:100])
    find_shim_package(spark).statistics.cache.StatisticsCache.clear()
    compare(spark, f"SELECT count(id), max(s) FROM {own_table}", answered=False)


def test_rows_that_came_and_went(spark, kind, own_table):
    query = f"SELECT count(*), max(id), min(s), count(x) FROM {own_table}"
    assert not is_answered(spark.sql(query))
    metastore.analyze(spark, own_table, progress=False)
    compare(spark, query, answered=True)
    then = version(spark, kind, own_table)
    kind.append(spark, own_table, 200, 300, row="id, 1 AS i, 1.5D AS x, 'a' AS s")
    compare(spark, query, answered=False)
    assert not is_answered(spark.sql(f"{query} WHERE id < 200"))
    if kind.format != "parquet":
        spark.sql(f"DELETE FROM {own_table} WHERE id = 99 OR id = 0")
        assert not is_answered(spark.sql(f"{query} WHERE id < 100"))
        metastore.analyze(spark, own_table, progress=False)
        compare(spark, f"{query} {then}", answered=True if then and kind.format != "hudi" else None)
        compare(spark, query, answered=False)
        compare(spark, f"{query} WHERE id >= 200")


def version(spark, kind, table: str) -> str:
    """SQL that reads a table as of now; empty if the format has none."""
    if kind.format == "hudi":
        return f"TIMESTAMP AS OF '{spark.sql(f'SELECT max(_hoodie_commit_time) FROM {table}').first()[0]}'"
    if kind.format == "parquet" or SPARK == "3.5":  # where Hudi takes the words for its own
        return ""
    if kind.format == "delta":
        return f"VERSION AS OF {spark.sql(f'DESCRIBE HISTORY {table}').first().version}"
    latest = f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC"
    return f"VERSION AS OF {spark.sql(latest).first()[0]}"


@pytest.mark.slow
def test_an_empty_table(spark, kind, tmp_path):
    name = fill(spark, kind, tmp_path / "table", files=0)
    try:
        metastore.analyze(spark, name, progress=False)
        compare(spark, f"SELECT count(*), max(id), min(s), count(x) FROM {name}")
        compare(spark, f"SELECT max(id), min(s), count(x) FROM {name} WHERE id > 5")
    finally:
        kind.drop(spark, name)


@pytest.mark.slow
def test_partitions(spark, kind, tmp_path):
    name = new_name(kind)
    kind.create(spark, name, tmp_path / "table", "id BIGINT, v INT, p INT", "p")
    try:
        kind.append(spark, name, 0, 400, row="id, CAST(id % 7 AS INT) AS v, CAST(id DIV 200 AS INT) AS p")
        kind.append(spark, name, 400, 450, row="id, CAST(id % 7 AS INT) AS v, CAST(NULL AS INT) AS p")
        metastore.analyze(spark, name, progress=False)
        compare(spark, f"SELECT count(*), max(id), min(v) FROM {name}", answered=True)
        for where in ("", "WHERE p = 1", "WHERE p IS NULL", "WHERE id >= 200 AND P = 1"):
            compare(spark, f"SELECT max(p), min(p), count(p) FROM {name} {where}")
            compare(spark, f"SELECT max(id), count(v), count(*) FROM {name} {where}")
    finally:
        kind.drop(spark, name)


@pytest.mark.slow
def test_columns_that_came_later(spark, kind, own_table):
    metastore.analyze(spark, own_table, progress=False)
    query = f"SELECT count(i), min(i), max(i), count(*) FROM {own_table}"
    if kind.format in ("iceberg", "delta"):
        spark.sql(f"ALTER TABLE {own_table} DROP COLUMN i")
        spark.sql(f"ALTER TABLE {own_table} ADD COLUMN i INT")
    elif kind.format == "parquet":
        spark.sql(f"ALTER TABLE {own_table} ADD COLUMN j INT DEFAULT 5")
        query = query.replace("(i)", "(j)")
    compare(spark, query)
    metastore.analyze(spark, own_table, progress=False)
    compare(spark, query)


@pytest.mark.slow
@pytest.mark.skipif(SPARK != "4.1", reason="collations")
def test_texts_that_are_not_what_is_stored(spark, tmp_path):
    name = f"aggregates_{next(NUMBERS)}"
    columns = "id BIGINT, c CHAR(5), v VARCHAR(9), u STRING COLLATE UTF8_LCASE, st STRUCT<k: CHAR(3)>"
    KINDS["parquet"].create(spark, name, tmp_path / "table", columns)
    try:
        row = "id, 'c' AS c, concat('v', id) AS v, if(id = 1, 'b', 'A') AS u, named_struct('k', 'x') AS st"
        KINDS["parquet"].append(spark, name, 0, 10, row=row)
        metastore.analyze(spark, name, progress=False)
        compare(spark, f"SELECT min(v), max(v), count(v), max(id) FROM {name}", answered=True)
        for column in ("c", "u", "st.k"):
            compare(spark, f"SELECT max({column}), min({column}), count({column}) FROM {name}", answered=False)
        with conf(spark, spark__sql__files__ignoreMissingFiles=True):
            assert not is_answered(spark.sql(f"SELECT count(*) FROM {name}"))
        with conf(spark, spark__sql__parquet__datetimeRebaseModeInRead="LEGACY"):
            assert not is_answered(spark.sql(f"SELECT count(*) FROM {name}"))
    finally:
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.slow
def test_random_aggregates(spark, kind, table):
    chance = random.Random(20)
    answered = 0
    for _ in range(150):
        functions = [
            chance.choice(
                [
                    f"count({leaf})",
                    f"min({leaf})",
                    f"max({leaf})",
                    "count(*)",
                    f"max({leaf}), count(DISTINCT {leaf})",
                    f"sum({chance.choice(SUMMED)})",
                    f"avg({chance.choice(SUMMED)})",
                ]
            )
            for leaf in chance.choices(LEAVES, k=chance.randint(1, 4))
        ]
        df = compare(spark, f"SELECT {', '.join(functions)} FROM {table} WHERE {condition(chance)}")
        answered += is_answered(df)
    assert answered >= 20


@pytest.mark.slow
def test_writes_read_their_rows(spark, kind, own_table):
    metastore.analyze(spark, own_table, progress=False)
    target = f"spark_catalog.default.counted_{next(NUMBERS)}"
    with conf(spark, spark__metastore__pruneInsideWrites=True):
        query = f"SELECT count(*) AS c FROM {own_table}"
        assert "answered" not in spark.sql(f"EXPLAIN CREATE TABLE {target} USING parquet AS {query}").first()[0]
        spark.sql(f"CREATE TABLE {target} USING parquet AS {query}")
    try:
        assert spark.table(target).first().c == 200
    finally:
        spark.sql(f"DROP TABLE {target}")


def test_statistics_that_are_not_exact_answer_nothing(spark, analyzed):
    table = written.describe_iceberg_table(spark, analyzed).write("1")
    query = f"SELECT max(v), min(x), count(s) FROM {analyzed} WHERE id >= 100"
    compare(spark, query, answered=True)
    for column, numbers in {"v": {"hi_exact": False}, "x": {"lo_exact": False}, "s": {"nulls": None}}.items():
        changed = table.change(column, lambda file, row, n=numbers: {**row, **(n if file == 2 else {})})
        table.sequence = changed.write("1").sequence
        compare(spark, query, answered=False)
    table.files[3].rows = 99
    table.write("1")
    compare(spark, f"SELECT count(*) FROM {analyzed}")
