"""The data files that may contain a value, in SQL: as Python answers, and as counting answers."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

import metastore
from sql.conftest import analyzed_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TABLE = "ice.db.sql_locate"
COLUMNS = {
    "n": "CAST(id * 37 % 113 AS INT)",
    "s": "IF(id % 11 = 0, NULL, concat('v', id * 31 % 77))",
    "d": "CAST(id * 17 % 50 AS DECIMAL(30, 2))",
    "c": "CAST(id % 9 AS DECIMAL(5, 1))",
    "f": "IF(id < 100 AND id % 5 = 0, double('nan'), id * 3 % 7 / 2)",
    "t": "date_add(DATE'2024-01-01', CAST(id * 7 % 60 AS INT))",
    "st": "named_struct('a', id % 13)",
    "l": "array(id)",
}
ASKED = {
    "n": ["5", "112", "-1", "NULL", "5.0", "'5'"],
    "s": ["'v5'", "'nothing'", "NULL"],
    "d": ["7", "7.00", "-1", "'49'"],
    "c": ["1.0", "8", "100"],
    "f": ["0.5", "double('nan')", "0.3"],
    "t": ["DATE'2024-01-05'", "'2024-02-02'", "DATE'2030-01-01'", "NULL"],
    "st.a": ["3", "13"],
}
PYTHON = {"NULL": None, "double('nan')": math.nan}


@pytest.fixture(scope="module", autouse=True)
def location(spark: SparkSession) -> Iterator[str]:
    made = ", ".join(f"{sql} AS {name}" for name, sql in COLUMNS.items())
    with analyzed_table(spark, TABLE, f"SELECT {made} FROM range(0, 300, 1, 6)") as location:
        yield location


def located(spark, column, value, table=TABLE):
    rows = spark.sql(f"SELECT * FROM metastore.locate('{table}', '{column}', {value})").collect()
    return {row.path: (row.frequency, row.exact) for row in rows}


def python(text):
    if text in PYTHON:
        return PYTHON[text]
    if text.startswith("DATE"):
        return date.fromisoformat(text[5:-1])
    return text.strip("'") if text.startswith("'") else Decimal(text)


@pytest.mark.parametrize("column", ASKED)
def test_as_many_rows_as_there_are_and_as_python_says(spark, location, column):
    opened = metastore.open(location)
    for value in ASKED[column]:
        typed = f"CAST({value} AS DOUBLE)" if column == "f" else value
        matches = f"IF({column} <=> {typed}, 1, 0) = 1"  # which Iceberg does not understand: it would lose NaN
        counted = spark.sql(f"SELECT _file FROM {TABLE} WHERE {matches}").collect()
        truth = {path: (number, True) for path, number in Counter(row._file for row in counted).items()}
        assert located(spark, column, value) == truth, value
        if value != "0.3":
            by_path = {row["path"]: (row["frequency"], row["exact"]) for row in opened.locate(column, python(value))}
            assert by_path == truth, value


def test_files_that_were_not_analyzed_may_hold_anything(spark):
    copy = "ice.db.sql_locate_appended"
    spark.sql(f"CREATE TABLE {copy} USING iceberg AS SELECT n FROM {TABLE} WHERE n < 100")
    try:
        spark.sql(f"ANALYZE TABLE {copy} COMPUTE STATISTICS FOR ALL COLUMNS")
        located_before = located(spark, "n", "5", copy)
        assert located_before
        spark.sql(f"INSERT INTO {copy} VALUES (5)")
        located_after = located(spark, "n", "5", copy)
        (added,) = located_after.keys() - located_before.keys()
        assert located_after == {**located_before, added: (None, False)}
        assert located(spark, "n", "-1", copy) == {added: (None, False)}
        spark.sql(f"INSERT OVERWRITE {copy} VALUES (7)")
        (remaining_file,) = spark.sql(f"SELECT path FROM metastore.files('{copy}')").collect()
        assert located(spark, "n", "5", copy) == {remaining_file.path: (None, False)}
    finally:
        spark.sql(f"DROP TABLE {copy}")


def test_deleted_rows_make_it_inexact_and_columns_without_statistics_may_hold_anything(spark):
    copy = "ice.db.sql_locate_deleted"
    spark.sql(f"CREATE TABLE {copy} USING iceberg TBLPROPERTIES ('write.delete.mode' = 'merge-on-read') AS "
              f"SELECT n, s FROM {TABLE}")  # fmt: skip
    try:
        spark.sql(f"DELETE FROM {copy} WHERE s = 'v31'")
        spark.sql(f"ANALYZE TABLE {copy} COMPUTE STATISTICS FOR COLUMNS n")
        spark.sql(f"ANALYZE TABLE {copy} COMPUTE STATISTICS")
        rows = spark.sql(f"SELECT * FROM metastore.locate('{copy}', 'n', 5)").collect()
        files = spark.sql(f"SELECT path, deleted_rows FROM metastore.files('{copy}')").collect()
        touched = {row.path for row in files if row.deleted_rows}
        assert touched
        assert rows
        assert all(row.exact == (row.path not in touched) for row in rows)
        unknown = spark.sql(f"SELECT * FROM metastore.locate('{copy}', 's', 'v5')").collect()
        assert [(row.frequency, row.exact) for row in unknown] == [(None, False)] * len(files)
    finally:
        spark.sql(f"DROP TABLE {copy}")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("n", "'many'", "'many' is not of the type int"),
        ("n", "1.5", "1.5 is not of the type int"),
        ("n", "99999999999", "99999999999 is not of the type int"),
        ("c", "0.25", "0.25 is not of the type decimal"),
        ("t", "5", "5 is not of the type date"),
        ("l", "5", "only counts are kept"),
        ("no", "5", "has no column 'no'"),
    ],
)
def test_bad_questions(spark, column, value, message):
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - Spark is there by now

    with pytest.raises(AnalysisException, match=message):
        located(spark, column, value)
