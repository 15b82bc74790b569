"""Bins of equal width, of files and merged: against counting every value."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from kernel.samples import ARROW, column, values
from metastore.format.histogram_bins import EQUI_WIDTH, Histogram, divide_range
from metastore.format.sortable_values import is_wide_decimal
from metastore.kernel.budget import DetailLimits, fit_to_file_size
from metastore.kernel.column_histogram import merge_equal_width_bins
from metastore.kernel.column_kernel import ColumnKernel
from table_level.made import stored_values

WIDTHS = DetailLimits(bins=50, kind=EQUI_WIDTH)


def analyzed(of, array, detail=WIDTHS, budget=1 << 30):
    kernel = ColumnKernel(of, budget, detail)
    kernel.add(array)
    return kernel.finish(len(array))


def ordered(array, of):
    """Comparable values without null and NaN, and without infinities."""
    found = [value for value in stored_values(array, of) if not isinstance(value, float) or np.isfinite(value)]
    return [int.from_bytes(value, "big", signed=True) for value in found] if is_wide_decimal(of) else found


def edges_of(found, of):
    bars = found.histogram
    if bars.edges is None:  # they follow from the bounds
        return divide_range(found.lo, found.hi, len(bars.counts), of.encoding)
    edges = bars.edges.to_pylist()
    return [int.from_bytes(edge, "big", signed=True) for edge in edges] if is_wide_decimal(of) else edges


def counted(numbers, edges):
    """Values up to each edge but the first, which has none below it."""
    ranks = [sum(value <= edge for value in numbers) for edge in edges]
    return np.diff([0, *ranks[1:-1], len(numbers)]).tolist()


@pytest.mark.parametrize("profile", ["few", "many", "nulls"])
@pytest.mark.parametrize("spark_type", ARROW)
def test_every_value_in_its_bin(spark_type, profile):
    of, array = column(spark_type), values(spark_type, profile, 700).cast(ARROW[spark_type])
    found, numbers = analyzed(of, array), ordered(array, of)
    if found.histogram is None or found.histogram.kind != EQUI_WIDTH:
        assert not numbers or float("inf") in map(abs, numbers)
        return
    edges = edges_of(found, of)
    assert edges == sorted(edges)
    assert 1 <= len(edges) - 1 <= 50
    assert found.histogram.counts.tolist() == counted(numbers, edges)
    if found.histogram.distincts is not None:
        assert found.histogram.distincts.tolist() == counted(set(numbers), edges)


@pytest.mark.parametrize("bins", [2, 3, 1_000, 10_000])
def test_any_number_of_bins(bins):
    of, numbers = column("bigint"), np.random.default_rng(bins).integers(-(1 << 62), 1 << 62, 3_000)
    found = analyzed(of, pa.array(numbers), DetailLimits(bins=bins, kind=EQUI_WIDTH))
    edges = edges_of(found, of)
    assert len(edges) == bins + 1
    expected = np.histogram(np.sort(numbers), np.array(edges, object).astype(np.int64))[0]
    assert abs(found.histogram.counts - expected).max() <= 1  # of places beyond 2^53


def test_an_outlier_leaves_the_bins_between_empty():
    of = column("double")
    found = analyzed(of, pa.array([*np.linspace(0, 1, 1_000), 1e9]))
    assert found.histogram.counts.tolist() == [1_000, *[0] * 48, 1]


def test_infinity_is_in_no_bin():
    found = analyzed(column("double"), pa.array([1.0, 2.0, 5.0, float("inf")]), DetailLimits(bins=4, kind=EQUI_WIDTH))
    assert found.histogram.kind == EQUI_WIDTH
    assert found.histogram.edges.to_pylist() == [1.0, 2.0, 3.0, 4.0, 5.0], "the bounds do not tell"
    assert found.histogram.counts.tolist() == [2, 0, 0, 1]


def test_ranges_wider_than_doubles_leave_equal_heights():
    found = analyzed(column("double"), pa.array([-1.5e308, 2.0, 1.5e308]))
    assert found.histogram.kind == "equi_height"


def test_long_common_beginnings_of_texts():
    of = column("string")
    texts = [f"https://example.org/a/very/long/way/{n:05}/{n % 7}" for n in range(0, 90_000, 37)]
    found = analyzed(of, pa.array(texts))
    assert len(found.histogram.counts) == 50
    assert found.histogram.counts.tolist() == counted([text.encode() for text in texts], edges_of(found, of))
    assert np.count_nonzero(found.histogram.counts) > 5


def test_bins_stay_equally_wide_in_small_files():
    found = analyzed(column("bigint"), pa.array(np.arange(5_000)), DetailLimits(bins=1_000, kind=EQUI_WIDTH))
    (_, small) = fit_to_file_size([(place, found) for place in range(20)], 30_000, 10)[0]
    bins = len(small.histogram.counts)
    assert bins < 1_000
    assert 1_000 % bins == 0
    assert small.histogram.counts.sum() == 5_000


@pytest.mark.parametrize("spark_type", ["bigint", "double", "decimal(38,6)", "string"])
@pytest.mark.parametrize("mixed", [False, True])
def test_merged_within_one_bin_of_each_part(spark_type, mixed):
    of = column(spark_type)
    arrays = [values(spark_type, profile, 900, seed) for seed, profile in enumerate(("few", "many", "nulls", "many"))]
    arrays = [array.cast(ARROW[spark_type]) for array in arrays]
    parts, allowed = [], 0
    for place, array in enumerate(arrays):
        known = analyzed(of, array, replace(WIDTHS, kind="equi_height") if mixed and place % 2 else WIDTHS)
        bars = known.histogram
        edges = (
            divide_range(known.lo, known.hi, len(bars.counts), of.encoding)
            if bars.edges is None
            else bars.edges.to_pylist()
        )
        parts.append(Histogram(bars.kind, edges, bars.counts, bars.distincts))
        allowed += int(bars.counts.max())
    numbers = [number for array in arrays for number in ordered(array, of)]
    found = merge_equal_width_bins(parts, of, 40)
    if found is None:
        assert float("inf") in map(abs, numbers)
        return
    edges, counts = found
    if is_wide_decimal(of):
        edges = [int.from_bytes(edge, "big", signed=True) for edge in edges]
    assert counts.sum() == len(numbers)
    assert (counts >= 0).all()
    for edge, rank in zip(edges[1:-1], itertools.accumulate(counts.tolist()), strict=False):
        assert abs(sum(number <= edge for number in numbers) - rank) <= allowed, edge


def test_large_files_in_parts():
    of, random = column("bigint"), np.random.default_rng(5)
    numbers = random.integers(0, 1 << 40, 60_000)
    found = analyzed(of, pa.array(numbers), budget=1 << 18)
    edges = edges_of(found, of)
    ranks = np.searchsorted(np.sort(numbers), edges[1:], side="right")
    assert abs(np.cumsum(found.histogram.counts) - ranks).max() <= len(numbers) * 2 // 100
