"""LIMIT reads no more files than hold its rows for certain, whatever the format."""

from __future__ import annotations

import pytest

import metastore
from formats.kinds import ROW
from planner.plans import conf, files_read, labels, plain

pytestmark = pytest.mark.spark

CASES = {
    "WHERE id >= 100 LIMIT 3": (3, 1),
    "WHERE id >= 150 LIMIT 200": (200, 2),
    "WHERE id >= 150 LIMIT 201": (201, 3),
    "WHERE id >= 100 AND s LIKE 's0%' AND x < 1000 LIMIT 101": (101, 2),
    "LIMIT 3": (3, 1),
    "LIMIT 401": (400, 4),
    "LIMIT 3 OFFSET 99": (3, 2),
    "WHERE v = 3 LIMIT 3": (3, 4),
    "WHERE id >= 100 AND rand(1) < 0.99 LIMIT 3": (3, 3),
    "WHERE id >= 100 AND id NOT IN (SELECT 150) LIMIT 3": (3, 3),
    "WHERE id >= (SELECT max(id) FROM range(101)) AND id < 300 LIMIT 3": (3, 3),
}


def answer(table, query: str) -> tuple[int, int]:
    df = table.spark.sql(query)
    return len(df.collect()), files_read(df)[0]


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=pytest.mark.campaign)])
def test_few_files_are_read_where_they_are_enough(filled, adaptive):
    filled.analyze()
    with conf(filled.spark, spark__sql__adaptive__enabled=adaptive):
        for query, expected in CASES.items():
            assert answer(filled, f"SELECT * FROM {filled.name} {query}") == expected, query


ZEROS = ("= 0D LIMIT 5", "IN (0D, 7D) LIMIT 5", ">= 0D LIMIT 5", "<= -0.0D LIMIT 5", "= 0D ORDER BY id LIMIT 3")


def test_rows_with_the_other_zero_are_not_counted_on(empty):
    """Readers of Parquet take a file of -0.0 alone for one without 0.0, and leave all of its rows out."""
    for zero, first, last in (("-0.0D", 0, 10), ("0.0D", 100, 120)):
        empty.kind.append(empty.spark, empty.name, first, last, row=ROW.replace("id / 4 AS x", f"{zero} AS x"))
    empty.analyze()
    for condition in ZEROS:
        query = f"SELECT id FROM {empty.name} WHERE x {condition}"
        assert len(empty.spark.sql(query).collect()) >= len(plain(empty.spark, query)) == int(query[-1]), query


def test_explain_and_the_setting(filled):
    filled.analyze()
    query = f"SELECT * FROM {filled.name} WHERE id >= 100 LIMIT 3"
    assert labels(filled.spark.sql(query)) == ["4 -> 1 files, LIMIT"]
    assert sorted((row["reason"], row["kept"]) for row in metastore.explain(filled.spark, query)) == [
        ("KEPT_MAY_MATCH", True), ("SKIPPED", False), ("SKIPPED_BY_LIMIT", False), ("SKIPPED_BY_LIMIT", False),
    ]  # fmt: skip
    with conf(filled.spark, spark__metastore__pruning__limit__enabled=False):
        assert labels(filled.spark.sql(query)) == ["4 -> 3 files"]


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=pytest.mark.campaign)])
def test_a_scan_with_a_limit_serves_no_other(filled, adaptive):
    filled.analyze()
    spark, table = filled.spark, filled.name
    part = f"SELECT v, count(*) c FROM (SELECT * FROM {table} WHERE id >= 100 {{}}) GROUP BY v"
    with conf(spark, spark__sql__adaptive__enabled=adaptive):
        for first, second in (("LIMIT 3", ""), ("", "LIMIT 3"), ("LIMIT 3", "LIMIT 150"), ("LIMIT 3", "LIMIT 3")):
            both = spark.sql(f"SELECT sum(c) FROM ({part.format(first)} UNION ALL {part.format(second)})")
            assert both.first()[0] == sum(int(limit[6:] or 300) for limit in (first, second)), (first, second)
        join = f"SELECT count(*) FROM (SELECT id FROM {table} WHERE id >= 0 LIMIT 150) JOIN {table} b USING (id)"
        assert spark.sql(join).first()[0] == 150
        inner = f"(SELECT id, id % 2 AS odd FROM {table} WHERE id >= 100 LIMIT 250)"
        assert spark.sql(f"SELECT count(*) FROM {inner}").first()[0] == 250
        few = spark.sql(f"SELECT * FROM {table} LIMIT 3").cache()
        try:
            assert (few.count(), spark.table(table).count()) == (3, 400)
        finally:
            few.unpersist()


def test_deleted_and_new_rows(filled):
    filled.analyze()
    if filled.kind.format == "parquet":
        rows, deleted = 500, 0
    else:
        filled.spark.sql(f"DELETE FROM {filled.name} WHERE id < 200 AND id % 100 <> 50")
        rows, deleted = 302, 198
    filled.fill(400, 500)
    for limit in (1, 50, 199, 200, 201, 300, 301, rows):
        assert answer(filled, f"SELECT * FROM {filled.name} LIMIT {limit}")[0] == limit, (limit, deleted)
    if filled.kind.format != "hudi":
        assert answer(filled, f"SELECT * FROM {filled.name} WHERE id >= 200 AND id < 400 LIMIT 3") == (3, 1)
    limited = filled.spark.sql(f"SELECT id FROM {filled.name} WHERE id < 300 LIMIT 120").collect()
    assert len({row.id for row in limited}) == min(120, 300 - deleted)


def test_partitions(parted):
    parted.analyze()
    table = parted.name
    for query, rows in {
        "WHERE day >= DATE '2024-01-02' LIMIT 3": 3,
        "WHERE day >= DATE '2024-01-02' LIMIT 250": 250,
        "WHERE day = DATE '2024-01-02' AND id >= 150 LIMIT 60": 50,
        "WHERE day = DATE '2024-01-02' OR id >= 350 LIMIT 140": 140,
        "WHERE day > DATE '2024-01-02' AND (day < DATE '2024-01-04' OR id < 0) LIMIT 120": 100,
        "WHERE day < DATE '2024-01-01' LIMIT 3": 0,
    }.items():
        limited = parted.spark.sql(f"SELECT id, day FROM {table} {query}").collect()
        assert len({row.id for row in limited}) == len(limited) == rows, query
    with conf(parted.spark, spark__sql__optimizer__dynamicPartitionPruning__reuseBroadcastOnly=False):
        days = f"SELECT DATE '2024-01-03' AS day FROM {table} WHERE id = 5"
        part = f"(SELECT * FROM {table} WHERE id >= 0 LIMIT 300)"
        assert parted.spark.sql(f"SELECT * FROM {part} a JOIN ({days}) b USING (day)").count() <= 100
        assert parted.spark.sql(f"SELECT * FROM {table} a JOIN ({days}) b USING (day) LIMIT 100").count() == 100
