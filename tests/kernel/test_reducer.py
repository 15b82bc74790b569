"""Table level: what files say together is what one file with all rows says."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.samples import ARROW, PROFILES, column, reduce_column, values
from metastore.format.object_schemas import TABLE_SKETCHES, TABLE_SUMMARY
from metastore.format.value_rendering import decimal_from_bytes, decimal_to_bytes
from metastore.kernel.built_in_statistics import COMPUTED
from metastore.kernel.column_kernel import ColumnKernel
from metastore.kernel.column_statistics import ColumnStatistics, constant_statistics
from metastore.kernel.distinct_sketch import parse_sketches
from metastore.kernel.reducer import reduce_columns
from metastore.kernel.statistic_rows import summary_rows, table_sketch_rows, table_summary_rows


def analyze(spark_type, array):
    kernel = ColumnKernel(column(spark_type), 1 << 30)
    kernel.add(array)
    return kernel.finish(len(array), 100, 200)


def reduced(spark_type, files):
    rows = summary_rows((0, file_number, statistics) for file_number, statistics in enumerate(files))
    return reduce_column(column(spark_type), rows, [statistics.theta for statistics in files])


@pytest.mark.parametrize("spark_type", ARROW)
@pytest.mark.parametrize("profile", PROFILES)
def test_parts_together_are_the_whole(spark_type, profile):
    array = values(spark_type, profile, 6000)
    files = [analyze(spark_type, part) for part in (array[:1000], array[1000:1001], array[1001:5000], array[5000:])]
    together, merged = analyze(spark_type, array), reduced(spark_type, files)
    for name in ("rows", "nulls", "nans", "lo", "hi", "lo_exact", "hi_exact", "sum_exact", "numbers", "trues"):
        assert getattr(merged, name) == getattr(together, name), name
    for name in ("sum", "mean", "m2", "avg_len"):
        ours, exact = getattr(merged, name), getattr(together, name)
        assert ours is None if exact is None else ours == pytest.approx(exact, rel=1e-9), name
    assert (merged.compressed_bytes, merged.uncompressed_bytes) == (400, 800)
    assert merged.theta == together.theta
    assert merged.distinct == pytest.approx(together.distinct, rel=5 * merged.distinct_error)
    assert (merged.distinct_error == 0) == (together.distinct <= 4096)
    if together.percentiles is None:
        assert merged.percentiles is None
        return
    key = decimal_from_bytes if spark_type == "decimal(38,6)" else lambda value: value
    exact, ours = [key(v) for v in together.percentiles], [key(v) for v in merged.percentiles]
    assert all(exact[max(p - 2, 0)] <= ours[p] <= exact[min(p + 2, 100)] for p in range(101))
    assert (ours[0], ours[100]) == (exact[0], exact[100])


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=1, max_size=300))
def test_files_of_one_row_lose_nothing(rows):
    files = [analyze("bigint", pa.array([row], pa.int64())) for row in rows]
    merged, exact = reduced("bigint", files), analyze("bigint", pa.array(rows, pa.int64()))
    for name in ("lo", "hi", "nulls", "distinct", "distinct_error", "sum_exact", "percentiles", "theta", "mean"):
        assert getattr(merged, name) == getattr(exact, name), name


@settings(deadline=None)
@given(st.lists(st.lists(st.binary(max_size=80) | st.none(), max_size=9), min_size=1, max_size=6))
def test_bounds_hold_every_string_of_every_file(parts):
    merged = reduced("binary", [analyze("binary", pa.array(part, pa.binary())) for part in parts])
    everything = [value for part in parts for value in part if value is not None]
    assert merged.distinct == len(set(everything))
    assert all(merged.lo <= value for value in everything)
    assert all(merged.hi is None or value <= merged.hi for value in everything)
    if everything:
        assert merged.lo_exact == (merged.lo in everything)
        assert not merged.hi_exact or merged.hi in everything


def test_one_file_is_the_table():
    exact = analyze("bigint", pa.array(np.arange(20_000) * 7 % 10_007))
    of_files = {"frequencies": "none", "frequencies_floor": None, "singles": None, "values": None, "histogram": None}
    of_files |= {"bloom": None, "registers": None}
    assert reduced("bigint", [exact]) == replace(exact, **of_files)


def test_ranges_that_do_not_overlap_count_exactly():
    files = [analyze("bigint", pa.array(np.arange(n * 10_000, (n + 1) * 10_000))) for n in range(5)]
    merged = reduced("bigint", files)
    assert (merged.distinct, merged.distinct_error) == (50_000, 0.0)
    overlapping = reduced("bigint", [*files, files[0]])
    assert overlapping.distinct == pytest.approx(50_000, rel=5 * overlapping.distinct_error)
    assert 0 < overlapping.distinct_error < 0.016


def test_nan_in_several_files_is_one_value():
    files = [analyze("double", pa.array(part)) for part in ([1.0, math.nan], [math.nan], [2.0, math.nan, math.nan])]
    merged = reduced("double", files)
    assert (merged.distinct, merged.nans, merged.lo, merged.hi) == (3, 4, 1.0, 2.0)


def test_what_one_file_does_not_know_the_table_does_not_know():
    counted = analyze("bigint", pa.array([1, None]))
    unknown = ColumnStatistics(rows=5, encoding="long", nans=0, lo=0, hi=3, lo_exact=False, hi_exact=True)
    merged = reduced("bigint", [counted, unknown])
    assert (merged.rows, merged.nulls, merged.distinct, merged.mean, merged.percentiles, merged.theta) == (
        7,
        *[None] * 5,
    )
    assert (merged.lo, merged.lo_exact, merged.hi, merged.hi_exact) == (0, False, 3, True)
    assert reduced("bigint", [counted, ColumnStatistics(rows=5, encoding="long")]).lo is None
    assert reduced("bigint", [counted, ColumnStatistics(rows=0, encoding="long", nulls=0, nans=0)]).lo == 1


def test_a_file_of_nulls_says_nothing_of_values():
    merged = reduced("bigint", [constant_statistics(column("bigint"), None, 3), analyze("bigint", pa.array([5, 6]))])
    assert (merged.lo, merged.hi, merged.nulls, merged.distinct, merged.mean) == (5, 6, 3, 2, 5.5)


def test_no_files():
    merged = reduced("string", [])
    assert (merged.rows, merged.nulls, merged.lo, merged.distinct, merged.percentiles) == (0, 0, None, 0, None)


def test_a_sum_that_does_not_fit_is_null_and_the_others_remain():
    files = [constant_statistics(column("decimal(38,0)"), (10**38 - 1).to_bytes(16, "big"), 1)] * 2
    merged = reduced("decimal(38,0)", files)
    stored = table_summary_rows([(0, merged, 2)])
    assert stored.column("sum_exact")[0].as_py() is None
    assert merged.sum == pytest.approx(2e38)


def test_many_files_at_once():
    random = np.random.default_rng(1)
    data = random.normal(size=(8_000, 20))
    files = [analyze("double", pa.array(row)) for row in data[:200]] * 40
    merged = reduced("double", files)
    exact = np.quantile(data[:200], np.arange(0, 101) / 100, method="inverted_cdf")
    ranks = np.searchsorted(np.sort(data[:200].reshape(-1)), merged.percentiles) / 4000
    assert merged.rows == 160_000
    assert np.abs(ranks - np.arange(101) / 100).max() < 0.02
    assert (merged.percentiles[0], merged.percentiles[100]) == (exact[0], exact[100])


def test_tables_have_the_schemas_of_the_format():
    rows = [(1, analyze("int", pa.array([1], pa.int32())), 4), (0, ColumnStatistics(rows=9, encoding=None, nulls=2), 4)]
    assert table_summary_rows(rows).schema == TABLE_SUMMARY
    assert table_sketch_rows(rows).schema == TABLE_SKETCHES
    assert table_summary_rows(rows).column("files").to_pylist() == [4, 4]
    assert table_sketch_rows(rows).column("column").to_pylist() == [1]


@pytest.mark.parametrize("kind", ["bigint", "string", "decimal(30,0)"])
def test_percentiles_of_very_many_alike_files_have_no_steps(kind):
    of = column(kind)
    files, points = 20_000, list(range(0, 10_100, 100))
    if kind == "string":
        points = [f"{point:08}".encode() for point in points]
    elif kind != "bigint":
        points = [decimal_to_bytes(point) for point in points]
    constant = replace(constant_statistics(of, points[0], 1000), lo=points[0], hi=points[-1], percentiles=points)
    rows = summary_rows([(0, 0, constant)])
    merged = reduce_column(of, pa.concat_tables([rows] * files), [])
    ranks = [points.index(value) for value in merged.percentiles]
    assert (ranks[0], ranks[-1]) == (0, 100)
    assert max(abs(rank - percent) for percent, rank in enumerate(ranks)) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("files", [1, 2, 3, 17, 64])
def test_columns_reduced_together_are_those_reduced_alone(files):
    random = np.random.default_rng(files)
    kinds = [(spark_type, profile) for spark_type in ARROW for profile in PROFILES]
    parts = {
        kind: [values(*kind, 300, seed) for seed in random.choice(files + 3, files, replace=False).tolist()]
        for kind in kinds
    }
    columns, rows, thetas = [], [], []
    for change in (None, unknown, estimated):
        for (spark_type, _), arrays in parts.items():
            statistics = [analyze(spark_type, array) for array in arrays]
            statistics = [change(part) if change and random.random() < 0.5 else part for part in statistics]
            columns.append(column(spark_type))
            rows.append(summary_rows((0, file_number, part) for file_number, part in enumerate(statistics)))
            thetas.append([part.theta for part in statistics])
    together = reduce_columns(columns, rows, [parse_sketches(sketches) for sketches in thetas])
    for of, table, sketches, statistics in zip(columns, rows, thetas, together, strict=True):
        alone = reduce_column(of, table, sketches)
        assert repr(statistics) == repr(alone), of
        naive = reduce_naively(of, table)
        assert {name: getattr(statistics, name) for name in naive} == naive, of


def unknown(statistics):
    """The same with gaps."""
    return replace(statistics, lo=None, sum_exact=None, percentiles=None, theta=None, trues=None, avg_len=None)


def estimated(statistics):
    """The same with an estimate, or without counts."""
    return replace(statistics, nulls=None) if statistics.nulls else replace(statistics, distinct_error=0.25)


def reduce_naively(of, table):
    """Counts, bounds, lengths and exact sums, value by value."""
    rows = table.to_pylist()
    counted = not any(None in (row["rows"], row["nulls"], row["nans"]) for row in rows)
    full = [row for row in rows if not counted or row["rows"] - row["nulls"] - row["nans"] > 0]
    key = decimal_from_bytes if of.type == "decimal(38,6)" else lambda value: value

    def combine_known(name, combine, table_rows=full):
        numbers = [row[name] for row in table_rows]
        return None if not numbers or None in numbers else combine(numbers)

    sums = {name: combine_known(name, sum, rows) for name in ("rows", "nulls", "nans", "trues", "compressed_bytes")}
    for end, choose in (("lo", min), ("hi", max)):
        name = f"{end}_{of.encoding}"
        best = combine_known(name, lambda values, choose=choose: choose(values, key=key))
        sums[end] = best
        sums[f"{end}_exact"] = None if best is None else any(row[f"{end}_exact"] for row in full if row[name] == best)
    lengths = {name: combine_known(name, combine) for name, combine in LENGTHS.items()}
    return {
        **sums,
        "sum_exact": combine_known("sum_exact", lambda sums: sum(map(int, sums))),
        "numbers": {k: v for k, v in lengths.items() if v is not None},
    }


LENGTHS = {statistic.name: {"max": max, "min": min, "sum": sum}[statistic.merge] for statistic in COMPUTED}
