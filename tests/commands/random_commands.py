"""Random UPDATE, DELETE and MERGE statements over one kind of table, each the same for a seed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Command:
    """A statement with `{t}` for the table.

    Attributes:
        prepare: makes what it reads beside the table.
    """

    text: str
    prepare: Callable[[SparkSession], None]

    def run_in(self, spark: SparkSession) -> Callable[[str], Any]:
        """Returns a function that runs the statement on the table of a name."""
        return lambda table: spark.sql(self.text.format(t=table))


def draw(random: Random) -> Command:
    """A random command."""
    kind = random.choice(["update", "delete", "merge", "merge", "merge"])
    if kind == "merge":
        prepare = _source(random)
        return Command(_merge(random), prepare)
    condition = _condition(random)
    if kind == "delete":
        return Command(f"DELETE FROM {{t}} WHERE {condition}", _nothing)
    change = random.choice(["x = x + 1", "code = code + 1, s = 'u'", "day = date_add(day, 1)"])
    return Command(f"UPDATE {{t}} SET {change} WHERE {condition}", _nothing)


def _nothing(_: SparkSession) -> None:
    """Prepares a command that reads its table alone."""


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


def _source(random: Random) -> Callable[[SparkSession], None]:
    """Returns a function that makes the view a MERGE reads: sometimes with null keys, sometimes with a key twice."""
    low, count, step = random.randrange(ROWS), random.choice([1, 3, 20, 120]), random.choice([1, 7, 31])
    extra: list[tuple[int | None, int, str]] = [(None, 3, "n")] if random.random() < 0.4 else []
    if random.random() < 0.1:
        extra.append((low, 1, "twice"))
    ids = range(low, low + count * step, step)
    is_literal = random.random() < 0.3

    def prepare(spark: SparkSession) -> None:
        if is_literal:
            rows = [(key, key % 97, hashlib.md5(str(key).encode()).hexdigest()) for key in ids]  # noqa: S324
            source = spark.createDataFrame(rows + extra, "k BIGINT, code INT, s STRING")
        else:
            source = spark.sql(_query(ids, extra))
        source.createOrReplaceTempView(SOURCE)

    return prepare


def _query(ids: range, extra: list[tuple[int | None, int, str]]) -> str:
    generated = f"range({ids.start}, {ids.stop}, {ids.step})"
    parts = [f"SELECT id k, CAST(id % 97 AS INT) code, md5(CAST(id AS STRING)) s FROM {generated}"]
    for key, code, text in extra:
        parts.append(f"SELECT CAST({'NULL' if key is None else key} AS BIGINT) k, {code} code, '{text}' s")
    return " UNION ALL ".join(parts)


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
    delete_clause = f"WHEN NOT MATCHED BY SOURCE AND t.id = {key} THEN DELETE" if random.random() < 0.15 else ""
    return f"MERGE INTO {{t}} t USING {SOURCE} s ON {on} {matched} {inserts} {delete_clause}"
