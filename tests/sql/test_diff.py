"""The `diff` of two snapshots: in SQL, Python, the shell and from the location alone."""

from __future__ import annotations

import json
import math

import pytest
from typer.testing import CliRunner

import metastore
from metastore.cli.app import app
from metastore.errors import MetastoreError

pytestmark = pytest.mark.spark

COLUMNS = ("column_name", "measure", "before", "after", "change")


@pytest.fixture(scope="module")
def grown(spark):
    """Two analyzed snapshots: more rows, a column less, one more, another type."""
    name = "ice.db.grown"
    spark.sql(f"CREATE TABLE {name} (id INT, x DOUBLE, s STRING, gone INT) USING iceberg")
    ends = []
    spark.sql(f"INSERT INTO {name} SELECT id, id / 4, concat('s', id), 1 FROM range(0, 100, 1, 1)")
    ends.append(metastore.analyze(spark, name, progress=False).snapshot)
    spark.sql(f"ALTER TABLE {name} DROP COLUMN gone")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN id TYPE BIGINT")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN new STRING")
    spark.sql(f"INSERT INTO {name} SELECT id, if(id = 120, null, 1e6 * id), 's', 'n' FROM range(100, 150, 1, 1)")
    ends.append(metastore.analyze(spark, name, progress=False).snapshot)
    yield name, *ends
    spark.sql(f"DROP TABLE {name}")


def lines(answer):
    return [tuple(row[name] for name in COLUMNS) for row in answer]


def test_what_differs_and_nothing_else(spark, grown):
    name, first, second = grown
    differences = {
        (column, measure): values for column, measure, *values in lines(metastore.diff(spark, name, first, second))
    }
    assert differences[None, "count"] == ["100", "150", 50.0]
    assert differences[None, "files"] == ["1", "2", 1.0]
    assert differences["id", "column_type"] == ["int", "bigint", None]
    assert differences["id", "max"] == ["99", "149", 50.0]
    assert ("id", "min") not in differences
    assert differences["x", "null_count"] == ["0", "1", 1.0]
    assert differences["x", "max"] == ["24.75", "1.49E8", pytest.approx(149e6 - 24.75)]
    assert differences["s", "min"] == ["s0", "s", None]
    assert differences["new", "column_type"] == [None, "string", None]
    assert differences["gone", "column_type"] == ["int", None, None]
    assert {column for column, _ in differences} == {None, "id", "x", "s", "new", "gone"}
    assert sum(measure in ("count", "files") for _, measure in differences) == 2, "once for the table"


def test_all_ways_say_the_same(spark, grown):
    name, first, second = grown
    differences = lines(metastore.diff(spark, name, first))
    assert differences == lines(metastore.diff(spark, name, first, second))
    query = f"SELECT {', '.join(COLUMNS)} FROM metastore.diff('{name}', '{first}', '{second}')"
    assert [tuple(row) for row in spark.sql(query).collect()] == differences
    location = spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Location'").first()["data_type"]
    assert lines(metastore.open(location).diff(first)) == differences
    done = CliRunner().invoke(app, ["diff", location, first, second, "--json"])
    assert done.exit_code == 0, done.stderr
    assert lines(json.loads(done.stdout)["rows"]) == differences


def test_backwards_and_nothing(spark, grown):
    name, first, second = grown
    forth = lines(metastore.diff(spark, name, first, second))
    back = lines(metastore.diff(spark, name, second, first))
    assert {(c, m, a, b) for c, m, b, a, _ in back} == {(c, m, b, a) for c, m, b, a, _ in forth}
    assert lines(metastore.diff(spark, name, second)) == []


def test_a_snapshot_that_there_is_not(spark, grown):
    name, first, _ = grown
    with pytest.raises(MetastoreError, match="has no snapshot 17"):
        metastore.diff(spark, name, 17)
    with pytest.raises(MetastoreError, match="has no snapshot no_such"):
        metastore.diff(spark, name, first, "no_such")


def test_distributions(spark, grown):
    name, first, second = grown
    differences = metastore.diff(spark, name, first, second, distributions=True)
    moved = {(row["column_name"], row["measure"]): (row["change"], row["reason"]) for row in differences}
    assert moved["id", "psi"][0] == pytest.approx(9 / 30 * math.log(1.5) + 0.3 * math.log(4), abs=1e-3)
    assert 0 < moved["x", "js_distance"][0] <= 1
    assert moved[None, "count"] == (50, None)
    assert ("new", "psi") not in moved
    same = metastore.diff(spark, name, second, second, distributions=True)
    assert [(row["change"], row["reason"]) for row in same] == [(0, None)] * 8
    location = spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Location'").first()["data_type"]
    assert list(metastore.open(location).diff(first, distributions=True)) == list(differences)
    query = f"SELECT * FROM metastore.diff('{name}', '{first}', distributions => true)"
    assert [row.asDict() for row in spark.sql(query).collect()] == list(differences)


def test_a_page_about_both(spark, grown, tmp_path):
    name, first, _ = grown
    spark.conf.set("spark.metastore.history.enabled", "true")
    try:
        spark.sql(f"SELECT * FROM {name} WHERE id = 3").collect()
        page = metastore.report(spark, name, before=first).save(tmp_path / "page.html").read_text("utf-8")
    finally:
        spark.conf.unset("spark.metastore.history.enabled")
    for rows in (
        'id="layout"',
        "scans of this session",
        "It was not there before.",
        "It is no longer there.",
        "drifted",
    ):
        assert rows in page
    older = metastore.report(spark, name, at=first)
    assert (older.columns, older.current, "gone" in older.html) == (4, False, True)


def test_the_same_rows_in_other_files_have_the_same_mean_and_deviation(spark):
    name, ends = "ice.db.rewritten", []
    spark.sql(f"CREATE TABLE {name} (x DOUBLE) USING iceberg")
    rows = "sin(id) * pow(10, id % 9) x FROM range(0, 5000, 1, 1)"
    for statement in (
        f"INSERT INTO {name} SELECT {rows}",
        f"INSERT OVERWRITE {name} SELECT /*+ REPARTITION(7) */ {rows}",
    ):
        spark.sql(statement)
        ends.append(metastore.analyze(spark, name, progress=False).snapshot)
    first, second = (metastore.summary(spark, name, at=at)[0] for at in ends)
    assert (first["avg"], first["std"]) != (second["avg"], second["std"]), "rounding is to be seen"
    measures = {row["measure"] for row in metastore.diff(spark, name, *ends)}
    assert measures.isdisjoint({"avg", "std"})
    location = spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Location'").first()["data_type"]
    assert {row["measure"] for row in metastore.open(location).diff(*ends)} == measures
    spark.sql(f"DROP TABLE {name}")


@pytest.fixture(scope="module")
def nightly(spark):
    """A table of a year, and a night of 5 % of the rows whose prices are too high by 1.6 deviations."""
    name = "ice.db.nightly"
    usual = "SELECT id, randn(7) AS price, date_add(DATE '2024-01-01', CAST(id % 365 AS INT)) AS day"
    shifted = usual.replace("randn(7)", "randn(8) + 1.6")
    spark.sql(f"CREATE TABLE {name} USING iceberg AS {usual} FROM range(0, 9500, 1, 4)")
    ends = [metastore.analyze(spark, name, progress=False).snapshot]
    spark.sql(f"INSERT INTO {name} {shifted} FROM range(9500, 10000, 1, 1)")
    ends.append(metastore.analyze(spark, name, progress=False).snapshot)
    yield name, *ends
    spark.sql(f"DROP TABLE {name}")


def test_a_bad_night_is_seen(spark, nightly):
    name, before, after = nightly
    query = f"SELECT * FROM metastore.diff('{name}', '{before}', '{after}', distributions => true"
    diluted = {(row.column_name, row.measure): row for row in spark.sql(query + ")").collect()}
    assert diluted["price", "psi"].change < 0.1
    rows = [row.asDict() for row in spark.sql(query + ", added => true)").collect()]
    by_measure = {(row["column_name"], row["measure"]): row for row in rows}
    assert by_measure["price", "psi"]["change"] > 1
    assert (by_measure[None, "count"]["before"], by_measure[None, "count"]["after"]) == ("9500", "500")
    mean, least = spark.sql(f"SELECT avg(price), min(price) FROM {name} WHERE id >= 9500").first()
    assert float(by_measure["price", "avg"]["after"]) == pytest.approx(mean)
    assert by_measure["price", "min"]["after"] == str(least)
    assert list(metastore.diff(spark, name, before, after, distributions=True, added=True)) == rows
    location = spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Location'").first()["data_type"]
    assert list(metastore.open(location).diff(before, after, distributions=True, added=True)) == rows
    command_line = ["diff", location, before, after, "--fail-on", "psi>0.2"]
    assert CliRunner().invoke(app, command_line).exit_code == 0
    assert CliRunner().invoke(app, [*command_line, "--added"]).exit_code == 3


def test_largest_changes_first_and_dates_as_dates(spark, nightly):
    name, before, after = nightly
    rows = list(metastore.diff(spark, name, before, after, distributions=True, added=True))
    assert [row["column_name"] for row in rows[:2]] == [None, None]
    numbers = [row for row in rows[2:] if row["change"] is not None]
    assert numbers == rows[2 : 2 + len(numbers)], "what is no number comes last"
    (day,) = (row for row in rows if (row["column_name"], row["measure"]) == ("day", "avg"))
    mean = "date_from_unix_date(CAST(floor(avg(unix_date(day))) AS INT))"
    average = spark.sql(f"SELECT {mean} FROM {name} WHERE id >= 9500")

    assert day["after"] == str(average.first()[0])


def test_rewritten_files_are_not_added(spark, nightly):
    """Compaction after the load writes old rows again: what they hold is not new."""
    name, before, _ = nightly
    spark.sql("CALL ice.system.rewrite_data_files(table => 'db.nightly', options => map('rewrite-all', 'true'))")
    metastore.analyze(spark, name, progress=False)
    rows = list(metastore.diff(spark, name, before, distributions=True, added=True))
    assert {row["measure"] for row in rows} == {"count", "psi", "js_distance"}
    assert all(row["change"] is None and "rewritten together with added ones" in row["reason"] for row in rows)
    compacted = metastore.snapshots(spark, name)[-1]["snapshot"]
    spark.sql(f"INSERT INTO {name} VALUES (10001, 3.5, DATE '2024-02-29')")
    metastore.analyze(spark, name, progress=False)
    by_measure = {
        (row["column_name"], row["measure"]): row for row in metastore.diff(spark, name, compacted, added=True)
    }
    assert by_measure[None, "count"]["after"] == "1"
    assert by_measure["price", "max"]["after"] == "3.5"
