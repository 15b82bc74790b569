"""Iceberg's metadata read without Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from metastore.adapters.iceberg import _defaults as defaults
from metastore.adapters.iceberg_partitions import Partitions
from metastore.adapters.iceberg_schema import describe_leaves, walk_leaves
from metastore.adapters.table_facts import DataFile
from metastore.format.manifest import FOOTER, FULL
from metastore.format.table_column import Column
from metastore.pipeline.block_task import BlockTask, analyze_file

ID, DAY = Column("1", ("id",), "bigint", "long"), Column("3", ("day",), "int", "long")
SPECS = {
    0: [{"field-id": 1000, "source-id": 2, "name": "gone", "transform": "identity"}],
    1: [{"field-id": 1001, "source-id": 3, "name": "day", "transform": "identity"}],
}


def listed(*values):
    named = {f"value_{i}": pa.array([value], pa.int32()) for i, value in enumerate(values)}
    return pa.table({**named, **{f"text_{i}": [str(value)] for i, value in enumerate(values)}})


def test_fields_of_dropped_columns_are_not_listed():
    partitions = Partitions(SPECS, [ID, DAY], listed(7), 1)
    assert (partitions.texts(0, 1), partitions.constants(0, 1)) == ({"day": "7"}, {"3": 7})
    assert (partitions.texts(0, 0), partitions.constants(0, 0)) == ({}, {})
    assert partitions.unknown(1) == frozenset()


def test_a_source_inside_a_struct_is_in_the_schema():
    nested = Column("3", ("s", "day"), "int", "long")
    assert Partitions(SPECS, [ID, nested], listed(7), 1).texts(0, 1) == {"day": "7"}


def test_values_under_unexpected_fields_are_unknown(tmp_path):
    partitions = Partitions(SPECS, [ID, DAY], listed(7, 8, 9), 3)
    assert (partitions.texts(0, 1), partitions.constants(0, 1), partitions.unknown(1)) == ({}, {}, {"3"})
    file = DataFile(str(tmp_path / "a.parquet"), 1, 5, "parquet", unknown=partitions.unknown(1))
    task = BlockTask(FULL, (DAY,), (file,), {}, absent_is_null=True)
    [(_, found)] = analyze_file(task, file, 1 << 20)
    assert (found.rows, found.nulls, found.lo) == (5, None, None)


def test_a_default_of_a_column_with_counts_only_is_not_null(tmp_path):
    fields = [
        {"id": 1, "name": "id", "type": "long"},
        {"id": 4, "name": "at", "type": "time", "initial-default": "10:00:00"},
    ]
    found = tuple(walk_leaves({"fields": fields}))
    described, _ = describe_leaves(found)
    path = str(tmp_path / "a.parquet")
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    pq.write_table(pa.Table.from_arrays([pa.array([1, 2])], schema=schema), path)
    file = DataFile(path, 1, 2, "parquet")
    for depth in (FULL, FOOTER):
        task = BlockTask(depth, described, (file,), defaults(found, described), absent_is_null=True)
        by_ordinal = dict(analyze_file(task, file, 1 << 20))
        assert (by_ordinal[1].rows, by_ordinal[1].nulls) == (2, 0)
