"""Frequencies, histograms and quantiles in SQL, against Spark's own aggregates and against what Python reads."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

import metastore
from lakes import SPARK
from metastore.errors import MetastoreError, NoStatistics
from sql.conftest import analyzed_table, location_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TABLE = "ice.db.sql_distributions"
COLUMNS = {
    "n": "CAST(pow(id % 97, 2) AS INT)",
    "s": "IF(id % 11 = 0, NULL, concat('v', id % 7))",
    "d": "CAST(id % 50 AS DECIMAL(30, 2))",
    "f": "IF(id % 5 = 0, double('nan'), id % 4 / 2)",
    "t": "timestamp_seconds(id % 30)",
    "u": "xxhash64(id)",
    "long": "concat('the same beginning of all, ', repeat('x', 60), id % 900)",
    "g": "exp(id % 700 / 100)",
    "l": "array(id)",
    "empty": "CAST(NULL AS STRING)",
}


@pytest.fixture(scope="module", autouse=True)
def location(spark: SparkSession) -> Iterator[str]:
    made = ", ".join(f"{sql} AS {name}" for name, sql in COLUMNS.items())
    with analyzed_table(spark, TABLE, f"SELECT {made} FROM range(0, 3000, 1, 3)") as location:
        yield location


@pytest.mark.parametrize("column", ["n", "s", "d", "f", "t"])
def test_frequencies_are_those_of_group_by(spark, column):
    truth = spark.sql(f"SELECT CAST({column} AS STRING), count(*) FROM {TABLE} WHERE {column} IS NOT NULL GROUP BY 1")
    rows = rows_of(spark, f"frequencies('{TABLE}', '{column}')")
    assert {row["value"]: row["frequency"] for row in rows} == {row[0]: row[1] for row in truth.collect()}
    assert all(row["exact"] and row["error"] == 0 for row in rows)
    assert sum(row["fraction"] for row in rows) == pytest.approx(1)
    counts = [row["frequency"] for row in rows]
    assert counts == sorted(counts, reverse=True)


def check_data_source(spark, opened):
    """The data source shows what the views of Python show."""
    source = spark.read.format("metastore").option("view", "summary").load(TABLE)
    compared = [name for name in opened["n"] if name != "analyzed_at"]  # Spark's has no zone
    shown_by_spark = {row.column_name: row.asDict() for row in source.select(compared).collect()}
    assert shown_by_spark == {name: {key: row[key] for key in compared} for name, row in opened.items()}


def check_other_views(spark, name, summary):
    """Quantiles, histogram and the most frequent value of a column agree with its summary."""
    quartiles = metastore.quantiles(spark, TABLE, name, [0.0, 0.25, 0.5, 0.75, 1.0])
    bounds = [summary[cell] for cell in ("min", "q25", "q50", "q75", "max")]
    assert [row["value"] for row in quartiles] == bounds, name
    bins = list(metastore.histogram(spark, TABLE, name))
    ends = (bins[0]["lo"], bins[-1]["hi"])
    if name == "long":  # an upper bound that was cut is greater than all that begin like it
        assert (ends[0], ends[1][-1], bounds[-1][-1]) == (bounds[0], "…", "…")
    else:
        assert ends == (bounds[0], bounds[-1]), name
    counted = summary["count"] - summary["null_count"] - (summary["nan_count"] or 0)
    assert sum(row["count"] for row in bins) == counted, name
    if summary["top_value"] is not None:
        first = metastore.frequencies(spark, TABLE, name, 1)[0]
        assert (first["value"], first["frequency"]) == (summary["top_value"], summary["top_count"])


@pytest.mark.slow
def test_every_view_tells_the_same_summary(spark, location):
    opened = {row["column_name"]: row for row in metastore.open(location).summary()}
    by_python = {row["column_name"]: row for row in metastore.summary(spark, TABLE)}
    assert by_python == opened
    if not SPARK.startswith("3."):
        check_data_source(spark, opened)
    for name in COLUMNS.keys() - {"l", "empty"}:
        check_other_views(spark, name, opened[name])


@pytest.mark.parametrize("column", [name for name in COLUMNS if name != "l"])
def test_sql_and_python_answer_alike(spark, location, column):
    opened = metastore.open(location)
    for top in (3, 10, 25, None):
        assert list(metastore.frequencies(spark, TABLE, column, top)) == list(opened.frequencies(column, top))
    for bins in (2, 7, None):
        assert list(metastore.histogram(spark, TABLE, column, bins)) == list(opened.histogram(column, bins))
    probabilities = [0.0, 0.3, 0.5, 0.99, 1.0]
    assert list(metastore.quantiles(spark, TABLE, column, probabilities)) == list(
        opened.quantiles(column, probabilities)
    )
    assert list(metastore.quantiles(spark, TABLE, column)) == list(opened.quantiles(column))
    path = opened.files()[1]["path"]
    assert list(metastore.frequencies(spark, TABLE, column, 5, file=path)) == list(
        opened.frequencies(column, 5, file=path)
    )
    assert list(metastore.histogram(spark, TABLE, column, 5, file=path)) == list(opened.histogram(column, 5, file=path))


def test_a_file_has_its_own(spark, location):
    path = metastore.open(location).files()[0]["path"]
    rows = spark.sql(f"SELECT CAST(n AS STRING) FROM {TABLE} WHERE input_file_name() LIKE '%{path.rsplit('/', 1)[1]}'")
    truth = Counter(row[0] for row in rows.collect())
    listed = rows_of(spark, f"frequencies('{TABLE}', 'n', file => '{path.rsplit('/', 1)[1]}')")
    assert {row["value"]: row["frequency"] for row in listed} == truth


def test_quantiles(spark):
    rows = rows_of(spark, f"quantiles('{TABLE}', 'n', array(0, 0.5, 1))")
    assert [(row["exact"], row["error"]) for row in rows] == [(True, 0.0)] * 3
    (truth,) = spark.sql(f"SELECT CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY n) AS INT) FROM {TABLE}").collect()
    assert rows[1]["value"] == str(truth[0])
    assert rows_of(spark, f"quantiles('{TABLE}', 'n', '0, 0.5,1')") == rows


def test_arguments_and_lateral_use(spark):
    assert len(rows_of(spark, f"frequencies(table => '{TABLE}', column => 'N', top => 4)")) == 4
    assert len(rows_of(spark, f"histogram('{TABLE}', 'n', 6)")) == 6
    rows = spark.sql(f"SELECT max(f.frequency) FROM metastore.frequencies('{TABLE}', 's') f JOIN range(2)").collect()
    assert rows[0][0] > 300


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("frequencies('{t}', 'nope')", "COLUMN_NOT_FOUND"),
        ("frequencies('{t}', 'n', 0)", "INVALID_ARGUMENT"),
        ("histogram('{t}', 'n', 'many')", "INVALID_ARGUMENT"),
        ("histogram('{t}', 'l')", "INVALID_ARGUMENT"),
        ("quantiles('{t}', 'n', 1.5)", "INVALID_ARGUMENT"),
        ("frequencies('{t}', 'n', at => '7')", "INVALID_ARGUMENT"),
    ],
)
def test_mistakes_are_told_in_one_line(spark, call, code):
    with pytest.raises(Exception, match=f"METASTORE_{code}") as caught:
        rows_of(spark, call.format(t=TABLE))
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("depth", ["", " NOSCAN"])
def test_without_frequencies_the_command_is_named(spark, table, depth):
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 'x'), (2, 'b', 'y')")
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS{depth}")
    for verb in ("frequencies", "histogram", "quantiles"):
        with pytest.raises(MetastoreError) as caught:
            getattr(metastore, verb)(spark, table, "id")
        assert caught.value.code == NoStatistics.code
        assert "ANALYZE TABLE" in str(caught.value)


def test_help_lists_them(spark):
    names = {row["function"] for row in rows_of(spark, "help()")}
    assert {"metastore.frequencies", "metastore.histogram", "metastore.quantiles"} <= names


@pytest.fixture(scope="module")
def distributed(spark: SparkSession) -> Iterator[str]:
    name = f"{TABLE}_distributed"
    spark.sql(f"CREATE TABLE {name} USING iceberg AS SELECT * FROM {TABLE}")
    metastore.analyze(spark, name, progress=False, distribution=["n", "s", "f", "t"])
    yield name
    spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("column", ["n", "s", "f", "t"])
def test_equally_frequent_values_stand_in_order_where_lists_are_laid_out_for_finding(spark, distributed, column):
    opened = metastore.open(location_of(spark, distributed))
    for top in (3, 15, None):
        answer = metastore.frequencies(spark, distributed, column, top)
        assert list(answer) == list(opened.frequencies(column, top))
    ranks = [-row["frequency"] for row in answer]
    assert ranks == sorted(ranks)
