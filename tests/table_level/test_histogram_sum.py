"""Histograms of data files added up: as near the ranks of all rows as they say."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from kernel.samples import ARROW, column, values
from metastore.format.histogram_bins import Histogram, coarsen, derive_counts, find_quantiles
from metastore.kernel.column_histogram import make_equal_height_histogram
from metastore.table_level.histogram_groups import HistogramFiles, HistogramGroups
from metastore.table_level.histogram_sum import merge_histograms
from metastore.table_level.snapshot_level import write_table_level
from metastore.table_level.table_details import TableLevelOptions
from table_level import analyzed_tables
from table_level.analyzed_tables import Content

BINS = 50


def sorted_values(arrays, of):
    values = [v for v in analyzed_tables.stored_values(pa.concat_arrays(arrays), of) if v == v]  # noqa: PLR0124 - NaN
    wide = of.type == "decimal(38,6)"
    return sorted((int.from_bytes(v, "big", signed=True) for v in values) if wide else values)


def rank_errors(edges, counts, ordered):
    """By how many values the sums of counts are off at each upper edge: how many values are not greater."""
    truth = np.searchsorted(np.array(ordered, object), list(edges[1:]), "right")
    return np.abs(np.cumsum(counts) - truth)


@pytest.mark.parametrize("name", ["skewed", "uniform", "near unique", "all unique", "sorted", "random"])
@pytest.mark.parametrize("files", [2, 40, 300])
def test_ranks_of_edges_are_as_near_as_they_say(tmp_path, name, files):
    arrays = analyzed_tables.integer_files(name, files, 500)
    store, snapshot = analyzed_tables.commit_table_level(
        tmp_path, [Content("bigint", [pa.array(a) for a in arrays], ["none"] * files)], bins=BINS
    )
    (row,) = store.get(snapshot.histograms).to_pylist()
    ordered = np.sort(np.concatenate(arrays))
    assert row["kind"] == "equi_height"
    assert len(row["edges_long"]) == len(row["errors"]) == len(row["counts"]) + 1 <= BINS + 1
    errors = rank_errors(row["edges_long"], row["counts"], ordered.tolist())
    assert (errors <= row["errors"][1:]).all()
    assert errors.max() <= len(ordered) / BINS
    assert (row["edges_long"][0], row["edges_long"][-1]) == (ordered[0], ordered[-1])
    assert sum(row["counts"]) == len(ordered)
    assert all(0 <= d <= c for d, c in zip(row["distincts"], row["counts"], strict=True))
    assert abs(sum(row["distincts"]) - len(np.unique(ordered))) <= max(BINS, 0.2 * len(np.unique(ordered)))


@pytest.mark.parametrize("spark_type", ARROW)
def test_every_type(tmp_path, spark_type):
    arrays = [values(spark_type, profile, 600, seed) for seed, profile in enumerate(("few", "many", "nulls", "empty"))]
    store, snapshot = analyzed_tables.commit_table_level(
        tmp_path, [Content(spark_type, arrays, ["none"] * 4)], bins=BINS
    )
    (row,) = store.get(snapshot.histograms).to_pylist()
    of = column(spark_type)
    edges = row[f"edges_{of.encoding}"]
    if spark_type == "decimal(38,6)":
        edges = [int.from_bytes(edge, "big", signed=True) for edge in edges]
    ordered = sorted_values(arrays, of)
    if of.type in ("string", "binary"):
        ordered = [value[:64] for value in ordered]  # as edges are cut
    assert edges == sorted(edges)
    assert (rank_errors(edges, row["counts"], ordered) <= row["errors"][1:]).all()
    assert max(row["errors"]) <= 3 * len(ordered) / BINS


def test_few_values_get_a_bin_each(tmp_path):
    files = [pa.array(["b", "a", "b"]), pa.array(["c", "b"])]
    store, snapshot = analyzed_tables.commit_table_level(tmp_path, [Content("string", files, ["none"] * 2)], bins=10)
    (row,) = store.get(snapshot.histograms).to_pylist()
    assert row["edges_binary"] == [b"a", b"a", b"b", b"c"]
    assert (row["counts"], row["distincts"]) == ([1, 3, 1], [1, 1, 1])


def test_files_of_very_different_sizes(tmp_path):
    random = np.random.default_rng(3)
    arrays = [random.normal(size=n) for n in (20_000, 3, 700, 1)]
    store, snapshot = analyzed_tables.commit_table_level(
        tmp_path, [Content("double", [pa.array(a) for a in arrays], ["none"] * 4)], bins=BINS
    )
    (row,) = store.get(snapshot.histograms).to_pylist()
    errors = rank_errors(row["edges_double"], row["counts"], np.sort(np.concatenate(arrays)).tolist())
    assert (errors <= row["errors"][1:]).all()
    assert max(row["errors"]) <= 2 * 20_704 / BINS


def histogram_of_values(array, bins):
    """The histogram of a data file of so many bins."""
    values, counts = np.unique(array, return_counts=True)
    bars = make_equal_height_histogram(counts, np.cumsum(counts), bins, lambda at: pa.array(values[at]))
    return Histogram(edges=bars.edges.to_pylist(), counts=bars.counts, distincts=bars.distincts)


@pytest.mark.parametrize("name", ["skewed", "uniform", "near unique", "all unique", "sorted", "random", "twice"])
@pytest.mark.parametrize(("files", "of_file"), [(3, 25), (40, 12), (130, 7), (20, 120)])
def test_groups_say_what_their_files_leave_open(name, files, of_file):
    arrays = analyzed_tables.integer_files(name, files, 500)
    ordered = np.sort(np.concatenate(arrays))
    distinct = len(np.unique(ordered))
    nothing = np.zeros(files, np.bool_)
    histogram_files = HistogramFiles(column("bigint"), np.full(files, 500), distinct, nothing)
    bins, parts = HistogramGroups(histogram_files, BINS), [histogram_of_values(array, of_file) for array in arrays]
    groups = [bins.merge_group(parts[start : start + 16]) for start in range(0, files, 16)]
    for merged in (bins.merge_table(parts), bins.merge_table(groups), bins.merge_table([bins.merge_group(groups)])):
        errors = rank_errors(merged.edges, merged.counts, ordered.tolist())
        assert (errors <= merged.errors[1:]).all()
        assert merged.counts.sum() == len(ordered)
        assert merged.distincts.sum() == pytest.approx(distinct, abs=BINS)
        assert (merged.distincts > 0).all()


def test_files_of_the_same_values_tell_their_own_edges_and_no_others():
    part = histogram_of_values(np.arange(1000), 128)
    merged = merge_histograms([part] * 20, column("bigint"), 1000)
    assert list(merged.edges) == part.edges
    assert merged.counts.tolist() == (20 * part.counts).tolist()
    assert not merged.errors.any()


def test_a_value_that_is_frequent_stays_alone_though_others_straddle_it():
    """One file has a bin from 0 to 9 of a hundred values; where in it they are nobody knows."""
    frequent = Histogram(edges=[5.0, 5.0, 9.0], counts=np.array([900, 1]), distincts=np.array([1, 1]))
    vague = Histogram(edges=[0.0, 9.0], counts=np.array([100]), distincts=np.array([90]))
    merged = merge_histograms([frequent] * 9 + [vague], column("double"), 100)
    position = list(merged.edges).index(5.0)
    assert (merged.counts[position - 1], merged.distincts[position - 1]) == (8100, 1)
    (middle,) = find_quantiles(merged, [4000], "double")
    assert (middle.value, middle.error) == (5.0, 0)
    assert merged.errors[position] >= 50


def test_a_file_with_values_and_without_a_histogram_leaves_none(tmp_path):
    files = [pa.array([1, 2, 3]), pa.array([4])]
    store, facts, coverage = analyzed_tables.write_block(tmp_path, [Content("bigint", files, ["none"] * 2)], bins=0)
    assert write_table_level(store, facts, coverage, TableLevelOptions()).snapshot.histograms is None


@pytest.mark.parametrize("bins", [1, 2, 3, 7, 49, 50, 90])
def test_coarser_bins_hold_the_same_values(bins):
    random = np.random.default_rng(5)
    ordered = np.sort(random.integers(0, 400, 997))
    ranks = [i * 997 // 50 for i in range(51)]
    edges = [int(ordered[max(rank, 1) - 1]) for rank in ranks]
    distincts = np.array([len(np.unique(ordered[a:b])) for a, b in itertools.pairwise(ranks)])
    fine = Histogram(edges=edges, counts=derive_counts(997, 50), distincts=distincts)
    coarse = coarsen(fine, bins)
    assert len(coarse.counts) == min(bins, 50)
    assert coarse.counts.sum() == 997
    assert set(coarse.edges) <= set(edges)
    assert (coarse.edges[0], coarse.edges[-1]) == (edges[0], edges[-1])
    assert np.abs(coarse.counts - 997 / len(coarse.counts)).max() <= 997 / 50 + 1
    sums = np.cumsum(coarse.counts)
    assert all(ordered[rank - 1] == edge for rank, edge in zip(sums, coarse.edges[1:], strict=True))


def test_a_bin_of_one_value_has_one_distinct_value_though_estimates_say_more():
    first = Histogram(edges=np.array([0, 4, 8]), counts=np.array([10, 10]), distincts=np.array([4, 4]))
    second = Histogram(edges=np.array([0, 0, 8]), counts=np.array([10, 10]), distincts=np.array([1, 8]))
    merged = merge_histograms([first, second, second, second], column("bigint"), 8, 9)
    alone = np.asarray(merged.edges[1:]) == np.asarray(merged.edges[:-1])
    assert alone[0]
    assert (merged.distincts[alone] == 1).all()
    assert (merged.distincts[~alone] > 1).all()
    assert merged.distincts.sum() == 9
