"""Sorted runs against Python's own sorting."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from metastore.format.table_column import Column, encoding_of
from metastore.format.value_rendering import decimal_to_bytes
from metastore.table_level.sorted_runs import (
    SortedRun,
    make_constant_run,
    merge_sorted_runs,
    run_from_stored,
    run_to_stored,
    sort_values,
)

RANDOM = random.Random(11)
WIDE = [Decimal(RANDOM.randrange(-(10**25), 10**25)) / 100 for _ in range(40)] + [Decimal("-0.01"), Decimal("2.56")]
CASES = {
    "bigint": ([RANDOM.randrange(-50, 50) for _ in range(200)] + [-(1 << 63), (1 << 63) - 1], pa.int64()),
    "boolean": ([True, False, None] * 9, pa.bool_()),
    "double": ([float("nan"), -0.0, 0.0, float("inf"), float("-inf"), 1e-300, None] * 3, pa.float64()),
    "decimal(30,2)": (WIDE * 2, pa.decimal128(30, 2)),
    "string": (["", "a", "é", "z\U0001f600", None, "a" * 3000, "\x00"] * 4, pa.string()),
    "binary": ([b"\xff", b"", b"\x00\x01", b"\x00", None] * 3, pa.binary()),
}


def column(kind):
    return Column(key="1", path=("c",), type=kind, encoding=encoding_of(kind))


def as_stored(value, of):
    if of.type.startswith("decimal"):
        return decimal_to_bytes(int(value.scaleb(2)))
    return value.encode() if isinstance(value, str) else int(value) if of.encoding == "long" else value


def expected(values, of):
    counted = Counter(value + 0.0 if isinstance(value, float) else value for value in values)
    comparable = [value for value in counted if value is not None and value == value]  # noqa: PLR0124 - NaN
    key = (lambda value: value.encode()) if of.type == "string" else None
    return [(as_stored(value, of), counted[value]) for value in sorted(comparable, key=key)]


def pairs(run):
    return list(zip(run_to_stored(run).to_pylist(), run.counts.tolist(), strict=True))


@pytest.mark.parametrize("kind", CASES)
def test_runs_hold_what_a_sort_gives(kind):
    values, arrow = CASES[kind]
    of, array = column(kind), pa.array(values, arrow)
    sorted_values = sort_values(array, of)
    assert pairs(sorted_values) == expected(values, of)
    halves = [sort_values(array.slice(0, 7), of), sort_values(array.slice(7), of), sort_values(array.slice(0, 0), of)]
    assert pairs(merge_sorted_runs(halves)) == pairs(sorted_values)
    assert pairs(SortedRun.from_bytes(merge_sorted_runs(halves).to_bytes())) == pairs(sorted_values)
    assert pairs(run_from_stored(run_to_stored(sorted_values), sorted_values.counts, of)) == pairs(sorted_values)


@pytest.mark.parametrize("kind", CASES)
def test_pieces_are_the_whole(kind):
    values, arrow = CASES[kind]
    sorted_values = sort_values(pa.array(values, arrow), column(kind))
    points = sorted_values.sample_values(4)
    assert points[-1] == sorted_values.values[-1].as_py()
    for edges in ([], points[:1], points[1:3], points):
        cut = sorted_values.split_at(edges)
        assert len(cut) == len(edges) + 1
        assert pairs(merge_sorted_runs(cut)) == pairs(sorted_values)
        for part, edge in zip(cut, edges, strict=False):
            assert not len(part) or part.values[-1].as_py() <= edge
    assert pairs(SortedRun.from_bytes(sorted_values.split_at(points[:1])[1].to_bytes())) == pairs(
        sorted_values.split_at(points[:1])[1]
    )


def test_dictionaries_are_read():
    assert pairs(sort_values(pa.array(["b", None, "a", "b"]).dictionary_encode(), column("string"))) == [
        (b"a", 1),
        (b"b", 2),
    ]


def test_constants():
    assert pairs(make_constant_run(b"x", 5, column("string"))) == [(b"x", 5)]
    assert pairs(make_constant_run(7, 5, column("int"))) == [(7, 5)]
    assert pairs(make_constant_run(float("nan"), 5, column("double"))) == []
    assert pairs(make_constant_run(decimal_to_bytes(-3), 5, column("decimal(30,2)"))) == [(decimal_to_bytes(-3), 5)]


def test_many_equal_values_are_one():
    run = merge_sorted_runs([sort_values(pa.array(np.zeros(1000, np.int64)), column("bigint")) for _ in range(5)])
    assert pairs(run) == [(0, 5000)]
