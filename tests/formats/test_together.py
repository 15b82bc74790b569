"""Tables of all formats in one query: every side is pruned, and the answer is the one without us."""

from __future__ import annotations

import pytest

from formats.conftest import FilteredTable
from formats.kinds import FORMATS, KINDS
from planner.plans import check, labels

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def side_by_side(spark, tmp_path_factory):
    """The same rows in every format of this Spark, in four files each."""
    made = []
    for kind in (KINDS[format_] for format_ in FORMATS):
        name, path = kind.name.format("together"), tmp_path_factory.mktemp(kind.format) / "table"
        kind.create(spark, name, path)
        made.append(FilteredTable(spark, kind, name, path))
        made[-1].fill()
        made[-1].analyze()
    yield made
    for table in made:
        table.kind.drop(spark, table.name)


def test_every_side_of_a_join_is_pruned(spark, side_by_side):
    aliases = [f"t{number}" for number in range(len(side_by_side))]
    tables = " JOIN ".join(f"{table.name} {alias}" for table, alias in zip(side_by_side, aliases, strict=True))
    equal = " AND ".join(f"t0.id = {alias}.id" for alias in aliases[1:])
    limits = " AND ".join(f"{alias}.id < 150" for alias in aliases)
    read = [2] * len(side_by_side)
    frame = check(spark, f"SELECT t0.id, t0.s FROM {tables} WHERE {equal} AND {limits}", read)
    assert set(labels(frame)) == {"4 -> 2 files"}


def test_sub_queries_over_another_format(spark, side_by_side):
    for source in side_by_side:
        for target in side_by_side:
            if source is not target:
                query = f"SELECT * FROM {source.name} WHERE id < 10 AND id NOT IN (SELECT id FROM {target.name})"
                assert check(spark, query).count() == 0


def test_statistics_are_comparable(spark, side_by_side):
    same = ("min", "max", "approx_unique", "avg", "count", "null_count", "q50", "max_len", "top_value", "top_count")
    first, *other_summaries = (
        {column: [row[name] for name in same] for column, row in table.summary().items()} for table in side_by_side
    )
    assert all(other == first for other in other_summaries)
    assert len(other_summaries) >= 1
