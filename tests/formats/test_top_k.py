"""ORDER BY .. LIMIT reads no file of which every row comes too late; its rows are those of the query without us."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

import metastore
from planner.plans import conf, files_read, labels, rows

pytestmark = pytest.mark.spark

COLUMNS = (
    "id BIGINT, k INT, x DOUBLE, f FLOAT, s STRING, n DECIMAL(12,2), w DECIMAL(25,3), d DATE, t TIMESTAMP, b BOOLEAN,"
    " v INT, bin BINARY, st STRUCT<a: INT, b: STRING>"
)
ROW = (
    "id, CAST(if(id DIV 100 IN (2, 7) AND id % 3 = 0 OR id DIV 100 = 11, null, id DIV 2 + id * 7919 % 60) AS INT) AS k,"
    " CASE WHEN id DIV 100 = 12 OR id DIV 100 IN (3, 9) AND id % 10 = 0 THEN double('NaN') WHEN id % 97 = 0 THEN -0.0D"
    " WHEN id % 89 = 0 THEN 0.0D WHEN id DIV 100 = 6 THEN null ELSE (id - 800) / 8D END AS x,"
    " CAST(if(id % 50 = 7 AND id > 1000, 'NaN', id / 3D) AS FLOAT) AS f,"
    " concat(repeat('p', 70), if(id DIV 100 = 4, repeat('é', 60), ''), lpad(CAST(id DIV 4 AS STRING), 5, '0')) AS s,"
    " CAST(id * 31 % 1600 / 4 AS DECIMAL(12,2)) AS n, CAST(-id DIV 3 AS DECIMAL(25,3)) AS w,"
    " date_add(DATE '2024-01-01', CAST(id DIV 50 AS INT)) AS d, timestamp_micros(id * 86400000000 - 1000) AS t,"
    " id >= 800 AS b, CAST(id * 13 % 5 AS INT) AS v, CAST(lpad(CAST(id DIV 7 AS STRING), 6, '0') AS BINARY) AS bin,"
    " if(id DIV 100 = 5, null, named_struct('a', CAST(1600 - id AS INT), 'b', CAST(id AS STRING))) AS st"
)
KEYS = ["id", "k", "x", "f", "s", "n", "w", "d", "t", "b", "v", "bin", "st.a", "st.b"]
WHERES = [
    "", "", "", "WHERE id < 1200", "WHERE k IS NOT NULL", "WHERE x < 50", "WHERE id >= 350 AND s > 'a'", "WHERE v <> 3",
    "WHERE b", "WHERE NOT b", "WHERE k < 300 OR k IS NULL", "WHERE isnan(x)", "WHERE length(s) > 80",
    "WHERE rand(1) < 2", "WHERE id NOT IN (SELECT 1599)", "WHERE id < 0",
]  # fmt: skip


@pytest.fixture(scope="module")
def sixteen(spark, kind, tmp_path_factory):
    """The name of a table of sixteen data files of a hundred rows, sorted by most columns."""
    name = kind.name.format("top")
    kind.create(spark, name, tmp_path_factory.mktemp("top") / "table", COLUMNS)
    spark.sql(f"INSERT INTO {name} SELECT {ROW} FROM range(0, 1600, 1, 16)")
    kind.settle(spark, name)
    metastore.analyze(spark, name, progress=False)
    yield name
    kind.drop(spark, name)


@pytest.fixture(autouse=True)
def patience(spark):
    with conf(spark, spark__metastore__planning__timeout="60s"):
        yield


def unpruned(spark, query: str):
    """The rows of a query that reads every file that its filter leaves."""
    with conf(spark, spark__metastore__enabled=False):
        return spark.sql(query).collect()


def agree(spark, query: str):
    """Runs a query whose order is total: the same rows in the same order as without us."""
    df = spark.sql(query)
    assert repr(df.collect()) == repr(unpruned(spark, query)), query
    return df


SHAPES = {
    "SELECT * FROM {t} ORDER BY id DESC LIMIT 3": "16 -> 1 files, top-K",
    "SELECT * FROM {t} ORDER BY id LIMIT 100": "16 -> 1 files, top-K",
    "SELECT * FROM {t} ORDER BY id LIMIT 101": "16 -> 2 files, top-K",
    "SELECT * FROM {t} ORDER BY id LIMIT 3 OFFSET 98": "16 -> 2 files, top-K",
    "SELECT v FROM {t} ORDER BY id DESC LIMIT 3": "16 -> 1 files, top-K",
    "SELECT id AS key FROM {t} WHERE id < 1450 ORDER BY key DESC LIMIT 3": "16 -> 2 files, top-K",
    "SELECT v + 1 FROM (SELECT v, id i, s FROM {t}) WHERE s IS NOT NULL ORDER BY i, v LIMIT 3": "16 -> 1 files, top-K",
    "SELECT * FROM {t} ORDER BY d DESC, v, id LIMIT 60": "16 -> 1 files, top-K",
    "SELECT * FROM {t} ORDER BY k NULLS FIRST, id LIMIT 10": "16 -> 3 files, top-K",
    "SELECT * FROM {t} ORDER BY x DESC NULLS LAST, id LIMIT 10": "16 -> 3 files, top-K",
    "SELECT * FROM {t} ORDER BY x DESC NULLS FIRST, id LIMIT 10": "16 -> 1 files, top-K",
    "SELECT * FROM {t} ORDER BY w, id LIMIT 5": "16 -> 1 files, top-K",
    "SELECT * FROM {t} ORDER BY st.a NULLS LAST, id LIMIT 5": "16 -> 1 files, top-K",
    "SELECT * FROM {t} WHERE id >= 100 ORDER BY id LIMIT 5": "16 -> 1 files, top-K",
    "SELECT id FROM {t} ORDER BY b DESC, id LIMIT 5": "16 -> 8 files, top-K",
}
WHOLE = [
    "SELECT * FROM {t} ORDER BY id LIMIT 1600",
    "SELECT * FROM {t} ORDER BY id LIMIT 5000",
    "SELECT * FROM {t} ORDER BY v, id LIMIT 3",
    "SELECT id FROM {t} ORDER BY -id LIMIT 3",
    "SELECT id FROM {t} ORDER BY id % 7, id LIMIT 3",
    "SELECT id, rand(1) > 2 AS r FROM {t} WHERE rand(2) < 0.999999999 ORDER BY id LIMIT 3",
    "SELECT id FROM {t} WHERE id NOT IN (SELECT 3) ORDER BY id LIMIT 3",
    "SELECT v, count(*) c FROM {t} GROUP BY v ORDER BY v LIMIT 2",
    "SELECT DISTINCT d FROM {t} ORDER BY d LIMIT 2",
    "SELECT id, row_number() OVER (ORDER BY id DESC) n FROM {t} ORDER BY id LIMIT 2",
    "SELECT id, e FROM (SELECT id, explode(array(3, id)) e FROM {t}) ORDER BY id, e LIMIT 3",
    "SELECT id FROM (SELECT id FROM {t} UNION ALL SELECT 5000 - id FROM {t}) ORDER BY id LIMIT 3",
    "SELECT a.id FROM (SELECT * FROM {t} ORDER BY id) a JOIN {t} b ON a.id = b.id + 300 ORDER BY a.id LIMIT 3",
    "SELECT a.id, b.id j FROM {t} a LEFT JOIN {t} b ON a.id = b.id + 300 ORDER BY b.id DESC, a.id LIMIT 3",
    "SELECT id FROM (SELECT * FROM {t} ORDER BY id DESC) WHERE id % 400 = 7 ORDER BY id LIMIT 2",
]


@pytest.mark.slow
@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=pytest.mark.campaign)])
def test_files_that_come_too_late_are_not_read(spark, sixteen, adaptive):
    with conf(spark, spark__sql__adaptive__enabled=adaptive):
        for query, label in SHAPES.items():
            df = agree(spark, query.format(t=sixteen))
            assert labels(df) == [label], query
            assert files_read(df) == [int(label.split()[2])], query


@pytest.mark.slow
def test_where_nothing_is_certain_all_files_are_read(spark, sixteen):
    for query in WHOLE:
        df = agree(spark, query.format(t=sixteen))
        assert not any(label.endswith("top-K") for label in labels(df)), query


def test_explain_and_the_setting(spark, sixteen):
    query = f"SELECT * FROM {sixteen} WHERE id < 1500 ORDER BY id DESC LIMIT 3"
    explained = metastore.explain(spark, query)
    assert [row["reason"] for row in explained].count("SKIPPED_BY_TOP_K") == 14
    assert [row["kept"] for row in explained].count(True) == 1
    (early,) = (row for row in explained if (row["statistic"] or "").startswith("id in [1300, 1399]"))
    assert early["reason"] == "SKIPPED_BY_TOP_K"
    with conf(spark, spark__metastore__pruning__topK__enabled=False):
        assert labels(spark.sql(query)) == ["16 -> 15 files"]
    with conf(spark, spark__metastore__pruning__limit__enabled=False):
        assert labels(spark.sql(query)) == ["16 -> 1 files, top-K"]
        assert "LIMIT" not in labels(spark.sql(f"SELECT * FROM {sixteen} WHERE id < 1500 LIMIT 3"))[0]


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=pytest.mark.campaign)])
def test_scans_of_other_orders_and_limits_stay_apart(spark, sixteen, adaptive):
    part = f"(SELECT id FROM {sixteen} ORDER BY {{}})"
    orders = ["id LIMIT 3", "id DESC LIMIT 3", "id LIMIT 240", "id DESC NULLS FIRST LIMIT 3", "x, id LIMIT 3"]
    with conf(spark, spark__sql__adaptive__enabled=adaptive):
        for first, second in (*zip(orders, orders, strict=True), *pairwise(orders)):
            query = f"SELECT * FROM {part.format(first)} UNION ALL SELECT * FROM {part.format(second)}"
            assert rows(spark.sql(query)) == sorted(unpruned(spark, query), key=repr), query
        for query in (
            f"SELECT count(*) FROM {part.format('id DESC LIMIT 3')} JOIN {sixteen} b USING (id)",
            f"SELECT count(*) FROM {sixteen} WHERE id >= (SELECT max(id) FROM {part.format('id LIMIT 250')})",
            f"SELECT count(*), sum(id) FROM {sixteen} WHERE id IN (SELECT id FROM {part.format('id DESC LIMIT 150')})",
        ):
            agree(spark, query)


def random_query(chance: random.Random, table: str) -> tuple[str, str]:
    """A query whose order is total, and the same without what makes it so."""
    key = chance.choice(KEYS)
    first = f"{key} {chance.choice(['ASC', 'DESC'])}{chance.choice(['', ' NULLS FIRST', ' NULLS LAST'])}"
    more = chance.choice(["", ", v", ", k DESC", ", x NULLS LAST"])
    limit = chance.choice([1, 2, 7, 40, 100, 101, 150, 390, 1700])
    offset = chance.choice(["", "", f" OFFSET {chance.randrange(200)}"])
    body = f"SELECT id, {key} AS key FROM {table} {chance.choice(WHERES)} ORDER BY {first}"
    return f"{body}{more}, id LIMIT {limit}{offset}", f"{body} LIMIT {limit}{offset}"


def compare_random(spark, table: str, seed: str, queries: int) -> int:
    """Runs random queries with and without us: how many left files unread."""
    chance, pruned = random.Random(seed), 0
    for _ in range(queries):
        total, partial = random_query(chance, table)
        pruned += "top-K" in labels(agree(spark, total))[0]
        keys = sorted(repr(row.key) for row in unpruned(spark, partial))
        partial_keys = sorted(repr(row.key) for row in spark.sql(partial).collect())
        assert [key.replace("-0.0", "0.0") for key in partial_keys] == [key.replace("-0.0", "0.0") for key in keys], (
            partial
        )
    return pruned


@pytest.mark.parametrize(
    ("adaptive", "queries"),
    [("true", 10), *(pytest.param(a, 40, marks=pytest.mark.campaign) for a in ("true", "false"))],
)
def test_random_orders(spark, sixteen, adaptive, queries):
    with conf(spark, spark__sql__adaptive__enabled=adaptive):
        assert compare_random(spark, sixteen, f"orders {adaptive}", queries) > queries // 5


@pytest.mark.slow
def test_deleted_and_new_rows(spark, kind, tmp_path):
    table = kind.name.format("top_deleted")
    kind.create(spark, table, tmp_path / "table", COLUMNS)
    try:
        if kind.format == "iceberg":
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
        spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range(0, 1600, 1, 16)")
        kind.settle(spark, table)
        metastore.analyze(spark, table, progress=False)
        if kind.format != "parquet":
            spark.sql(f"DELETE FROM {table} WHERE id DIV 100 IN (0, 5, 15) AND id % 100 <> 42")
        spark.sql(f"INSERT INTO {table} SELECT {ROW.replace('id,', 'id + 10000,', 1)} FROM range(700, 760, 1, 1)")
        kind.settle(spark, table)
        if kind.format != "parquet":
            df = agree(spark, f"SELECT id FROM {table} WHERE id < 10000 ORDER BY id LIMIT 3")
            assert files_read(df)[0] <= 4
        assert compare_random(spark, table, "deleted", 10) >= 1
    finally:
        kind.drop(spark, table)
