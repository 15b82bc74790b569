"""UPDATE, DELETE and MERGE change the same rows and rewrite the same files with us as without us."""

from __future__ import annotations

import itertools

import pytest

from commands.random_commands import ROWS
from commands.targets import WITHOUT_US, parameters
from commands.twins import compare, fill

pytestmark = pytest.mark.spark

_names = itertools.count()


@pytest.mark.parametrize("kind", parameters("copy-on-write", "merge-on-read-v3", "delta"))
def test_random_commands(spark, kind):
    target = fill(spark, kind, f"same_changes_{next(_names)}")
    comparison = compare(target, commands=4, seed=1)
    assert comparison.differences == []
    assert comparison.files_read < comparison.files
    target.drop()


@pytest.mark.parametrize("kind", parameters("copy-on-write"))
def test_a_command_finds_zeros_and_nan(spark, kind):
    """Iceberg's own readers pass over files with -0.0 where a condition names 0.0."""
    target = fill(spark, kind, f"same_changes_{next(_names)}")
    zeros = sum(key % 50 == 0 and key % 53 != 0 for key in range(ROWS))
    for condition, rows in (("x = 0.0D", zeros), ("x = double('NaN')", len(range(0, ROWS, 53)))):
        before = target.run(lambda _: None, WITHOUT_US).rows[0]
        spark.sql(f"DELETE FROM {target.name} WHERE {condition} AND id + 1 > 0")
        assert before - target.run(lambda _: None, WITHOUT_US).rows[0] == rows
    target.drop()


@pytest.mark.parametrize("kind", parameters("merge-on-read-v3", "delta-vectors"))
def test_a_file_loses_rows_twice(spark, kind):
    """Rows that a vector hides stay hidden when a later command adds rows to it."""
    target = fill(spark, kind, f"same_changes_{next(_names)}")
    for key in (78, 79, 78):
        spark.sql(f"DELETE FROM {target.name} WHERE id = {key} OR id = {key + 2000}")
    assert target.run(lambda _: None, WITHOUT_US).rows[0] == ROWS - 4
    target.drop()
