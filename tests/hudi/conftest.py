"""Hudi tables, on the Spark for which Hudi's jar is there: Spark 3.5."""

from __future__ import annotations

import itertools

import pytest

from lakes import FORMATS

collect_ignore_glob = [] if "hudi" in FORMATS else ["test_*.py"]

_NUMBERS = itertools.count()
COLUMNS = "id BIGINT, v INT, s STRING, x DOUBLE, day DATE, st STRUCT<a: INT, b: STRING>, ts BIGINT"
ROW = (
    "id, CAST(id % 7 AS INT) AS v, concat('s', lpad(CAST(id AS STRING), 5, '0')) AS s, id / 4 AS x,"
    " date_add(DATE '2024-01-01', CAST(id DIV 100 AS INT)) AS day,"
    " named_struct('a', CAST(id AS INT), 'b', CAST(id AS STRING)) AS st, id AS ts"
)


@pytest.fixture
def table(spark):
    """The name of a table that is dropped afterwards."""
    name = f"hudi_{next(_NUMBERS)}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture(params=["cow", "mor"])
def filled(request, spark, table):
    """Four data files of a hundred rows each, sorted by `id`, `s`, `x`, `day` and the struct."""
    create(spark, table, kind=request.param)
    append(spark, table, 0, 400, 4)
    return table


def create(spark, table: str, columns: str = COLUMNS, partitioned: str = "", kind: str = "cow", **properties) -> None:
    table_properties = {"type": kind, "primaryKey": "id", "preCombineField": "ts", **properties}
    texts = ", ".join(f"'{key}' = '{value}'" for key, value in table_properties.items())
    spark.sql(f"CREATE TABLE {table} ({columns}) USING hudi {partitioned} TBLPROPERTIES ({texts})")


def append(spark, table: str, start: int, end: int, files: int, row: str = ROW) -> None:
    """Appends rows with the numbers from `start` to below `end`, evenly in so many files."""
    spark.sql(f"INSERT INTO {table} SELECT {row} FROM range({start}, {end}, 1, {files})")


def location(spark, table: str) -> str:
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").where("col_name = 'Location'").collect()
    return str(rows[0].data_type)


def write(path: str, rows, **options) -> None:
    """Appends rows with the key `id` to the table at a place, one data file a partition."""
    write_options = {
        "hoodie.table.name": "written",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        **options,
    }
    rows.write.format("hudi").options(**write_options).mode("append").save(path)
