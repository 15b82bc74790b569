"""The rows that Delta's log counts in a data file, read without the bounds that stand beside them."""

from __future__ import annotations

import pytest

from metastore.jvm_session import find_shim_package

pytestmark = pytest.mark.spark

COUNTED = {
    '{"numRecords":5}': 5,
    '{"numRecords":5,"minValues":{"id":1': 5,
    '{"minValues":{"numRecords":7,"a":[1]},"nullCount":{},"numRecords":9223372036854775807}': 9223372036854775807,
    '{"minValues":{"numRecords":7}}': None,
    '{"numRecords":null}': None,
    '{"numRecords":"5"}': None,
    '{"numRecords":5.5}': None,
    "{}": None,
    "[]": None,
    "": None,
}


@pytest.mark.parametrize("text", COUNTED)
def test_rows_are_counted_by_the_first_field_of_that_name(spark, text):
    counted = find_shim_package(spark).tables.DeltaRowCount.parse(text)
    assert (counted.get() if counted.isDefined() else None) == COUNTED[text]


def test_statistics_that_are_not_there_count_nothing(spark):
    assert not find_shim_package(spark).tables.DeltaRowCount.parse(None).isDefined()
