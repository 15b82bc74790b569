"""Queries in a session: their rows, the data files that are read, what EXPLAIN and estimates say of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import metastore
from formats.kinds import KINDS
from metastore.adapters.expressions import resolve_expressions
from metastore.adapters.loading import load_facts
from metastore.jvm_session import find_shim_package
from mutation import row_commands, suites, zeros
from oracle import tables
from oracle.run import identity
from oracle.verdicts import Stored
from planner import plans, test_deleted_rows, test_join_pruning, written
from planner.aggregates import answered, test_merged_aggregates, test_sums_and_groups
from planner.expressions import sample_tables, test_skipping

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

FILES, ROWS, AT_ONCE = 8, 25, 4
OF_JOINS = ("JoinKeyFilter.scala", "JoinKeySide.scala", "JoinPruningRule.scala", "RowFilters.scala")
OF_EXPRESSIONS = ("ExpressionKeys.scala", "ExpressionColumns.scala", "FilterCompiler.scala")
OF_SCANS = (
    "AggregateAnswer.scala",
    "AggregateRequest.scala",
    "DistributionSnapshot.scala",
    "JoinedFiles.scala",
    "PrunedScan.scala",
    "ScannedFiles.scala",
    "ScanPlanner.scala",
)
OF_ZEROS = ("JoinedFiles.scala", "ScanPlanner.scala")
OF_DELETES = (
    "DeletedRows.scala",
    "FileMeasures.scala",
    "JoinedFiles.scala",
    "LimitedFiles.scala",
    "LiveBounds.scala",
    "TopRows.scala",
)
LEFT_JOIN = "SELECT f.k, f.v FROM {fact} f LEFT JOIN {fact} g ON f.k = g.v JOIN {dim} d"
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
    "SELECT f.k FROM (SELECT * FROM {fact} WHERE rand(1) > 0.00001) f JOIN {dim} d ON f.k = d.id WHERE d.small = 105",
    f"{LEFT_JOIN} ON f.k = d.id WHERE d.small = 105 AND coalesce(g.k, 0L) < f.k + 5",
    f"SELECT k FROM {{fact}} o WHERE k > (SELECT max(k) FROM ({LEFT_JOIN} ON f.k = d.id WHERE few) i WHERE i.v = o.v)",
    "SELECT /*+ BROADCAST(d) */ k FROM {fact} JOIN (SELECT cast(x AS bigint) id FROM {odd} WHERE x = 0) d ON k = id",
    f"{LEFT_JOIN} ON coalesce(g.k, 105L) = d.id WHERE d.small = 105",
    f"{LEFT_JOIN.replace('LEFT', 'RIGHT')} ON coalesce(f.k, 105L) = d.id WHERE d.small = 105",
    "SELECT f.k FROM {fact} f JOIN {dim} d ON collate(f.s, 'UTF8_LCASE') = d.s WHERE d.small = 105",
    "SELECT f.k FROM {fact} f JOIN join_cached d ON f.k = d.id",
    "SELECT f.k, r FROM (SELECT k, rand(1) r FROM {fact} WHERE k > 0) f JOIN {dim} d ON f.k = d.id WHERE d.small = 105",
    "SELECT /*+ BROADCAST(f) */ f.k FROM {fact} f JOIN {dim} d ON f.k = d.id WHERE d.small = 105",
    "SELECT o.x FROM {odd} o JOIN VALUES (0.0D) v(k) ON o.x = v.k",
    "SELECT f.k FROM {fact} f JOIN join_cached c ON f.k = c.id JOIN {dim} d ON f.v = d.id WHERE d.small < 60",
    "SELECT f.k, f._metadata.file_size > 0 FROM {fact} f JOIN {dim} d ON f.k = d.id WHERE d.small = 105",
    "SELECT k, nr FROM (SELECT k, monotonically_increasing_id() nr FROM {fact}) JOIN {dim} ON k = id WHERE small = 105",
    "SELECT f.k, d.r < 2 FROM {fact} f JOIN (SELECT id, rand(1) r FROM {dim} WHERE small = 105) d ON f.k = d.id",
)
JOINS_OFF = ("spark.metastore.pruning.join.enabled", "spark.sql.optimizer.dynamicPartitionPruning.enabled",
             "spark.sql.exchange.reuse")  # fmt: skip
"""Settings that leave joins as they are."""
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
    "SELECT 1 AS one FROM {t} HAVING true",
    "SELECT t.id FROM {t} t JOIN VALUES (150L) v(k) ON t.id = v.k",
    "SELECT id FROM {t} WHERE id IN (SELECT id FROM {t} WHERE id < 20)",
    "SELECT id FROM {t} WHERE i IN (SELECT CAST(id AS INT) FROM {t} WHERE id < 20)",
    "SELECT flag, count(*) FILTER (WHERE id > 160) FROM {t} WHERE id >= 150 GROUP BY flag",
    "SELECT flag, count(DISTINCT flag) FROM {t} WHERE id >= 150 GROUP BY flag",
    "SELECT i, count(i) FROM {t} WHERE id >= 150 GROUP BY i",
    "SELECT max(st.a) FROM {t} WHERE id >= 150",
)
WHOLE = ("SELECT count(DISTINCT i), count(DISTINCT flag) FROM {t}", "SELECT count(*), avg(id), avg(m), max(s) FROM {t}")
"""Aggregates that statistics of all files answer."""
BY_FLAG = ("SELECT id FROM {t} WHERE flag", "SELECT id FROM {t} WHERE flag AND id < 50")
OF_PARTS = (
    "SELECT count(*), max(s) FROM {t} WHERE id >= 100",
    "SELECT max(s) FROM {t} WHERE id < 300",
    "SELECT max(s) FROM {t}",
    "SELECT count(DISTINCT s), count(DISTINCT i) FROM {t} WHERE id < 300",
)
"""Aggregates of a column of which the statistics of some files tell nothing."""
STRUCT = "CAST(named_struct('x', {0}, 'y', a) AS STRUCT<x: STRING COLLATE UTF8_LCASE, y: INT>)"
EXPRESSIONS = (
    *sample_tables.EXPRESSIONS, *test_skipping.REFUSED, "b + a", "a * b", "b * a", "a - b", "b - a", "a + b + f",
    "hour(ts)",
    "coalesce(name, 'x')", "coalesce(name, 'y')", "a = 1", "a = 1L", "CASE WHEN a > 1 THEN b END", "if(a > 1, b, null)",
    "cell_of(lon, lat)", "cell_of(lat, lon)", "uncertain(a)", "collate(name, 'UTF8_LCASE')", "name || (s.x)", "s.y + 1",
    "named_struct('x', a).x + 1", "map(a, b)[1]", "substr(name, 2)", "substr(name, 3)", "a IN (1, 2)", "a IN (2, 1)",
    "double_of(a)", "luhn_check(name)", "array_contains(CAST(array(name) AS ARRAY<STRING COLLATE UTF8_LCASE>), 'x')",
    f"{STRUCT.format('name')} > {STRUCT.format('s.x')}", "size(map_concat(map(name, a), map(reverse(name), b)))",
    "size(CAST(map_concat(map(name, a), map(s.x, b)) AS MAP<STRING COLLATE UTF8_LCASE, INT>))",
    "size(CAST(map_concat(map(a, name), map(b, s.x)) AS MAP<INT, STRING COLLATE UTF8_LCASE>))",
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
DELETED = (*test_deleted_rows.FUNCTIONS, "min(id)", "min(s)", "min(a)", "max(a)", "max(nothing)")
"""Aggregates over files with deleted rows."""
SUMS = ", ".join(f"sum({leaf}), avg({leaf})" for leaf in answered.SUMMED)


def make_suites(spark: SparkSession, folder: Path, sources: set[str]) -> Iterator[suites.Suite]:
    """Yields joins, conditions on expressions, aggregates and first rows for the mutants of some sources."""
    if not sources.isdisjoint(OF_JOINS):
        yield from _of_joins(spark, folder)
    if not sources.isdisjoint(OF_EXPRESSIONS):
        yield from _of_expressions(spark)
    if not sources.isdisjoint(OF_SCANS):
        for form in ("parquet", "iceberg"):
            yield from _of_scans(spark, form, folder)
        planned = find_shim_package(spark).scan.PlannerProbe.planned
        messages = (None, "SPARK_JOB_CANCELLED", "no such column")
        yield suites.Suite(
            "errors", ask=lambda: "\n".join(map(planned, messages)), wrong=suites.is_error, only=OF_SCANS
        )
        yield from _of_planners(spark)
        queries = [_explained(query) for query in zeros.make_queries(spark, folder / "zeros")]
        yield from _each(spark, "zeros", queries, OF_ZEROS, is_told=True)
    if not sources.isdisjoint(OF_DELETES):
        for layout in ("iceberg 2", "iceberg 3"):
            yield from _of_deletes(spark, layout, folder)
    if not sources.isdisjoint(row_commands.SCALA_SOURCES):
        yield from row_commands.make_suites(spark, folder / "commands")


def _of_joins(spark: SparkSession, folder: Path) -> Iterator[suites.Suite]:
    names = {name: f"parquet.`{folder}/{name}`" for name in ("fact", "parts")}
    for file in range(FILES):
        low = file * ROWS
        of_file = spark.range(low, low + ROWS, numPartitions=1).selectExpr(
            f"if(id = {low}, null, id) k", "cast(id % 10 as int) v", f"{file}L p", "repeat(sha2(string(id), 512), 4) s"
        )
        of_file.drop("p").write.mode("append").parquet(str(folder / "fact"))
        of_file.write.partitionBy("p").mode("append").parquet(str(folder / "parts"))
    test_join_pruning.create_dimensions(spark, folder)
    for name in ("fact", "parts", "dim"):
        written.describe_parquet_folder(folder / name).write("1")  # of `odd` there are none
    spark.sql("CACHE TABLE join_cached AS SELECT id FROM join_dim WHERE small = 105")
    queries = [query.format(**names, dim="join_dim", odd="join_odd") for query in JOINS]
    for adaptive in ("true", "false"):
        yield from _each(spark, f"joins, adaptive {adaptive}", queries, OF_JOINS, adaptive=adaptive)
    for setting in JOINS_OFF:
        yield from _each(spark, f"{setting} off", queries[:1], OF_JOINS, conf=((setting, "false"),))
    inside = (("spark.metastore.pruneInsideWrites", "false"),)
    explained = [_explained("CREATE TABLE made USING parquet AS " + query) for query in queries[:1]]
    yield from _each(spark, "joins inside writes", explained, OF_JOINS, conf=inside, is_told=True)
    elsewhere = JOINS[0].format(**names, dim=f"parquet.`{folder}/dim`")
    yield suites.Suite(
        "joins of a new session",
        ask=lambda: _answer(spark.newSession(), elsewhere),
        wrong=suites.is_error,
        only=OF_JOINS,
    )
    of_tests = (*test_join_pruning.PRUNED, *test_join_pruning.KEPT, *test_join_pruning.TWICE.values())
    fact = _iceberg_fact(spark)
    yield from _each(spark, "joins of Iceberg", [query.format(t=fact) for query in of_tests], OF_JOINS)
    of_doubles = f"SELECT f.k FROM {fact} f JOIN join_dim d ON f.x = d.x WHERE d.small = 205"
    bounds = (("spark.metastore.pruning.values.maxEvaluations", "0"),)
    yield from _each(spark, "joins by bounds", [of_doubles], OF_JOINS, conf=bounds)


def _of_scans(spark: SparkSession, form: str, folder: Path) -> Iterator[suites.Suite]:
    """Yields scans and aggregates, with settings off and inside writes too, and those of tables that are known less."""
    table = _of_aggregates(spark, form, folder / f"aggregates of {form}")
    yield from _each(spark, f"aggregates of {form}", [query.format(t=table) for query in _aggregates()], OF_SCANS)
    of_rules = [
        query.format(t=table)
        for query in ("SELECT count(*) FROM {t} WHERE id >= 300", "SELECT sum(m) FROM {t} WHERE id >= 150")
    ]
    yield from _each(spark, f"few files of {form}", of_rules, ("ConjunctFilter.scala", "FileMeasures.scala"))
    for setting, positions in OFF.items():
        queries = [SCANS[position].format(t=table) for position in positions]
        conf = ((f"spark.metastore.{setting}", "false"),)
        yield from _each(spark, f"{setting} off, {form}", queries, OF_SCANS, conf=conf)
    fresh = answered.fill(spark, KINDS[form], folder / f"fresh {form}", files=1)
    written_to = f"INSERT INTO {fresh} (id) " if form == "iceberg" else "CREATE TABLE made USING parquet AS "
    explained = [_explained(f"{written_to}{query.format(t=table)}") for query in WRITES]
    for inside in ("true", "false"):
        conf = (("spark.metastore.pruneInsideWrites", inside),)
        yield from _each(spark, f"writes, {inside}, {form}", explained, OF_SCANS, conf=conf, is_told=True)
    explained_scans = [_explained(query.format(t=table)) for query in SCANS]
    yield from _each(spark, f"explained, {form}", explained_scans, OF_SCANS, is_told=True)
    yield from _each(spark, f"summarized, {form}", _filtered(table), OF_SCANS, is_told=True)
    relations = [fresh]
    if form == "iceberg":
        versions = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()
        relations += [f"{table} VERSION AS OF {versions[position][0]}" for position in (1, 3)]
        relations.append(_contradicted(spark, folder, {1: 99, 2: 0}))
        of_one = [
            f"SELECT count(*), max(id) FROM {name}" for name in (relations[-1], _contradicted(spark, folder, {1: 99}))
        ]
        yield from _each(spark, "contradicted", of_one, OF_SCANS)
    digits = (("spark.sql.optimizer.excludedRules", "org.apache.spark.sql.catalyst.optimizer.DecimalAggregates"),)
    of_decimals = [f"SELECT {sum_}(m) FROM {table} WHERE id >= 150" for sum_ in ("avg", "sum")]
    yield from _each(spark, f"decimals as they are, {form}", of_decimals, OF_SCANS, conf=digits)
    in_part = _known_in_part(spark, form, folder)
    yield from _each(spark, f"known in part, {form}", [query.format(t=in_part) for query in OF_PARTS], OF_SCANS)
    by_flag = _partitioned(spark, form, table)
    yield from _each(spark, f"partitions, {form}", [query.format(t=by_flag) for query in BY_FLAG], OF_SCANS)
    of_others = [*(SCANS[position] for position in (0, 1, 5, 7, 11)), *WHOLE, _sums("")]
    queries = [query.format(t=other) for other in relations for query in of_others]
    yield from _each(spark, f"other tables, {form}", queries, OF_SCANS)


def _of_deletes(spark: SparkSession, layout: str, folder: Path) -> Iterator[suites.Suite]:
    """Yields aggregates and first rows of files with deleted rows."""
    table = test_deleted_rows.create(spark, layout, folder / f"deletes, {layout}")
    for condition in ("id % 50 = 7", "id IN (7, 8, 9, 0, 399)", "part < 2 AND a IS NULL", "part = 3 AND g = 4"):
        spark.sql(f"DELETE FROM {table} WHERE {condition}")
    wheres = (*test_deleted_rows.WHERES, "WHERE part = 3", "WHERE x <> 0")
    aggregates = [f"SELECT {', '.join(DELETED)} FROM {table} {where}" for where in wheres]
    aggregates += [f"SELECT {function} FROM {table}" for function in DELETED]
    orders = ("id", "id DESC", "a NULLS FIRST, id", "a DESC NULLS LAST, id", "x DESC, id", "s")
    first = [f"SELECT id, a FROM {table} ORDER BY {order} LIMIT {limit}" for order in orders for limit in (90, 181)]
    limited = [f"SELECT count(*) FROM (SELECT id FROM {table} {where} LIMIT 98)" for where in wheres]
    yield from _each(spark, f"deletes, {layout}", [*aggregates, *first, *limited], OF_DELETES)
    rare = test_deleted_rows.create_rare(spark, layout, folder / f"rare, {layout}")
    ranges = ("", "WHERE id < 100", "WHERE id >= 100 AND id < 200", "WHERE id >= 200")
    of_rare = [
        f"SELECT {function} FROM {rare} {where}" for function in test_deleted_rows.RARE_FUNCTIONS for where in ranges
    ]
    yield from _each(spark, f"rare bounds, {layout}", of_rare, OF_DELETES)
    explained = [_explained(query) for query in (*first[1::2], *limited[::3])]
    yield from _each(spark, f"deletes explained, {layout}", explained, OF_DELETES, is_told=True)
    yield from _each(spark, f"deletes summarized, {layout}", _filtered(table), OF_DELETES, is_told=True)


def _of_planners(spark: SparkSession) -> Iterator[suites.Suite]:
    """Changes of scans by planners, and the snapshots that estimates use."""
    probe, session = find_shim_package(spark).scan.PlannerProbe, spark._jsparkSession
    yield suites.Suite("scopes", ask=lambda: probe.allowed(session), wrong=suites.is_error, only=OF_SCANS)
    yield suites.Suite("a table that is nowhere", ask=lambda: probe.lost(session), wrong=suites.is_error, only=OF_SCANS)
    name = answered.fill(spark, KINDS["iceberg"], None, files=2)
    metastore.analyze(spark, name, progress=False)
    snapshots = spark.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at").collect()
    first, last = (row[0] for row in snapshots)
    lineages = suites.texts(spark, ["", f"{last},{first}", f"{first},{last}", f"{first}", f"7,{last}", "7,8"])
    location, uuid = identity(spark, name)
    ask = lambda: probe.described(session, f"{location}/_metastore", uuid, lineages)  # noqa: E731
    yield suites.Suite("lineages", ask=ask, wrong=suites.is_error, only=OF_SCANS)


def _explained(statement: str) -> str:
    return f'SELECT kept, reason, sentence FROM metastore.explain("{statement}") ORDER BY ALL'


def _filtered(table: str) -> list[str]:
    """Summaries of the rows that a filter keeps, of whose files some match as a whole."""
    filters = ("id >= 100", "id < 150 AND id IS NOT NULL", "id > 1000", "id >= 0 OR id IS NULL")
    summaries = [f"metastore.filtered_summary('SELECT * FROM {table} WHERE {where}')" for where in filters]
    return [f"SELECT column_name, min, max, count FROM {summary} ORDER BY column_name" for summary in summaries]


def _contradicted(spark: SparkSession, folder: Path, rows: Mapping[int, int]) -> str:
    """Four files, of some of which statistics say that they have so many rows."""
    name = answered.fill(spark, KINDS["iceberg"], folder / "contradicted", files=4)
    metastore.analyze(spark, name, progress=False)
    said = written.read_store(identity(spark, name)[0])
    for file, number in rows.items():
        said.files[file].rows = number
    said.write()
    return name


def _aggregates() -> list[str]:
    merged = [*test_merged_aggregates.ONE_OPEN, *test_merged_aggregates.SEVERAL_SCANS]
    queries = [*test_merged_aggregates.READ_WHOLE, *test_sums_and_groups.GROUPED]
    sums = [_sums(where) for where in answered.DECIDED]
    sums += [f"SELECT {of}({leaf}) FROM {{t}} WHERE id >= 150" for of in ("sum", "avg") for leaf in answered.SUMMED]
    return [*SCANS, *merged, *queries, *sums]


def _sums(where: str) -> str:
    return f"SELECT {SUMS} FROM {{t}} {where}"


def _known_in_part(spark: SparkSession, form: str, folder: Path) -> str:
    """Five files, of three of which one column alone is analyzed."""
    kind = KINDS[form]
    name = answered.fill(spark, kind, folder / f"known in part of {form}", files=2)
    metastore.analyze(spark, name, progress=False)
    for file in range(2, 5):
        kind.append(spark, name, file * 100, file * 100 + 100, row=answered.ROW)
    metastore.analyze(spark, name, columns=["id"], progress=False)
    return name


def _partitioned(spark: SparkSession, form: str, table: str) -> str:
    """A table of which a filter chooses partitions, and leaves nothing to choose files by."""
    name = f"{table}_by_flag"
    spark.sql(f"CREATE TABLE {name} USING {form} PARTITIONED BY (flag) AS SELECT id, flag FROM {table}")
    metastore.analyze(spark, name, progress=False)
    return name


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


def _of_expressions(spark: SparkSession) -> Iterator[suites.Suite]:
    """Conditions on expressions, and by what keys expressions are known."""
    name = "ice.db.mutation_expressions"
    spark.udf.register("cell_of", lambda x, y: int(x) * 1000 + int(y), "bigint")
    spark.udf.register("double_of", lambda x: 2 * x, "bigint")
    spark.udf.register("uncertain", lambda x: x, "bigint")
    for file_number, rows in enumerate(sample_tables.four_files()):
        writer = (
            spark.sql(f"SELECT *, named_struct('x', name, 'y', a) s, a failing FROM ({rows})").coalesce(1).writeTo(name)
        )
        writer.append() if file_number else writer.using("iceberg").create()
    conf = (
        ("spark.metastore.functions", "cell_of:1,double_of:1:2"),
        ("spark.metastore.pruning.values.maxEvaluations", "0"),
    )
    with plans.conf(spark, **dict(conf)):
        metastore.analyze(spark, name, progress=False, expressions=[*sample_tables.EXPRESSIONS, "cell_of(lon, lat)"])
    predicates = [
        *test_skipping.PREDICATES,
        "cell_of(lon, lat) = 2003",
        "s.x = 'Ab105'",
        "_file LIKE '%x' OR a + b > 10",
    ]
    yield _rules_of_expressions(spark, name, predicates, conf)
    facts = load_facts(spark, name)

    def keys(texts: Sequence[str]) -> str:
        expressions = resolve_expressions(spark, facts, texts, facts.columns)
        return "\n".join(
            f"{text}: {expressions.keys.get(text, expressions.failed.get(text))}".replace("\n", " ") for text in texts
        )

    for start in range(0, len(EXPRESSIONS), AT_ONCE):
        texts = EXPRESSIONS[start : start + AT_ONCE]
        ask = lambda texts=texts: keys(texts)  # noqa: E731
        yield suites.Suite(
            f"keys of expressions from {start}",
            ask=ask,
            wrong=suites.is_error,
            conf=conf,
            questions=texts,
            only=OF_EXPRESSIONS,
        )
    here = (("spark.sql.ansi.enabled", "false"), ("spark.sql.legacy.timeParserPolicy", "CORRECTED"))
    chosen = EXPRESSIONS[:2]
    yield suites.Suite(
        "keys of a session with settings",
        ask=lambda: keys(chosen),
        wrong=suites.is_error,
        conf=(*conf, *here),
        questions=chosen,
        only=OF_EXPRESSIONS,
    )
    queries = [f"SELECT f, name, lat FROM {name} WHERE {predicate}" for predicate in predicates]
    yield from _each(spark, "expressions", queries, OF_EXPRESSIONS, conf=conf)


def _rules_of_expressions(
    spark: SparkSession, name: str, predicates: Sequence[str], conf: tuple[tuple[str, str], ...]
) -> suites.Suite:
    """The conditions, put to the rules without a query; a look-up of the column `failing` fails."""
    subject = tables.observe(spark, "expressions", name, "_file")
    stored = Stored(spark, subject, *identity(spark, name))
    conditions = [
        text
        for predicate in predicates
        for text in (
            predicate,
            f"{predicate} AND name IS NOT NULL",
            f"{predicate} AND failing > 0",
            f"failing + 1 > 0 OR {predicate}",
        )
        if "_file" not in predicate
    ]
    answers = suites.matching(spark, subject, conditions)
    questions, truths = list(answers), suites.truths_of(answers, stored.files)
    with plans.conf(spark, **dict(conf)):
        prepared = stored.probe.prepare(suites.texts(spark, questions))

    def wrong(i: int, answer: str) -> bool:
        return truths[i].denies(answer)

    return suites.Suite(
        "rules of expressions",
        ask=lambda: prepared.verdicts(suites.ALL),
        wrong=wrong,
        conf=conf,
        questions=questions,
        only=OF_EXPRESSIONS,
    )


def _each(
    spark: SparkSession,
    name: str,
    queries: Sequence[str],
    only: tuple[str, ...],
    *,
    adaptive: str = "true",
    conf: tuple[tuple[str, str], ...] = (),
    is_told: bool = False,
) -> Iterator[suites.Suite]:
    """Yields a suite for each query: a mutant runs only those that reach it. `is_told`: its rows are an explanation."""
    conf = (*conf, ("spark.sql.adaptive.enabled", adaptive))
    for query in queries:
        rows = None if is_told else str(plans.plain(spark, query))

        def wrong(_: int, answer: str, rows: str | None = rows) -> bool:
            return rows is not None and json.loads(answer)[0] != rows

        yield suites.Suite(
            f"{name}: {query}",
            ask=lambda q=query: _answer(spark, q),
            wrong=wrong,
            conf=conf,
            questions=[query],
            only=only,
        )


def _answer(spark: SparkSession, query: str) -> str:
    frame = spark.sql(query)
    plan = frame._jdf.queryExecution().optimizedPlan()
    estimated, types = plan.stats().rowCount().toString(), plan.schema().catalogString()
    description = [plans.labels(frame), estimated, types, "StatisticsAnswer" in plans.physical(frame)]
    return json.dumps([str(plans.rows(frame)), plans.files_read(frame), *description])
