"""Value lists and histograms against DuckDB's exact group-by, for every type and several shapes."""

from collections import Counter

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernel.samples import ARROW, PROFILES, column, columns, table, values
from metastore.format.histogram_bins import target_ranks
from metastore.format.value_rendering import CUT_BYTES, to_python_value
from metastore.kernel.column_histogram import merge_bins
from metastore.kernel.column_kernel import ColumnKernel
from metastore.kernel.column_statistics import constant_statistics
from metastore.kernel.detail_limits import DetailLimits
from metastore.kernel.distinct_sketch import make_sketches
from metastore.kernel.parquet_file import analyze_parquet
from metastore.kernel.value_counts import COMPLETE, ValueCounts, merge_value_counts

ROWS = 4_000
DETAILS = {
    "default": DetailLimits(),
    "small": DetailLimits(bins=7, top=5, list_bytes=1),
    "odd": DetailLimits(bins=997, top=50, list_bytes=500),
}


@pytest.fixture(scope="module", params=DETAILS)
def written(request, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("lists") / "data.parquet")
    pq.write_table(table(ROWS), path)
    detail = DETAILS[request.param]
    analyzed = analyze_parquet(path, columns(), detail=detail)
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = 'UTC'; CREATE TABLE written AS FROM read_parquet('{path}')")

        def counted(of):
            name = f'"{of.name}"'
            query = f"SELECT {name}, count(*) FROM written WHERE {name} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1"
            return connection.execute(query).fetchall()

        yield (
            detail,
            {
                file_column.column: (ours, counted(file_column.column))
                for file_column, ours in zip(columns(), analyzed.columns, strict=True)
            },
        )


def test_lists_are_the_most_frequent_values_of_a_group_by(written):
    _, pairs = written
    kinds = set()
    for of, (ours, truth) in pairs.items():
        listed = rows_of(ours, of)
        kinds.add(ours.frequencies)
        assert listed == truth[: len(listed)], of
        omitted = [frequency for _, frequency in truth[len(listed) :]]
        assert max(omitted, default=0) <= ours.frequencies_floor, of
        assert ours.singles == sum(frequency == 1 for _, frequency in truth), of
        if ours.frequencies == "complete":
            assert (omitted, ours.frequencies_floor) == ([], 0), of
        elif ours.frequencies == "duplicates":
            assert set(omitted) == {1}, of
            assert all(frequency > 1 for _, frequency in listed), of
        else:
            assert 0 < len(listed) < len(truth), of
    assert kinds >= {"complete", "duplicates"}


def test_bins_of_equal_height_hold_their_ranks(written):
    detail, pairs = written
    for of, (ours, truth) in pairs.items():
        if not truth:
            assert ours.histogram is None
            continue
        ordered = sorted(truth, key=lambda row: ours_of(row[0]))
        each = [value for value, frequency in ordered for _ in range(frequency)]
        number, histogram = len(each), ours.histogram
        edges = [edge(value, of) for value in histogram.edges.to_pylist()]
        bins = len(edges) - 1
        assert bins == len(truth) if len(truth) <= detail.bins else bins <= 2 * detail.bins, of
        firsts = np.cumsum([0, *(frequency for _, frequency in ordered)])[:-1] + 1
        for coarser in (histogram, merge_bins(histogram, 2), merge_bins(histogram, 120)):
            ends = np.cumsum(coarser.counts)
            edges = [edge(value, of) for value in coarser.edges.to_pylist()]
            assert ends[-1] == number, of
            assert edges == [cut(each[0]), *(cut(each[end - 1]) for end in ends)], of
            assert all(end == number or each[end - 1] != each[end] for end in ends.tolist()), of
            begun = np.bincount(np.searchsorted(ends, firsts), minlength=len(ends)).tolist()
            assert coarser.distincts.tolist() == begun, of


@pytest.mark.parametrize("shape", ["unique", "some twice", "prefixes", "zeros", "short"])
@pytest.mark.parametrize("detail", DETAILS.values(), ids=DETAILS)
def test_many_strings_that_are_mostly_unique(shape, detail):
    random = np.random.default_rng(3)
    numbers = random.integers(0, 400_000 if shape != "unique" else 1 << 60, 100_000)
    make = {
        "unique": lambda n: b"%x" % n,
        "some twice": lambda n: b"%d" % n,
        "prefixes": lambda n: b"the same begin" + b"ning " * (n % 5) + b"%x" % n,
        "zeros": lambda n: b"\0" * (n % 9) + b"%d" % (n // 9) + b"\0" * (n % 3),
        "short": lambda n: int(n).to_bytes(3, "big").lstrip(b"\0"),
    }[shape]
    texts = [make(n) for n in numbers.tolist()]
    kernel = ColumnKernel(column("binary"), 1 << 30, detail)
    kernel.add(pa.array(texts, pa.binary()))
    statistics = kernel.finish(len(texts))
    truth = sorted(Counter(texts).items(), key=lambda row: (-row[1], row[0]))
    listed = rows_of(statistics, column("binary"))
    assert listed == truth[: len(listed)]
    assert max((frequency for _, frequency in truth[len(listed) :]), default=0) <= statistics.frequencies_floor
    assert statistics.singles == sum(frequency == 1 for _, frequency in truth)
    if detail.list_bytes > 500 and shape != "short":
        assert statistics.frequencies == "duplicates"
        assert len(listed) == len(truth) - statistics.singles
    ordered = sorted(texts)
    bins = len(statistics.histogram.edges) - 1
    ends = target_ranks(len(ordered), detail.bins).tolist()
    assert np.cumsum(statistics.histogram.counts).tolist() == ends
    assert statistics.histogram.edges.to_pylist() == [ordered[0], *(ordered[end - 1] for end in ends)]
    firsts = [number + 1 for number, text in enumerate(ordered) if number == 0 or ordered[number - 1] != text]
    assert (
        statistics.histogram.distincts.tolist() == np.bincount(np.searchsorted(ends, firsts), minlength=bins).tolist()
    )
    assert statistics.percentiles == [ordered[max(-(-p * len(ordered) // 100), 1) - 1] for p in range(101)]


def test_distinct_values_of_bins_are_not_claimed_where_edges_are_cut():
    texts = [b"x" * 80 + b"%d" % n for n in range(70_000)]
    kernel = ColumnKernel(column("binary"), 1 << 30)
    kernel.add(pa.array(texts, pa.binary()))
    statistics = kernel.finish(len(texts))
    assert statistics.histogram.distincts is None
    assert set(statistics.histogram.edges.to_pylist()) == {b"x" * CUT_BYTES}


def test_nan_is_listed_after_all_numbers_and_zero_has_no_sign():
    statistics = analyze("double", [float("nan"), -0.0, 0.0, 1.5, float("nan"), float("inf"), None, float("-inf")])
    ranked = statistics.values.sort_by_count()
    assert [str(value) for value in ranked.values.to_pylist()] == ["0.0", "nan", "-inf", "1.5", "inf"]
    assert ranked.counts.tolist() == [2, 2, 1, 1, 1]
    assert (statistics.frequencies, statistics.singles) == ("complete", 3)
    assert statistics.histogram.edges.to_pylist() == [0.0, 0.0, 1.5]
    only = analyze("float", [float("nan")] * 3)
    assert (only.values.counts.tolist(), only.frequencies, only.histogram) == ([3], "complete", None)


@pytest.mark.parametrize(("nans", "kind", "listed"), [(0, "top", 3), (1, "top", 3), (9, "top", 3)])
def test_nan_takes_part_in_the_choice_of_the_most_frequent(nans, kind, listed):
    numbers = [n for n in range(20) for _ in range(2 + n % 3)] + [float("nan")] * nans
    statistics = analyze("double", numbers, DetailLimits(top=3, list_bytes=1))
    values, counts = (
        statistics.values.sort_by_count().values.to_pylist(),
        statistics.values.sort_by_count().counts.tolist(),
    )
    assert (statistics.frequencies, len(values), statistics.frequencies_floor) == (kind, listed, 4)
    assert [str(value) for value in values] == (["nan", "2.0", "5.0"] if nans == 9 else ["2.0", "5.0", "8.0"])
    assert counts == ([9, 4, 4] if nans == 9 else [4, 4, 4])


def test_long_values_are_dropped_and_the_list_is_not_complete():
    texts = ["a", "a", "b", "x" * 1024, "y" * 1025, "y" * 1025, "y" * 1025]
    statistics = analyze("string", texts)
    assert dict(rows_of(statistics, column("string"))) == {"a": 2, "b": 1, "x" * 1024: 1}
    assert (statistics.frequencies, statistics.frequencies_floor, statistics.singles) == ("top", 3, 2)


def test_all_null_and_constants_have_complete_lists():
    nothing = analyze("int", [None, None])
    assert (nothing.frequencies, nothing.frequencies_floor, len(nothing.values)) == ("complete", 0, 0)
    for spark_type, value in {"int": 7, "string": b"a", "double": 1.5}.items():
        statistics = constant_statistics(column(spark_type), value, 10)
        assert (statistics.values.values.to_pylist(), statistics.values.counts.tolist()) == ([value], [10])
        assert statistics.histogram.edges.to_pylist() == [value, value]
        assert statistics.histogram.counts.tolist() == [10]
    assert analyze("array<int>", [[1]], arrow=pa.list_(pa.int32())).frequencies == "none"


@pytest.mark.parametrize("spark_type", ["bigint", "double", "string", "date"])
def test_beyond_the_budget_frequencies_that_are_listed_are_exact(spark_type):
    random = np.random.default_rng(5)
    frequent = values(spark_type, "few", 30_000, 1)
    rare = values(spark_type, "many", 60_000, 2)
    together = pa.concat_arrays([frequent, rare]).take(pa.array(random.permutation(90_000)))
    kernel = ColumnKernel(column(spark_type), 1 << 20, DetailLimits(top=20))
    for start in range(0, 90_000, 3_000):
        kernel.add(together.slice(start, 3_000))
    statistics = kernel.finish(90_000)
    assert statistics.distinct_error > 0
    assert statistics.frequencies == "top"
    truth = Counter(together.to_pylist())
    listed = dict(rows_of(statistics, column(spark_type)))
    assert len(listed) >= 12
    assert all(truth[value] == frequency for value, frequency in listed.items())
    assert max(frequency for value, frequency in truth.items() if value not in listed) <= statistics.frequencies_floor
    assert int(statistics.histogram.counts.sum()) == 90_000


def test_parts_that_leave_values_out_are_merged_to_what_is_certain():
    first = ValueCounts("complete", 0, pa.array([1, 2]), np.array([5, 1]))
    second = ValueCounts("top", 2, pa.array([1, 3]), np.array([4, 7]))
    merged = merge_value_counts([first, second], 10)
    # 2 occurs once in the first part, and at most twice in the second.
    assert dict(zip(merged.values.to_pylist(), merged.counts.tolist(), strict=True)) == {1: 9, 3: 7}
    assert (merged.kind, merged.floor) == ("top", 3)
    assert merge_value_counts([first, None], 10) is None
    assert merge_value_counts([first, first], 10).kind == "complete"


def test_a_list_with_nothing_but_single_values_left_out_says_so():
    statistics = analyze("int", [1, 1, 1, 2, 2, *range(10, 30)], DetailLimits(top=4, list_bytes=1))
    assert (statistics.frequencies, statistics.frequencies_floor) == ("duplicates", 1)
    assert rows_of(statistics, column("int")) == [(1, 3), (2, 2)]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("spark_type", ARROW)
def test_sizes_are_not_underestimated(spark_type, profile):
    statistics = analyze(spark_type, values(spark_type, profile, 2_000).to_pylist(), DetailLimits(top=2_000))
    ranked = statistics.values.sort_by_count()
    path = pa.BufferOutputStream()
    encoding = "DELTA_BYTE_ARRAY" if ranked.values.type == pa.binary() else "DELTA_BINARY_PACKED"
    encodings = {"f": "DELTA_BINARY_PACKED"} | ({} if ranked.values.type == pa.float64() else {"v": encoding})
    options = {"use_dictionary": False, "column_encoding": encodings, "compression": "zstd", "write_statistics": False}
    pq.write_table(pa.table({"v": ranked.values, "f": ranked.counts}), path, store_schema=False, **options)
    assert path.getvalue().size <= statistics.values.size + 800  # of which the footer takes most


def analyze(spark_type, rows, detail=None, arrow=None):
    kernel = ColumnKernel(column(spark_type), 1 << 30, detail or DetailLimits())
    kernel.add(pa.array(rows, arrow or ARROW[spark_type]))
    return kernel.finish(len(rows))


def rows_of(statistics, of):
    ranked = statistics.values.sort_by_count()
    listed = [to_python_value(value, of) for value in ranked.values.to_pylist()]
    return list(zip(listed, ranked.counts.tolist(), strict=True))


def ours_of(value):
    return value.encode() if isinstance(value, str) else value


def cut(value):
    value = ours_of(value)
    return value[:CUT_BYTES] if isinstance(value, bytes) else value


def edge(value, of):
    texts = of.encoding == "binary" and not of.type.startswith("decimal")
    return value if texts else to_python_value(value, of)


@pytest.mark.parametrize("profile", ["few", "nulls", "constant"])
@pytest.mark.parametrize("spark_type", ARROW)
def test_complete_lists_have_the_sketches_of_their_columns(spark_type, profile):
    of = column(spark_type)
    both = [pa.concat_arrays([values(spark_type, profile, 400, seed), _nan(spark_type)]) for seed in (1, 2)]
    statistics = [_finished(of, array) for array in both]
    assert {part.frequencies for part in statistics} == {COMPLETE}
    listed = pa.concat_arrays([part.values.values for part in statistics])
    owners = np.repeat([5, 3], [len(part.values) for part in statistics])
    made = dict(make_sketches(listed, owners, of))
    assert [made[5].theta.to_bytes(), made[3].theta.to_bytes()] == [part.theta for part in statistics]


def _nan(spark_type):
    return pa.array([np.nan] if spark_type in ("float", "double") else [], ARROW[spark_type])


def _finished(of, array):
    kernel = ColumnKernel(of, 1 << 30, DetailLimits(list_bytes=1 << 20))
    kernel.add(array)
    return kernel.finish(len(array))
