"""Queries in a session: their rows, the data files that are read, what EXPLAIN and estimates say of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import metastore
from formats.kinds import KINDS
from metastore.adapters.expressions import resolve_expressions
from metastore.adapters.loading import load_facts
from metastore.jvm_session import find_shim_package
from mutation import suites as of
from oracle import tables
from oracle.run import identity
from oracle.verdicts import Stored
from planner import plans, test_join_pruning, written
from planner.aggregates import answered, test_merged_aggregates, test_sums_and_groups
from planner.expressions import made, test_skipping

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

FILES, ROWS, AT_ONCE = 8, 25, 4
OF_JOINS = ("JoinKeyFilter.scala", "JoinPruningRule.scala")
OF_EXPRESSIONS = ("ExpressionKeys.scala", "PruningFilter.scala")
OF_SCANS = ("AggregateAnswer.scala", "ScanPlanner.scala")
JOINS = (
    "SELECT k, v FROM {fact} f JOIN {dim} d ON f.k = d.id WHERE d.small = 105",
    "SELECT k FROM {fact} f JOIN {dim} d ON f.k = d.nullable WHERE d.small < 8",
    "SELECT k FROM {fact} f JOIN {dim} d ON f.k = d.nullable WHERE d.small = 7",
    "SELECT k FROM {fact} f JOIN {dim} d ON f.k = d.id WHERE d.small = 105 AND f.v > 3",
    "SELECT a FROM (SELECT k AS a, v w FROM {fact} WHERE v >= 0) f JOIN {dim} d ON f.a = d.id WHERE d.small = 55",
    "SELECT k FROM {fact} f JOIN {dim} d ON f.k = d.id AND f.v = d.small % 10 WHERE d.small IN (30, 190)",
    "SELECT k FROM {fact} f JOIN {dim} d ON f.k = d.id WHERE d.small >= 0",
    "SELECT p, k FROM {parts} f JOIN {dim} d ON f.p = d.id WHERE d.small = 3",
    "SELECT p, k FROM {parts} f JOIN {dim} d ON f.p = d.id AND f.k = d.nullable WHERE d.small = 3",
    "SELECT f.k FROM {fact} f JOIN {dim} d ON f.k = d.id JOIN {fact} g ON g.k = f.k WHERE d.small = 105",
    "SELECT d.s FROM {dim} d JOIN {fact} f ON f.k = d.id WHERE d.small = 105",
    "SELECT f.k FROM {fact} f LEFT JOIN {fact} g ON f.k = g.v JOIN {dim} d ON f.k = d.id WHERE d.small = 105",
    "SELECT g.k FROM {fact} f RIGHT JOIN {fact} g ON f.k = g.v JOIN {dim} d ON g.k = d.id WHERE d.small = 105",
    "SELECT k FROM {fact} JOIN (SELECT id FROM {dim} WHERE small > (SELECT max(v) + 180 FROM {fact})) ON k = id",
    "SELECT f.k FROM {fact} f JOIN (SELECT id, rand(1) r FROM {dim} WHERE small = 105) d ON f.k = d.id",
    "SELECT f.k FROM {fact} f JOIN (SELECT id FROM {dim} WHERE small < 30 UNION SELECT 7L) d ON f.k = d.id",
    "SELECT f.k FROM {fact} f JOIN (SELECT id FROM {dim} ORDER BY id LIMIT 3) d ON f.k = d.id",
    "SELECT f.k FROM {fact} f JOIN (SELECT explode(array(5L, 6L)) id) d ON f.k = d.id",
    "SELECT f.k FROM {fact} f JOIN {dim} d ON cast(f.v AS bigint) = d.id WHERE d.small = 1005",
)
SCANS = (
    "SELECT id FROM {t} WHERE id = 150",
    "SELECT id, s FROM {t} WHERE id >= 100 AND i IS NOT NULL",
    "SELECT id FROM {t} WHERE nothing = 1 OR x > 1e9",
    "SELECT id FROM {t} WHERE id % 2 = rand(1)",
    "SELECT id FROM {t} WHERE many IS NOT NULL",
    "SELECT id FROM {t}",
    "SELECT count(*) FROM (SELECT id FROM {t} WHERE id >= 100 LIMIT 3)",
    "SELECT count(*) FROM (SELECT id FROM {t} LIMIT 120)",
    "SELECT id FROM {t} ORDER BY id DESC LIMIT 3",
    "SELECT id, s FROM {t} WHERE id < 150 ORDER BY s LIMIT 3",
    "SELECT id FROM {t} WHERE id >= 150 ORDER BY nothing, id LIMIT 3",
    "SELECT count(*), max(id) FROM {t} WHERE id >= 100",
)
EXPRESSIONS = (
    *made.EXPRESSIONS, *test_skipping.REFUSED, "b + a", "a * b", "b * a", "a - b", "b - a", "a + b + f", "hour(ts)",
    "coalesce(name, 'x')", "coalesce(name, 'y')", "a = 1", "a = 1L", "CASE WHEN a > 1 THEN b END", "if(a > 1, b, null)",
    "cell_of(lon, lat)", "cell_of(lat, lon)", "uncertain(a)", "collate(name, 'UTF8_LCASE')", "name || (s.x)", "s.y + 1",
    "named_struct('x', a).x + 1", "map(a, b)[1]", "substr(name, 2)", "substr(name, 3)", "a IN (1, 2)", "a IN (2, 1)",
    "upper(name)", "reverse(name)", "hash(a)", "uuid()", "name LIKE 'a%'", "name RLIKE 'a'", "cast(a AS string)",
)  # fmt: skip
OFF = {
    "pruning.enabled": (0, 5, 6, 8, 11), "pruning.limit.enabled": (7, 8), "pruning.topK.enabled": (7, 8),
    "aggregates.enabled": (11,), "cbo.enabled": (1,),
}  # fmt: skip
"""Settings that turn something off, and which scans it changes."""
WRITES = (
    "SELECT id FROM {t} WHERE id = 150",
    "SELECT id FROM {t} ORDER BY id DESC LIMIT 3",
    "SELECT id FROM {t} LIMIT 3",
    "SELECT count(*) AS id FROM {t} WHERE id >= 150",
)
SUMS = ", ".join(f"sum({leaf}), avg({leaf})" for leaf in answered.SUMMED)


def suites(spark: SparkSession, folder: Path, sources: set[str]) -> Iterator[of.Suite]:
    """Yields joins, conditions on expressions, aggregates and first rows: what mutants of some sources are asked."""
    if not sources.isdisjoint(OF_JOINS):
        yield from _of_joins(spark, folder)
    if not sources.isdisjoint(OF_EXPRESSIONS):
        yield from _of_expressions(spark)
    if not sources.isdisjoint(OF_SCANS):
        for form in ("parquet", "iceberg"):
            yield from _of_scans(spark, form, folder)
        planned = find_shim_package(spark).scan.PlannerProbe.planned
        messages = (None, "SPARK_JOB_CANCELLED", "no such column")
        yield of.Suite("errors", lambda: "\n".join(map(planned, messages)), of.is_error, only=OF_SCANS)


def _of_joins(spark: SparkSession, folder: Path) -> Iterator[of.Suite]:
    names = {name: f"parquet.`{folder}/{name}`" for name in ("fact", "parts")}
    for file in range(FILES):
        low = file * ROWS
        of_file = spark.range(low, low + ROWS, numPartitions=1).selectExpr(
            f"if(id = {low}, null, id) k", "cast(id % 10 as int) v", f"{file}L p", "repeat(sha2(string(id), 512), 4) s"
        )
        of_file.drop("p").write.mode("append").parquet(str(folder / "fact"))
        of_file.write.partitionBy("p").mode("append").parquet(str(folder / "parts"))
    test_join_pruning.create_dimensions(spark, folder)
    for name in ("fact", "parts"):
        written.of_parquet(folder / name).write("1")
    asked = [query.format(**names, dim="join_dim") for query in JOINS]
    for adaptive in ("true", "false"):
        yield from _each(spark, f"joins, adaptive {adaptive}", asked, OF_JOINS, adaptive=adaptive)
    of_tests = (*test_join_pruning.PRUNED, *test_join_pruning.KEPT, *test_join_pruning.TWICE.values())
    fact = _iceberg_fact(spark)
    yield from _each(spark, "joins of Iceberg", [query.format(t=fact) for query in of_tests], OF_JOINS)


def _of_scans(spark: SparkSession, form: str, folder: Path) -> Iterator[of.Suite]:
    """Yields scans and aggregates, with settings off and inside writes too, and those of tables that are known less."""
    table = _of_aggregates(spark, form, folder / f"aggregates of {form}")
    yield from _each(spark, f"aggregates of {form}", [query.format(t=table) for query in _aggregates()], OF_SCANS)
    for setting, places in OFF.items():
        asked = [SCANS[place].format(t=table) for place in places]
        conf = ((f"spark.metastore.{setting}", "false"),)
        yield from _each(spark, f"{setting} off, {form}", asked, OF_SCANS, conf=conf)
    fresh = answered.fill(spark, KINDS[form], folder / f"fresh {form}", files=1)
    written_to = f"INSERT INTO {fresh} (id) " if form == "iceberg" else "CREATE TABLE made USING parquet AS "
    explained = [
        f'SELECT kept, reason, sentence FROM metastore.explain("{written_to}{query.format(t=table)}") ORDER BY ALL'
        for query in WRITES
    ]
    for inside in ("true", "false"):
        conf = (("spark.metastore.pruneInsideWrites", inside),)
        yield from _each(spark, f"writes, {inside}, {form}", explained, OF_SCANS, conf=conf)
    others = [fresh]
    if form == "iceberg":
        versions = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()
        others += [f"{table} VERSION AS OF {versions[place][0]}" for place in (1, 3)]
        others.append(_contradicted(spark, folder))
    asked = [SCANS[place].format(t=other) for other in others for place in (0, 1, 5, 7, 11)]
    yield from _each(spark, f"other tables, {form}", asked, OF_SCANS)


def _contradicted(spark: SparkSession, folder: Path) -> str:
    """Three files of which statistics say that one has other rows, and one none at all."""
    name = answered.fill(spark, KINDS["iceberg"], folder / "contradicted", files=4)
    metastore.analyze(spark, name, progress=False)
    said = written.of_store(identity(spark, name)[0])
    said.files[1].rows, said.files[2].rows = 99, 0
    said.write()
    return name


def _aggregates() -> list[str]:
    merged = [*test_merged_aggregates.ONE_OPEN, *test_merged_aggregates.SEVERAL_SCANS]
    whole = [*test_merged_aggregates.READ_WHOLE, *test_sums_and_groups.GROUPED]
    sums = [f"SELECT {SUMS} FROM {{t}} {where}" for where in answered.DECIDED]
    return [*SCANS, *merged, *whole, *sums]


def _iceberg_fact(spark: SparkSession) -> str:
    """Sixteen files of the tests of joins, analyzed."""
    name = "ice.db.mutation_fact"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    spark.sql(f"CREATE TABLE {name} ({test_join_pruning.COLUMNS}) USING iceberg")
    for file in range(test_join_pruning.FILES):
        test_join_pruning.facts(spark, file).writeTo(name).append()
    metastore.analyze(spark, name, progress=False)
    return name


def _of_aggregates(spark: SparkSession, form: str, folder: Path) -> str:
    """Four analyzed files, and one more that nobody analyzed; of Iceberg rows of the first are deleted."""
    kind = KINDS[form]
    name = answered.fill(spark, kind, folder)
    metastore.analyze(spark, name, progress=False)
    kind.append(spark, name, 40, 45, row=answered.ROW)
    if form == "iceberg":
        spark.sql(f"DELETE FROM {name} WHERE id IN (7, 8)")
    return name


def _of_expressions(spark: SparkSession) -> Iterator[of.Suite]:
    """Conditions on expressions, and by what keys expressions are known."""
    name = "ice.db.mutation_expressions"
    spark.udf.register("cell_of", lambda x, y: int(x) * 1000 + int(y), "bigint")
    spark.udf.register("uncertain", lambda x: x, "bigint")
    for place, rows in enumerate(made.four_files()):
        writer = (
            spark.sql(f"SELECT *, named_struct('x', name, 'y', a) s, a failing FROM ({rows})").coalesce(1).writeTo(name)
        )
        writer.append() if place else writer.using("iceberg").create()
    conf = (("spark.metastore.functions", "cell_of:1"), ("spark.metastore.pruning.values.maxEvaluations", "0"))
    with plans.conf(spark, **dict(conf)):
        metastore.analyze(spark, name, progress=False, expressions=[*made.EXPRESSIONS, "cell_of(lon, lat)"])
    predicates = [
        *test_skipping.PREDICATES,
        "cell_of(lon, lat) = 2003",
        "s.x = 'Ab105'",
        "_file LIKE '%x' OR a + b > 10",
    ]
    yield _rules_of_expressions(spark, name, predicates, conf)
    facts = load_facts(spark, name)

    def keys(texts: Sequence[str]) -> str:
        found = resolve_expressions(spark, facts, texts, facts.columns)
        return "\n".join(f"{text}: {found.keys.get(text, found.failed.get(text))}".replace("\n", " ") for text in texts)

    for start in range(0, len(EXPRESSIONS), AT_ONCE):
        texts = EXPRESSIONS[start : start + AT_ONCE]
        ask = lambda texts=texts: keys(texts)  # noqa: E731
        yield of.Suite(f"keys of expressions from {start}", ask, of.is_error, conf, texts, OF_EXPRESSIONS)
    queries = [f"SELECT f, name, lat FROM {name} WHERE {predicate}" for predicate in predicates]
    yield from _each(spark, "expressions", queries, OF_EXPRESSIONS, conf=conf)


def _rules_of_expressions(
    spark: SparkSession, name: str, predicates: Sequence[str], conf: tuple[tuple[str, str], ...]
) -> of.Suite:
    """The conditions, asked of the rules without a query; to look for the column `failing` fails."""
    subject = tables.observe(spark, "expressions", name, "_file")
    stored = Stored(spark, subject, *identity(spark, name))
    asked = [
        text
        for one in predicates
        for text in (one, f"{one} AND name IS NOT NULL", f"{one} AND failing > 0", f"failing + 1 > 0 OR {one}")
        if "_file" not in one
    ]
    found = of.matching(spark, subject, asked)
    questions, truths = list(found), of.truths_of(found, stored.files)
    with plans.conf(spark, **dict(conf)):
        prepared = stored.probe.prepare(of.texts(spark, questions))

    def wrong(i: int, answer: str) -> bool:
        return truths[i].denies(answer)

    return of.Suite("rules of expressions", lambda: prepared.verdicts(of.ALL), wrong, conf, questions, OF_EXPRESSIONS)


def _each(
    spark: SparkSession,
    name: str,
    queries: Sequence[str],
    only: tuple[str, ...],
    *,
    adaptive: str = "true",
    conf: tuple[tuple[str, str], ...] = (),
) -> Iterator[of.Suite]:
    """Yields a suite for each query: a mutant is asked those alone that reach it."""
    conf = (*conf, ("spark.sql.adaptive.enabled", adaptive))
    for query in queries:
        rows = str(plans.plain(spark, query))

        def wrong(_: int, answer: str, rows: str = rows) -> bool:
            return json.loads(answer)[0] != rows

        yield of.Suite(f"{name}: {query}", lambda q=query: _answer(spark, q), wrong, conf, [query], only)


def _answer(spark: SparkSession, query: str) -> str:
    frame = spark.sql(query)
    estimate = frame._jdf.queryExecution().optimizedPlan().stats().rowCount().toString()
    told = [plans.labels(frame), estimate, "StatisticsAnswer" in plans.physical(frame)]
    return json.dumps([str(plans.rows(frame)), plans.files_read(frame), *told])
