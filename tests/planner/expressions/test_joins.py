"""Joins on expressions with statistics: the keys of the small side choose data files, and rows are those without us."""

from __future__ import annotations

from random import Random

import pytest

import metastore
from formats.kinds import each_format
from planner.expressions.sample_tables import CELL, ROWS, four_files
from planner.expressions.test_other_uses import RANDOM, random_file
from planner.plans import conf, files_read, labels, physical, plain, query_number, rows
from planner.test_estimates import estimate

pytestmark = pytest.mark.spark

# Of rows of the second file and the third: an expression, and the values of the small side.
KEYS = {
    "lower(f.name)": "('ab205')",
    "LOWER(f.NAME)": "('ab105'), ('ab106'), (NULL), ('nothing')",
    "date_format(f.ts, 'MM yyyy')": "('03 2024')",
    "f.a + f.b": "(20), (NULL)",
    "f.b + f.a": "(20L)",
    CELL.replace("lon", "f.lon").replace("lat", "f.lat"): "(2003L)",
    "f.lon + f.lat": "(1.75D), (double('NaN'))",
    "f.f": "(2L)",
    "CAST(f.f AS STRING)": "('2')",
}
JOINED = [
    "SELECT f, name, k FROM {t} f JOIN {d} ON {key} = d.k",
    "SELECT d.k, max(f.name), count(*) FROM {d} JOIN {t} f ON d.k = {key} WHERE f.f < 5 GROUP BY d.k",
    "SELECT f, name FROM {t} f LEFT SEMI JOIN {d} ON {key} = d.k",
    "SELECT f, name FROM {t} f WHERE {key} IN (SELECT k FROM {d})",
    "SELECT name, k FROM (SELECT name, f, {key} AS e FROM {t} f) g JOIN {d} ON g.e = d.k",
]
ALL_ROWS = [
    "SELECT f, name, k FROM {t} f LEFT JOIN {d} ON {key} = d.k",
    "SELECT f, name, k FROM {t} f FULL JOIN {d} ON {key} = d.k",
    "SELECT f, name FROM {t} f LEFT ANTI JOIN {d} ON {key} = d.k",
]


def dimension(values: str) -> str:
    """A small side of these keys."""
    return f"(SELECT * FROM VALUES {values} AS v(k)) d"


def compare(spark, query: str, most: int | None = None):
    """Rows are those without us, whatever NaN equals; at most so many files are read."""
    df = spark.sql(query)
    assert [repr(row) for row in rows(df)] == [repr(row) for row in plain(spark, query)], (query, physical(df))
    if most is not None:
        assert sum(files_read(df)) <= most, (query, physical(df))
    return df


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=pytest.mark.slow)])
def test_only_files_with_a_key_are_read(spark, analyzed, adaptive):
    table, _ = analyzed
    for key, values in KEYS.items():
        small = dimension(values)
        evaluations = "10000" if key.startswith("CAST") else "0"  # by lists of the column's own values
        with conf(
            spark,
            spark__sql__adaptive__enabled=adaptive,
            spark__metastore__pruning__values__maxEvaluations=evaluations,
        ):
            needed = query_number(spark, f"SELECT count(DISTINCT f) FROM {table} f JOIN {small} ON {key} = d.k")
            assert 0 < needed < 4, key
            for query in JOINED if key == "lower(f.name)" else JOINED[:1]:
                compare(spark, query.format(t=table, d=small, key=key), needed)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_what_must_not_be_left_out_is_read(spark, analyzed, adaptive):
    table, _ = analyzed
    small = dimension("('ab205'), (NULL)")
    with conf(spark, spark__sql__adaptive__enabled=adaptive):
        for query in ALL_ROWS:
            df = compare(spark, query.format(t=table, d=small, key="lower(f.name)"))
            assert files_read(df) == [4], query
        nulls = dimension("(CAST(NULL AS INT)), (20)")
        assert len(compare(spark, f"SELECT f, k FROM {table} f JOIN {nulls} ON f.a + f.b <=> d.k").collect()) == 41
        compare(spark, f"SELECT f, k FROM {table} f JOIN {small} ON lower(f.name) <=> d.k")
        for nothing in (dimension("(CAST(NULL AS STRING))"), "(SELECT string(id) k FROM range(9) WHERE id > 20) d"):
            compare(spark, f"SELECT f, name FROM {table} f JOIN {nothing} ON lower(f.name) = d.k", 0)


def test_other_expressions_read_all_files(spark, analyzed):
    table, _ = analyzed
    for key, values in (("upper(f.name)", "('AB205')"), ("f.a * f.b", "(7)"), ("lower(concat(f.name, f.f))", "('x')")):
        query = f"SELECT f, name FROM {table} f JOIN {dimension(values)} ON {key} = d.k"
        assert files_read(compare(spark, query)) == [4]
    small = dimension("('03 2024')")
    month = f"SELECT f, name FROM {table} f JOIN {small} ON date_format(f.ts, 'MM yyyy') = d.k"
    with conf(spark, spark__sql__session__timeZone="Asia/Tokyo"):
        assert files_read(compare(spark, month)) == [4]
    with conf(spark, spark__metastore__pruning__join__enabled=False):
        assert files_read(compare(spark, month)) == [4]


def test_the_plan_says_that_keys_choose_files(spark, analyzed):
    table, _ = analyzed
    query = f"SELECT f, name FROM {table} f JOIN {dimension('(20)')} ON f.a + f.b = d.k"
    df = spark.sql(query)
    assert labels(df) == ["4 -> 4 files, join"]
    df.collect()
    assert files_read(df) == [1]
    parts = [
        query,
        query.replace("(20)", "(10)"),
        query.replace("f.a + f.b", "f.lon + f.lat").replace("(20)", "(1.75D)"),
        query.replace("f.a + f.b = d.k", "lower(f.name) = string(d.k)"),
    ]
    for adaptive in ("true", "false"):
        with conf(spark, spark__sql__adaptive__enabled=adaptive):
            compare(spark, f"SELECT count(*), sum(f) FROM ({' UNION ALL '.join(parts)})")


def test_keys_of_one_scan_do_not_stand_for_each_other(spark, analyzed):
    table, _ = analyzed
    both = f"SELECT f, name FROM {table} f JOIN (SELECT * FROM VALUES ('ab205', {{c}}) AS v(n, c)) d ON"
    compare(spark, f"{both.format(c=20)} lower(f.name) = d.n AND f.a + f.b = d.c", 1)
    compare(spark, f"{both.format(c=10)} lower(f.name) = d.n AND f.a + f.b = d.c", 0)
    chain = f"""SELECT f.name FROM {table} f JOIN {dimension("('ab205'), ('ab105')")} ON lower(f.name) = d.k
        JOIN (SELECT * FROM VALUES (20) AS v(c)) e ON f.a + f.b = e.c"""
    compare(spark, chain, 1)
    itself = f"SELECT f.name, g.name FROM {table} f JOIN {table} g ON lower(f.name) = lower(g.name)"
    compare(spark, f"{itself} WHERE g.a + g.b = 20 AND g.a = 500")


def test_files_that_came_later_are_read(spark, make_table):
    table, _ = make_table("iceberg", *four_files())
    metastore.analyze(spark, table, progress=False, expressions=["lower(name)"])
    spark.sql(ROWS.format(file=2)).coalesce(1).writeTo(table).append()
    small = dimension("('ab205')")
    query = f"SELECT f, name FROM {table} f JOIN {small} ON lower(f.name) = d.k"
    assert len(compare(spark, query, 2).collect()) == 2
    spark.sql(f"DELETE FROM {table} WHERE name = 'aB205'")
    assert compare(spark, query, 2).collect() == []
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN name TO old")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN name STRING")
    spark.sql(f"INSERT INTO {table} (f, name) VALUES (7, 'AB205')")
    assert len(compare(spark, query).collect()) == 1
    assert compare(spark, query.replace("f.name", "f.old"), 3).collect() == []


@pytest.mark.slow
def test_semi_joins_are_estimated_by_the_values_that_are_found(spark, make_table):
    table, _ = make_table("iceberg", *four_files())
    small, _ = make_table(
        "iceberg", *(f"SELECT lower(name) n, a + b c, f FROM ({rows_of_file})" for rows_of_file in four_files())
    )
    for name in (table, small):
        metastore.analyze(spark, name, progress=False, expressions=["lower(name)", "a + b"] if name == table else [])
    for query in (
        f"{table} WHERE lower(name) IN (SELECT n FROM {small} WHERE f = 2)",
        f"{table} t WHERE EXISTS (SELECT 1 FROM {small} s WHERE s.c = t.a + t.b AND s.c = 20)",
        f"{table} t LEFT SEMI JOIN {small} s ON s.n = lower(t.name) AND s.f = 2",
        f"{table} t LEFT ANTI JOIN (SELECT * FROM {small} WHERE f < 3) s ON lower(t.name) = s.n",
        f"{table} WHERE lower(name) LIKE 'ab2%' AND lower(name) IN (SELECT n FROM {small} WHERE f > 0)",
    ):
        expected, _ = estimate(spark.sql(f"SELECT * FROM {query}"))
        assert query_number(spark, f"SELECT count(*) FROM {query}") == 40
        assert 20 <= expected <= 80, query


@pytest.mark.parametrize("kind", each_format("iceberg", "parquet", "delta"))
def test_fields_and_values_without_an_order(spark, make_table, kind):
    made = "SELECT named_struct('a', {file} * 10 + id, 'b', named_struct('c', string({file}))) st, array({file}) arr,"
    made += " map('k', {file}) m, binary(string({file})) bytes, repeat(string(id), 9) pad FROM range(10)"
    table, _ = make_table(kind, *(made.format(file=file) for file in range(4)))
    metastore.analyze(spark, table, progress=False)
    with conf(spark, spark__metastore__pruning__values__maxEvaluations="1000"):
        for key, values, files in (
            ("f.st.a", "(25)", 1),
            ("f.st.b.c", "('2'), ('3')", 2),
            ("f.bytes", "(binary('2'))", 1),
            ("element_at(f.m, 'k')", "(2)", None),
            ("f.arr", "(array(2))", None),
            ("f.arr[0]", "(2)", None),
            ("f.st", "(named_struct('a', 25L, 'b', named_struct('c', '2')))", None),
            ("f.st.a % 10 = 5 AND f.st.a", "(25)", 1),
        ):
            query = f"SELECT f.pad, f.st.a FROM {table} f JOIN {dimension(values)} ON {key} = d.k"
            assert compare(spark, query, files).count() > 0, key


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["iceberg", pytest.param("parquet", marks=pytest.mark.campaign)])
def test_random_joins_have_the_same_rows_with_and_without_them(spark, make_table, kind):
    random = Random(kind)
    columns = "s string, a int, b int, x double, y double"
    files = []
    for number in range(6):
        spark.createDataFrame(random_file(random, number), columns).createOrReplaceTempView(f"random_{number}")
        files.append(f"SELECT * FROM random_{number}")
    table, _ = make_table(kind, *files)
    assert not metastore.analyze(spark, table, progress=False, expressions=RANDOM).refused
    selected, saved = ", ".join(f"{expression} e{number}" for number, expression in enumerate(RANDOM)), 0
    values = plain(spark, f"SELECT {selected} FROM {table}")
    for _ in range(60):
        numbers = random.sample(range(len(RANDOM)), k=random.choice([1, 1, 2]))
        key_rows = [
            [literal(row[number]) for number in numbers] for row in random.choices(values, k=random.randrange(1, 4))
        ]
        keys = ", ".join(f"k{number}" for number in numbers)
        listed = ", ".join(f"({', '.join(row)})" for row in key_rows)
        small = f"(SELECT * FROM VALUES {listed} AS v({keys})) d"
        on = " AND ".join(f"{RANDOM[number]} {random.choice(['=', '=', '=', '<=>'])} d.k{number}" for number in numbers)
        kind_of = random.choice(["JOIN", "JOIN", "LEFT SEMI JOIN", "LEFT JOIN", "LEFT ANTI JOIN", "RIGHT JOIN"])
        query = f"SELECT {selected} FROM {table} f {kind_of} {small} ON {on} WHERE {random.choice(['true', 'a < 45'])}"
        with conf(
            spark,
            spark__sql__adaptive__enabled=random.choice(["true", "false"]),
            spark__metastore__pruning__values__maxEvaluations=random.choice(["0", "10000"]),
        ):
            saved += sum(files_read(compare(spark, query))) < 6
    assert saved > 10


def literal(value) -> str:
    """A value in SQL."""
    if isinstance(value, float):
        return f"double('{value}')"
    return "NULL" if value is None else f"{value}" if isinstance(value, bool) else repr(value)
