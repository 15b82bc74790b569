"""Tables whose files Iceberg itself cannot prune, so that every file not read is our doing."""

from __future__ import annotations

import itertools

import pytest

from planner import written

_names = itertools.count()
NO_METRICS = "'write.metadata.metrics.default' = 'none'"


@pytest.fixture
def new_table(spark):
    """Creates an empty Iceberg table without column metrics: columns, further properties, partitioning."""
    created = []

    def create(columns: str, *properties: str, partitioned: str = "") -> str:
        name = f"ice.db.planner_{next(_names)}"
        table_properties = ", ".join([NO_METRICS, *properties])
        spark.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {partitioned} TBLPROPERTIES ({table_properties})")
        created.append(name)
        return name

    yield create
    for name in created:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def four_files(spark, new_table):
    """400 rows in four files, `id` ascending from file to file; nothing analyzed yet."""
    name = new_table("id bigint, v int, s string, x double, d date, n decimal(12,2), st struct<a: int, b: string>")
    append(spark, name, 0, 400, 4)
    return name


@pytest.fixture
def analyzed(spark, four_files):
    """The same table with true statistics."""
    written.describe_iceberg_table(spark, four_files).write("1")
    return four_files


def append(spark, table: str, start: int, end: int, files: int) -> None:
    """Appends rows, each part as one file."""
    step = (end - start) // files
    for low in range(start, end, step):
        spark.range(low, low + step).selectExpr(
            "id", "cast(id % 10 as int) v", "concat('x', lpad(id, 4, '0')) s", "cast(id as double) / 2 x",
            "date_add(date'2024-01-01', cast(id as int)) d", "cast(id as decimal(12,2)) n",
            "named_struct('a', cast(id as int), 'b', concat('y', id)) st",
        ).coalesce(1).writeTo(table).append()  # fmt: skip
