"""The data files that a PARTITION clause selects, by the type of the column."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pytest

from metastore.format.data_files import DataFile
from metastore.format.table_column import Column, encoding_of
from metastore.pipeline.partition_filter import is_in_partition

ZONE = "America/New_York"
TEN = datetime(2024, 1, 1, 10, tzinfo=timezone.utc)


def is_selected(kind, text, value, constant=None):
    column = None if kind is None else Column(key="7", path=("p",), type=kind, encoding=encoding_of(kind))
    constants = {} if constant is None else {"7": constant}
    return is_in_partition(
        DataFile(path="a", size=1, rows=1, format="parquet", partition={"p": text}, constants=constants),
        "p",
        value,
        column,
        ZONE,
    )


@pytest.mark.parametrize(
    ("kind", "text", "values", "other_values"),
    [
        ("string", "1", ["1"], ["01", "1.0", "1e0", 2, None, ""]),
        ("string", "sNaN", ["sNaN"], ["1", "nan", "NaN", 1]),
        ("string", None, [None, "__HIVE_DEFAULT_PARTITION__"], ["null", ""]),
        ("int", "7", [7, "7", "07", "7.0", Decimal(7)], [-7, "x", "sNaN", None]),
        ("decimal(5,2)", "1.50", [Decimal("1.5"), "1.5", 1.5], ["1.51", "Infinity"]),
        ("double", "NaN", ["NaN"], ["sNaN", "Infinity", 0]),
        ("boolean", "true", [True, "true", "TRUE", "yes", "1"], [False, "yes?", "n", None]),
        ("date", "2024-02-29", ["2024-02-29", date(2024, 2, 29), "2024-2-29", " 2024-02-29T7"], ["2024-03-01", "x"]),
        ("date", "2024-01-01", ["2024", "2024-1", "2024-1-1"], ["2024-2", "24", "2024-", "2024-13"]),
        ("timestamp", "2024-01-01T10:00:00.000000Z", ["2024-01-01 05:00:00", TEN], ["2024-01-01 10:00:00"]),
        ("timestamp", "2024-01-01 05:00:00", [TEN], ["2024-01-01 06:00:00"]),
        ("timestamp", "2024-01-01 05:00:00", ["2024-1-1 5:0", "2024-01-01T10:00:00Z"], ["2024-1-1 5", "2024-1-1 6:0"]),
        ("timestamp", "2024-01-01 00:00:00.500000", ["2024-1-1 0:0:0.50", "2024-01-01 05:00:00.5+00:00"], ["2024-1-1"]),
        ("timestamp_ntz", "2024-01-01 10:00:00", ["2024-01-01T10:00:00", "2024-1-1 10:0"], ["2024-01-01 05:00:00"]),
        ("timestamp_ntz", "2024-01-01 00:00:00", ["2024-1-1", "2024"], ["2024-1-2", "x"]),
        (None, "3", [3, "3", "03"], [4, "sNaN"]),
        (None, "2024-01-01", ["2024-01-01", date(2024, 1, 1)], ["2024-01-02"]),
    ],
)  # fmt: skip
def test_values_compare_as_those_of_the_column_do(kind, text, values, other_values):
    assert [value for value in values if not is_selected(kind, text, value)] == []
    assert [value for value in other_values if is_selected(kind, text, value)] == []


def test_an_instant_is_what_the_metadata_says_whatever_its_text():
    ten = int(TEN.timestamp()) * 1_000_000
    assert is_selected("timestamp", "the text of another zone", "2024-01-01 05:00:00", ten)
    assert not is_selected("timestamp", "2024-01-01 05:00:00", "2024-01-01 05:00:00", ten + 1)
