"""The columns of a data file that get a bloom filter; a filter holds every value."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from metastore.format import sortable_values as stored_form
from metastore.format.bloom_filter import bloom_hashes, may_hold
from metastore.format.table_column import Column, encoding_of
from metastore.kernel.budget import fit_to_file_size
from metastore.kernel.column_kernel import ColumnKernel
from metastore.kernel.detail_limits import DetailLimits

DETAIL = DetailLimits(top=100, list_bytes=4_000)
MANY = 5_000


def column(kind):
    return Column(key="1", path=("v",), type=kind, encoding=encoding_of(kind))


def analyzed(array, kind, budget=64 << 20, pieces=1):
    kernel = ColumnKernel(column(kind), budget, DETAIL)
    for start in range(0, len(array), len(array) // pieces):
        kernel.add(array.slice(start, len(array) // pieces))
    return kernel.finish(len(array))


def texts(prefix, number=MANY):
    return pa.array([f"{prefix}{i}" for i in range(number)])


def stored_values(array, kind):
    if pa.types.is_string(array.type):
        return array.cast(pa.binary())
    return stored_form.sortable_to_arrow(stored_form.sortable_array(array, column(kind)), column(kind))


VALUES = {
    "int": (pa.array(range(MANY), pa.int32()), pa.array(range(MANY, 2 * MANY), pa.int32())),
    "double": (pa.array(np.arange(MANY) / 7), pa.array(-1 - np.arange(MANY) / 7)),
    "string": (texts("k"), texts("x")),
    "decimal(30,4)": tuple(
        pa.array([Decimal(n * sign) for n in range(1, MANY)], pa.decimal128(30, 4)) for sign in (1, -1)
    ),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize(("budget", "pieces"), [(64 << 20, 1), (64 << 20, 5), (1 << 18, 10)])
def test_a_filter_holds_every_value_and_few_others(kind, budget, pieces):
    members, absent = VALUES[kind]
    statistics = analyzed(members, kind, budget, pieces)
    assert statistics.frequencies != "complete"
    assert may_hold(bytes(statistics.bloom), bloom_hashes(stored_values(members, kind))).all()
    assert may_hold(bytes(statistics.bloom), bloom_hashes(stored_values(absent, kind))).mean() < 0.1


def test_widened_values_have_the_same_hash():
    narrow, wide = pa.array([1, -5], pa.int32()), pa.array([1, -5], pa.int64())
    assert (bloom_hashes(stored_values(narrow, "int")) == bloom_hashes(stored_values(wide, "bigint"))).all()
    narrow, wide = pa.array([0.1, -0.0], pa.float32()), pa.array([float(np.float32(0.1)), 0.0])
    assert (bloom_hashes(stored_values(narrow, "float")) == bloom_hashes(stored_values(wide, "double"))).all()


def test_nan_is_held_where_there_is_one():
    doubles = np.arange(MANY, dtype=np.float64)
    nan = bloom_hashes(pa.array([np.nan]))
    assert not may_hold(bytes(analyzed(pa.array(doubles), "double").bloom), nan).any()
    assert may_hold(bytes(analyzed(pa.array(np.append(doubles, np.nan)), "double").bloom), nan).all()


def test_few_values_need_no_filter():
    assert analyzed(pa.array([1, 2, 3] * 1_000), "bigint").bloom is None


def test_small_files_keep_the_small_filters():
    few, many = analyzed(texts("k", 1_500), "string"), analyzed(texts("k"), "string")
    assert all(statistics.frequencies != "complete" for statistics in (few, many))

    def kept_filters(size):
        return [
            statistics.bloom is not None for _, statistics in fit_to_file_size([(0, many), (1, few)], size, DETAIL.top)
        ]

    assert kept_filters(10_000) == [False, False]
    assert kept_filters(1 << 24) == [True, True]
    assert [False, True] in [kept_filters(size) for size in range(50_000, 800_000, 10_000)]


def in_order_and_not(rows):
    random = np.random.default_rng(rows)
    return analyzed(pa.array(np.arange(rows)), "bigint"), analyzed(
        pa.array(random.integers(0, 1 << 62, rows)), "bigint"
    )


@pytest.mark.parametrize("size", [25_000, 70_000, 1 << 24])
def test_small_files_keep_the_filter_of_keys_in_no_order_before_others(size):
    numbers, keys = in_order_and_not(2_000)
    assert numbers.frequencies != "complete"
    filters = [statistics.bloom for _, statistics in fit_to_file_size([(0, numbers), (1, keys)], size, DETAIL.top)]
    assert filters[1] is not None
    assert (filters[0] is not None) == (size > 50_000)
    assert sum(len(bloom) for bloom in filters if bloom) <= size / 10
    random = np.random.default_rng(2_000)
    assert may_hold(bytes(filters[1]), bloom_hashes(pa.array(random.integers(0, 1 << 62, 2_000)))).all()
    assert may_hold(bytes(filters[1]), bloom_hashes(pa.array(random.integers(-1 << 62, 0, 20_000)))).mean() < 0.12


def test_filters_that_were_made_shrink_too():
    members, absent = VALUES["string"]
    statistics = analyzed(members, "string", 1 << 18, 10)
    assert isinstance(statistics.bloom, bytes)
    half = fit_to_file_size([(0, statistics)], 10 * len(statistics.bloom) - 10, DETAIL.top)[0][1].bloom
    assert len(half) == len(statistics.bloom) // 2
    assert may_hold(half, bloom_hashes(stored_values(members, "string"))).all()
    assert may_hold(half, bloom_hashes(stored_values(absent, "string"))).mean() < 0.2
