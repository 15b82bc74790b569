"""Infinite values in SQL: counted, found and estimated, and in no mean and no bin; in Python the same."""

from __future__ import annotations

import math

import pytest

import metastore
from sql.conftest import analyzed_table, rows_of

pytestmark = pytest.mark.spark

TABLE = "ice.db.infinities"
INF, MINUS, NAN = "double('inf')", "double('-inf')", "double('nan')"
COLUMNS = {
    "positive": f"IF(id % 50 = 0, {INF}, id / 7)",
    "negative": f"IF(id % 50 = 0, {MINUS}, id / 7)",
    "both": f"CASE id % 4 WHEN 0 THEN {INF} WHEN 1 THEN {MINUS} ELSE id / 7 END",
    "all_kinds": f"CASE id % 5 WHEN 0 THEN {INF} WHEN 1 THEN {MINUS} WHEN 2 THEN {NAN} WHEN 4 THEN id / 7 END",
    "single": f"CAST(CASE id % 4 WHEN 0 THEN {INF} WHEN 1 THEN {MINUS} ELSE id % 3 END AS FLOAT)",
    "nothing_else": f"IF(id % 2 = 0, {INF}, {MINUS})",
    "first_file": f"IF(id < 500, {INF}, id / 7)",
    "finite": "id / 7",
}
ROWS = 4000


@pytest.fixture(scope="module", autouse=True)
def location(spark):
    made = ", ".join(f"{sql} AS {name}" for name, sql in COLUMNS.items())
    with analyzed_table(spark, TABLE, f"SELECT id, {made} FROM range(0, {ROWS}, 1, 8)") as location:
        yield location


def read_values(spark, column, where="true"):
    rows = spark.table(TABLE).where(where).select(column).collect()
    return [float(row[0]) for row in rows if row[0] is not None]


def check_summary(row, values):
    numbers = [number for number in values if not math.isnan(number)]
    finite = [number for number in numbers if math.isfinite(number)]
    assert row["inf_count"] == len(numbers) - len(finite)
    assert [float(row[end]) for end in ("min", "max")] == pytest.approx([min(numbers), max(numbers)])
    if not finite:
        assert (row["avg"], row["std"]) == (None, None)
        return
    mean = sum(finite) / len(finite)
    assert row["avg"] == pytest.approx(mean)
    assert row["std"] == pytest.approx(math.sqrt(sum((number - mean) ** 2 for number in finite) / (len(finite) - 1)))


def find_column(rows, column):
    """The one row of a column."""
    (row,) = (row for row in rows if row["column_name"] == column)
    return row


def check_same(by_python, by_sql, names):
    for name in names:
        assert by_python[name] == by_sql[name], name


@pytest.mark.parametrize("column", COLUMNS)
def test_summary_and_histogram_are_of_finite_values(spark, location, column):
    row = find_column(rows_of(spark, f"summary('{TABLE}')"), column)
    values = read_values(spark, column)
    check_summary(row, values)
    bins = rows_of(spark, f"histogram('{TABLE}', '{column}')")
    finite = [number for number in values if math.isfinite(number)]
    assert sum(bar["count"] for bar in bins) == len(finite)
    if finite:
        assert [float(bins[0]["lo"]), float(bins[-1]["hi"])] == pytest.approx([min(finite), max(finite)])
        assert row["sparkline"] is not None
    few = rows_of(spark, f"histogram('{TABLE}', '{column}', 3)")
    assert sum(bar["count"] for bar in few) == len(finite)

    opened = metastore.open(location)
    names = ("inf_count", "avg", "std", "q25", "q50", "q75", "sparkline")
    check_same(find_column(opened.summary(), column), row, (*names, "min", "max"))
    assert list(opened.histogram(column)) == bins
    assert list(opened.histogram(column, bins=3)) == few
    file = opened.files()[0]["path"]
    of_file = find_column(rows_of(spark, f"summary('{TABLE}', '{file}')"), column)
    check_same(find_column(opened.summary(file=file), column), of_file, names)
    assert list(opened.histogram(column, file=file)) == rows_of(
        spark, f"histogram('{TABLE}', '{column}', file => '{file}')"
    )


@pytest.mark.parametrize("column", COLUMNS)
def test_quantiles_have_infinities(spark, location, column):
    numbers = sorted(number for number in read_values(spark, column) if not math.isnan(number))
    probabilities = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]
    quantiles = rows_of(spark, f"quantiles('{TABLE}', '{column}', '{','.join(map(str, probabilities))}')")
    assert list(metastore.open(location).quantiles(column, probabilities)) == quantiles
    for row in quantiles:
        exact = numbers[max(1, math.ceil(row["probability"] * len(numbers))) - 1]
        near = pytest.approx(exact, abs=ROWS / 7 * 0.005 if math.isfinite(exact) else None)
        assert float(row["value"]) == near, row
    summary = find_column(rows_of(spark, f"summary('{TABLE}')"), column)
    assert [summary[f"q{p}"] for p in (25, 50, 75)] == [quantiles[position]["value"] for position in (2, 3, 4)]


@pytest.mark.parametrize("where", ["id < 700", "positive > 1e308", "both = double('-inf')"])
def test_filtered_summary(spark, where):
    rows = rows_of(spark, f'filtered_summary("SELECT * FROM {TABLE} WHERE {where}")')
    for row in rows:
        if row["column_name"] == "id":
            continue
        values = read_values(spark, row["column_name"], where)
        if any(not math.isnan(number) for number in values):
            check_summary(row, values)
        else:
            assert row["inf_count"] == 0


CONDITIONS = [
    f"positive = {INF}",
    f"positive < {INF}",
    "positive > 1e308",
    "negative < -1e308",
    f"negative = {MINUS}",
    f"both IN ({INF}, 3)",
    f"both > {MINUS} AND both < {INF}",
    "both > 1e308 OR both < -1e308",
    f"single = {INF}",
    f"single <> {INF}",
    "nothing_else > 0",
    f"first_file = {INF}",
    "first_file < 100",
    f"finite = {INF}",
    "finite > 1e308",
]


@pytest.mark.parametrize("where", CONDITIONS)
def test_rows_are_found_and_estimated(spark, where):
    query = f"SELECT id FROM {TABLE} WHERE {where}"
    rows = sorted(row.id for row in spark.sql(query).collect())
    plan = spark.sql(query)._jdf.queryExecution().optimizedPlan()
    estimate = int(plan.stats().rowCount().get())
    spark.conf.set("spark.metastore.enabled", "false")
    try:
        truth = sorted(row.id for row in spark.sql(query).collect())
    finally:
        spark.conf.unset("spark.metastore.enabled")
    assert rows == truth
    assert len(truth) / 2 - 2 <= estimate <= len(truth) * 2 + 2, (estimate, len(truth))


def test_look_ups_read_the_files_that_hold_them(spark, location):
    layouts = {row["column_name"]: row for row in rows_of(spark, f"layout('{TABLE}')")}
    assert layouts["first_file"]["files_per_lookup"] < 3
    assert layouts["nothing_else"]["files_per_lookup"] == 8
    there = {row["column_name"]: row for row in metastore.open(location).layout()}
    for name in COLUMNS:
        assert there[name]["files_per_lookup"] == pytest.approx(layouts[name]["files_per_lookup"]), name


def test_a_report_draws_the_finite_values(spark):
    page = metastore.report(spark, TABLE).html
    assert "values are infinite" in page


def test_changes_are_those_of_the_count(spark):
    before = rows_of(spark, f"snapshots('{TABLE}')")[-1]["snapshot"]
    spark.sql(f"INSERT INTO {TABLE} (id, positive) VALUES (-1, {INF}), (-2, {MINUS})")
    spark.sql(f"ANALYZE TABLE {TABLE} COMPUTE STATISTICS FOR ALL COLUMNS")
    rows = rows_of(spark, f"diff('{TABLE}', '{before}', distributions => true)")
    by_measure = {(row["column_name"], row["measure"]): row for row in rows}
    assert by_measure["positive", "inf_count"]["change"] == 2
    assert ("positive", "avg") not in by_measure
    assert 0 < by_measure["positive", "psi"]["change"] < 0.01
    assert by_measure["first_file", "js_distance"]["change"] == 0
