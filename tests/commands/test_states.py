"""The rows that the comparison reads from a table's files are those that Spark reads."""

from __future__ import annotations

import itertools

import pytest

from commands.random_commands import ROWS, row
from commands.targets import Target, parameters

pytestmark = pytest.mark.spark

_names = itertools.count()
MANY = 150_000
"""Rows of one file whose deleted positions need more than one container of a bitmap."""
DELETES = ("id = 78", "id BETWEEN 100 AND 9000", "id % 2 = 0 AND id < 50000", "id IN (70000, 140001)", "id > 140500")


@pytest.mark.parametrize("kind", parameters("merge-on-read-v3"))
def test_rows_without_those_deleted(spark, kind):
    """A few rows, a long run and every other row: a deletion vector stores each in a way of its own."""
    target = Target(spark, kind, f"states_{next(_names)}")
    target.append(row(f"range({MANY})"), 1)
    remaining = MANY
    for condition in DELETES:
        remaining -= spark.sql(f"SELECT * FROM {target.name} WHERE {condition}").count()
        spark.sql(f"DELETE FROM {target.name} WHERE {condition}")
        state = target.files.state()
        assert state.rows == target.rows_of_spark()
        assert state.rows.count == remaining
    target.drop()


@pytest.mark.parametrize("kind", parameters("copy-on-write"))
def test_each_value_counts(spark, kind):
    target = Target(spark, kind, f"states_{next(_names)}")
    target.append(row(f"range({ROWS})"), 2)
    first = target.files.state()
    reached = {first.rows}
    for change in (
        "x = 0.0D WHERE id = 50",
        "s = NULL WHERE id = 51",
        "day = NULL WHERE id = 52",
        "code = 0 WHERE id = 1",
    ):
        spark.sql(f"UPDATE {target.name} SET {change}")
        reached.add(target.files.state().rows)
        assert first.touched(target.files.state())
    assert len(reached) == 5
    target.drop()
