"""Functions of a column: what a set of their results is turned into, against what Spark makes of single values."""

from __future__ import annotations

import pytest

from metastore.format.table_column import Column, encoding_of
from metastore.pruning.column_names import ColumnNames
from metastore.pruning.conditions import Member, Unknown, all_of
from metastore.pruning.expressions import index_expressions
from metastore.pruning.filter_text import parse_condition
from metastore.pruning.filters import parse_filter
from metastore.pruning.keys import key_of_double
from metastore.pruning.term_reader import TermReader
from metastore.pruning.value_sets import ValueSet
from planner.plans import conf

DAY = 86_400_000_000
TEXTS = (
    "", " ", "a", "A", " aB ", "\ta ", "ab  ", "  ab", "abc", "ABC", "é", "éa", "İx", "straße", "Σ", "ὈΔΥΣΣΕΎΣ", "😀a",
    "a😀b", "a\0", "\u00a0a", "\n", "ǅ", "aaaa",
)  # fmt: skip
INTS = (*range(-30, 30), 1 << 20, (1 << 31) - 1, (1 << 31) - 2, -(1 << 31), -(1 << 31) + 1, 1 << 29)
LONGS = (*range(-5, 5), (1 << 53) + 1, (1 << 53) + 2, (1 << 62) + 1, (1 << 63) - 1, -(1 << 63), (1 << 24) + 1)
DAYS = (*range(-40, 70, 3), -719_529, -719_162, 2_932_896, 2_932_897, 19_782, 19_783, 19_787, -141_428, -141_427)
MOMENTS = tuple(
    day * DAY + of_day
    for day in (-141_427, -1, 0, 59, 19_782, 19_783, 19_792, 19_793, 20_028, 20_029)
    for of_day in (0, 1, 3_599_999_999, 3_600_000_000, 36_000_000_000, DAY - 1)
)
UNITS = ("MM", "mon", "month", "week", "QUARTER", "year", "YY")
STARTS, LENGTHS = (0, 1, 2, -1, -3, -9), (-1, 0, 1, 2, 9)
CASES = {
    ("a", "int"): (INTS, "a", [
        "a + 7", "7 - a", "-a", "a * 3", "a * -2", "a - 5", "a % 7", "a % -7", "negative(a + 1)", "(a + 1) * 2 - 3",
        "a + 3L", "CAST(a AS BIGINT)", "CAST(a AS DOUBLE)", "CAST(a AS FLOAT)", "double(a - 1)",
        "TRY_CAST(a AS BIGINT)",
    ]),
    ("k", "bigint"): (LONGS, "k", [
        "k + 1", "1 - k", "k * 2", "-k", "k % 3", "CAST(k AS DOUBLE)", "CAST(k AS FLOAT)",
    ]),
    ("d", "date"): (DAYS, "date_from_unix_date(d)", [
        "year(d)", "month(d)", "quarter(d)", "day(d)", "dayofmonth(d)", "year(d) + 1", "month(trunc(d, 'QUARTER'))",
        *(f"trunc(d, '{unit}')" for unit in UNITS),
        "date_add(d, 40)", "date_sub(d, 40)", "d + 40", "d - 1", "date_add(d, -3)", "CAST(d AS TIMESTAMP)",
        "date_trunc('MONTH', d)", "CAST(CAST(d AS TIMESTAMP) AS DATE)", "to_date(d)",
    ]),
    ("t", "timestamp"): (MOMENTS, "timestamp_micros(t)", [
        "year(t)", "month(t)", "day(t)", "CAST(t AS DATE)", "date(t)", "to_date(t)", "trunc(t, 'MM')", "date_add(t, 1)",
        *(f"date_trunc('{unit}', t)" for unit in (*UNITS, "SECOND", "minute", "HOUR", "DAY", "dd")),
    ]),
    ("s", "string"): (TEXTS, "s", [
        "length(s)", "char_length(trim(s))",
        "lower(s)", "ucase(s)", "trim(s)", "ltrim(s)", "rtrim(s)", "lower(trim(s))", "upper(left(s, 2))",
        *(f"substring(s, {start}, {length})" for start in STARTS for length in LENGTHS),
        "substr(s, 2)", "left(s, 2)", "left(s, 0)", "right(s, 2)", "right(s, 0)", "left(s, -1)", "right(s, -1)",
    ]),
}  # fmt: skip
"""Values of a column, how they are made of what Python gives, and functions of it."""
SHOWN = {"date": "unix_date({})", "timestamp": "unix_micros({})"}


def key(value: object) -> object:
    """A value of Spark's as a key."""
    return key_of_double(value) if isinstance(value, float) else value.encode() if isinstance(value, str) else value


def is_doubtful(value: object) -> bool:
    """Whether a function may overflow, or Unicode's versions decide."""
    return not value.isascii() if isinstance(value, str) else abs(value) > 1 << 28


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["UTC", "+05:30", "America/Los_Angeles"])
@pytest.mark.parametrize(("column", "kind"), CASES)
def test_the_values_of_a_result_are_those_that_spark_makes_it_of(spark, column, kind, zone):
    values, made, conditions = CASES[column, kind]
    subject = Column(key="1", path=(column,), type=kind, encoding=encoding_of(kind))
    terms = TermReader(ColumnNames([subject], "t"), zone, lambda _: None)
    with conf(spark, spark__sql__session__timeZone=zone, spark__sql__ansi__enabled="false"):
        rows = spark.createDataFrame(
            [(value,) for value in values], f"{column} {'string' if kind == 'string' else 'bigint'}"
        )
        typed = rows.selectExpr(f"CAST({made} AS {kind}) AS {column}", f"{column} AS given")
        found_terms = [terms.read(parse_condition(condition)) for condition in conditions]
        assert [kind for _, kind in typed.selectExpr(*conditions).dtypes] == [term.type for term in found_terms]
        texts = (
            SHOWN.get(term.type, "{}").format(condition)
            for condition, term in zip(conditions, found_terms, strict=True)
        )
        results = typed.selectExpr("given", *texts).collect()
        for position, (text, term) in enumerate(zip(conditions, found_terms, strict=True), 1):
            results_of_spark = {row[0]: key(row[position]) for row in results}
            is_exact = zone != "America/Los_Angeles" or kind == "string"
            for result in set(results_of_spark.values()):
                condition = term.where(ValueSet.of([result]))
                assert isinstance(condition, Member)
                members = {value for value in values if key(value) in condition.values}
                having = {value for value in values if results_of_spark[value] == result}
                assert having <= members, (text, result)
                if is_exact and kind not in ("int", "bigint", "string"):
                    assert members == having, (text, result)
                elif is_exact:
                    assert all(map(is_doubtful, members - having)), (text, result)


COLUMNS = [
    Column(key=str(at), path=(name,), type=kind, encoding=encoding_of(kind))
    for at, (name, kind) in enumerate(
        {"a": "int", "s": "string", "x": "binary", "c": "char(3)", "t": "timestamp", "day": "string",
         "e": "decimal(9,2)"}.items()
    )
]  # fmt: skip


@pytest.mark.parametrize(
    "filter_",
    [
        "date_trunc(day, t) < '2024-01-01'",  # of a column named as a unit
        "date_trunc('Y', t) IS NULL",  # no unit: always NULL
        "trunc(t, 'DD') IS NULL",
        "date_add(MONTH, 1, t) < '2024-01-01'",
        "trim(BOTH 'x' FROM s) = 'a'",
        "to_date(s) = '2024-01-01'",
        "to_date(t, 'yyyy') = '2024-01-01'",
        "year(s) = 2024",
        "CAST(a AS SMALLINT) = 1",
        "CAST(e AS DECIMAL(5,2)) = 1",
        "CAST(e AS DECIMAL(12,1)) = 1",
        "CAST(a AS STRING) = '1'",
        "CAST(s AS INT) = 1",
        "a + 1.5 = 2",
        "a + s = 2",
        "a * 0 = 0",
        "a % 0 = 1",
        "5 % a = 1",
        "a + -2147483648 = 1",  # an INT, or a BIGINT
        "substring(s, a, 1) = 'x'",
        "substring(x, 1, 1) = X'00'",
        "lower(a) = '1'",
        "initcap(s) = 'A'",
        "length(s, 1) = 1",
    ],
)
def test_what_is_not_certain_has_no_rule(filter_):
    (conjunct,) = parse_filter(filter_, COLUMNS, "t")
    assert isinstance(conjunct.condition, Unknown), conjunct


@pytest.mark.parametrize(
    ("filter_", "included", "left_out"),
    [
        ("lower(s) = 'ab'", [b"Ab", b"AB", "É".encode(), b"\xff"], [b"b", b""]),
        ("NOT lower(s) = 'ab'", [b"b", "É".encode(), b"\xff"], [b"Ab", b"AB"]),
        ("lower(s) LIKE 'a%' AND upper(s) <> 'AB'", [b"Abc", b"\xff"], [b"AB", b"b"]),
        ("lower(s) NOT IN ('ab', 'c')", [b"b"], [b"AB", b"C"]),
        ("s NOT LIKE '%b%'", [b"a", b"\xffb"], [b"ab"]),  # bytes that are no text may be anything
        ("length(s) BETWEEN 2 AND 3", ["éé".encode(), b"abc", b"\xff\xff"], [b"a", "é".encode(), b"abcd"]),
        ("left(s, 2) IN ('ab', 'cd')", [b"ab", b"abc", b"cdx"], [b"a", b"ac", b"b"]),
        ("substring(s, 1, 2) = 'abc'", [], [b"ab", b"abc"]),
        ("startswith(trim(s), 'a')", [b" a", b"a "], [b" b", b""]),
        ("lower(s) <=> NULL", [], [b"a"]),
        ("length(x) = 2", [b"\xff\xff"], [b"a"]),
    ],
)
def test_single_values_are_put_through_functions(filter_, included, left_out):
    condition = all_of(conjunct.condition for conjunct in parse_filter(filter_, COLUMNS, "t"))
    assert [value for value in included if value not in condition.values] == []
    assert [value for value in left_out if value in condition.values] == []


def test_null_is_null_through_functions():
    for filter_, null in {"lower(s) IS NULL": True, "a + 1 IS NOT NULL": False, "NOT (year(t) <=> 2024)": True}.items():
        (conjunct,) = parse_filter(filter_, COLUMNS, "t")
        assert conjunct.condition.values.null == null, filter_


def test_bounds_and_filters_are_asked_of_the_column_itself():
    (conjunct,) = parse_filter("a * 2 + 1 = 9", COLUMNS, "t")
    assert conjunct.condition.values.points(-100, 100, 10) == [4]
    (conjunct,) = parse_filter("a * 2 = 9", COLUMNS, "t")
    assert conjunct.condition.values.points(-100, 100, 10) == []


EXPRESSIONS = [
    Column(key=f"expression:{at}", path=(text,), type=kind, encoding=encoding_of(kind))
    for at, (text, kind) in enumerate(
        {"lower(name)": "string", "a+b": "int", "hour(t)": "int", "m['x']": "int", "year(old)": "int",
         "e * 2": "decimal(20,2)", "not ! sql": "int", "lower(gone)": "string",
         "concat(name, '-', Name)": "string"}.items()
    )
]  # fmt: skip
THEN = [
    Column(key="1", path=("name",), type="string", encoding="binary"),
    Column(key="2", path=("a",), type="int", encoding="long"),
    Column(key="3", path=("b",), type="int", encoding="long"),
    Column(key="4", path=("t",), type="timestamp", encoding="long"),
    Column(key="5", path=("m",), type="map<string,int>", encoding=None),
    Column(key="6", path=("e",), type="decimal(9,2)", encoding="long"),
]


@pytest.mark.parametrize(
    ("filter_", "expression"),
    [
        ("lower(label) = 'x'", "lower(name)"),
        ("lcase((`LABEL`)) LIKE 'x%'", "lower(name)"),
        ("substring(lower(label), 2, 1) = 'x'", "lower(name)"),
        ("lower(name) = 'x'", None),  # another column took the name
        ("a + b > 3", "a+b"),
        ("b + a > 3", None),
        ("m['x'] IS NULL", "m['x']"),
        ("m['y'] IS NULL", None),
        ("element_at(m, 'x') IS NULL", None),
        ("hour(t) = 3", None),  # the zone decides
        ("e * 2 = 3", None),
        ("concat(label, '-', label) = 'x'", "concat(name, '-', Name)"),
        ("concat(label, '+', label) = 'x'", None),
    ],
)
def test_an_expression_that_has_statistics_is_asked_as_a_column(filter_, expression):
    renamed = {"1": "label"}
    now = [
        Column(
            key=column.key, path=(renamed.get(column.key, column.path[0]),), type=column.type, encoding=column.encoding
        )
        for column in THEN
    ]
    now.append(Column(key="7", path=("name",), type="string", encoding="binary"))
    (conjunct,) = parse_filter(filter_, now, "t", "UTC", index_expressions(EXPRESSIONS, THEN))
    parts = getattr(conjunct.condition, "parts", (conjunct.condition,))
    expressions = [part.column.name for part in parts if isinstance(part, Member) and part.column.is_expression]
    assert expressions == ([expression] if expression else [])


def test_an_expression_of_a_column_that_has_another_type_now_is_not_asked():
    now = [
        column if column.key != "2" else Column(key="2", path=("a",), type="bigint", encoding="long") for column in THEN
    ]
    (conjunct,) = parse_filter("a + b > 3", now, "t", "UTC", index_expressions(EXPRESSIONS, THEN))
    assert isinstance(conjunct.condition, Unknown)


@pytest.mark.parametrize("expressions", [{}, index_expressions(EXPRESSIONS, THEN)], ids=["without", "with"])
def test_stored_expressions_do_not_change_the_reason_of_a_sub_query(expressions):
    """Names beside a sub-query are not checked, whether or not expressions have statistics."""
    (conjunct,) = parse_filter("no_column + (SELECT 1) > 3", THEN, "t", "UTC", expressions)
    assert conjunct.condition == Unknown("SUBQUERY", "no_column + (SELECT 1)")
