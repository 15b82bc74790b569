"""Infinite values: counted, bounds, in quantiles and lists of values, and neither in moments nor in histograms."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from kernel.samples import ARROW, column, reduce_column
from metastore.kernel.column_kernel import ColumnKernel
from metastore.kernel.statistic_rows import summary_rows
from table_level import columns

ROWS = 4_000


def _with_odd_values(values: np.ndarray, odd: float, share: float) -> np.ndarray:
    with_odd = values.copy()
    with_odd[np.random.default_rng(3).random(len(values)) < share] = odd
    return with_odd


def _make_columns() -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    many, few = random.normal(5, 2, ROWS), random.choice([1.5, 2.0, 9.0], ROWS)
    return {
        "none": many,
        "positive": _with_odd_values(many, math.inf, 0.01),
        "negative": _with_odd_values(many, -math.inf, 0.03),
        "one": np.append(many[1:], math.inf),
        "both": _with_odd_values(_with_odd_values(many, math.inf, 0.5), -math.inf, 0.2),
        "both and NaN": _with_odd_values(
            _with_odd_values(_with_odd_values(many, math.inf, 0.3), math.nan, 0.2), -math.inf, 0.1
        ),
        "few": _with_odd_values(_with_odd_values(few, math.inf, 0.3), -math.inf, 0.2),
        "first file": np.where(np.arange(ROWS) < ROWS // 8, math.inf, many),
        "all": np.full(ROWS, math.inf),
        "all of both": np.where(np.arange(ROWS) % 3 == 0, math.inf, -math.inf),
        "infinite or NaN": np.where(np.arange(ROWS) % 3 == 0, math.inf, math.nan),
    }


COLUMNS = _make_columns()


@pytest.fixture(scope="module", params=[("double", 1), ("float", 8), ("double", 8)])
def analyzed(request, tmp_path_factory):
    """The statistics, all values, and what reads the text of one."""
    kind, files = request.param
    arrays = {name: pa.array(values, from_pandas=False).cast(ARROW[kind]) for name, values in COLUMNS.items()}
    all_rows, rows = pa.table(arrays), ROWS // files
    tables = [all_rows.slice(number * rows, rows) for number in range(files)]
    opened = columns.analyze(tmp_path_factory.mktemp("infinities"), tables, dict.fromkeys(arrays, kind))
    return opened, all_rows, lambda text: float(np.float32(text)) if kind == "float" else float(text)


def check_summary(summary, values, number):
    numbers = np.sort(values[~np.isnan(values)])
    finite = numbers[np.isfinite(numbers)]
    assert summary["inf_count"] == len(numbers) - len(finite)
    assert summary["nan_count"] == np.isnan(values).sum()
    assert [number(summary["min"]), number(summary["max"])] == [numbers[0], numbers[-1]]
    assert summary["approx_unique"] == pytest.approx(len(np.unique(values)), rel=0.1)
    if len(finite):
        assert summary["avg"] == pytest.approx(finite.mean(), rel=1e-9)
        assert summary["std"] == pytest.approx(finite.std(ddof=1), rel=1e-9)
        assert summary["sparkline"]
    else:
        assert (summary["avg"], summary["std"], summary["sparkline"]) == (None, None, None)


def check_histogram(opened, column_name, finite, number):
    """Bins count finite values alone, whatever their number."""
    bins = list(opened.histogram(column_name))
    assert sum(row["count"] for row in bins) == len(finite)
    if len(finite):
        assert [number(bins[0]["lo"]), number(bins[-1]["hi"])] == [finite[0], finite[-1]]
    few_bins = list(opened.histogram(column_name, bins=3))
    assert sum(row["count"] for row in few_bins) == len(finite)


def check_quantile(row, numbers, number):
    """A quantile is within its error, and infinite where the value of its rank is."""
    if row["error"] is None:
        return
    rank = max(1, math.ceil(row["probability"] * len(numbers)))
    value = number(row["value"])
    first = np.searchsorted(numbers, value, "left") + 1
    last = np.searchsorted(numbers, value, "right")
    assert max(first - rank, rank - last, 0) <= row["error"] * len(numbers) + 1e-9
    if not np.isfinite(numbers[rank - 1]):
        assert value == numbers[rank - 1]


@pytest.mark.parametrize("name", COLUMNS)
def test_infinities_are_what_counting_says(analyzed, name):
    opened, all_rows, number = analyzed
    column_name = column("double", name).name
    values = all_rows[name].to_numpy().astype(np.float64)
    numbers = np.sort(values[~np.isnan(values)])
    finite = numbers[np.isfinite(numbers)]
    (summary,) = (row for row in opened.summary() if row["column_name"] == column_name)
    check_summary(summary, values, number)
    check_histogram(opened, column_name, finite, number)

    probabilities = [0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1.0]
    quantiles = {row["probability"]: row for row in opened.quantiles(column_name, probabilities)}
    for row in quantiles.values():
        check_quantile(row, numbers, number)
    assert [summary[f"q{p}"] for p in (25, 50, 75)] == [quantiles[p]["value"] for p in (0.25, 0.5, 0.75)]


@pytest.mark.parametrize("name", ["both", "few", "all of both"])
def test_lists_and_look_ups_have_infinities(analyzed, name):
    opened, all_rows, _ = analyzed
    column_name = column("double", name).name
    listed = {row["value"]: row["frequency"] for row in opened.frequencies(column_name)}
    values = all_rows[name].to_numpy()
    assert listed["Infinity"] == np.count_nonzero(values == math.inf)
    assert listed["-Infinity"] == np.count_nonzero(values == -math.inf)
    files = len(opened.files())
    for odd in (math.inf, -math.inf):
        located_rows = sum(row["frequency"] for row in opened.locate(column_name, odd))
        assert located_rows == np.count_nonzero(values == odd)
    (layout,) = opened.layout(column_name)
    assert layout["files_per_lookup"] == pytest.approx(files, rel=0.6)


def test_a_file_says_what_the_table_says(analyzed):
    opened, all_rows, _ = analyzed
    path = opened.files()[0]["path"]
    rows = {row["column_name"]: row for row in opened.summary(file=path)}
    first = all_rows.slice(0, ROWS // len(opened.files()))
    for name in COLUMNS:
        values = first[name].to_numpy().astype(np.float64)
        finite = values[np.isfinite(values)]
        row = rows[column("double", name).name]
        assert row["inf_count"] == np.isinf(values).sum()
        assert row["avg"] == (pytest.approx(finite.mean(), rel=1e-9) if len(finite) else None)
        assert row["q50"] is not None
        bins = opened.histogram(row["column_name"], file=path)
        assert sum(bar["count"] for bar in bins) == len(finite)


def _analyze(values):
    kernel = ColumnKernel(column("double"), 1 << 30)
    kernel.add(pa.array(values, pa.float64()))
    return kernel.finish(len(values))


def _reduce(*files):
    rows = summary_rows((0, file_number, statistics) for file_number, statistics in enumerate(files))
    return reduce_column(column("double"), rows, [statistics.theta for statistics in files])


def test_all_infinite_files_say_nothing_of_sums():
    reduced = _reduce(_analyze([math.inf] * 5), _analyze([1.0, 2.0, -math.inf]), _analyze([math.nan]))
    assert (reduced.mean, reduced.sum, reduced.m2) == (1.5, 3.0, 0.5)
    assert reduced.numbers["positive_infinities"] == 5
    assert reduced.numbers["negative_infinities"] == 1
    assert _reduce(_analyze([math.inf]), _analyze([-math.inf])).mean is None
