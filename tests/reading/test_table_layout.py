"""The layout of values over data files, without Spark, compared with counting."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import metastore
from engines.random_tables import TYPES, write_table
from metastore.errors import ColumnNotFound, NoStatistics
from metastore.format.histogram_bins import Histogram
from metastore.format.value_rendering import CUT_BYTES
from metastore.reading.table_layout import ColumnLayout, LookUps
from metastore.store import decoded_rows
from metastore.store.local_blobs import LocalBlobs


def count(bounds: list[tuple[int, int]]) -> tuple[float, float]:
    overlaps = [other_lo <= hi and lo <= other_hi for lo, hi in bounds for other_lo, other_hi in bounds]
    depth = sum(overlaps) / len(bounds)
    alone = 0
    for position, (lo, hi) in enumerate(bounds):
        other_bounds = [bound for at, bound in enumerate(bounds) if at != position]
        alone += all(bound[1] <= lo or bound[0] >= hi for bound in other_bounds)
    return depth, alone / len(bounds)


@pytest.mark.parametrize("seed", range(200))
def test_overlaps_are_counted(seed):
    rng = random.Random(seed)
    bounds = [(lo, lo + rng.choice([0, 1, 3, 9])) for lo in (rng.randrange(30) for _ in range(rng.randrange(1, 9)))]
    layout = ColumnLayout.of(*np.array(bounds).T)
    assert (layout.overlap_depth, layout.sorted_share) == pytest.approx(count(bounds))


@pytest.mark.parametrize(
    ("bounds", "depth"),
    [
        ([(lo, 100) for lo in range(8)], 8),
        ([(0, 100 - lo) for lo in range(8)], 8),
        ([(lo, 100 - lo) for lo in range(8)], 8),
        ([(10 * lo, 10 * lo + 9) for lo in range(8)], 1),
        ([(-math.inf, math.inf), (0.0, 1.0), (2.0, 3.0)], 7 / 3),
    ],
)
def test_files_that_share_a_value_overlap(bounds, depth):
    assert ColumnLayout.of(*np.array(bounds).T).overlap_depth == pytest.approx(depth)


def test_nothing_is_said_of_nothing():
    assert ColumnLayout.of(np.array([]), np.array([])) is None


def look_ups(edges: list[object], counts: list[int], *, distincts=None, exact: bool = True) -> LookUps | None:
    bars = Histogram(edges=edges, counts=np.array(counts), distincts=distincts and np.array(distincts))
    summary = {"lo_exact": exact, "hi_exact": exact}
    details = SimpleNamespace(histogram=lambda: bars, choose_rank_histogram=lambda bars: bars, summary=summary)
    return LookUps.of_rows(details)


def test_all_of_few_values_are_looked_up():
    estimate = look_ups([1, 1, 1, 4, 9], [40, 20, 30, 10], distincts=[1, 0, 1, 1])
    assert estimate == LookUps((1, 4, 9), (60, 30, 10), is_whole=True)
    assert estimate.average(np.array([4.0, 2.0, 1.0])) == pytest.approx((3.1, 0))


def test_of_many_values_those_of_rows_are_looked_up():
    estimate = look_ups(list(range(1001)), [1] * 1000)
    assert (len(estimate.values), set(estimate.rows), estimate.is_whole) == (32, {1}, False)
    mean, error = estimate.average(np.array(estimate.values, float))
    assert mean == pytest.approx(500, abs=5)
    assert error == pytest.approx(1000 / math.sqrt(12 * 32), rel=0.01)
    estimate = look_ups([0, 0, *range(1, 501)], [500] + [1] * 500)
    assert dict(zip(estimate.values, estimate.rows, strict=True))[0] == 16, "half of the rows, and of the look-ups"


def test_beginnings_of_texts_are_not_looked_up():
    short, cut = b"a", b"b" * CUT_BYTES
    assert look_ups([b"", short, cut], [50, 50], exact=False).values == (short,)
    assert look_ups([b"", short, cut], [50, 50]).values == (short, cut)
    assert look_ups([cut, cut], [50], exact=False) is None


@pytest.mark.parametrize("seed", range(3))
def test_a_look_up_reads_no_fewer_files_than_hold_the_value(tmp_path, seed):
    tables = write_table(random.Random(seed), tmp_path / "t", 12)
    statistics = metastore.open(tmp_path / "t")
    rows = {row["column_name"]: row for row in statistics.layout()}
    assert set(rows) == {*TYPES, "st.y", "st.z"}
    for name in ("i", "s", "day"):
        values = [set(table[name].drop_null().to_pylist()) for table in tables.values()]
        least = min(sum(value in file_values for file_values in values) for value in set().union(*values))
        row = rows[name]
        assert least <= row["files_per_lookup"] <= len(tables)
        assert 1 <= row["overlap_depth"] <= len(tables)
        assert row["advice"] is None
        assert statistics.layout(name)[0] == row


@pytest.mark.parametrize(
    "ask",
    [
        lambda statistics: statistics.layout(),
        lambda statistics: statistics.prune("i = 3").paths,
        lambda statistics: statistics.locate("i", 3),
    ],
    ids=["layout", "prune", "locate"],
)
def test_nothing_is_read_twice(tmp_path, monkeypatch, ask):
    write_table(random.Random(1), tmp_path / "t", 5)
    statistics = metastore.open(tmp_path / "t")
    answer = ask(statistics)
    for method in ("get", "get_range"):
        monkeypatch.delattr(LocalBlobs, method)
    assert list(ask(statistics)) == list(answer)


def test_rows_beyond_the_limit_are_read_again(monkeypatch):
    monkeypatch.setattr(decoded_rows, "_MOST_BYTES", 20)
    rows = decoded_rows.DecodedRows()
    decoded = []

    def read(key):
        def decode():
            decoded.append(key)
            return pa.table({"a": [key]})

        assert rows.get(key, decode)["a"].to_pylist() == [key]

    for key in (1, 2, 1, 3, 1, 2):
        read(key)
    assert decoded == [1, 2, 3, 2], "the one that was not read for the longest time is dropped"


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
