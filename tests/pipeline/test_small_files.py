"""Small data files: where all values of a column are listed no sketch is stored, and the table counts all the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metastore
from parquet.conftest import settle

pytestmark = pytest.mark.spark

ROWS = 1_000
FEW = 300
MANY = 100_000
KINDS = {
    "long": lambda numbers: pa.array(numbers * 1_009),
    "int": lambda numbers: pa.array(numbers.astype(np.int32)),
    "day": lambda numbers: pa.array(numbers.astype(np.int32), pa.date32()),
    "price": lambda numbers: pa.array(numbers).cast(pa.decimal128(19, 0)),
    "text": lambda numbers: pa.array([f"t{number}" for number in numbers.tolist()]),
}


def write(path, numbers):
    pq.write_table(pa.table({name: kind(numbers) for name, kind in KINDS.items()}), path)


@pytest.fixture
def folder(tmp_path):
    """Two files of few values, all of which are listed, and one of many."""
    random = np.random.default_rng(7)
    folder = tmp_path / "small"
    folder.mkdir()
    for name, first in (("few", 0), ("some", FEW // 2)):
        write(folder / f"{name}.parquet", first + random.integers(0, FEW, ROWS))
    write(folder / "many.parquet", random.permutation(MANY)[: MANY // 20])
    settle(folder)
    return folder


def count_distinct(folder):
    table = pq.read_table(folder)
    return {name: len(table[name].unique()) for name in KINDS}


def sketched(folder):
    """How many columns of how many files have a sketch."""
    stored = [pq.read_table(path) for path in (folder / "_metastore" / "objects").glob("sketches-*")]
    return sum(row["theta"] is not None or row["registers"] is not None for rows in stored for row in rows.to_pylist())


def test_lists_stand_in_for_sketches(spark, folder):
    metastore.analyze(spark, f"parquet.`{folder}`", progress=False)
    assert len(KINDS) <= sketched(folder) < 3 * len(KINDS)
    answer = metastore.open(str(folder)).summary()
    for name, distinct in count_distinct(folder).items():
        row = answer.column(name)
        assert row["distinct_error"] <= 0.05
        assert abs(row["approx_unique"] / distinct - 1) <= 3 * row["distinct_error"]
