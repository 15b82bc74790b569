"""Delta's column mapping: a data file's column keeps its meaning when columns are renamed, dropped and added again."""

from __future__ import annotations

import pytest

import metastore
from planner.plans import conf

pytestmark = pytest.mark.spark

COLUMNS = "id INT, a INT, e INT, f INT, x INT, y INT, p INT"
OLD = COLUMNS.replace(" INT", "").split(", ")
VALUES = ", ".join(f"CAST(id + {1000 * position} AS INT) AS {name}" for position, name in enumerate(OLD[:-1]))
RENAMED = ["RENAME COLUMN a TO c", "DROP COLUMNS (e, f)", "ADD COLUMNS (a INT, e INT, f STRING)"]
SWAPPED = [
    "RENAME COLUMN x TO z", "RENAME COLUMN y TO x", "RENAME COLUMN z TO y",
    "RENAME COLUMN p TO q", "ADD COLUMN p INT",
]  # fmt: skip
UPGRADE = (
    "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2',"
    " 'delta.minWriterVersion' = '5')"
)
HISTORIES = {
    "an analyzed table begins with it": ("none", [UPGRADE], RENAMED),
    "names are swapped": ("name", [], SWAPPED),
    "by ids": ("id", [], [*RENAMED, *SWAPPED]),
}
# What statistics of the column that had the name before would answer otherwise.
CONDITIONS = {
    "a": ["a IS NULL", "a = 1001"],
    "c": ["c IN (1001, 7)", "c IS NOT NULL"],
    "e": ["e IS NULL", "e < 2003"],
    "f": ["f IS NULL"],
    "x": ["x = 5001", "x < 4003"],
    "y": ["y = 4001", "y < 5003"],
    "p": ["p IS NULL", "p = 1"],
    "q": ["q = 1", "q IS NULL"],
}


def check(spark, table: str) -> None:
    """Compare conditions, aggregates, the summary and `locate` with what Spark answers without us."""
    columns = [column for column in spark.table(table).columns if column in CONDITIONS]
    conditions = [condition for column in columns for condition in CONDITIONS[column]]
    counts = " UNION ALL ".join(
        f"SELECT {number} AS number, count(*) AS matching FROM {table} WHERE {condition}"
        for number, condition in enumerate(conditions)
    )
    functions = [f"{name}({column})" for column in columns for name in ("count", "min", "max", "sum")]
    totals = f"SELECT count(*), {', '.join(functions)} FROM {table}"
    with conf(spark, spark__metastore__aggregates__enabled=True):
        answers = {row.number: row.matching for row in spark.sql(counts).collect()}
        answer = spark.sql(totals).first()
    with conf(spark, spark__metastore__enabled=False):
        rows = spark.sql(f"SELECT *, _metadata.file_path AS file FROM {table}").collect()
        assert answer == spark.sql(totals).first()
        truth = spark.sql(
            "SELECT " + ", ".join(f"count_if({condition})" for condition in conditions) + f" FROM {table}"
        ).first()
    assert {condition: answers[number] for number, condition in enumerate(conditions)} == dict(
        zip(conditions, truth, strict=True)
    )
    summary = metastore.summary(spark, table)
    for column in columns:
        check_summary(summary.column(column), [row[column] for row in rows])
    check_located(spark, table, rows, columns)


def check_summary(summary: dict, values: list) -> None:
    """Check statistics, which may be unknown of a column that was analyzed under another name or not at all."""
    present = [value for value in values if value is not None]
    bounds = min(present, default=None), max(present, default=None), len(values) - len(present)
    assert (summary["min"], summary["max"], summary["null_count"]) in (bounds, (None, None, None))


def check_located(spark, table: str, rows: list, columns: list[str]) -> None:
    """Each data file that has the first row's value is named."""
    expected = {column: rows[0][column] for column in columns}
    values = {column: "NULL" if value is None else value for column, value in expected.items()}
    parts = [
        f"SELECT '{column}' AS name, path FROM metastore.locate('{table}', '{column}', {value})"
        for column, value in values.items()
    ]
    located = {(row.name, row.path.rpartition("/")[2]) for row in spark.sql(" UNION ALL ".join(parts)).collect()}
    files = [(row, row.file.rpartition("/")[2]) for row in rows]
    assert {(column, file) for row, file in files for column in columns if row[column] == expected[column]} <= located


@pytest.mark.slow
@pytest.mark.parametrize("history", HISTORIES)
def test_columns_keep_what_they_mean(spark, table, history):
    mode, upgrade, changes = HISTORIES[history]
    properties = f"'delta.columnMapping.mode' = '{mode}', 'delta.dataSkippingNumIndexedCols' = '0'"
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING delta PARTITIONED BY (p) TBLPROPERTIES ({properties})")
    spark.sql(f"INSERT INTO {table} SELECT {VALUES}, CAST(id DIV 5 AS INT) AS p FROM range(1, 9, 1, 1)")
    metastore.analyze(spark, table, progress=False)
    for change in upgrade:
        spark.sql(f"ALTER TABLE {table} {change}")
    before = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first().version
    for change in changes:
        spark.sql(f"ALTER TABLE {table} {change}")
    check(spark, table)
    metastore.analyze(spark, table, progress=False)
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {before}")
    check(spark, table)
