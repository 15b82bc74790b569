"""Exact ranks of real tables against a full sort, also after appends, deletes and other changes."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pytest

import metastore
from metastore.errors import ColumnNotFound
from metastore.format.value_rendering import to_python_value
from metastore.reading.discovery import discover
from metastore.reading.exact_ranks import read_exact_quantiles
from metastore.table_level.rank_sort import RankSort

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COLUMNS = "n BIGINT, d DOUBLE, p DECIMAL(12, 2), w DECIMAL(30, 3), s STRING, day DATE, at TIMESTAMP, b BINARY, void INT"
ROWS = """SELECT /*+ COALESCE(1) */
    IF(id % 13 = 0, NULL, (id * 7919) % 97 - 40) AS n,
    CASE WHEN id % 11 = 0 THEN CAST('NaN' AS DOUBLE) WHEN id % 7 = 0 THEN -0.0D ELSE (id * 31 % 57) / 7 - 3 END AS d,
    CAST((id * 37 % 71) - 35.25 AS DECIMAL(12, 2)) AS p,
    CAST((id * 37 % 71) * 123456789012345678.5 - 4e18 AS DECIMAL(30, 3)) AS w,
    IF(id % 5 = 0, NULL, concat(repeat('é', id % 3), (id * 17) % 41)) AS s,
    date_add(DATE'2024-01-01', CAST(id * 13 % 60 AS INT)) AS day,
    TIMESTAMP'2024-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, 0, id * 13 % 60) AS at,
    CAST(CAST(id % 19 AS STRING) AS BINARY) AS b,
    CAST(NULL AS INT) AS void
    FROM range({}, {})"""
PROBABILITIES = [0, 0.001, 0.1, 0.25, 1 / 3, 0.5, 0.75, 0.9, 0.999, 1]


@pytest.fixture
def filled(spark, table):
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}) TBLPROPERTIES ('format-version' = '3')")
    for start in range(0, 300, 100):
        append(spark, table, start, start + 100)
    return table


def append(spark, table, start, end):
    spark.sql(f"INSERT INTO {table} {ROWS.format(start, end)}")


def analyze(spark, table, names=(), **more):
    return metastore.analyze(spark, table, ranks=tuple(names) or True, progress=False, **more)


def stored(warehouse, table):
    discovered = discover(f"{warehouse}/{table.removeprefix('ice.').replace('.', '/')}")
    return discovered.store, discovered.manifest.snapshots[-1]


def ordered(spark, table, column):
    rows = [row[0] for row in spark.sql(f"SELECT `{column}` FROM {table} WHERE `{column}` IS NOT NULL").collect()]
    values = [bytes(value) if isinstance(value, bytearray) else value for value in rows]
    key = (lambda text: text.encode()) if column == "s" else None
    return sorted((value for value in values if value == value), key=key)  # noqa: PLR0124 - NaN


def plain(value):
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return float(value) + 0.0 if isinstance(value, float) else value


def assert_exact(spark, warehouse, table, names=None):
    store, snapshot = stored(warehouse, table)
    checked = 0
    for column in snapshot.columns:
        if names is not None and column.name not in names:
            continue
        truth = ordered(spark, table, column.name)
        quantiles = read_exact_quantiles(store, snapshot, column, PROBABILITIES)
        assert quantiles is not None, column.name
        if not truth:
            assert quantiles == [None] * len(PROBABILITIES)
            continue
        expected = [truth[max(1, math.ceil(p * len(truth))) - 1] for p in PROBABILITIES]
        assert [plain(to_python_value(value, column)) for value in quantiles] == [plain(value) for value in expected], (
            column.name
        )
        checked += 1
    return checked


@pytest.mark.slow
def test_every_type_is_sorted_exactly(spark, warehouse, filled):
    assert analyze(spark, filled).refused == ()
    assert assert_exact(spark, warehouse, filled) == 8
    assert not analyze(spark, filled).committed


@pytest.mark.slow
def test_many_ranges_give_the_same(spark, warehouse, filled, monkeypatch):
    original = RankSort.__init__

    def small(self, *arguments, **more):
        original(self, *arguments, **{**more, "range_bytes": 1024})

    monkeypatch.setattr(RankSort, "__init__", small)
    analyze(spark, filled)
    _, snapshot = stored(warehouse, filled)
    assert len(snapshot.ranks) > 20
    assert_exact(spark, warehouse, filled)
    append(spark, filled, 300, 380)
    analyze(spark, filled)
    assert_exact(spark, warehouse, filled)


@pytest.mark.slow
def test_an_append_reads_the_new_files_and_the_stored_ranks(spark, warehouse, filled, monkeypatch):
    analyze(spark, filled)
    append(spark, filled, 1000, 1100)
    read = []
    original = RankSort.sort_columns

    def counting(self, ordinals, files, earlier=()):
        read.append((len(files), len(earlier) > 0))
        return original(self, ordinals, files, earlier)

    monkeypatch.setattr(RankSort, "sort_columns", counting)
    assert analyze(spark, filled).files_read == 1
    assert read == [(1, True)]
    assert_exact(spark, warehouse, filled)


@pytest.mark.slow
def test_deleted_rows_have_no_rank(spark, warehouse, filled):
    analyze(spark, filled)
    spark.sql(f"ALTER TABLE {filled} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    spark.sql(f"DELETE FROM {filled} WHERE n > 20 OR day > DATE'2024-02-10'")
    analyze(spark, filled)
    assert_exact(spark, warehouse, filled)
    spark.sql(f"DELETE FROM {filled} WHERE true")
    analyze(spark, filled)
    assert_exact(spark, warehouse, filled)


@pytest.mark.slow
def test_overwrites_and_compactions_too(spark, warehouse, filled):
    analyze(spark, filled, ["n", "s"])
    name = filled.removeprefix("ice.")
    spark.sql(f"CALL ice.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    analyze(spark, filled, ["n", "s"])
    assert assert_exact(spark, warehouse, filled, ["n", "s"]) == 2
    spark.sql(f"INSERT OVERWRITE {filled} {ROWS.format(50, 70)}")
    analyze(spark, filled, ["s"])
    assert assert_exact(spark, warehouse, filled, ["s"]) == 1


def test_settings_and_properties_name_columns(spark, warehouse, filled):
    spark.sql(f"ALTER TABLE {filled} SET TBLPROPERTIES ('metastore.ranks.columns' = 'n, nothing')")
    spark.conf.set("spark.metastore.ranks.columns", "S")
    try:
        row = spark.sql(f"ANALYZE TABLE {filled} COMPUTE STATISTICS FOR ALL COLUMNS").first()
    finally:
        spark.conf.unset("spark.metastore.ranks.columns")
    assert any(text.startswith("ranks of nothing: ") for text in row.refused)
    assert assert_exact(spark, warehouse, filled, ["n", "s"]) == 2
    _, snapshot = stored(warehouse, filled)
    assert read_exact_quantiles(*stored(warehouse, filled), snapshot.columns[1], [0.5]) is None


@pytest.mark.slow
def test_they_stay_while_the_files_stay(spark, warehouse, filled):
    analyze(spark, filled, ["n"], columns=["n"])
    metastore.analyze(spark, filled, progress=False)
    assert assert_exact(spark, warehouse, filled, ["n"]) == 1
    analyze(spark, filled, ["d"])
    assert assert_exact(spark, warehouse, filled, ["n", "d"]) == 2
    spark.sql(f"ALTER TABLE {filled} RENAME COLUMN n TO number")
    analyze(spark, filled, ["p"])
    assert assert_exact(spark, warehouse, filled, ["number", "d", "p"]) == 3


def test_what_cannot_be(spark, filled):
    with pytest.raises(ColumnNotFound):
        analyze(spark, filled, ["nothing"])
    spark.sql(f"ALTER TABLE {filled} ADD COLUMN tags ARRAY<INT>")
    refused = {refusal.subject for refusal in analyze(spark, filled, ["tags", "n"]).refused}
    assert "ranks of tags" in refused


def test_constants_defaults_and_absent_columns(spark, warehouse, table):
    spark.sql(f"CREATE TABLE {table} (id INT, part STRING) PARTITIONED BY (part)")
    spark.sql(f"INSERT INTO {table} SELECT id, IF(id % 3 = 0, 'a', 'b') FROM range(20)")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN late INT")
    spark.sql(f"INSERT INTO {table} VALUES (7, NULL, 3), (8, 'c', 4)")
    analyze(spark, table)
    assert assert_exact(spark, warehouse, table) == 3


@pytest.mark.slow
def test_the_view_shows_them(spark, warehouse, filled):
    analyze(spark, filled, ["n", "p"])
    location = f"{warehouse}/{filled.removeprefix('ice.').replace('.', '/')}"
    frame = spark.read.format("metastore").option("view", "ranks").load(location)
    truth = ordered(spark, filled, "n")
    rows = frame.where("column_name = 'n'").orderBy("rank").collect()
    assert [row.value_long for row in rows] == sorted(set(truth))
    assert [row["rank"] for row in rows] == [
        int(np.searchsorted(truth, value, "right")) for value in sorted(set(truth))
    ]
    assert rows[-1]["rank"] == len(truth)


def test_quantiles_are_exact_in_all_ways_to_ask(spark, warehouse, filled):
    analyze(spark, filled, ["n", "w", "s"])
    location = f"{warehouse}/{filled.removeprefix('ice.').replace('.', '/')}"
    for name in ("n", "w", "s"):
        truth = ordered(spark, filled, name)
        rows = spark.sql(f"SELECT * FROM metastore.quantiles('{filled}', '{name}', '0,0.001,0.25,0.5,0.9,1')").collect()
        assert all(row.exact for row in rows)
        expected = [str(truth[max(1, math.ceil(row.probability * len(truth))) - 1]) for row in rows]
        assert [row.value for row in rows] == expected
        opened = metastore.open(location).quantiles(name, [0, 0.001, 0.25, 0.5, 0.9, 1])
        assert [(row["value"], row["exact"]) for row in opened] == [(value, True) for value in expected]
    named = spark.read.format("metastore").option("view", "ranks").load(filled)
    located = spark.read.format("metastore").option("view", "ranks").load(location)
    assert sorted(map(str, named.collect())) == sorted(map(str, located.collect()))
    without_ranks = spark.sql(f"SELECT * FROM metastore.quantiles('{filled}', 'p', '0.5')").first()
    assert without_ranks.exact == (without_ranks.error == 0)
