"""Delta tables whose files Delta itself has no statistics of: only ours can skip any."""

from __future__ import annotations

import itertools

import pytest

from lakes import SPARK

_NUMBERS = itertools.count()
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.dataSkippingNumIndexedCols": "0",
    "delta.enableDeletionVectors": "true",
    **({} if SPARK == "3.5" else {"delta.enableTypeWidening": "true"}),
}
COLUMNS = "id BIGINT, v INT, s STRING, x DOUBLE, day DATE, st STRUCT<a: INT, b: STRING>"
ROW = (
    "id, CAST(id % 7 AS INT) AS v, concat('s', lpad(CAST(id AS STRING), 5, '0')) AS s, id / 4 AS x,"
    " date_add(DATE '2024-01-01', CAST(id DIV 100 AS INT)) AS day,"
    " named_struct('a', CAST(id AS INT), 'b', CAST(id AS STRING)) AS st"
)


@pytest.fixture
def table(spark):
    """The name of a table that is dropped afterwards."""
    name = f"delta_{next(_NUMBERS)}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def filled(spark, table):
    """Four data files of a hundred rows each, sorted by `id`, `s`, `x`, `day` and the struct."""
    create(spark, table)
    append(spark, table, 0, 400, 4)
    return table


def create(spark, table: str, columns: str = COLUMNS, partitioned: str = "", **properties: str) -> None:
    texts = ", ".join(f"'{key}' = '{value}'" for key, value in {**PROPERTIES, **properties}.items())
    spark.sql(f"CREATE TABLE {table} ({columns}) USING delta {partitioned} TBLPROPERTIES ({texts})")


def append(spark, table: str, start: int, end: int, files: int, row: str = ROW) -> None:
    for number in range(files):
        first, last = (start + (end - start) * number_of_file // files for number_of_file in (number, number + 1))
        spark.sql(f"INSERT INTO {table} BY NAME SELECT {row} FROM range({first}, {last}, 1, 1)")


def location(spark, table: str) -> str:
    return str(spark.sql(f"DESCRIBE DETAIL {table}").first().location)
