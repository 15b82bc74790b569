"""Random conditions on the story's rows, and the rows that a scan with skipping loses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.plans import conf

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from pyspark.sql import SparkSession

NUMBERS = (-1, 0, 5, 6, 7, 13, 20, 22, 99, 100, 199, 213, 250, 350, 399, 500, 1000, 2000, 3000)
VALUES = {
    "id": [str(number) for number in NUMBERS],
    "v": [str(number) for number in NUMBERS],
    "s": ["'a'", "'b'", "''", *(f"'s{number:05d}'" for number in NUMBERS if number >= 0)],
    "x": [f"{number / 4}D" for number in NUMBERS],
    "st.a": [str(number) for number in NUMBERS],
    "day": [f"DATE '2024-01-{day:02d}'" for day in range(1, 8)],
}
"""Columns, and values at their bounds, between them, and that were written last."""
AT_ONCE = 10
"""Conditions that one query asks, a scan each."""
_COMPARISONS = ("=", "<", "<=", ">", ">=", "<>", "<=>")


def draw(rng: Random, count: int) -> list[str]:
    """Draws conditions: comparisons, ranges, lists, prefixes and nulls, joined and negated."""
    return [_condition(rng, 2) for _ in range(count)]


def _condition(rng: Random, depth: int) -> str:
    if depth and rng.random() < 0.5:
        word = rng.choice(("AND", "AND", "OR"))
        condition = f"({_condition(rng, depth - 1)} {word} {_condition(rng, depth - 1)})"
        return f"NOT {condition}" if rng.random() < 0.2 else condition
    column = rng.choice(tuple(VALUES))
    first, other = rng.choice(VALUES[column]), rng.choice(VALUES[column])
    if column == "s" and rng.random() < 0.3:
        return f"s LIKE '{first.strip(chr(39))[: rng.randint(0, 5)]}%'"
    return rng.choice(
        (
            *(f"{column} {comparison} {first}" for comparison in _COMPARISONS),
            f"{column} BETWEEN {first} AND {other}",
            f"{column} IN ({first}, {other})",
            f"{column} NOT IN ({first}, {other})",
            f"{column} IS {rng.choice(('', 'NOT '))}NULL",
        )
    )


def lost(spark: SparkSession, table: str, conditions: Sequence[str]) -> list[str]:
    """Returns the conditions whose rows are others with us than without, in a scan that nothing can skip a file of."""
    count, digest = "count(1)", "sum(xxhash64(id, v, s, x, day) % 1000003)"
    chosen = (f"{count} FILTER (WHERE {c}), {digest} FILTER (WHERE {c})" for c in conditions)
    with conf(spark, spark__metastore__enabled=False):
        truth = tuple(spark.sql(f"SELECT {', '.join(chosen)} FROM {table}").first())
    wrong = []
    for first in range(0, len(conditions), AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, len(conditions)))
        scans = (f"SELECT {number}, {count}, {digest} FROM {table} WHERE {conditions[number]}" for number in numbers)
        for number, *answer in spark.sql(" UNION ALL ".join(scans)).collect():
            if tuple(answer) != truth[2 * number : 2 * number + 2]:
                wrong.append(f"{answer[0]} rows, without us {truth[2 * number]}: {conditions[number]}")
    return wrong
