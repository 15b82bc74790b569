"""User-defined statistics of one column, called with what a kernel is handed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import metastore
from metastore.errors import DamagedObject, InvalidArgument
from metastore.format.extra_value import decode_value, encode_value
from metastore.format.table_column import Column, encoding_of
from metastore.kernel.column_kernel import ColumnKernel
from metastore.kernel.column_statistics import constant_statistics
from metastore.kernel.user_defined import TOO_LARGE, apply_to_constant

COUNT = metastore.statistic("number", merge=sum)(len)
NULLS = metastore.statistic("null_count_again", merge=sum)(lambda values: values.null_count)
KIND = metastore.statistic("kind")(lambda values: str(values.type))
MEDIAN = metastore.statistic("median")(lambda values: pc.quantile(values, 0.5)[0])


def column(kind):
    return Column(key="1", path=("c",), type=kind, encoding=encoding_of(kind))


def computed(kind, chunks, *statistics, budget=1 << 20):
    of = column(kind)
    kernel = ColumnKernel(of, budget, statistics=statistics)
    for chunk in chunks:
        kernel.add(chunk)
    return kernel.finish(sum(map(len, chunks)))


def values_of(statistics):
    return {name: decode_value(data).as_py() for name, data in statistics.extra.items()}


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("int", pa.array([1, None]), "int32"),
        ("string", pa.array(["a", None]), "string"),
        ("string", pa.array(["a", None]).dictionary_encode(), "string"),
        ("string", pa.array([b"a", None], pa.large_binary()), "string"),
        ("binary", pa.array([b"a", None], pa.large_binary()), "binary"),
        ("decimal(10,2)", pa.array([Decimal("1.25"), None]), "decimal128(10, 2)"),
        ("timestamp", pa.array([dt.datetime.now(dt.timezone.utc), None]), "timestamp[us, tz=UTC]"),
        ("date", pa.array([dt.date(2026, 1, 1), None]), "date32[day]"),
        ("double", pa.array([1.0, None], pa.float32()), "double"),
    ],
)
def test_functions_see_the_type_of_the_column(kind, values, expected):
    assert values_of(computed(kind, [values], KIND, NULLS)) == {"kind": expected, "null_count_again": 1}


def test_a_column_larger_than_the_budget_is_handed_over_in_parts():
    chunks = [pa.array(np.arange(10_000)) for _ in range(5)]
    statistics = computed("bigint", chunks, COUNT, MEDIAN, budget=1 << 20)
    assert values_of(statistics) == {"number": 50_000}
    assert statistics.failed == {"median": TOO_LARGE}
    assert statistics.distinct == 10_000
    assert values_of(computed("bigint", chunks, MEDIAN, budget=1 << 24)) == {"median": 4999.5}


def test_a_long_dictionary_is_not_decoded_at_once():
    sizes = []
    largest = metastore.statistic("largest", merge=max)(lambda values: sizes.append(values.nbytes) or values.nbytes)
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1_000, np.int32)), pa.array(["x" * 10_000]))
    statistics = computed("string", [words], largest, budget=12 << 20)
    assert max(sizes) < 2 << 20
    assert values_of(statistics)["largest"] == max(sizes)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda values: values.no_such_thing, "AttributeError: "),
        (lambda _: object(), "ValueError: a object is no value that can be kept"),
        (lambda _: "x" * 20_000, "ValueError: a value of 20"),
        (lambda _: exit(1), "SystemExit: 1"),  # noqa: PLR1722 - what a careless function may do
    ],
)
def test_a_failing_function_fails_alone(function, reason):
    bad = metastore.statistic("bad")(function)
    statistics = computed("int", [pa.array([1, 2])], bad, COUNT)
    assert values_of(statistics) == {"number": 2}
    assert statistics.failed["bad"].startswith(reason)
    assert statistics.hi == 2


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("date", 20454, dt.date(2026, 1, 1)),
        ("string", b"a", "a"),
        ("decimal(5,1)", 15, Decimal("1.5")),
        ("int", None, None),
    ],
)
def test_a_constant_is_handed_over_as_often_as_it_stands_in_the_file(kind, value, expected):
    first = metastore.statistic("first")(lambda values: values[0])
    of = column(kind)
    statistics = apply_to_constant(constant_statistics(of, value, 3_000_000), of, value, [COUNT, first])
    assert values_of(statistics) == {"number": 3_000_000, "first": expected}


def test_columns_with_counts_only_have_none():
    assert computed("array<int>", [pa.array([True, None])], COUNT).extra == {}


@pytest.mark.parametrize("name", ["Entropy", "a b", "", "1st", "x" * 64, "min", "exact", "lo_long"])
def test_names_are_those_of_columns(name):
    with pytest.raises(InvalidArgument):
        metastore.statistic(name)


def test_versions_are_positive_integers():
    with pytest.raises(InvalidArgument):
        metastore.statistic("a", version=0)


def compressed(text):
    sink, schema = pa.BufferOutputStream(), pa.schema([("value", pa.string())])
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(pa.record_batch([pa.array([text])], schema=schema))
    return sink.getvalue().to_pybytes()


def several(*values):
    sink, array = pa.BufferOutputStream(), pa.array(values)
    schema = pa.schema([("value", array.type)])
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch([array], schema=schema))
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 100, compressed("a" * 2_000_000), several(1, 2), several([None] * 1000), several({}), b"x" * 20_000],
)
def test_hostile_values_are_refused(data):
    with pytest.raises(DamagedObject):
        decode_value(data)


def test_flipped_bytes_are_refused_or_harmless():
    random = np.random.default_rng(7)
    good = encode_value({"a": 1, "b": [1.5, 2.5], "c": "text"})
    for _ in range(2_000):
        data = bytearray(good)
        data[random.integers(len(data))] = random.integers(256)
        try:
            decode_value(bytes(data))
        except DamagedObject:
            continue
