"""Random UPDATE, DELETE and MERGE statements over one kind of table, each the same for a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from pyspark.sql import SparkSession

ROWS = 4000
SOURCE = "command_source"


def row(ids: str, where: str = "TRUE") -> str:
    """A query for rows of a target table by their ids."""
    return (
        "SELECT id, CAST(id % 97 AS INT) code, IF(id % 11 = 0, NULL, md5(CAST(id AS STRING))) s,"
        " CASE WHEN id % 53 = 0 THEN double('NaN') WHEN id % 50 = 0 THEN -0.0D ELSE CAST(id % 50 AS DOUBLE) END x,"
        f" date_add(DATE '2024-01-01', CAST(id % 40 AS INT)) day FROM {ids} WHERE {where}"
    )


def draw(random: Random, spark: SparkSession) -> tuple[str, Callable[[str], Any]]:
    """A statement's text, with `{t}` for the table, and what runs it."""
    kind = random.choice(["update", "delete", "merge", "merge", "merge"])
    if kind == "merge":
        prepare = _source(random, spark)
        text = _merge(random)
    else:
        prepare = None
        condition = _condition(random)
        change = random.choice(["x = x + 1", "code = code + 1, s = 'u'", "day = date_add(day, 1)"])
        text = (
            f"UPDATE {{t}} SET {change} WHERE {condition}"
            if kind == "update"
            else f"DELETE FROM {{t}} WHERE {condition}"
        )

    def run(table: str) -> None:
        if prepare is not None:
            prepare()
        spark.sql(text.format(t=table))

    return text, run


def _condition(random: Random) -> str:
    key, other = random.randrange(ROWS + 200), random.randrange(100)
    return random.choice([
        f"id = {key}",
        f"id BETWEEN {key} AND {key + random.randrange(60)}",
        f"NOT (id < {key} OR id > {key + 20})",
        f"code = {other} AND id < {key}",
        f"code + 1 = {other} AND id % 5 = 0 AND id > {key}",
        f"s = md5('{key}')",
        f"s LIKE '{random.choice('0123456789abcdef')}{random.choice('0123456789abcdef')}3%'",
        f"id IN ({key}, {key + 7}, NULL)",
        f"id IN (SELECT k FROM VALUES ({key}), ({key + 3}) AS keys(k))",
        f"day = DATE '2024-01-{1 + other % 28:02}' AND code = {other}",
        f"x > 48 AND id < {key} AND id > {key - 100}",
        f"x = double('NaN') AND id < {key}",
        f"abs(x) = 0.0D AND id > {key}",  # without us, Iceberg finds no -0.0 by x = 0.0D
        f"s IS NULL AND id > {key} AND id < {key + 90}",
        f"id = {key} OR s = md5('{key + 5}')",
    ])  # fmt: skip


def _source(random: Random, spark: SparkSession) -> Callable[[], None]:
    """What makes the view that a MERGE reads: sometimes with null keys, sometimes with a key twice."""
    low, count, step = random.randrange(ROWS), random.choice([1, 3, 20, 120]), random.choice([1, 7, 31])
    extra = ["SELECT CAST(NULL AS BIGINT) k, CAST(3 AS INT) code, 'n' s"] if random.random() < 0.4 else []
    if random.random() < 0.1:
        extra.append(f"SELECT {low} k, 1 code, 'twice' s")
    ids = f"range({low}, {low + count * step}, {step})"
    rows = f"SELECT id k, CAST(id % 97 AS INT) code, md5(CAST(id AS STRING)) s FROM {ids}"
    query = " UNION ALL ".join([rows, *extra])
    literal = random.random() < 0.3

    def prepare() -> None:
        source = spark.sql(query)
        if literal:
            source = spark.createDataFrame(source.collect(), source.schema)
        source.createOrReplaceTempView(SOURCE)

    return prepare


def _merge(random: Random) -> str:
    key = random.randrange(ROWS)
    on = random.choice([
        "t.id = s.k", "t.id = s.k", "t.s = s.s", "t.id = s.k AND t.code = s.code", "t.id + 1 = s.k",
        f"t.id = s.k AND t.id > {key}", f"t.id = s.k AND t.x < {key % 50}", "t.id = s.k AND t.code > s.code - 3",
    ])  # fmt: skip
    matched = random.choice([
        "WHEN MATCHED THEN UPDATE SET x = -1",
        "WHEN MATCHED THEN DELETE",
        "WHEN MATCHED AND t.code > 40 THEN DELETE WHEN MATCHED THEN UPDATE SET code = s.code + 1",
        "WHEN MATCHED AND s.code < 60 THEN UPDATE SET s = s.s",
        "",
    ])  # fmt: skip
    inserted = "WHEN NOT MATCHED THEN INSERT (id, code, s, x, day) VALUES (s.k, s.code, s.s, 0, NULL)"
    inserts = inserted if not matched or random.random() < 0.5 else ""
    others = f"WHEN NOT MATCHED BY SOURCE AND t.id = {key} THEN DELETE" if random.random() < 0.15 else ""
    return f"MERGE INTO {{t}} t USING {SOURCE} s ON {on} {matched} {inserts} {others}"
