"""Aggregates of which the statistics answer some files: the others are read, each once, and no file is in both."""

from __future__ import annotations

import random

import pytest

import metastore
from formats.kinds import KINDS
from planner.aggregates.answered import (
    LEAVES,
    ROW,
    SUMMED,
    compare,
    condition,
    fill,
    is_merged,
    new_name,
)
from planner.plans import conf, files_read, labels, physical

pytestmark = pytest.mark.spark

BOUNDS = [
    f"min({leaf}), max({leaf})" for leaf in ("id", "i", "f", "x", "n", "w", "m", "s", "d", "t", "bytes", "nothing")
]
ONE_OPEN = [
    "SELECT count(*), count(i), count(nothing), count(many) FROM {t} WHERE id >= 150",
    f"SELECT {', '.join(BOUNDS)}, max(nan), count(*) FROM {{t}} WHERE id >= 150",
    "SELECT sum(id), avg(id), sum(i), avg(i), sum(n), avg(n), sum(w), avg(w), sum(m), avg(m) FROM {t} WHERE id >= 150",
    "SELECT max(id) + count(*) AS n, concat(min(s), '!') FROM {t} WHERE id >= 150 HAVING max(id) > 5 ORDER BY n",
    "SELECT max(k), count(*) FROM (SELECT id AS k, s FROM {t} WHERE s >= 's00100') WHERE k <> 150 HAVING count(*) > 9",
    "SELECT flag, flag AS again, count(*), count(flag) + 1 FROM {t} WHERE id >= 150 GROUP BY flag",
    "SELECT i AS k, count(*) AS n FROM {t} WHERE id >= 150 GROUP BY i HAVING count(i) > 0 ORDER BY n DESC, k LIMIT 9",
    "SELECT DISTINCT zero FROM {t} WHERE id >= 150",
    "SELECT max(zero), count(zero) FROM {t} WHERE id >= 150",
    "SELECT count(DISTINCT i), count(DISTINCT i) + 1 AS more FROM {t} WHERE id >= 150 HAVING count(DISTINCT i) > 1",
    "SELECT count(DISTINCT zero) FROM {t} WHERE id >= 150",
    "SELECT count(DISTINCT nothing), count(*) FROM {t} WHERE id >= 150",
    "SELECT count(*), count(DISTINCT i), sum(n), min(s), avg(m), count(i), max(i) FROM {t} WHERE id >= 150",
    "SELECT count(DISTINCT s) - count(*) AS n, avg(id), count(DISTINCT s) FROM {t} WHERE id >= 150 HAVING avg(m) > 1",
    "SELECT count(DISTINCT k), avg(v) + 1 FROM (SELECT zero AS k, m AS v FROM {t} WHERE id >= 150)",
]
COUNTED = "(SELECT {k} count(*) AS n FROM {{t}} WHERE id >= {from_} {group})"
COUNT, OTHER = COUNTED.format(k="", from_=150, group=""), COUNTED.format(k="", from_=50, group="")
BY_DAY = COUNTED.format(k="d,", from_=50, group="GROUP BY d")
SEVERAL_SCANS = [
    f"SELECT a.n, b.n FROM {COUNT} a JOIN {COUNT} b ON a.n = b.n",
    f"SELECT {COUNT}, {OTHER}, (SELECT min(id) FROM {{t}} WHERE id >= 250), {COUNT} + 1",
    f"{COUNT} UNION ALL {COUNT} UNION ALL {OTHER}",
    f"SELECT a.d, a.n FROM {BY_DAY} a JOIN {{t}} b ON b.id = a.n",
    f"SELECT a.d, a.n FROM {BY_DAY} a JOIN (SELECT d FROM {{t}} WHERE i = 100) b ON a.d = b.d",
    "SELECT id FROM {t} WHERE id = (SELECT max(id) FROM {t} WHERE id >= 50 AND s < 's00350')",
    "SELECT max(n) FROM (SELECT zero, count(1) AS n FROM {t} WHERE id >= 150 GROUP BY zero)",
]
READ_WHOLE = [
    "SELECT count(DISTINCT i), count(DISTINCT flag) FROM {t} WHERE id >= 150",
    "SELECT count(DISTINCT i, flag) FROM {t} WHERE id >= 150",
    "SELECT count(DISTINCT i), sum(DISTINCT i) FROM {t} WHERE id >= 150",
    "SELECT count(DISTINCT i), avg(x) FROM {t} WHERE id >= 150",
    "SELECT avg(DISTINCT m) FROM {t} WHERE id >= 150",
    "SELECT max(id) FROM {t} WHERE id >= 250 AND id <= 350",
    "SELECT sum(x) FROM {t} WHERE id >= 150",
    "SELECT flag, max(id) FROM {t} WHERE id >= 150 GROUP BY flag",
]


def test_one_file_is_read_for_many(spark, kind, table):
    for query in ONE_OPEN if kind.format == "iceberg" else ONE_OPEN[:4]:
        assert is_merged(compare(spark, query.format(t=table), read=[1])), query
    query = f"SELECT max(id), count(*) FROM {table} WHERE id >= 150"
    assert labels(spark.sql(query)) == ["2 files answered, 1 read"] * 2
    explained = sorted((row["reason"], row["kept"]) for row in metastore.explain(spark, query))
    assert explained == [("ANSWERED_BY_STATISTICS", False)] * 2 + [("KEPT_MAY_MATCH", True), ("SKIPPED", False)]
    with conf(spark, spark__metastore__aggregates__enabled=False):
        assert not is_merged(spark.sql(query))


@pytest.mark.slow
def test_what_is_read_whole(spark, table):
    for query in READ_WHOLE:
        assert not is_merged(spark.sql(query.format(t=table))), query


@pytest.mark.slow
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_several_scans_of_one_table(spark, table, adaptive):
    with conf(spark, spark__sql__adaptive__enabled=adaptive):
        for query in ONE_OPEN + SEVERAL_SCANS:
            compare(spark, query.format(t=table))
        with conf(spark, spark__sql__autoBroadcastJoinThreshold="-1", spark__sql__files__maxPartitionBytes="1000"):
            for query in SEVERAL_SCANS:
                compare(spark, query.format(t=table))


@pytest.mark.slow
def test_what_is_kept_of_a_query(spark, table):
    df = spark.sql(f"SELECT count(*), max(id) FROM {table} WHERE id >= 150").cache()
    try:
        assert [tuple(row) for row in df.collect()] == [(250, 399)]
        assert [tuple(row) for row in df.selectExpr("`count(1)` + 1").collect()] == [(251,)]
    finally:
        df.unpersist()
    spark.sql(f"CACHE TABLE kept_rows AS SELECT * FROM {table}")
    try:
        compare(spark, "SELECT count(*), max(id) FROM kept_rows WHERE id >= 150")
    finally:
        spark.sql("UNCACHE TABLE kept_rows")
        spark.sql("DROP VIEW kept_rows")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_random_aggregates_of_tables_that_changed(spark, kind, tmp_path, seed):
    """Two rows are deleted, and a file is added that nobody analyzed."""
    chance = random.Random(seed)
    name = fill(spark, kind, tmp_path / "table")
    try:
        metastore.analyze(spark, name, progress=False)
        kind.append(spark, name, 400, 450, row=ROW)
        merged = ask(spark, name, chance, 40)
        if kind.format != "parquet":
            spark.sql(f"DELETE FROM {name} WHERE id IN ({chance.choice([0, 150, 399])}, 220)")
            merged += ask(spark, name, chance, 40)
        assert merged >= 10
    finally:
        kind.drop(spark, name)


def ask(spark, table: str, chance: random.Random, queries: int) -> int:
    """Compare random aggregates; how many were merged with what was read."""
    merged = 0
    for _ in range(queries):
        kinds = ["count({})", "min({})", "max({})", "count(*)", "sum({})", "avg({})"]
        numbers = {"sum({})": SUMMED, "avg({})": SUMMED}
        functions = [
            function.format(chance.choice(numbers.get(function, LEAVES)))
            for function in chance.choices(kinds, k=chance.randint(1, 4))
        ]
        if chance.random() < 0.3:
            functions.insert(chance.randrange(len(functions) + 1), f"count(DISTINCT {chance.choice(LEAVES)})")
        where = chance.choice([condition(chance), f"id >= {chance.choice([0, 50, 150])}", "true"])
        group = chance.choice(["", "", "flag", "i", "s", "zero", "d", "st.b"])
        query = f"SELECT {', '.join(functions)} FROM {table} WHERE {where}"
        if group:
            query = f"SELECT {group} AS k, count(*), count({group}) FROM {table} WHERE {where} GROUP BY {group}"
        with conf(spark, spark__sql__adaptive__enabled=chance.choice(["true", "false"])):
            merged += is_merged(compare(spark, query))
    return merged


@pytest.mark.slow
def test_means_are_those_of_the_rules_that_are_in_force(spark, table):
    """Spark's rule for short decimals divides doubles; without it decimals are divided: the last digit may differ."""
    query = f"SELECT avg(m), avg(n), sum(m), try_avg(m), count(DISTINCT flag) FROM {table}"
    rule = "org.apache.spark.sql.catalyst.optimizer.DecimalAggregates"
    for excluded in ("", f"org.example.None, {rule}"):
        with conf(spark, spark__sql__optimizer__excludedRules=excluded):
            for where in ("id >= 150", "id > 301", "id >= 100", "id < 250 AND s >= 's00100'"):
                df = compare(spark, f"{query} WHERE {where}")
                assert "StatisticsAnswer" in physical(df) or where == "id > 301", physical(df)


@pytest.mark.slow
def test_deletes_are_read(spark, kind, tmp_path):
    if kind.format == "parquet":
        pytest.skip("nothing is deleted from a directory of Parquet files")
    name = fill(spark, kind, tmp_path / "table")
    try:
        metastore.analyze(spark, name, progress=False)
        query = f"SELECT count(*), min(id), sum(i), max(s) FROM {name}"
        spark.sql(f"DELETE FROM {name} WHERE id IN (0, 7)")
        compare(spark, query, read=[1] if kind.format == "iceberg" else None)
        compare(spark, f"{query} WHERE id >= 50", read=[1] if kind.format == "iceberg" else None)
        if kind.format == "delta":
            assert not is_merged(spark.sql(query))
            df = compare(spark, f"{query} WHERE id >= 150")  # of the file with deletes no row matches
            assert is_merged(df)
    finally:
        kind.drop(spark, name)


@pytest.mark.slow
def test_partitions_and_buckets(spark, kind, tmp_path):
    name = new_name(kind)
    kind.create(spark, name, tmp_path / "table", "id BIGINT, v INT, p INT", "p")
    try:
        for start in (0, 200, 400):
            kind.append(
                spark, name, start, start + 200, row="id, CAST(id % 7 AS INT) AS v, CAST(id DIV 100 AS INT) AS p"
            )
        metastore.analyze(spark, name, progress=False)
        for where in (
            "id >= 150",
            "id >= 150 AND p < 5",
            "id >= 150 AND p IN (1, 2, 4)",
            "id >= 150 AND (p > 1 OR v = 3)",
        ):
            compare(spark, f"SELECT count(*), sum(v), max(id) FROM {name} WHERE {where}")
            compare(spark, f"SELECT p, count(*) FROM {name} WHERE {where} GROUP BY p")
            compare(spark, f"SELECT a.p, n FROM (SELECT p, count(*) n FROM {name} WHERE {where} GROUP BY p) a"
                    f" JOIN (SELECT p FROM {name} WHERE id IN (150, 420)) b ON a.p = b.p")  # fmt: skip
    finally:
        kind.drop(spark, name)


@pytest.mark.slow
def test_buckets(spark, tmp_path):
    name = new_name(KINDS["parquet"])
    rows = spark.range(400).selectExpr("id", "id % 7 AS v").coalesce(1)
    rows.write.bucketBy(4, "id").sortBy("id").option("path", str(tmp_path / "t")).saveAsTable(name)
    try:
        spark.sql(f"INSERT INTO {name} SELECT id, id % 7 FROM range(1000, 1400)")
        KINDS["parquet"].settle(spark, name)
        metastore.analyze(spark, name, progress=False)
        for query in (f"SELECT count(*), max(id), sum(v) FROM {name} WHERE id <> 1001",
                      f"SELECT id, count(*) FROM {name} WHERE id <> 1001 GROUP BY id"):  # fmt: skip
            assert is_merged(compare(spark, query)), physical(spark.sql(query))
    finally:
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.slow
def test_files_that_come_and_go_after_planning(spark, kind, tmp_path):
    """A query that is planned reads the files that were there: those that come later are in neither part."""
    name = fill(spark, kind, tmp_path / "table")
    try:
        metastore.analyze(spark, name, progress=False)
        df = spark.sql(f"SELECT count(*), max(id), sum(i) FROM {name} WHERE id >= 150")
        assert is_merged(df)
        expected = spark.sql(
            f"SELECT count(*), max(id), sum(i) FROM (SELECT * FROM {name} LIMIT 1000) WHERE id >= 150"
        ).collect()
        kind.append(spark, name, 400, 450, row=ROW)
        if kind.format != "parquet":
            spark.sql(f"DELETE FROM {name} WHERE id >= 300")
        assert df.collect() == expected
        assert files_read(df) == [1]
    finally:
        kind.drop(spark, name)


@pytest.mark.slow
def test_sums_that_might_overflow_with_what_is_read(spark, kind, tmp_path):
    name = new_name(kind)
    kind.create(spark, name, tmp_path / "table", "id BIGINT, n BIGINT, m BIGINT")
    try:
        row = "id, if(id < 300, 1, 9223372036854775000) AS n, if(id < 300, 1, 9007199254740000) AS m"
        for start in (0, 100, 200):
            kind.append(spark, name, start, start + 100, row=row)
        kind.append(spark, name, 300, 301, row=row)
        metastore.analyze(spark, name, progress=False)
        for start in (301, 302):
            kind.append(spark, name, start, start + 1, row=row)
        for function in ("sum(n)", "avg(n)", "avg(m)"):
            assert not is_merged(spark.sql(f"SELECT {function} FROM {name}")), function
        assert is_merged(compare(spark, f"SELECT max(n), count(m) FROM {name}"))
        metastore.analyze(spark, name, progress=False)
        assert not is_merged(spark.sql(f"SELECT sum(n) FROM {name} WHERE id <> 7"))
        df = compare(spark, f"SELECT sum(n), avg(m) FROM {name} WHERE id <> 7 AND id < 300")
        assert is_merged(df)
    finally:
        kind.drop(spark, name)
