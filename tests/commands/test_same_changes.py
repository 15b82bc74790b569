"""UPDATE, DELETE and MERGE change the same rows and rewrite the same files with us as without us."""

from __future__ import annotations

import itertools

import pytest

import lakes
from commands.random_commands import ROWS
from commands.targets import KINDS, WITHOUT_US
from commands.twins import compare, fill

pytestmark = pytest.mark.spark

_names = itertools.count()
OFTEN = {"copy-on-write", "merge-on-read-v3", "delta"}
RUN = [
    pytest.param(kind, id=kind.name, marks=() if kind.name in OFTEN else pytest.mark.campaign)
    for kind in KINDS
    if kind.format in lakes.FORMATS
]
WITH_VECTORS = [
    pytest.param(kind, id=kind.name)
    for kind in KINDS
    if kind.format in lakes.FORMATS and ("v3" in kind.name or "vectors" in kind.name)
]


@pytest.mark.parametrize("kind", RUN)
def test_random_commands(spark, kind):
    target = fill(spark, kind, f"same_changes_{next(_names)}")
    found = compare(target, commands=4, seed=1)
    assert found.differences == []
    assert found.files_read < found.files
    target.drop()


@pytest.mark.parametrize("kind", WITH_VECTORS)
def test_a_file_loses_rows_twice(spark, kind):
    """What a vector has hidden stays hidden when a later command adds rows to it."""
    target = fill(spark, kind, f"same_changes_{next(_names)}")
    for key in (78, 79, 78):
        spark.sql(f"DELETE FROM {target.name} WHERE id = {key} OR id = {key + 2000}")
    assert target.run(lambda _: None, WITHOUT_US).rows[0] == ROWS - 4
    target.drop()
