"""The rules in Python are those of contract/rules.json, and judge the shim's cases as it does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from engines.facts import columns_of, is_kept
from metastore.errors import ColumnNotFound, InvalidArgument
from metastore.format.table_column import Column, encoding_of
from metastore.pruning import filters
from metastore.pruning.filter_text import parse_condition
from metastore.pruning.filters import parse_filter
from rules import RULES

SOURCES = Path(filters.__file__).parent
CASES = json.loads((Path(__file__).parents[1] / "cases" / "pruning.json").read_text("utf-8"))
WITHOUT_RULE = {
    "Binary", "Bracket", "Command", "Condition", "Dot", "Exists", "Expr", "Lambda", "Query", "Rand", "Randn",
    "Subquery", "Uuid",
}  # fmt: skip
"""Expressions that the sources name for other reasons: names of columns, classes of many, what is refused."""
COLUMNS = [
    Column(key=str(i), path=(name,), type=kind, encoding=encoding_of(kind))
    for i, (name, kind) in enumerate(
        {"a": "int", "k": "bigint", "s": "string", "d": "double", "f": "float", "t": "timestamp", "n": "timestamp_ntz",
         "day": "date", "c": "char(3)", "e": "decimal(38,30)", "p": "boolean", "date": "date"}.items()
    )
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_verdicts_of_the_shim(case):
    columns, zone = columns_of(case["schema"]), case.get("conf", {}).get("spark.sql.session.timeZone", "UTC")
    expected = [filter_ for verdict in ("keep", "all", "only_spark") for filter_ in case.get(verdict, [])]
    skipped = [filter_ for verdict in ("skip", "only_python") for filter_ in case.get(verdict, [])]
    assert [filter_ for filter_ in expected if not is_kept(columns, case["zone"], filter_, zone)] == []
    assert [filter_ for filter_ in skipped if is_kept(columns, case["zone"], filter_, zone)] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_prune_leaves_out_what_it_is_said_to(rule):
    columns = columns_of(rule.schema)
    for statistics_kind in ("bounds", "values"):
        statistics = rule.statistics(statistics_kind)
        kept_filters = [filter_ for filter_ in rule.filters if is_kept(columns, statistics, filter_, "UTC")]
        is_enough = rule.python in ("bounds", statistics_kind)
        assert kept_filters == (rule.stays if is_enough else rule.filters), statistics_kind


def test_every_rule_is_in_the_contract():
    """Each kind of expression that the sources name is in a filter of some rule."""
    named = {
        name for file in SOURCES.glob("*.py") for name in re.findall(r"\bexp\.([A-Z]\w+)", file.read_text("utf-8"))
    }
    trees = [parse_condition(filter_) for rule in RULES for filter_ in rule.filters]
    node_types = {type(node).__name__ for tree in trees for node in tree.walk()}
    assert named - node_types == WITHOUT_RULE


ZONE = {"rows": 10, "columns": {"a": {"lo": "1", "hi": "5", "nulls": 0}}}


@pytest.mark.parametrize(
    ("column", "lo", "hi", "filter_", "expected"),
    [
        ("k", "9007199254740993L", "9007199254740993L", "k > 9007199254740992D", True),  # Spark compares doubles
        ("k", "5L", "9L", "k > 9.5D", False),
        ("k", "5L", "9L", "k < double('NaN')", True),
        ("k", "5L", "9L", "k = double('NaN')", False),
        ("a", "1", "5", "a = 'x'", True),  # depends on ANSI mode
        ("a", "1", "5", "a > 5F", True),
        ("a", "1", "5", "a IN (6, 7.5)", False),
        ("a", "1", "5", "a IN (6, 'x')", True),
        ("e", "1BD", "2BD", "e > 12345678901234", True),  # no decimal holds both
        ("s", "'b'", "'c'", "s = 1", True),
        ("s", "'b'", "'c'", "s = 'a' 'b'", True),  # what adjacent strings are depends on the version
        ("s", "'b'", "'c'", "s = 'it''s'", True),
        ("s", "'b'", "'c'", "s = '\\u0061'", False),
        ("s", "'b'", "'c'", "s = '\\ud83d'", True),
        ("s", "'b'", "'c'", "s = r'a'", True),
        ("s", "'b'", "'c'", "s > 'c' COLLATE UTF8_LCASE", True),
        ("s", "'b'", "'c'", "s ILIKE 'A%'", True),
        ("s", "'b'", "'c'", "s LIKE 'a/%%' ESCAPE '/'", False),
        ("s", "'b'", "'c'", "s LIKE ANY ('a%', 'z%')", True),
        ("s", "'b'", "'c'", "s LIKE 'a\\\\'", True),  # Spark refuses it
        ("c", "'b'", "'c'", "c = 'a'", True),
        ("f", "float('0.1')", "float('0.1')", "f = 0.1", True),  # true in DuckDB, false in Spark
        ("f", "float('0.1')", "float('0.1')", "f <> 0.1", True),  # the other way round
        ("f", "float('0.1')", "float('0.1')", "f > 0.2", False),
        ("day", "DATE '2024-03-01'", "DATE '2024-03-09'", "day > '2024-03-09'", False),
        ("day", "DATE '2024-03-01'", "DATE '2024-03-09'", "day > '2024-3-9'", True),
        ("day", "DATE '2024-03-01'", "DATE '2024-03-09'", "day > TIMESTAMP '2024-03-09 01:00:00'", True),
        ("day", "DATE '2024-03-01'", "DATE '2024-03-09'", "day > '2024-02-31'", True),
        ("t", "'2024-03-01 00:00:00'", "'2024-03-02 00:00:00'", "t > '2024-03-02T00:00:00Z'", False),
        ("t", "'2024-03-01 00:00:00'", "'2024-03-02 00:00:00'", "t >= '2024-03-02 01:00:00+01:00'", True),
        ("t", "'2024-03-01 00:00:00'", "'2024-03-02 00:00:00'", "t > '2024-03-02 01:00:00+01:00'", False),
        ("t", "'2024-03-01 00:00:00'", "'2024-03-02 00:00:00'", "t < DATE '2024-03-01'", False),
        ("t", "'2024-03-01 00:00:00'", "'2024-03-01 00:00:00'", "t NOT IN ('2024-03-01')", True),  # a text without ANSI
        ("n", "'2024-03-01 00:00:00'", "'2024-03-02 00:00:00'", "n > TIMESTAMP '2024-03-02 00:00:00'", False),
        ("n", "'2024-03-01 00:00:00'", "'2024-03-02 00:00:00'", "n > TIMESTAMP '2024-03-02 00:00:00Z'", True),
        ("p", "true", "true", "p IS NOT TRUE", False),
        ("p", "true", "true", "p IS FALSE", False),
        ("p", "true", "true", "(a > 5) = p", True),
        ("date", "DATE '2024-03-01'", "DATE '2024-03-09'", "date > '2024-03-09'", False),
        ("a", "1", "5", "a BETWEEN SYMMETRIC 9 AND 6", True),
        ("a", "1", "5", "NOT (a > 5 OR a < 1)", True),
        ("a", "1", "5", "NOT (a <= 5 AND a >= 1)", False),
        ("a", "1", "5", "a > 3 AND a < 2", False),
        ("a", "1", "5", "!(a > 0)", False),
        ("a", "1", "5", "CASE WHEN a > 9 THEN TRUE END", True),
        ("k", "5L", "9L", "k = CAST(1 AS DECIMAL(5))", False),
        ("k", "5L", "9L", "k = CAST(1 AS DECIMAL)", False),
        ("k", "5L", "9L", "k = CAST(1 AS DECIMAL(MAX))", True),  # Spark refuses this type and the next ones
        ("k", "5L", "9L", "k = CAST(1 AS DECIMAL(x))", True),
        ("k", "5L", "9L", "k = CAST(1 AS DECIMAL(38, 39))", True),
        ("k", "5L", "9L", "CAST(k AS DECIMAL(999999999, 999999999)) = 1", True),
        ("k", "5L", "9L", "CAST(k AS VARCHAR(x)) = 'a'", True),
        ("e", "1BD", "2BD", "e = 'a'", True),  # depends on ANSI mode
        ("e", "1BD", "2BD", "e = '3'", True),
        ("e", "1BD", "2BD", "e IN (3, X'01')", True),
        ("e", "1BD", "2BD", "e = 1e99999F", True),
        ("day", "DATE '2024-03-01'", "DATE '2024-03-09'", "day = 0.5", True),
        ("day", "DATE '2024-03-01'", "DATE '2024-03-09'", "day > DATE '2020-01-01' + INTERVAL 'x' YEAR", True),
        ("s", "'b'", "'c'", "substring(s) = 'a'", True),
    ],
)  # fmt: skip
def test_literals_are_typed_as_in_spark(column, lo, hi, filter_, expected):
    zone = {"rows": 10, "columns": {"a": ZONE["columns"]["a"], column: {"lo": lo, "hi": hi, "nulls": 0, "nans": 0}}}
    columns = [
        Column(key=column.path[0], path=column.path, type=column.type, encoding=column.encoding) for column in COLUMNS
    ]
    if column == "c":
        zone["columns"].pop("c")
    assert is_kept(columns, zone, filter_, "UTC") == expected


def test_times_without_a_zone_are_of_the_zone():
    zone = {"rows": 10, "columns": {"t": {"lo": "'2024-03-01 00:00:00'", "hi": "'2024-03-02 00:00:00'", "nulls": 0}}}
    columns = [Column(key="t", path=("t",), type="timestamp", encoding="long")]
    assert not is_kept(columns, zone, "t > '2024-03-02 00:00:00'", "Asia/Tokyo")
    assert is_kept(columns, zone, "t > '2024-03-02 00:00:00Z'", "America/New_York")
    assert is_kept(columns, zone, "t > '2030-11-03 01:30:00'", "America/New_York")  # it comes twice


@pytest.mark.parametrize(
    ("filter_", "error", "said"),
    [
        ("amount > 1", ColumnNotFound, "t has no column 'amount'. Known: a, k, s, d, f and 7 more."),
        ("upper(dat) = 'X'", ColumnNotFound, "t has no column 'dat'. Did you mean date"),
        ("a >", InvalidArgument, "filter: 'a >' is no condition of Spark's SQL. It stops at '>' (line 1, column 3)."),
        ("a > 1 ORDER BY a", InvalidArgument, "It stops at 'ORDER BY'"),
        ("SELECT 1", InvalidArgument, "is no condition"),
        ("", InvalidArgument, "filter: '' is no condition"),
        ("a > 1; k > 1", InvalidArgument, "is no condition"),
        ("s = 'x", InvalidArgument, "is no condition"),
        ("year() = 2024", InvalidArgument, "filter: a function has no argument."),
        ("k = CAST(1 AS DECIMAL(``))", InvalidArgument, "is no condition of Spark's SQL"),
        ("date_trunc()'0000-00-00', t) > '2020-01-01'", InvalidArgument, "is no condition of Spark's SQL"),
        ("CAST(a AS DECIMAL(20,10)) -> 5000000000.0BD", InvalidArgument, "is no condition of Spark's SQL"),
        ("a > 1 " * 200, InvalidArgument, "a …' is no condition of Spark's SQL"),
        (None, InvalidArgument, "filter: None is no text. Write what would follow WHERE, as in 'amount > 100'."),
        (5, InvalidArgument, "filter: 5 is no text."),
    ],
)
def test_mistakes_are_told(filter_, error, said):
    with pytest.raises(error) as raised:
        parse_filter(filter_, COLUMNS, "t")
    assert said in str(raised.value)


def test_why_a_part_has_no_rule_is_said():
    reasons = {
        "concat(s, 'x') = 'X'": "UNSUPPORTED_EXPRESSION",
        "c = 'x'": "CHAR_PADDING",
        "a = '7'": "UNSUPPORTED_EXPRESSION",
        "rand() > 0.5": "NOT_DETERMINISTIC",
        "a IN (SELECT 1)": "SUBQUERY",
        "_metadata.file_path = 'x'": "METADATA_COLUMN",
    }
    reasons_by_filter = {filter_: parse_filter(filter_, COLUMNS, "t")[0].condition.reason for filter_ in reasons}
    assert reasons_by_filter == reasons


@pytest.mark.parametrize("filter_", ["a = 'x'", "a IN (1, 'x')", "a IN ('x', 'y')"])
def test_a_literal_that_is_no_value_of_the_type_is_named(filter_):
    condition = parse_filter(filter_, COLUMNS, "t")[0].condition
    assert (condition.reason, condition.subject) == ("UNSUPPORTED_EXPRESSION", "'x', which is no int")
