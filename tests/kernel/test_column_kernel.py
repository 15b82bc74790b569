"""The kernel of one column: values of every kind, in any number of pieces, within any budget."""

import math
import sys
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernel.samples import ARROW, column, values
from metastore.format.object_schemas import SKETCHES, SUMMARY
from metastore.format.value_rendering import CUT_BYTES, cut_lower, cut_upper, decimal_from_bytes, decimal_to_bytes
from metastore.kernel.binary_values import BinaryBuffer
from metastore.kernel.column_kernel import HEADROOM, ColumnKernel
from metastore.kernel.column_statistics import constant_statistics
from metastore.kernel.statistic_rows import sketch_rows, summary_rows
from metastore.kernel.theta_sketch import ThetaSketch
from metastore.kernel.value_runs import make_runs

INTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5) | st.integers(-(10**6), 10**6)
DOUBLES = st.floats(width=64) | st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan])
DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-(2**63), 2**64)
TEXTS = st.text("aä\0", max_size=12) | st.text(max_size=100) | st.sampled_from(["", "x" * 64, "x" * 65, "x" * 64 + "y"])
BYTES = st.binary(max_size=10) | st.sampled_from([b"\xff" * 64, b"\xff" * 65, b"a" + b"\xff" * 70])


def pieces(values):
    return st.lists(st.lists(values | st.none(), max_size=60), max_size=5)


def run(spark_type, arrays, budget=1 << 20):
    kernel = ColumnKernel(column(spark_type), budget)
    for array in arrays:
        kernel.add(array)
    return kernel.finish(sum(len(array) for array in arrays))


def flat(parts):
    return [value for part in parts for value in part if value is not None]


def percentile(ordered, p):
    return ordered[max(1, -(-p * len(ordered) // 100)) - 1]


def check_common(statistics, parts, ordered, distinct):
    everything = [value for part in parts for value in part]
    assert statistics.rows == len(everything)
    assert statistics.nulls == sum(value is None for value in everything)
    assert (statistics.distinct, statistics.distinct_error) == (distinct, 0.0)
    assert ThetaSketch.from_bytes(statistics.theta).estimate == distinct
    if not ordered:
        assert (statistics.lo, statistics.hi, statistics.mean, statistics.percentiles) == (None, None, None, None)


@settings(deadline=None)
@given(pieces(INTS), st.sampled_from([1 << 20, 4096]))
@example([[-9_223_372_033_192_739_291, -9_223_372_035_164_736_001]], 1 << 20)
def test_integers(parts, budget):
    statistics = run("bigint", [pa.array(part, pa.int64()) for part in parts], budget)
    ordered = sorted(flat(parts))
    check_common(statistics, parts, ordered, len(set(ordered)))
    if ordered:
        assert (statistics.lo, statistics.hi, statistics.sum_exact) == (ordered[0], ordered[-1], sum(ordered))
        if 16 * len(set(ordered)) <= budget // HEADROOM:  # else they are merged from those of parts
            assert statistics.percentiles == [percentile(ordered, p) for p in range(101)]
        assert statistics.mean == sum(ordered) / len(ordered)
        mean = Fraction(sum(ordered), len(ordered))
        # Far from zero the mean, and each value, is rounded before the difference is taken.
        rounding = 4 * len(ordered) * math.ulp(float(mean)) * (ordered[-1] - ordered[0])
        squares = float(sum((x - mean) ** 2 for x in ordered))
        assert statistics.m2 == pytest.approx(squares, rel=1e-6, abs=1e-6 + rounding)


@settings(deadline=None)
@given(pieces(DOUBLES))
def test_doubles(parts):
    statistics = run("double", [pa.array(part, pa.float64()) for part in parts])
    numbers = sorted(x + 0.0 for x in flat(parts) if not math.isnan(x))
    nans = sum(math.isnan(x) for x in flat(parts))
    assert statistics.nans == nans
    check_common(statistics, parts, numbers, len(set(numbers)) + bool(nans))
    if numbers:
        assert (statistics.lo, statistics.hi) == (numbers[0], numbers[-1])
        assert all(math.copysign(1, x) > 0 for x in (statistics.lo, statistics.hi, *statistics.percentiles) if x == 0)
        assert statistics.percentiles == [percentile(numbers, p) for p in range(101)]
        check_infinities(statistics, numbers)


def check_infinities(statistics, numbers):
    """Infinite values are counted, and neither in the moments nor in the bins."""
    finite = [x for x in numbers if math.isfinite(x)]
    assert statistics.numbers["negative_infinities"] == numbers.count(-math.inf)
    assert statistics.numbers["positive_infinities"] == numbers.count(math.inf)
    if not finite:
        assert (statistics.sum, statistics.mean, statistics.m2, statistics.histogram) == (None, None, None, None)
        return
    assert statistics.histogram.counts.sum() == len(finite)
    assert (statistics.histogram.edges[0].as_py(), statistics.histogram.edges[-1].as_py()) == (finite[0], finite[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        expected = float(np.mean(finite)), float(np.var(finite) * len(finite))
    if all(map(math.isfinite, expected)):
        spread = max(map(abs, finite))
        few_digits = sys.float_info.min  # numbers below it have less than double precision
        assert statistics.mean == pytest.approx(expected[0], abs=1e-9 * spread + few_digits)
        # A product may be infinite, where a power raises.
        rounding = 1e-9 * spread * spread * len(finite) + few_digits
        assert statistics.m2 == pytest.approx(expected[1], rel=1e-6, abs=rounding)


@settings(deadline=None)
@given(pieces(DOUBLES), st.sampled_from([1 << 30, 4096]))
@example([[0.0, 1.5860018108992684e-159]], 1 << 30)
@example([[math.inf] * 90, [1.0, -math.inf] * 30, [2.0, 3.5, math.inf] * 20], 4096)
def test_infinities_in_parts(parts, budget):
    """Of a column that is analyzed in parts, too: its bins are near, their ends are not."""
    repeated = [[x for x in part if x is not None] * 40 for part in parts]
    statistics = run("double", [pa.array(part, pa.float64()) for part in repeated], budget)
    numbers = sorted(x + 0.0 for x in flat(repeated) if not math.isnan(x))
    if numbers:
        check_infinities(statistics, numbers)


@settings(deadline=None)
@given(pieces(DECIMALS))
def test_wide_decimals(parts):
    arrays = [from_unscaled(part) for part in parts]
    statistics = run("decimal(38,3)", arrays)
    ordered = sorted(flat(parts))
    check_common(statistics, parts, ordered, len(set(ordered)))
    if ordered:
        assert (decimal_from_bytes(statistics.lo), decimal_from_bytes(statistics.hi)) == (ordered[0], ordered[-1])
        assert statistics.sum_exact == sum(ordered)
        assert [decimal_from_bytes(p) for p in statistics.percentiles] == [percentile(ordered, p) for p in range(101)]
        assert statistics.mean == pytest.approx(sum(ordered) / len(ordered) / 1000, rel=1e-12)
        stored = summary_rows([(0, 0, statistics)]).column("sum_exact")[0].as_py()
        assert stored == (None if abs(sum(ordered)) >= 10**38 else sum(ordered))


@settings(deadline=None)
@given(pieces(TEXTS), st.booleans())
def test_strings(parts, encoded):
    arrays = [pa.array(part, pa.string()) for part in parts]
    statistics = run("string", [array.dictionary_encode() if encoded else array for array in arrays])
    check_texts(statistics, parts, sorted(value.encode() for value in flat(parts)))


@settings(deadline=None)
@given(pieces(BYTES))
def test_binary(parts):
    statistics = run("binary", [pa.array(part, pa.binary()) for part in parts])
    check_texts(statistics, parts, sorted(flat(parts)))


def check_texts(statistics, parts, ordered):
    check_common(statistics, parts, ordered, len(set(ordered)))
    if ordered:
        assert (statistics.lo, statistics.lo_exact) == cut_lower(ordered[0])
        assert (statistics.hi, statistics.hi_exact) == cut_upper(ordered[-1])
        assert statistics.percentiles == [percentile(ordered, p)[:CUT_BYTES] for p in range(101)]
        lengths = list(map(len, ordered))
        assert statistics.avg_len == sum(lengths) / len(lengths)
        assert statistics.numbers == {"min_len": min(lengths), "max_len": max(lengths), "empty_texts": lengths.count(0)}


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from(["ab", "abcdefghijklmnop", "\0a"]), st.integers(40, 3000))
def test_ranks_of_strings_that_share_prefixes(seed, alphabet, rows):
    random = np.random.default_rng(seed)
    texts = ["".join(random.choice(list(alphabet), length)) for length in random.integers(0, 30, rows)]
    texts = [value * (3 if i % 9 == 0 else 1) for i, value in enumerate(texts)]
    ours = run("string", [pa.array(texts[: rows // 2]), pa.array(texts[rows // 2 :])])
    check_texts(ours, [texts], sorted(value.encode() for value in texts))


@pytest.mark.parametrize("spark_type", ARROW)
@pytest.mark.parametrize("profile", ["few", "many", "nulls"])
def test_a_tiny_budget_keeps_what_must_be_exact(spark_type, profile):
    array = values(spark_type, profile, 20_000)
    unlimited = run(spark_type, [array], 1 << 30)
    parts = [array.slice(at, 700) for at in range(0, 20_000, 700)]
    tight = run(spark_type, parts, 1)
    for name in ("rows", "nulls", "nans", "lo", "hi", "lo_exact", "hi_exact", "sum_exact", "max_len", "trues"):
        assert getattr(tight, name) == getattr(unlimited, name), name
    for name in ("sum", "mean", "m2", "avg_len"):
        ours, exact = getattr(tight, name), getattr(unlimited, name)
        assert ours is None if exact is None else ours == pytest.approx(exact, rel=1e-9), name
    assert tight.distinct == pytest.approx(unlimited.distinct, rel=5 * tight.distinct_error)
    assert (tight.distinct_error > 0) == (unlimited.distinct > 4096)
    assert tight.theta == unlimited.theta
    assert ranks_are_near(array, unlimited, tight)


def ranks_are_near(array, unlimited, tight):
    """Whether each approximate percentile lies between exact ones at most two percent of rank away."""
    key = decimal_from_bytes if unlimited.encoding == "binary" and "decimal" in str(array.type) else lambda value: value
    exact, ours = [key(v) for v in unlimited.percentiles], [key(v) for v in tight.percentiles]
    return all(exact[max(p - 2, 0)] <= ours[p] <= exact[min(p + 2, 100)] for p in range(101))


def test_a_budget_that_holds_the_distinct_values_loses_nothing():
    parts = [pa.array(np.arange(5000) % 97 + n) for n in range(20)]
    tight, unlimited = run("bigint", parts, 64_000), run("bigint", parts, 1 << 30)
    assert tight == unlimited
    texts = [part.cast(pa.string()) for part in parts]
    assert run("string", texts, 64_000) == run("string", texts, 1 << 30)


def test_infinities_bound_and_spoil_no_mean():
    statistics = run("double", [pa.array([math.inf, 1.0, -math.inf, math.nan])])
    assert (statistics.lo, statistics.hi, statistics.nans, statistics.distinct) == (-math.inf, math.inf, 1, 4)
    assert (statistics.mean, statistics.sum, statistics.m2) == (1.0, 1.0, 0.0)


def test_floats_are_hashed_as_floats_and_stored_as_doubles():
    statistics = run("float", [pa.array([0.1, -0.0, None], pa.float32())])
    assert (statistics.lo, statistics.hi) == (0.0, float(np.float32(0.1)))
    assert statistics.theta == constant_union("float", [0.0, float(np.float32(0.1))])


def constant_union(spark_type, stored):
    from metastore.kernel.theta_sketch import union_thetas  # noqa: PLC0415 - used here alone

    return union_thetas(
        ThetaSketch.from_bytes(constant_statistics(column(spark_type), v, 1).theta) for v in stored
    ).to_bytes()


@pytest.mark.parametrize("spark_type", ARROW)
def test_a_constant_is_what_the_kernel_finds(spark_type):
    array = values(spark_type, "constant", 150)
    statistics = run(spark_type, [array])
    assert constant_statistics(column(spark_type), statistics.lo, 150) == statistics
    assert constant_statistics(column(spark_type), None, 150) == run(spark_type, [values(spark_type, "empty", 150)])
    assert constant_statistics(column(spark_type), statistics.lo, 0) == run(spark_type, [])


def test_a_constant_nan_and_counts_only():
    assert constant_statistics(column("double"), math.nan, 3) == run("double", [pa.array([math.nan] * 3)])
    assert constant_statistics(column("array<int>"), None, 3).nulls == 3


@pytest.mark.parametrize("spark_type", ["array<int>", "map<string,int>", "variant"])
def test_of_lists_maps_and_variants_only_rows_and_nulls_are_counted(spark_type):
    statistics = run(spark_type, [pa.array([[1], None, []], pa.list_(pa.int32())), pa.array([True, None])])
    assert (statistics.rows, statistics.nulls, statistics.encoding, statistics.distinct, statistics.theta) == (
        5,
        2,
        None,
        None,
        None,
    )


def test_intervals():
    months = run("interval year to month", [pa.array([3, -14, None], pa.int32())])
    assert (months.lo, months.hi, months.distinct) == (-14, 3, 2)
    micros = run("interval day to second", [pa.array([3, -14, None], pa.duration("us"))])
    assert (micros.lo, micros.hi, micros.distinct) == (-14, 3, 2)


def test_dictionaries_of_numbers_and_with_nulls_inside():
    numbers = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1]), pa.array([5, 7]))
    assert run("bigint", [numbers]).sum_exact == 19
    inside = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None]))
    statistics = run("string", [inside])
    assert (statistics.nulls, statistics.distinct, statistics.lo, statistics.hi) == (1, 1, b"a", b"a")


def test_slices_of_larger_arrays():
    for spark_type in ARROW:
        array = values(spark_type, "nulls", 300)
        copied = pa.array(array.slice(100, 50).to_pylist(), array.type)
        assert run(spark_type, [array.slice(100, 50)]) == run(spark_type, [copied]), spark_type


def test_rows_that_are_missing_are_noticed():
    kernel = ColumnKernel(column("int"))
    kernel.add(pa.array([1, 2], pa.int32()))
    with pytest.raises(ValueError, match="2 rows of column c were added, 3 expected"):
        kernel.finish(3)


def test_tables_have_the_schemas_of_the_format():
    rows = [(1, 0, run("string", [pa.array(["b", "a"])])), (0, 1, run("int", [pa.array([4], pa.int32())]))]
    rows += [(2, 0, run("array<int>", [pa.array([None])]))]
    summary, sketches = summary_rows(rows), sketch_rows(rows)
    assert (summary.schema, sketches.schema) == (SUMMARY, SKETCHES)
    assert summary.column("column").to_pylist() == [0, 1, 2]
    assert summary.column("lo_long").to_pylist() == [4, None, None]
    assert summary.column("hi_binary").to_pylist() == [None, b"b", None]
    assert [len(v) for v in summary.column("percentiles_binary").to_pylist() if v] == [101]
    assert sketches.column("column").to_pylist() == [0, 1]


def from_unscaled(unscaled):
    data = b"".join((0 if x is None else x).to_bytes(16, "little", signed=True) for x in unscaled)
    valid = pa.array([x is not None for x in unscaled]).buffers()[1] if unscaled else None
    return pa.Array.from_buffers(pa.decimal128(38, 3), len(unscaled), [valid, pa.py_buffer(data)])


def test_wide_decimals_are_hashed_as_their_shortest_big_endian_bytes():
    numbers = [0, 127, 128, -128, -129, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**37]
    statistics = run("decimal(38,3)", [from_unscaled(numbers)])
    java = [x.to_bytes((x if x >= 0 else ~x).bit_length() // 8 + 1, "big", signed=True) for x in numbers]
    assert statistics.theta == run("binary", [pa.array(java, pa.binary())]).theta
    narrow = [x for x in numbers if abs(x) < 10**18]
    short = run("decimal(18,3)", [from_unscaled(narrow).cast(pa.decimal128(18, 3))])
    assert short.theta == run("binary", [pa.array(java[: len(narrow)], pa.binary())]).theta
    assert [decimal_to_bytes(x) for x in (min(numbers), max(numbers))] == [statistics.lo, statistics.hi]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [7],
        [-3, -3, 0, 5],
        [5, 0, -3, 5],
        [2**31 - 1, -(2**31), 0, 2**31 - 1],
        np.random.default_rng(1).integers(-(2**31), 2**31, 5000),
        np.random.default_rng(2).integers(-40_000_000, 40_000_000, 5000),
        np.random.default_rng(3).integers(10**9, 10**9 + 300, 5000),
    ],
)
def test_integers_of_four_bytes_are_counted_as_those_of_eight(values):
    short, long = (make_runs(np.array(values, kind)) for kind in (np.int32, np.int64))
    assert short.values.dtype == short.counts.dtype == np.int64
    assert np.array_equal(short.values, long.values)
    assert np.array_equal(short.counts, long.counts)


def test_texts_of_many_arrays_are_joined():
    texts = [b"", b"a", b"bc" * 40, b"", b"d"]
    joined = BinaryBuffer()
    for _ in range(300):
        joined.add(pa.array([b"before", *texts, b"after"], pa.large_binary()).slice(1, len(texts)))
        joined.add(pa.array([], pa.large_binary()))
    assert len(joined) == 300 * len(texts)
    statistics = joined.finish()
    assert statistics.to_pylist() == 300 * texts
    assert statistics.buffers()[2].size >= 300 * sum(map(len, texts)) + 16
