"""How values are spread over data files, told without Spark, against what counting says."""

from __future__ import annotations

import random

import pytest

import metastore
from engines.made import TYPES, write_table
from metastore.errors import ColumnNotFound, NoStatistics
from metastore.reading.table_layout import ColumnLayout


def count(bounds: list[tuple[int, int]]) -> tuple[float, float]:
    depth = sum(sum(lo <= one <= hi for lo, hi in bounds) for one, _ in bounds) / len(bounds)
    alone = 0
    for place, (lo, hi) in enumerate(bounds):
        others = [one for at, one in enumerate(bounds) if at != place]
        alone += all(one[1] <= lo or one[0] >= hi for one in others)
    return depth, alone / len(bounds)


@pytest.mark.parametrize("seed", range(200))
def test_overlaps_are_counted(seed):
    rng = random.Random(seed)
    bounds = [(lo, lo + rng.choice([0, 1, 3, 9])) for lo in (rng.randrange(30) for _ in range(rng.randrange(1, 9)))]
    found = ColumnLayout.of(bounds)
    depth, alone = count(bounds)
    assert found.overlap_depth == pytest.approx(depth)
    # Files with one bound each that are the same value touch each other.
    assert found.sorted_share <= alone + 1e-9
    if len(set(bounds)) == len(bounds) and all(lo < hi for lo, hi in bounds):
        assert found.sorted_share == pytest.approx(alone)


def test_nothing_is_said_of_nothing():
    assert ColumnLayout.of([]) is None


@pytest.mark.parametrize("seed", range(3))
def test_a_look_up_reads_no_fewer_files_than_hold_the_value(tmp_path, seed):
    tables = write_table(random.Random(seed), tmp_path / "t", 12)
    statistics = metastore.open(tmp_path / "t")
    told = {row["column_name"]: row for row in statistics.layout()}
    assert set(told) == {*TYPES, "st.y", "st.z"}
    for name in ("i", "s", "day"):
        values = [set(table[name].drop_null().to_pylist()) for table in tables.values()]
        least = min(sum(value in held for held in values) for value in set().union(*values))
        row = told[name]
        assert least <= row["files_per_lookup"] <= len(tables)
        assert 1 <= row["overlap_depth"] <= len(tables)
        assert row["advice"] is None
        assert statistics.layout(name)[0] == row


def test_mistakes_are_told(tmp_path):
    write_table(random.Random(1), tmp_path / "t", 1)
    with pytest.raises(ColumnNotFound):
        metastore.open(tmp_path / "t").layout("gone")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoStatistics):
        metastore.open(tmp_path / "empty").layout()


def test_a_report_of_a_location_has_it(tmp_path):
    write_table(random.Random(1), tmp_path / "t", 5)
    page = metastore.report(str(tmp_path / "t")).html
    assert 'id="layout"' in page
    assert "files per lookup" in page
    assert 'id="pruning"' not in page
