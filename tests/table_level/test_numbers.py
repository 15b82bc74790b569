"""Quantiles, distinct counts and value lists of files of any size, against the values themselves; and of one source."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kernel.samples import column
from metastore.format import sortable_values
from metastore.format.histogram_bins import find_quantiles
from table_level import columns
from table_level.columns import COLUMNS, PROBABILITIES, TAILS

RANK, TAIL, DISTINCT = 0.005, 0.0005, 0.05
ENOUGH = 10_000
STANDARD_ERRORS = 4.5


@pytest.fixture(scope="module", params=[(1, 12_000), (8, 1_500), (64, 160)], ids=["1 file", "8 files", "64 files"])
def analyzed(request, tmp_path_factory):
    files, rows = request.param
    tables = columns.data(files, rows)
    kinds = {name: COLUMNS[name][0] for name in tables[0].column_names}
    opened = columns.analyze(tmp_path_factory.mktemp("numbers"), tables, kinds)
    return opened, pa.concat_tables(tables)


def in_order(values, of):
    """Values that are neither null nor NaN as numpy compares them, ascending."""
    if of.encoding == "binary" and not sortable_values.is_wide_decimal(of):
        return np.array(sorted(v if isinstance(v, bytes) else v.encode() for v in values.to_pylist()), object)
    numbers = np.sort(sortable_values.sortable_array(values, of))
    return numbers[~np.isnan(numbers)] if of.encoding == "double" else numbers


def rank_error(ordered, of, value, rank):
    """How far a stored value, cut or not, is from a rank."""
    if of.encoding == "binary" and not sortable_values.is_wide_decimal(of):
        ordered = np.array([text[:64] for text in ordered], object)
    key = sortable_values.stored_to_sortable([value], of)[0] if sortable_values.is_wide_decimal(of) else value
    first, last = np.searchsorted(ordered, key, "left") + 1, np.searchsorted(ordered, key, "right")
    return max(first - rank, rank - last, 0) / len(ordered)


def check_quantiles(details, stated, ordered, of):
    """The quantiles of the histogram are near the true ranks, and within the error that is stated."""
    bars = details.histogram()
    assert bars.counts.sum() == len(ordered)
    ranks = [max(1, math.ceil(probability * len(ordered))) for probability in PROBABILITIES]
    quantiles = find_quantiles(bars, ranks, of.encoding)
    for probability, rank, quantile in zip(PROBABILITIES, ranks, quantiles, strict=True):
        error = rank_error(ordered, of, quantile.value, rank)
        assert error <= stated[probability]["error"]
        if len(ordered) >= ENOUGH:
            assert error <= (TAIL if probability in TAILS else RANK)
    return bars


def check_one_source(opened, summary, stated):
    """Quartiles, bounds and the top value of the summary are those of the other views."""
    column_name = summary["column_name"]
    quartiles = [stated[probability]["value"] for probability in (0.25, 0.5, 0.75)]
    assert quartiles == [summary["q25"], summary["q50"], summary["q75"]]
    bins = list(opened.histogram(column_name))
    if summary["exact"]:
        bounds = (summary["min"], summary["max"])
        assert (bins[0]["lo"], bins[-1]["hi"]) == bounds
        assert (stated[PROBABILITIES[0]]["value"], stated[PROBABILITIES[-1]]["value"]) == bounds
    if summary["top_value"] is not None:
        top = opened.frequencies(column_name, 1)[0]
        assert (top["value"], top["frequency"]) == (summary["top_value"], summary["top_count"])


@pytest.mark.parametrize("name", COLUMNS)
def test_numbers_are_near_and_of_one_source(analyzed, name):
    opened, all_rows = analyzed
    of = column(COLUMNS[name][0], name)
    values = all_rows[name].combine_chunks().drop_null()
    ordered, column_name = in_order(values, of), of.name
    (summary,) = (row for row in opened.summary() if row["column_name"] == column_name)
    distinct = pc.count_distinct(values).as_py()
    assert summary["approx_unique"] is not None
    assert summary["distinct_error"] <= DISTINCT
    assert abs(summary["approx_unique"] - distinct) <= STANDARD_ERRORS * summary["distinct_error"] * distinct

    rows = opened.quantiles(column_name, PROBABILITIES)
    if not len(ordered):
        assert {(row["value"], row["exact"], row["error"]) for row in rows} == {(None, True, 0.0)}
        return
    stated = dict(zip(PROBABILITIES, rows, strict=True))
    bars = check_quantiles(opened.details(column_name), stated, ordered, of)

    few = distinct - (len(values) > len(ordered))  # NaN is no bar
    if few <= 256 and not name.startswith("string, long"):
        assert all(row["exact"] for row in rows)
        assert len(bars.counts) == few
    check_one_source(opened, summary, stated)


def test_a_file_tells_its_quartiles_from_its_histogram(analyzed):
    opened, _ = analyzed
    path = opened.files()[0]["path"]
    rows = {row["column_name"]: row for row in opened.summary(file=path)}
    for name in COLUMNS:
        row = rows[column("int", name).name]
        assert (row["q50"] is None) == (name == "all null")


def test_what_files_of_the_same_values_cost(tmp_path):
    """Files of 1,000 rows: a kilobyte and an eighth a column on average, and no more than a tenth of large ones."""
    names = [name for name in COLUMNS if not name.startswith(("string, unique", "string, long"))]
    tables = columns.data(24, 1_000, names)
    columns.analyze(tmp_path, tables, {name: COLUMNS[name][0] for name in names})
    assert columns.stored_size(tmp_path) <= 24 * len(names) * 1_150
