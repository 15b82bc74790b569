"""Other uses of statistics of expressions: answers, user-defined statistics, estimates, LIMIT, counts."""

from __future__ import annotations

from random import Random

import pytest

import metastore
from metastore.errors import InvalidArgument
from planner.expressions.sample_tables import CELL, COLUMNS, ROWS, four_files, open_table
from planner.plans import check, conf, files_read, plain, query_number, rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_answers_tell_of_them_and_compacting_keeps_them(spark, make_table, warehouse):
    table, _ = make_table("iceberg", *four_files())
    for expression in ("lower(name)", "a + b"):
        metastore.analyze(spark, table, progress=False, expressions=[expression])
    columns = COLUMNS.split()[::2]
    assert {row["column_name"] for row in metastore.columns(spark, table)} == set(columns)
    assert [row["columns"] for row in metastore.snapshots(spark, table)] == [len(columns)]
    opened = open_table(warehouse, table)
    for ask in (
        lambda verb, *more: getattr(opened, verb)(*more),
        lambda verb, *more: getattr(metastore, verb)(spark, table, *more),
    ):
        names = [row["column_name"] for row in ask("summary")]
        assert names == [*columns, "a + b", "lower(name)"]
        expression_summary = ask("summary").column("a + b")
        assert [str(expression_summary[name]) for name in ("column_type", "min", "max", "count", "null_count")] == [
            "int",
            "0",
            "30",
            "160",
            "1",
        ]
        assert [row["frequency"] for row in ask("frequencies", "a + b")] == [40, 40, 40, 39]
        assert len(ask("columns", "lower(name)")) == 4
        assert str(ask("quantiles", "a + b", 1.0)[0]["value"]) == "30"
    assert {verified["state"] for verified in metastore.verify(spark, table)} == {"ok"}
    assert metastore.compact(spark, table) is not None
    check(spark, f"SELECT * FROM {table} WHERE a + b > 10", [2])
    check(spark, f"SELECT * FROM {table} WHERE lower(name) = 'ab105'", [1])


def test_a_statistic_of_an_expression_is_computed_of_its_values(spark, make_table, warehouse):
    table, _ = make_table("iceberg", *four_files()[:2])
    longest = metastore.statistic("longest", version=1, merge=max, expression="concat(lower(name), 'x')")(
        lambda values: max(map(len, values.to_pylist()))
    )
    rows = metastore.statistic("rows_seen", version=1, merge=sum)(len)

    def summary_text(**of):
        answers = (metastore.summary(spark, table, **of), open_table(warehouse, table).summary(**of))
        first, again = (
            {row["column_name"]: (row["longest"], row["rows_seen"]) for row in answer} for answer in answers
        )
        assert first == again
        return first

    report = metastore.analyze(spark, table, progress=False, statistics=[longest, rows], expressions=["a + b"])
    assert (report.files_read, report.refused) == (2, ())
    first_text = summary_text()
    assert first_text.pop("concat(lower(name), 'x')") == (6, None)
    assert first_text.pop("a + b") == (None, None)
    assert set(first_text.values()) == {(None, 80)}
    check(spark, f"SELECT * FROM {table} WHERE concat(lower(name), 'x') = 'ab105x'", [1])
    again = metastore.analyze(spark, table, progress=False, statistics=[longest, rows], expressions=["a + b"])
    assert (again.files_read, again.committed) == (0, False)

    spark.sql(ROWS.format(file=10)).coalesce(1).writeTo(table).append()
    assert metastore.analyze(spark, table, progress=False, statistics=[longest, rows]).files_read == 1
    assert summary_text()["concat(lower(name), 'x')"] == (7, None)
    paths = [row["path"] for row in metastore.files(spark, table)]
    assert {summary_text(file=path)["concat(lower(name), 'x')"][0] for path in paths} == {6, 7}

    newer = metastore.statistic("longest", version=2, merge=max, expression="concat(lower(name), 'x')")(len)
    assert metastore.analyze(spark, table, progress=False, statistics=[newer, rows]).files_read == 3
    assert summary_text()["concat(lower(name), 'x')"] == (40, None)
    failing = metastore.statistic("longest", version=3, expression="lower(nothing)")(len)
    with pytest.raises(InvalidArgument, match=r"lower.nothing.*cannot be resolved"):
        metastore.analyze(spark, table, progress=False, statistics=[failing])


ESTIMATES = {
    "lower(name) = 'ab105'": 1,
    "lower(name) LIKE 'ab2%'": 40,
    "NOT lower(name) < 'ab3'": 40,
    "a + b > 10": 79,
    "a + b IN (20, 30) AND f = 3": 39,
    "a + b IS NULL": 1,
    "a + b = 20 OR f = 0": 80,
    f"{CELL} = 2003": 10,
}


def test_the_optimizer_is_told_how_many_rows_they_leave(spark, analyzed):
    table, _ = analyzed
    for predicate, expected in ESTIMATES.items():
        query = f"SELECT * FROM {table} WHERE {predicate}"
        assert query_number(spark, f"SELECT count(*) FROM {table} WHERE {predicate}") == expected
        rows = spark.sql(query)._jdf.queryExecution().optimizedPlan().stats().rowCount().get()
        assert expected / 2 <= int(str(rows)) <= expected * 2, predicate


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("WHERE lower(name) > 'ab1' LIMIT 30", [1]),
        ("WHERE a + b >= 10 AND f < 3 LIMIT 60", [2]),
        ("WHERE a + b > 10 LIMIT 60", [2]),  # of one file a row is null
        ("WHERE lower(name) LIKE 'ab%' LIMIT 1", [1]),
        ("WHERE lower(name) <> 'ab105' OR f > 7 LIMIT 100", [3]),
        ("ORDER BY lower(name), f LIMIT 3", [1]),
        ("ORDER BY a + b DESC NULLS LAST LIMIT 3", [1]),
        ("ORDER BY a + b DESC NULLS FIRST LIMIT 1", [1]),
        ("WHERE lower(name) > 'ab1' ORDER BY lower(name) DESC LIMIT 41", [2]),
        ("WHERE lower(name) < 'ab2' ORDER BY a + b LIMIT 41", [2]),
    ],
)
def test_few_rows_are_read_from_few_files(spark, analyzed, query, files):
    table, _ = analyzed
    selected = "f, lower(name) n, a + b c"
    frame = spark.sql(f"SELECT {selected} FROM {table} {query}")
    rows, limit = frame.collect(), int(query.split()[-1])
    assert files_read(frame) == files
    assert len(rows) == limit
    condition, _, order = query.rpartition(" LIMIT ")[0].partition("ORDER BY ")
    every = plain(spark, f"SELECT {selected} FROM {table} {condition}")
    assert set(rows) <= set(every)
    if order:  # and no other row comes before the last of them
        first = plain(spark, f"SELECT {selected} FROM {table} {condition} ORDER BY {order}, n LIMIT {limit}")
        key = "n" if order.startswith("lower") else "c"
        assert sorted(repr(row[key]) for row in rows) == sorted(repr(row[key]) for row in first)


@pytest.mark.parametrize(
    ("predicate", "files"),
    [("lower(name) >= 'ab1' AND f >= 0", []), ("a + b > 10", [1])],  # of one file a row is null: it is read
)
def test_rows_that_match_in_whole_files_are_counted(spark, analyzed, predicate, files):
    table, _ = analyzed
    with conf(spark, spark__metastore__aggregates__enabled="true"):
        check(spark, f"SELECT count(*) FROM {table} WHERE {predicate}", files)


def random_file(random, number: int) -> list[tuple]:
    """Rows of a file whose expressions lie close together, now and then with what has no order or no value."""
    odd = [None, float("nan"), -0.0, 0.0, float("inf")] if random.random() < 0.5 else [0.5]
    texts = [f"AB{number}", f"ab{number}", *odd[:1]] if odd[0] is None else [f"Ab{number}"]
    values = [float(number), number + 0.5, *odd]
    return [
        (
            random.choice(texts) if random.random() < 0.9 else "x",
            number * 10 - i,
            i if random.random() < 0.95 else None,
            *random.choices(values, k=2),
        )
        for i in range(random.randrange(1, 25))
    ]


RANDOM = ["lower(s)", "a + b", "x + y", "x * 2 > y", "concat(s, 'x')", "coalesce(a + b, -1)", "x * y"]
COMPARISONS = ["=", "<", "<=", ">", ">=", "<>", "<=>", "IN"]


def random_condition(random, values) -> str:
    """One or two comparisons of expressions with values that they have."""
    parts = []
    for number in random.choices(range(len(RANDOM)), k=random.randrange(1, 3)):
        value = random.choice(values)[number]
        literal = "NULL" if value is None else f"double('{value}')" if isinstance(value, float) else repr(value)
        compared = f"{RANDOM[number]} {random.choice(COMPARISONS)} ({literal})"
        parts.append(random.choice([compared, compared, f"NOT {compared}", f"{RANDOM[number]} IS NULL"]))
    return random.choice([" AND ", " OR "]).join(f"({part})" for part in parts)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.campaign) for seed in (1, 2))])
def test_random_conditions_have_the_same_answers_with_and_without_them(spark, make_table, seed):
    random = Random(seed)
    table, _ = make_table("iceberg", "SELECT '' s, 0 a, 0 b, 0D x, 0D y")
    for number in range(6):
        made = spark.createDataFrame(random_file(random, number), "s string, a int, b int, x double, y double")
        made.coalesce(1).writeTo(table).append()
    assert not metastore.analyze(spark, table, progress=False, expressions=RANDOM).refused
    selected = ", ".join(f"{expression} e{number}" for number, expression in enumerate(RANDOM))
    values, saved = plain(spark, f"SELECT {selected} FROM {table}"), 0
    for _ in range(40):
        where, limit = random_condition(random, values), random.randrange(1, 30)
        every = plain(spark, f"SELECT {selected} FROM {table} WHERE {where}")
        with conf(spark, spark__metastore__aggregates__enabled="true"):
            assert spark.sql(f"SELECT count(*) FROM {table} WHERE {where}").first()[0] == len(every), where
        limited = spark.sql(f"SELECT {selected} FROM {table} WHERE {where} LIMIT {limit}")
        limited_rows = limited.collect()
        assert len(limited_rows) == min(limit, len(every)), where
        assert set(map(repr, limited_rows)) <= set(map(repr, every)), where
        saved += sum(files_read(limited)) < 7
        key, nulls = random.choice(RANDOM), random.choice(["", "NULLS FIRST", "NULLS LAST"])
        order = f"{key} {random.choice(['', 'DESC'])} {nulls} LIMIT {limit}"
        first = f"SELECT replace(string({key}), '-0.0', '0.0') e FROM {table} WHERE {where} ORDER BY {order}"
        assert rows(spark.sql(first)) == plain(spark, first), first
    assert saved > 20
