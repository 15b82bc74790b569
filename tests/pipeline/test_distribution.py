"""The distribution of values over data files: computed, carried over, compared with rows counted by file."""

from __future__ import annotations

from collections import Counter

import pytest

import metastore
from metastore.adapters import refusals
from metastore.errors import ColumnNotFound, InvalidArgument
from pipeline.checks import Stored, location

pytestmark = pytest.mark.spark


@pytest.fixture
def filled(spark, table):
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, name STRING, price DOUBLE, day DATE) USING iceberg PARTITIONED BY (day)"
    )
    for start in (0, 15_000):
        append(spark, table, start)
    return table


def append(spark, table, start, rows=15_000):
    """A key that occurs in many files and more different names than a list of a small file keeps."""
    spark.sql(
        f"INSERT INTO {table} SELECT id * 7919 % 4001, concat('name-', id * 31 % 29003, '-', repeat('x', id % 40)), "
        f"IF(id % 50 = 0, double('NaN'), id % 90 / 4), date_add(DATE '2024-01-01', CAST(id % 3 AS INT)) "
        f"FROM range({start}, {start + rows})"
    )


def rows_per_file(spark, table, column):
    """Value to path to rows; null left out."""
    index = {}
    rows = spark.sql(f"SELECT CAST({column} AS STRING) v, _file, count(*) n FROM {table} GROUP BY 1, 2").collect()
    for value, path, number in rows:
        if value is not None:
            index.setdefault(value, {})[path.removeprefix("file:")] = number
    return index


def viewed_rows_per_file(table):
    """The same as `view` shows it."""
    frame = metastore.open(table)
    return {
        column: {row["value"]: plain(row["files"]) for row in frame.view("frequencies", column=column).to_pylist()}
        for column in ("id", "name", "price", "day")
    }


def plain(files):
    return None if files is None else {path.removeprefix("file:"): number for path, number in files}


def check(spark, table):
    viewed = viewed_rows_per_file(location(spark, table))
    for column, values in viewed.items():
        assert values == rows_per_file(spark, table, column), column


@pytest.mark.slow
def test_all_columns_and_what_is_carried_over(spark, filled):
    report = metastore.analyze(spark, filled, progress=False, distribution=True)
    assert report.refused == ()
    assert Stored.of(spark, filled).snapshot.distribution == (0, 1, 2, 3)
    check(spark, filled)
    assert metastore.analyze(spark, filled, progress=False, distribution=True).committed is False
    append(spark, filled, 2_000, 500)
    metastore.analyze(spark, filled, progress=False, distribution=True)
    check(spark, filled)
    spark.sql(f"DELETE FROM {filled} WHERE day = DATE '2024-01-02'")
    metastore.analyze(spark, filled, progress=False, distribution=True)
    check(spark, filled)
    spark.sql(f"ALTER TABLE {filled} RENAME COLUMN name TO title")
    spark.sql(f"ALTER TABLE {filled} RENAME COLUMN title TO name")
    spark.sql(f"CALL ice.system.rewrite_data_files(table => '{filled}', options => map('rewrite-all', 'true'))")
    metastore.analyze(spark, filled, progress=False, distribution=True)
    check(spark, filled)


@pytest.mark.slow
def test_files_are_located_exactly(spark, filled):
    metastore.analyze(spark, filled, progress=False, distribution=["id", "name"])
    opened, expected = metastore.open(location(spark, filled)), rows_per_file(spark, filled, "id")
    for value in (0, 17, 2_000, 4_000, 4_001, -5):
        located = opened.locate("id", value)
        holding = {row["path"].removeprefix("file:"): row["frequency"] for row in located}
        assert holding == expected.get(str(value), {}), value
        assert all(row["exact"] for row in located)
    names = rows_per_file(spark, filled, "name")
    for value in (*list(names)[::500], "name-", "zzz"):
        holding = {row["path"].removeprefix("file:"): row["frequency"] for row in opened.locate("name", value)}
        assert holding == names.get(value, {}), value
    assert len(opened.locate("price", 1.25)) > 0  # by bounds and lists
    assert len(opened.locate("id", None)) == 0


@pytest.mark.slow
def test_sql_shows_the_same(spark, filled):
    metastore.analyze(spark, filled, progress=False, distribution=["id", "price"])
    rows = spark.read.format("metastore").option("view", "frequencies").load(filled).collect()
    by_name = Counter((row.column_name, row.value, frozenset((row.files or {}).items())) for row in rows)
    at_location = metastore.open(location(spark, filled)).view("frequencies").to_pylist()
    assert by_name == Counter((row["column_name"], row["value"], frozenset(row["files"] or ())) for row in at_location)
    assert any(row.files for row in rows)
    assert not any(row.files for row in rows if row.column_name == "name")


def test_asked_for_by_property_and_setting(spark, filled):
    spark.sql(f"ALTER TABLE {filled} SET TBLPROPERTIES ('metastore.distribution.columns' = 'id, nothing')")
    spark.conf.set("spark.metastore.distribution.columns", "PRICE")
    try:
        report = metastore.analyze(spark, filled, progress=False)
    finally:
        spark.conf.unset("spark.metastore.distribution.columns")
    assert [refusal.subject for refusal in report.refused] == ["distribution of nothing"]
    assert Stored.of(spark, filled).snapshot.distribution == (0, 2)


@pytest.mark.slow
def test_kept_where_the_same_snapshot_is_analyzed_again(spark, filled):
    metastore.analyze(spark, filled, columns=["id"], progress=False, distribution=True)
    metastore.analyze(spark, filled, progress=False)
    assert Stored.of(spark, filled).snapshot.distribution == (0,)
    assert viewed_rows_per_file(location(spark, filled))["id"] == rows_per_file(spark, filled, "id")


@pytest.mark.slow
def test_what_cannot_be(spark, filled):
    with pytest.raises(ColumnNotFound):
        metastore.analyze(spark, filled, progress=False, distribution=["nothing"])
    with pytest.raises(InvalidArgument):
        metastore.analyze(spark, filled, progress=False, depth="footer", distribution=True)
    report = metastore.analyze(spark, filled, partition={"day": "2024-01-01"}, progress=False, distribution=["id"])
    assert [refusal.subject for refusal in report.refused] == ["distribution of id"]
    metastore.analyze(spark, filled, progress=False, distribution=["name", "day"])
    assert Stored.of(spark, filled).snapshot.distribution == (1, 3)
    spark.sql(f"ALTER TABLE {filled} SET TBLPROPERTIES ('write.format.default' = 'orc')")
    append(spark, filled, 9_000)
    report = metastore.analyze(spark, filled, progress=False, distribution=["name", "day"])
    assert [(refusal.subject, refusal.reason) for refusal in report.refused] == [
        ("distribution of name", refusals.NOT_DISTRIBUTED)
    ]
    assert Stored.of(spark, filled).snapshot.distribution == (3,)
