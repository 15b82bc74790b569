"""Texts of partition values in a table's metadata, and the values that they stand for."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from metastore import jvm_session
from metastore.adapters.shim_facts import parse_stored_value
from metastore.format.table_column import Column, encoding_of

pytestmark = pytest.mark.spark


def read(spark, kind: str, text: str | None):
    parsed = jvm_session.find_shim_package(spark).tables.StoredText.parse(text, java_type(spark, kind))
    if parsed.isEmpty():
        return "unknown"
    stored = parsed.get()
    return parse_stored_value(
        None if stored.isEmpty() else stored.get(), Column(key="k", path=("p",), type=kind, encoding=encoding_of(kind))
    )


def java_type(spark, kind: str):
    return spark._jvm.org.apache.spark.sql.types.DataType.fromDDL(kind)


@pytest.mark.parametrize(
    ("kind", "text", "stored"),
    [
        ("int", "-7", -7),
        ("int", "x1", "unknown"),
        ("int", "1.5", "unknown"),
        ("boolean", "true", 1),
        ("decimal(5,2)", "1.50", 150),
        ("decimal(5,2)", "1.505", "unknown"),
        ("decimal(5,2)", "1000", "unknown"),
        ("decimal(20,2)", "-1.5", (-150).to_bytes(16, "big", signed=True)),
        ("date", "0001-01-01", -719162),
        ("double", "-0.0", 0.0),
        ("double", "Infinity", float("inf")),
        ("float", "0.1", 0.10000000149011612),
        ("string", "a/b c%", b"a/b c%"),
        ("string", "", None),
        ("timestamp", "2024-02-29 01:02:03", "unknown"),
        ("timestamp", "nonsense", "unknown"),
        ("timestamp", None, None),
        ("binary", "abc", "unknown"),
    ],
)
def test_texts(spark, kind, text, stored):
    assert read(spark, kind, text) == stored


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("DATE '1969-12-31'", dt.date(1969, 12, 31)),
        ("CAST(1.5 AS DECIMAL(30, 3))", Decimal("1.500")),
        ("CAST('ž' AS BINARY)", "ž".encode()),
        ("TIMESTAMP '1969-12-31 23:59:59.999999Z'", dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.timezone.utc)),
        ("X'00ff'", b"\x00\xff"),
        ("CAST('NaN' AS FLOAT)", float("nan")),
        ("false", False),
    ],
)
def test_values(spark, sql, value):
    """A value of Catalyst's passes through its text to what statistics hold of it."""
    from metastore.format.value_encoding import to_stored_value  # noqa: PLC0415 - of this test alone

    execution = spark.sql(f"SELECT {sql}")._jdf.queryExecution()
    kind = execution.analyzed().schema().head().dataType()
    column = Column(key="k", path=("p",), type=kind.catalogString(), encoding=encoding_of(kind.catalogString()))
    read_value = execution.toRdd().first().get(0, kind)
    stored = jvm_session.find_shim_package(spark).tables.StoredText.render(read_value, kind).get()
    assert repr(parse_stored_value(stored, column)) == repr(to_stored_value(value, column))
