"""The tree of partial merges tells what merging all files at once tells."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from metastore._analyze.kernel import ColumnKernel, reduce_column, summary_table
from metastore._analyze.tree import FAN_OUT, Tree
from metastore._format.columns import Column

NUMBER = Column("1", ("n",), "bigint", "long")
TEXT = Column("2", ("t",), "string", "binary")
DOUBLE = Column("3", ("d",), "double", "double")
COLUMNS = [NUMBER, TEXT, DOUBLE]


def statistics(random):
    rows = int(random.integers(0, 400))
    numbers = random.integers(0, 10_000, rows)
    chunks = [
        pa.array(numbers, pa.int64(), mask=numbers % 7 == 0),
        pa.array([f"t{n % 100:03}" for n in numbers], pa.string()),
        pa.array(np.where(numbers % 11 == 0, np.nan, numbers / 3)),
    ]
    found = []
    for column, chunk in zip(COLUMNS, chunks, strict=True):
        kernel = ColumnKernel(column)
        kernel.add(chunk)
        found.append(kernel.finish(rows))
    return found


def scratch(files):
    found = []
    for place, column in enumerate(COLUMNS):
        known = [one[place] for one in files.values()]
        rows = summary_table((0, i, one) for i, one in enumerate(known))
        found.append(reduce_column(column, rows, [one.theta for one in known]))
    return found


def assert_same(tree, files):
    for merged, whole in zip(tree.root(), scratch(files), strict=True):
        for name in ("rows", "nulls", "nans", "lo", "hi", "lo_exact", "sum_exact", "max_len", "theta", "distinct"):
            assert getattr(merged, name) == getattr(whole, name), name
        for name in ("sum", "mean", "m2", "avg_len"):
            assert getattr(merged, name) == pytest.approx(getattr(whole, name)), name


@pytest.mark.parametrize("count", [1, 2, 64, 65, 300])
def test_whatever_comes_and_goes(count):
    random = np.random.default_rng(count)
    files = {(f"f{i}", i): statistics(random) for i in range(count)}
    tree = Tree(COLUMNS, files)
    assert_same(tree, files)
    for step in range(30):
        if files and random.random() < 0.5:
            key = list(files)[random.integers(len(files))]
            tree.remove(key)
            del files[key]
        else:
            key = (f"new{step}", 1)
            files[key] = statistics(random)
            tree.add(key, files[key])
        if files and step % 10 == 9:
            assert_same(tree, files)


def test_percentiles_stay_near_in_rank():
    random = np.random.default_rng(3)
    files, values = {}, []
    for i in range(5 * FAN_OUT):
        numbers = np.sort((random.pareto(1.5, 500) * 1000 + i).astype(np.int64))
        kernel = ColumnKernel(NUMBER)
        kernel.add(pa.array(numbers))
        files[f"f{i}", 1] = [kernel.finish(500)]
        values.append(numbers)
    (found,) = Tree([NUMBER], files).root()
    ordered = np.sort(np.concatenate(values))
    for percent, value in enumerate(found.percentiles):
        low, high = np.searchsorted(ordered, [value, value + 1]) / len(ordered) * 100
        assert low - 1 <= percent <= high + 1, (percent, low, high)


def test_files_are_replaced_and_unknown_ones_refused():
    random = np.random.default_rng(5)
    first, second = statistics(random), statistics(random)
    tree = Tree(COLUMNS, {("a", 1): first})
    tree.add(("a", 1), second)
    assert_same(tree, {("a", 1): second})
    with pytest.raises(KeyError):
        tree.remove(("b", 1))
    tree.remove(("a", 1))
    assert tree.root() == []
