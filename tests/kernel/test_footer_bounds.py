"""Bounds from footers: right where they are given, absent where footers cannot be trusted."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernel.samples import columns, file_column, table
from metastore.kernel.column_statistics import ColumnStatistics
from metastore.kernel.footer_bounds import analyze_footer
from metastore.kernel.parquet_file import analyze_parquet

EXACT = ("boolean", "tinyint", "smallint", "int", "bigint", "decimal", "date", "timestamp")


@pytest.mark.parametrize("options", [{}, {"row_group_size": 100}, {"store_decimal_as_integer": True}])
def test_a_footer_agrees_with_the_data(tmp_path, options):
    path = str(tmp_path / "f.parquet")
    pq.write_table(table(1000), path, **options)
    footer, data = (analyze(path, columns()).columns for analyze in (analyze_footer, analyze_parquet))
    for requested, said, true in zip(columns(), footer, data, strict=True):
        assert (said.rows, said.compressed_bytes) == (1000, true.compressed_bytes)
        assert (said.distinct, said.percentiles, said.theta, said.mean) == (None, None, None, None)
        if requested.column.encoding == "double":
            assert (said.lo, said.hi, said.nans) == (None, None, None)
            continue
        assert (said.nulls, said.nans) == (true.nulls, 0)
        if requested.column.type.startswith(EXACT):
            assert (said.lo, said.hi, said.lo_exact, said.hi_exact) == (true.lo, true.hi, true.lo_exact, true.hi_exact)
        elif said.lo is not None:
            assert said.lo <= true.lo
            assert said.hi is None or said.hi >= true.hi or said.hi[:64] == true.hi[:64]
            assert (said.lo_exact, said.hi_exact) == (False, False)


def test_statistics_that_were_not_written_are_unknown(tmp_path):
    path = str(tmp_path / "f.parquet")
    pq.write_table(pa.table({"c": [1, 2, None]}), path, write_statistics=False)
    statistics = analyze_footer(path, [file_column("bigint")]).columns[0]
    assert (statistics.rows, statistics.nulls, statistics.lo, statistics.hi) == (3, None, None, None)


def test_one_row_group_without_statistics_makes_all_unknown(tmp_path):
    path = str(tmp_path / "f.parquet")
    both = pa.table({"c": pa.array([1, 2]), "d": pa.array([None, 3])})
    pq.write_table(both, path, write_statistics=["d"], row_group_size=1)
    statistics = analyze_footer(path, [file_column("bigint", "c"), file_column("bigint", "d")]).columns
    assert (statistics[0].lo, statistics[0].nulls) == (None, None)
    assert (statistics[1].lo, statistics[1].hi, statistics[1].nulls) == (3, 3, 1)


def test_long_strings_are_cut_to_bounds(tmp_path):
    path = str(tmp_path / "f.parquet")
    pq.write_table(pa.table({"c": ["a" * 100, "b" * 100]}), path)
    statistics = analyze_footer(path, [file_column("string")]).columns[0]
    assert (statistics.lo, statistics.hi) == (b"a" * 64, b"b" * 63 + b"c")


@pytest.mark.parametrize(
    ("values", "spark_type"),
    [
        (pa.array([1], pa.uint32()), "bigint"),
        (pa.array([1], pa.int64()), "int"),
        (pa.array([1.5]), "double"),
        (pa.array([1], pa.timestamp("us")), "timestamp"),
    ],
)
def test_columns_that_footers_do_not_describe_soundly_have_no_bounds(tmp_path, values, spark_type):
    path = str(tmp_path / "f.parquet")
    pq.write_table(pa.table({"c": values}), path)
    statistics = analyze_footer(path, [file_column(spark_type)]).columns[0]
    assert (statistics.rows, statistics.lo, statistics.hi, statistics.nulls) == (1, None, None, None)


def test_millis_become_micros(tmp_path):
    path = str(tmp_path / "f.parquet")
    pq.write_table(pa.table({"c": pa.array([-5, 7], pa.timestamp("ms", "UTC"))}), path)
    statistics = analyze_footer(path, [file_column("timestamp")]).columns[0]
    assert (statistics.lo, statistics.hi) == (-5000, 7000)


@pytest.mark.parametrize(
    ("lo", "hi", "nulls"), [(9, 1, 0), (1, 9, 4), (1, 9, 99), (1, 9, -1)], ids=["order", "all", "many", "less"]
)
def test_footers_that_contradict_themselves_are_not_believed(lo, hi, nulls):
    from metastore.kernel.footer_bounds import (  # noqa: PLC0415 - spares every other use its time
        _add_bounds,
        _RowGroup,
    )
    from metastore.kernel.parquet_schema import ParquetField  # noqa: PLC0415

    class Said:
        has_min_max = has_null_count = True
        min_raw, max_raw, null_count = lo, hi, nulls

    group, field = _RowGroup.of(4, Said), ParquetField(("c",), None, pa.int64(), 0, 1)
    counts = ColumnStatistics(rows=4, encoding="long")
    believed = group.is_possible and _add_bounds(counts, [group], file_column("bigint").column, field) != counts
    assert not believed
