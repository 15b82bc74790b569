"""A table without a first write has no snapshot: statements about it answer all the same."""

from __future__ import annotations

import itertools

import pytest

import metastore
from metastore.errors import NoStatistics

pytestmark = pytest.mark.spark

_numbers = itertools.count()


@pytest.fixture
def query(spark, kind, tmp_path):
    """A query of a table that was created and never written."""
    name = kind.name.format(f"never_written_{next(_numbers)}")
    kind.create(spark, name, tmp_path / "table")
    yield f"SELECT * FROM {name} WHERE id = 1"
    kind.drop(spark, name)


def test_it_answers_before_and_after_analyze(spark, query):
    table = query.split()[3]
    with pytest.raises(NoStatistics):
        metastore.filtered_summary(spark, query)
    assert {row["path"] for row in metastore.explain(spark, query)} <= {None}
    assert metastore.analyze(spark, table, progress=False).rows == 0
    assert {row["count"] for row in metastore.filtered_summary(spark, query)} == {0}
    assert {row["path"] for row in metastore.explain(spark, query)} <= {None}
    assert metastore.locate(spark, table, "id", spark.range(3)).collect() == []
