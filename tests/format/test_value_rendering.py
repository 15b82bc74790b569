from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metastore.errors import InvalidArgument
from metastore.format.documents import from_document, to_document
from metastore.format.spark_text import parse_spark_text as typed_text
from metastore.format.table_column import Column, decimal_type, encoding_of
from metastore.format.value_encoding import to_stored_value
from metastore.format.value_rendering import (
    cut_lower,
    cut_upper,
    decimal_from_bytes,
    decimal_to_bytes,
    render_value,
    to_python_value,
)

UTC = dt.timezone.utc


def column(kind):
    return Column(key="1", path=("c",), type=kind, encoding=encoding_of(kind))


@given(
    st.binary(max_size=80)
    | st.binary(max_size=20).map(lambda b: b + b"\xff" * 64)
    | st.text(max_size=40).map(str.encode)
)
@example(b"\xff" * 64)
@example(b"\xff" * 65)
@example(b"a" + b"\xff" * 64)
@example("😀".encode() * 17)
@example(b"x" * 63 + "é".encode())
def test_cut_bounds_are_bounds(value):
    lower, lower_exact = cut_lower(value)
    upper, upper_exact = cut_upper(value)
    assert lower <= value
    assert upper is None or value <= upper
    assert len(lower) <= 64
    assert upper is None or len(upper) <= 64
    assert (lower_exact, upper_exact) == (lower == value, upper == value)


@given(st.binary(min_size=65, max_size=80), st.binary(max_size=80))
def test_cut_upper_bounds_bound_all_that_begin_alike(value, other):
    upper, _ = cut_upper(value)
    assert upper is None or value[:64] + other < upper


def test_there_is_no_upper_bound_of_ff():
    assert cut_upper(b"\xff" * 65) == (None, False)
    assert cut_upper(b"\xff" * 64) == (b"\xff" * 64, True)
    assert cut_upper(b"ab" + b"\xff" * 63) == (b"ac", False)


@given(st.integers(-(10**38) + 1, 10**38 - 1))
@example(10**38 - 1)
@example(-(10**38) + 1)
@example(0)
@example(-1)
def test_wide_decimals(unscaled):
    stored = decimal_to_bytes(unscaled)
    assert len(stored) == 16
    assert decimal_from_bytes(stored) == unscaled


def test_decimals_that_do_not_fit():
    with pytest.raises(OverflowError):
        decimal_to_bytes(2**127)


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [
        *(
            (k, "long")
            for k in ("boolean", "tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz")
        ),
        *((k, "long") for k in ("decimal(18,18)", "decimal(1,0)", "interval year", "interval day to second")),
        *((k, "double") for k in ("float", "double")),
        *(
            (k, "binary")
            for k in ("string", "char(3)", "varchar(9)", "string collate UNICODE_CI", "decimal(19,0)", "binary")
        ),
        *(
            (k, None)
            for k in ("array<int>", "map<string,int>", "struct<a:int>", "variant", "void", "interval", "time(6)")
        ),
    ],
)
def test_encodings(kind, encoding):
    assert encoding_of(kind) == encoding


def test_decimal_types():
    assert decimal_type("decimal(38,10)") == (38, 10)
    assert decimal_type("decimal(38,10)x") is None


@pytest.mark.parametrize(
    ("kind", "stored", "value"),
    [
        ("boolean", 1, True),
        ("int", -5, -5),
        ("bigint", -(2**63), -(2**63)),
        ("double", float("-inf"), float("-inf")),
        ("date", -719162, dt.date(1, 1, 1)),
        ("date", 2932896, dt.date(9999, 12, 31)),
        ("date", 2932897, np.datetime64("10000-01-01")),
        ("timestamp", 1, dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
        ("timestamp_ntz", -1, dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),  # noqa: DTZ001 - it has none
        ("timestamp", 2**63 - 1, np.datetime64(2**63 - 1, "us")),
        ("timestamp", -(2**63), -(2**63)),
        ("interval year to month", -14, -14),
        ("interval day to second", 90_000_000_000, dt.timedelta(days=1, hours=1)),
        ("decimal(10,2)", -1250, Decimal("-12.50")),
        ("decimal(38,0)", decimal_to_bytes(-(10**38) + 1), Decimal(-(10**38) + 1)),
        ("string", "ä€😀".encode(), "ä€😀"),
        ("string", b"\xff", "�"),
        ("binary", b"\x00\xff", b"\x00\xff"),
    ],
)
def test_typed(kind, stored, value):
    assert to_python_value(stored, column(kind)) == value
    assert type(to_python_value(stored, column(kind))) is type(value)
    assert to_python_value(None, column(kind)) is None


@pytest.mark.parametrize(
    ("kind", "stored", "text"),
    [
        ("double", float("nan"), "NaN"),
        ("double", -0.0, "-0.0"),
        ("double", 1e10, "1.0E10"),
        ("double", 1e-5, "1.0E-5"),
        ("double", 12345678.9, "1.23456789E7"),
        ("float", 0.10000000149011612, "0.1"),
        ("float", 16777216.0, "1.6777216E7"),
        ("date", 2932897, "+10000-01-01"),
        ("date", -719529, "-0001-12-31"),
        ("timestamp", 1_600_000_000_123_400, "2020-09-13 12:26:40.1234"),
        ("timestamp_ntz", 0, "1970-01-01 00:00:00"),
        ("decimal(38,10)", decimal_to_bytes(1), "0.0000000001"),
        ("decimal(18,0)", 10**17, "1" + "0" * 17),
        ("boolean", 0, "false"),
        ("interval day to second", -1, "INTERVAL '-0 00:00:00.000001' DAY TO SECOND"),
    ],
)
def test_render(kind, stored, text):
    assert render_value(stored, column(kind)) == text
    assert render_value(None, column(kind)) is None


BINARY = json.loads((Path(__file__).parents[1] / "cases/binary_values.json").read_text("utf-8"))
"""Binary values and how people see them, the same in the shim."""


@pytest.mark.parametrize("case", [*BINARY["rendered"], *BINARY["cut"]])
def test_binary_values_are_rendered_as_sql_writes_them(case):
    exact = case in BINARY["rendered"]
    assert render_value(bytes.fromhex(case["hex"]), column("binary"), exact=exact) == case["text"]


@pytest.mark.parametrize("case", BINARY["parsed"])
def test_texts_that_stand_for_binary_values(case):
    expected = case["text"] if case["hex"] is None else bytes.fromhex(case["hex"])
    assert typed_text(case["text"], "binary") == expected
    stored = to_stored_value(case["text"], column("binary"))
    assert stored == (case["text"].encode() if case["hex"] is None else expected)
    assert to_stored_value(case["text"], column("string")) == case["text"].encode()


def test_zones_are_of_timestamps_alone():
    assert render_value(0, column("timestamp"), zone="Asia/Tokyo") == "1970-01-01 09:00:00"
    assert render_value(0, column("timestamp_ntz"), zone="Asia/Tokyo") == "1970-01-01 00:00:00"


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_cut_bounds_end_in_an_ellipsis_between_characters(width):
    character = {1: "a", 2: "é", 3: "€", 4: "😀"}[width]
    for shift in range(4):
        lower, _ = cut_lower(("x" * shift + character * 70).encode())
        assert (
            render_value(lower, column("string"), exact=False)
            == "x" * shift + character * ((64 - shift) // width) + "…"
        )


def test_names():
    assert Column(key="1", path=("a", "b"), type="int", encoding="long").name == "a.b"
    assert Column(key="1", path=("a.b", "c`d", ""), type="int", encoding="long").name == "`a.b`.`c``d`.``"


@pytest.mark.parametrize(
    "change",
    [{"key": 1}, {"path": []}, {"path": "a"}, {"path": [1]}, {"type": None}, {"encoding": "text"}, {"collation": 1}],
)
def test_columns_that_are_none(change):
    body = to_document(column("int")) | change
    with pytest.raises(TypeError):
        from_document(Column, body)


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("+02:00", "02:00"),
        ("+2:00", "02:00"),
        ("-0130", "22:30"),
        ("GMT+1", "01:00"),
        ("UTC+3", "03:00"),
        ("Z", "00:00"),
        ("JST", "09:00"),
    ],
)
def test_zones_as_spark_spells_them(zone, text):
    rendered = render_value(0, column("timestamp"), zone=zone)
    assert rendered[11:16] == text
    assert typed_text(rendered, "timestamp", zone).timestamp() == 0


@pytest.mark.parametrize("zone", ["Nowhere", "", "../x", "Europe", "+19:00", "+02:60", "UTC+"])
def test_zones_that_are_none(zone):
    with pytest.raises(InvalidArgument, match="zone"):
        render_value(0, column("timestamp"), zone=zone)
