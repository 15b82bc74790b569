"""Columns that a file holds in another type than a table whose readers cast."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metastore.adapters import refusals
from metastore.format.table_column import Column, encoding_of
from metastore.kernel.parquet_file import analyze_parquet, read_column_values
from metastore.kernel.parquet_schema import FileColumn, UnsupportedDataFile

NAN = float("nan")


def decimals(precision: int, scale: int) -> pa.Array:
    return pa.array([Decimal(3), Decimal(5)], pa.decimal128(precision, scale))


def column(kind: str, *, casts: bool = True) -> FileColumn:
    return FileColumn.of(Column(key='["c"]', path=("c",), type=kind, encoding=encoding_of(kind), casts=casts))


@pytest.fixture
def described(tmp_path):
    def of(values: pa.Array, kind: str):
        path = str(tmp_path / "file.parquet")
        pq.write_table(pa.table({"c": values}), path)
        return analyze_parquet(path, [column(kind)]).columns[0], path

    return of


@pytest.mark.parametrize(
    ("values", "kind", "as_if"),
    [
        (pa.array([3, None, -1], pa.int32()), "bigint", pa.array([3, None, -1], pa.int64())),
        (pa.array([3, None, -1], pa.int32()), "double", pa.array([3.0, None, -1.0])),
        (pa.array([2**53 + 1, 5], pa.int64()), "double", pa.array([2.0**53, 5.0])),
        (pa.array([2**24 + 1, 2**24 + 3], pa.int32()), "float", pa.array([2.0**24, 2.0**24 + 4], pa.float32())),
        (pa.array([3, None, -10], pa.int64()), "string", pa.array(["3", None, "-10"])),
        (decimals(20, 2), "decimal(24,4)", decimals(24, 4)),
        (pa.array([1, 2]), "bigint", pa.array([1, 2])),
    ],
    ids=str,
)
def test_what_follows_is_described_as_if_it_were_held(described, values, kind, as_if):
    statistics, path = described(values, kind)
    (read_values,) = read_column_values(path, [column(kind)], 1 << 20)[0]
    assert read_values.to_pylist() == as_if.to_pylist()
    expected, _ = described(as_if, kind)
    for name in ("rows", "nulls", "nans", "lo", "hi", "lo_exact", "hi_exact", "distinct", "mean", "theta", "avg_len"):
        assert getattr(statistics, name) == getattr(expected, name), name
    assert statistics.values.values.to_pylist() == expected.values.values.to_pylist()
    assert statistics.cast_type is None


def test_bounds_of_floats_hold_the_doubles_of_their_texts(described):
    floats = pa.array([0.1, 1.3, None, NAN], pa.float32())
    statistics, path = described(floats, "double")
    assert (statistics.rows, statistics.nulls, statistics.nans, statistics.cast_type) == (
        4,
        1,
        1,
        ("float", refusals.ONLY_BOUNDS),
    )
    assert statistics.lo < 0.1 < np.float32(0.1).item()
    assert np.float32(1.3).item() < 1.3 < statistics.hi
    assert (statistics.lo_exact, statistics.hi_exact) == (False, False)
    assert (statistics.distinct, statistics.theta, statistics.values, statistics.bloom) == (None, None, None, None)
    with pytest.raises(UnsupportedDataFile, match="cast"):
        read_column_values(path, [column("double")], 1 << 20)
    without_casts = analyze_parquet(path, [column("double", casts=False)]).columns[0]
    assert (without_casts.lo, without_casts.distinct) == (np.float32(0.1).item(), 3)


@pytest.mark.parametrize("values", [[], [None], [NAN]])
def test_floats_without_bounds(described, values):
    statistics, _ = described(pa.array(values, pa.float32()), "double")
    assert (statistics.rows, statistics.nulls, statistics.lo, statistics.hi) == (
        len(values),
        values.count(None),
        None,
        None,
    )


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([0.5], pa.float32()), "string"),
        (pa.array([0.5]), "float"),
        (pa.array([1], pa.int64()), "int"),
        (pa.array(["1"]), "date"),
        (decimals(20, 2), "decimal(20,4)"),
    ],
    ids=str,
)
def test_of_all_else_nothing_is_known(described, values, kind):
    statistics, _ = described(values, kind)
    assert (statistics.rows, statistics.nulls, statistics.lo, statistics.distinct) == (len(values), None, None, None)
    assert statistics.cast_type[1] == refusals.NOTHING
