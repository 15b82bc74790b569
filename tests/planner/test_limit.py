"""LIMIT reads no more files than hold its rows for certain; every row returned matches, and none is missing."""

from __future__ import annotations

import random

import pytest

import metastore
from metastore.jvm_session import find_shim_package
from planner import written
from planner.conftest import append
from planner.plans import conf, files_read, labels

pytestmark = pytest.mark.spark

CASES = {
    "WHERE id >= 100 LIMIT 3": (3, 1),
    "WHERE id >= 150 LIMIT 3": (3, 1),
    "WHERE id >= 150 LIMIT 200": (200, 2),
    "WHERE id >= 150 LIMIT 201": (201, 3),
    "WHERE id >= 100 LIMIT 101": (101, 2),
    "WHERE id >= 100 LIMIT 301": (300, 3),
    "WHERE id >= 100 AND s LIKE 'x0%' LIMIT 3": (3, 1),
    "WHERE id >= 100 AND s IS NOT NULL AND x < 190 LIMIT 3": (3, 1),
    "WHERE id < 100 OR id >= 300 LIMIT 101": (101, 2),
    "LIMIT 3": (3, 1),
    "LIMIT 400": (400, 4),
    "LIMIT 3 OFFSET 99": (3, 2),
    "WHERE v = 3 LIMIT 3": (3, 4),
    "WHERE id >= 100 AND v = 3 LIMIT 3": (3, 3),
    "WHERE id >= 100 AND length(s) > 2 LIMIT 3": (3, 3),
    "WHERE id >= 100 AND rand(1) < 0.99 LIMIT 3": (3, 3),
    "WHERE id >= 100 AND s LIKE 'x0%9' LIMIT 3": (3, 3),
    "WHERE substring(s, 1, 2) = 'x0' LIMIT 3": (3, 4),
    "WHERE id >= 100 ORDER BY v LIMIT 3": (3, 3),
    "WHERE id >= 100 AND id NOT IN (SELECT 150) LIMIT 3": (3, 3),
}


def test_few_files_are_read_where_they_are_enough(spark, analyzed):
    for query, (rows, files) in CASES.items():
        df = spark.sql(f"SELECT * FROM {analyzed} {query}")
        assert (len(df.collect()), files_read(df)[0]) == (rows, files), query


def test_what_changes_the_number_of_rows_reads_all_files(spark, analyzed):
    matching = f"FROM {analyzed} WHERE id >= 100"
    for query, rows in {
        f"SELECT v, count(*) {matching} GROUP BY v LIMIT 3": 3,
        f"SELECT DISTINCT v {matching} LIMIT 3": 3,
        f"SELECT id + 1 AS next {matching} ORDER BY next DESC LIMIT 3": 3,
        f"SELECT id, row_number() OVER (ORDER BY id) n {matching} LIMIT 3": 3,
        f"SELECT explode(array(id, v)) e {matching} LIMIT 3": 3,
        f"SELECT * FROM (SELECT * {matching}) TABLESAMPLE (100 PERCENT) LIMIT 3": 3,
    }.items():
        df = spark.sql(query)
        assert len(df.collect()) == rows, query
        assert "LIMIT" not in labels(df)[0], query
    top = spark.sql(f"SELECT id {matching} ORDER BY id DESC LIMIT 3").collect()
    assert [row.id for row in top] == [399, 398, 397]


def test_filters_and_limits_in_layers(spark, analyzed):
    inner = f"(SELECT id, id % 2 AS odd FROM {analyzed} WHERE id >= 100 LIMIT 250)"
    assert spark.sql(f"SELECT count(*) FROM {inner}").first()[0] == 250
    assert all(row.id >= 300 for row in spark.sql(f"SELECT * FROM {inner} WHERE id >= 300 LIMIT 5").collect())
    numbered = f"(SELECT id, rand(1) r FROM {analyzed} WHERE id >= 100)"
    rows = spark.sql(f"SELECT * FROM {numbered} WHERE r < 0.999 AND id < 150 LIMIT 40").collect()
    assert len(rows) == 40
    assert all(100 <= row.id < 150 for row in rows)
    union = spark.sql(f"SELECT id FROM {analyzed} UNION ALL SELECT id FROM {analyzed} LIMIT 150")
    assert len(union.collect()) == 150
    join = f"SELECT a.id FROM {analyzed} a LEFT JOIN {analyzed} b ON a.id = b.id - 300 LIMIT 350"
    assert len(spark.sql(join).collect()) == 350
    assert spark.sql(f"SELECT 1 WHERE EXISTS (SELECT * FROM {analyzed} WHERE id >= 300)").count() == 1


def test_settings_and_writes_leave_it_alone(spark, analyzed, new_table):
    query = f"SELECT id FROM {analyzed} WHERE id >= 100 LIMIT 3"
    with conf(spark, spark__metastore__pruning__limit__enabled=False):
        assert labels(spark.sql(query)) == ["4 -> 3 files"]
        assert labels(spark.sql(f"SELECT * FROM {analyzed} LIMIT 3")) == ["the scan has no filter"]
    with conf(spark, spark__metastore__pruning__enabled=False):
        assert labels(spark.sql(query)) == ["spark.metastore.pruning.enabled is false"]
    target = new_table("id bigint")
    with conf(spark, spark__metastore__pruneInsideWrites=True):
        plan = spark.sql(f"EXPLAIN INSERT INTO {target} {query}").first()[0]
        assert "4 -> 3 files]" in plan
        spark.sql(f"INSERT INTO {target} {query}")
    assert spark.table(target).count() == 3


def test_an_order_that_leaves_no_file_out_says_so(spark, analyzed):
    overlap = "top-K: bounds overlap, no data file comes after the first 3 rows by v ASC NULLS FIRST"
    query = f"SELECT * FROM {analyzed} ORDER BY v LIMIT 3"
    assert labels(spark.sql(query)) == [overlap]
    explained = metastore.explain(spark, query)
    assert {(row["reason"], row["sentence"]) for row in explained} == {("TOP_K_OVERLAP", overlap)}
    filtered = metastore.explain(spark, f"SELECT * FROM {analyzed} WHERE id >= 200 ORDER BY v LIMIT 3")
    assert {row["sentence"] for row in filtered if row["kept"]} == {f"rows may match; {overlap}"}
    unknown = "top-K: the statistics do not tell which data files come after the first 401 rows by id ASC NULLS FIRST"
    assert labels(spark.sql(f"SELECT * FROM {analyzed} ORDER BY id LIMIT 401")) == [unknown]


def test_files_that_are_not_known_or_contradicted_do_not_count(spark, four_files):
    table = written.describe_iceberg_table(spark, four_files)
    append(spark, four_files, 400, 500, 1)
    table.files[3].rows = 99
    table.write("1")
    for limit, label in ((200, "5 -> 2 files, LIMIT"), (300, "5 -> 3 files, LIMIT"), (301, "the scan has no filter")):
        df = spark.sql(f"SELECT * FROM {four_files} LIMIT {limit}")
        assert (len(df.collect()), labels(df)) == (limit, [label])


COLUMNS = "id bigint, a int, x double, s string, b boolean, d date"


@pytest.fixture
def mixed(spark, new_table):
    """Eight files: nulls and NaN in some, of some columns nothing else; one longer text than bounds keep."""
    table = new_table(COLUMNS, "'format-version' = '2'", "'write.delete.mode' = 'merge-on-read'")
    for file in range(8):
        nulls, nans = file in (2, 5), file in (3, 5)
        spark.range(file * 50, file * 50 + 50).selectExpr(
            "id",
            "cast(null as int) a" if file == 6 else f"if({nulls} and id % 7 = 0, null, cast(id div 10 as int)) a",
            "cast('NaN' as double) x" if file == 7 else f"if({nans} and id % 5 = 0, double('NaN'), id / 4.0D) x",
            f"if({nulls} and id % 3 = 0, null, concat('s', lpad(id, 4, '0'), repeat('é', {100 * (file == 4)}))) s",
            f"id % 2 = 0 and {file % 2 == 0} b",
            "date_add(date'2024-01-01', cast(id as int)) d",
        ).coalesce(1).writeTo(table).append()  # fmt: skip
    return table


def predicate(chance: random.Random, depth: int = 2) -> str:
    if depth and chance.random() < 0.6:
        left, right = predicate(chance, depth - 1), predicate(chance, depth - 1)
        return chance.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])
    k, order = chance.randrange(-20, 420), chance.choice(["<", "<=", ">", ">=", "<>", "=", "<=>"])
    return chance.choice([
        f"id {order} {k}", f"id BETWEEN {k} AND {k + 150}", f"a {order} {k // 10}", f"a + 1 {order} {k // 10}",
        f"a IN ({k // 10}, 41, NULL)", f"a NOT IN ({k // 10}, 99)", f"x {order} {k / 4}D", f"x {order} double('NaN')",
        "isnan(x)", "NOT isnan(x)", "a IS NULL", "a IS NOT NULL", "s IS NOT NULL", f"s {order} 's{max(k, 0):04}'",
        "s LIKE 's0%'", "s LIKE 's01%5'", f"substring(s, 1, 3) = 's0{chance.randrange(4)}'", "b", "NOT b",
        f"d {order} date'2024-07-01'", f"year(d) {order} 2024", "id > a", "x <= id", "id <> a", "a <=> id",
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("adaptive", "deletes", "filters"),
    [
        ("true", True, 15),
        *(pytest.param(a, d, 60, marks=pytest.mark.campaign) for a in ("true", "false") for d in (True, False)),
    ],
)
def test_random_filters_under_random_limits(spark, mixed, adaptive, deletes, filters):
    table = written.describe_iceberg_table(spark, mixed).write("1")
    if deletes:
        spark.sql(f"DELETE FROM {mixed} WHERE id % 50 IN (3, 17) AND id < 250")
    chance = random.Random(f"{adaptive} {deletes}")
    drawn = sorted({predicate(chance) for _ in range(filters)})
    answers = ", ".join(f"({where}) `{i}`" for i, where in enumerate(drawn))
    with conf(spark, spark__metastore__enabled=False):
        truth = spark.sql(f"SELECT _file file, {answers} FROM {mixed}").collect()
    probes = find_shim_package(spark).pruning.PruningProbe
    probe = probes.open(spark._jsparkSession, COLUMNS, str(table.folder), table.identity.uuid)
    proven, limited = 0, 0
    with conf(spark, spark__sql__adaptive__enabled=adaptive):
        for i, where in enumerate(drawn):
            full = {path for path, yes in zip(probe.paths(), probe.matchedFully(where), strict=True) if yes == "1"}
            assert all(row[str(i)] for row in truth if row.file in full), where
            proven += len(full)
            total = sum(bool(row[str(i)]) for row in truth)
            for limit in (1, chance.randrange(2, 60), chance.randrange(60, 420)):
                df = spark.sql(f"SELECT id, ({where}) AS fits FROM {mixed} WHERE {where} LIMIT {limit}")
                rows = df.collect()
                assert len({row.id for row in rows}) == len(rows) == min(limit, total), (where, limit)
                assert all(row.fits for row in rows), (where, limit)
                limited += any("LIMIT" in label for label in labels(df))
    assert proven > filters // 2
    assert limited > filters // 2
