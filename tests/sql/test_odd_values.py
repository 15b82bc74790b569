"""Binary values are shown as SQL writes them, and columns of nulls have no values: in SQL, in Python and in a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import metastore
from metastore import errors
from pruning.scala import module, option
from sql.conftest import analyzed_table, location_of, rows_of

pytestmark = pytest.mark.spark

CASES = json.loads((Path(__file__).parents[1] / "cases/binary_values.json").read_text("utf-8"))
TABLE = "ice.db.odd_values"
COLUMNS = {
    "b": "element_at(array(X'00FF80', X'', X'6162', CAST(NULL AS BINARY)), CAST(id % 4 AS INT) + 1)",
    "long": "unhex(concat(repeat('FE', 10), repeat('0A', 90)))",
    "nested": "named_struct('b', IF(id % 2 = 0, X'C3', X'C3A9'), 'nothing', CAST(NULL AS DATE))",
    "no_number": "CAST(NULL AS INT)",
    "no_double": "CAST(NULL AS DOUBLE)",
    "no_text": "CAST(NULL AS STRING)",
    "no_bytes": "CAST(NULL AS BINARY)",
}
ALL_NULL = ["no_number", "no_double", "no_text", "no_bytes", "nested.nothing"]


@pytest.fixture(scope="module")
def location(spark):
    made = ", ".join(f"{sql} AS {name}" for name, sql in COLUMNS.items())
    with analyzed_table(spark, TABLE, f"SELECT id, {made} FROM range(0, 40, 1, 2)") as location:
        yield location


@pytest.mark.parametrize("kind", ["rendered", "parsed"])
def test_the_shim_reads_and_writes_binary_values_as_python_does(spark, kind):
    texts = module(spark, "org.metastore.spark.reason.BinaryText")
    for case in CASES[kind]:
        if kind == "rendered":
            assert texts.render(bytearray.fromhex(case["hex"])) == case["text"]
        else:
            parsed = option(texts.parse(case["text"]))
            assert (None if parsed is None else bytes(parsed).hex()) == case["hex"]


QUESTIONS = {
    "summary": (["min", "max", "q50", "top_value"], {}),
    "columns": (["min", "max"], {}),
    "frequencies": (["value"], {"column": "b"}),
    "histogram": (["lo", "hi"], {"column": "b"}),
    "quantiles": (["value"], {"column": "b"}),
}


@pytest.mark.parametrize("verb", QUESTIONS)
def test_answers_show_binary_values_alike(spark, location, verb):
    cells, arguments = QUESTIONS[verb]
    more = "".join(f", {name} => '{value}'" for name, value in arguments.items())
    in_sql = rows_of(spark, f"{verb}('{TABLE}'{more})")
    opened = list(getattr(metastore.open(location), verb)(**arguments))
    assert in_sql
    assert [[row[cell] for cell in cells] for row in in_sql] == [[row[cell] for cell in cells] for row in opened]
    of_binary = [row for row in in_sql if row.get("column_name", "b") == "b"]
    cell_texts = {row[cell] for row in of_binary for cell in cells}
    assert cell_texts <= {"X''", "X'00FF80'", "X'6162'"}
    assert {"X''", "X'6162'"} <= cell_texts


def test_a_cut_bound_ends_in_an_ellipsis(spark, location):
    (row,) = (row for row in rows_of(spark, f"summary('{TABLE}')") if row["column_name"] == "long")
    head = "FE" * 10 + "0A" * 53
    assert (row["min"], row["max"]) == (f"X'{head}0A'…", f"X'{head}0B'…")
    typed = metastore.open(location).summary().column("b")
    assert (typed["min"], typed["max"]) == (b"", b"ab")


def test_explain_shows_binary_bounds(spark, location):
    explained = metastore.explain(spark, f"SELECT * FROM {TABLE} WHERE b BETWEEN X'01' AND X'6161'")
    assert {row["kept"] for row in explained} == {False}
    for row in explained:
        assert "b in [X'', X'6162']" in row["statistic"]
        assert "X'01'" in row["conjunct"]


def test_what_is_shown_is_found_again(spark, location):
    frequency_rows = rows_of(spark, f"frequencies('{TABLE}', 'b')")
    assert len(frequency_rows) == 3
    opened = metastore.open(location)
    for row in frequency_rows:
        value = row["value"]
        text = f'"{value}"'
        (counted,) = spark.sql(f"SELECT count(*) AS rows FROM {TABLE} WHERE b = {value}").collect()
        assert counted.rows == row["frequency"]
        located = rows_of(spark, f"locate('{TABLE}', 'b', {value})")
        assert sum(file["frequency"] for file in located) == row["frequency"]
        assert rows_of(spark, f"locate('{TABLE}', 'b', {text})") == located
        assert list(opened.locate("b", value)) == located


def test_a_binary_value_that_a_column_cannot_hold_is_shown_as_it_was_written(spark, location):
    with pytest.raises(Exception, match=r"value: X'00FF80' is not of the type int"):
        rows_of(spark, f"locate('{TABLE}', 'no_number', X'00FF80')")


@pytest.mark.parametrize("column", ALL_NULL)
def test_a_column_of_nulls_has_no_values(spark, location, column):
    opened = metastore.open(location)
    (path, *_) = [row["path"] for row in opened.files()]
    for more in ({}, {"top": 5}, {"file": path}):
        called = "".join(f", {name} => '{value}'" for name, value in more.items())
        assert rows_of(spark, f"frequencies('{TABLE}', '{column}'{called})") == []
        assert list(opened.frequencies(column, **more)) == []
    (row,) = (row for row in rows_of(spark, f"summary('{TABLE}')") if row["column_name"] == column)
    assert (row["count"], row["null_count"], row["approx_unique"], row["exact"]) == (40, 40, 0, True)
    assert {row[name] for name in ("min", "max", "avg", "std", "q50", "top_value", "top_count")} == {None}
    assert opened.summary().column(column)["null_percentage"] == 100


def test_footers_are_enough_to_know_that_there_are_no_values(spark, table):
    spark.sql(f"INSERT INTO {table} SELECT id, NULL, 'p' FROM range(3)")
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS")
    opened = metastore.open(location_of(spark, table))
    assert rows_of(spark, f"frequencies('{table}', 's')") == list(opened.frequencies("s")) == []
    for ask in (lambda: metastore.frequencies(spark, table, "id"), lambda: opened.frequencies("id")):
        with pytest.raises(errors.NoStatistics, match=r"of this kind \(frequencies\) for the column id"):
            ask()


def test_columns_of_a_summary_say_how_exact_they_are(spark, location):
    described = spark.sql(f"DESCRIBE QUERY SELECT * FROM metastore.summary('{TABLE}')").collect()
    comments = {row.col_name: row.comment for row in described}
    assert "one standard error of approx_unique" in comments["distinct_error"]
    assert "approx_unique has an error of its own" in comments["exact"]
