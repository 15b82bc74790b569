"""Finds the rows of 1, 1,000 and 100,000 keys in a table of 64 data files, against joining the table with the keys.

    python benchmarks/locate.py [--files 256 --rows 40000 --columns 20]

`id` is a random identifier: every file holds any of them. `number` ascends from file to file, and the keys are
neighbours, as are those of rows that came together. Both sides read the key's column and count the rows in each file.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import alternate, median, report, spark_session

import metastore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "ice.db.rows"
COUNTS = (1, 1_000, 100_000)
FILES = 64
KEYS = ("id", "number")


def write(spark: SparkSession, files: int, rows: int, columns: int = 2) -> None:
    """Writes and analyzes the table, with so many columns besides the keys."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    more = [f"rand({place}) AS amount{place}" for place in range(columns - 1)]
    made = spark.range(0, files * rows, 1, files).selectExpr(
        "md5(cast(id AS string)) AS id", "id AS number", "md5(cast(-id AS string)) AS payload", *more
    )
    made.writeTo(TABLE).using("iceberg").tableProperty("write.distribution-mode", "none").create()
    metastore.analyze(spark, TABLE, list(KEYS), progress=False)


def keys(spark: SparkSession, column: str, kind: str, count: int, total: int) -> DataFrame:
    """So many keys, spread over the table's rows or neighbours; those that are absent are like those that are there."""
    if column == "number":
        return spark.range(total // 2, total // 2 + count).withColumnRenamed("id", "number")
    step = max(total // count, 1) if kind == "present" else 1
    first = 0 if kind == "present" else total
    return spark.range(first, first + count * step, step).selectExpr("md5(cast(id AS string)) AS id")


def scanned(spark: SparkSession, column: str, asked: DataFrame) -> DataFrame:
    """The alternative: all rows of the table joined with the keys."""
    rows = spark.table(TABLE).select(column, "_file", "_pos")
    return rows.join(asked, column).withColumnRenamed("_file", "path")


def run(frame: DataFrame) -> int:
    """Counts the rows in each file: a query, for inside of a write planning leaves no files out."""
    return sum(row[1] for row in frame.groupBy("path").agg({"*": "count"}).collect())


def measure(spark: SparkSession, column: str, kind: str, count: int, options: argparse.Namespace) -> dict[str, Any]:
    """One line of the result."""
    asked = keys(spark, column, kind, count, options.files * options.rows).cache()
    asked.count()
    ours = metastore.locate(spark, TABLE, column, asked)
    assert run(ours) == (count if kind == "present" else 0)

    def without(frame: DataFrame) -> None:
        spark.conf.set("spark.metastore.enabled", "false")
        try:
            run(frame)
        finally:
            spark.conf.unset("spark.metastore.enabled")

    times = alternate(
        {
            "locate": lambda: run(metastore.locate(spark, TABLE, column, asked)),
            "scan": lambda: without(scanned(spark, column, asked)),
        },
        options.runs,
    )
    located, all_read = median(times["locate"]), median(times["scan"])
    asked.unpersist()
    return {
        "column": column,
        "keys": count,
        "kind": kind,
        "locate seconds": located,
        "scan seconds": all_read,
        "ratio": all_read / located,
    }


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--rows", type=int, default=100_000, help="of a file")
    parser.add_argument("--columns", type=int, default=2, help="besides the keys")
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, spark_session(Path(scratch)) as spark:
        write(spark, options.files, options.rows, options.columns)
        rows = [
            measure(spark, column, kind, count, options)
            for column, kind in (("id", "present"), ("id", "absent"), ("number", "present"))
            for count in COUNTS
        ]
    name = "locate" if options.files == FILES else f"locate-{options.files}"
    facts = {"files": options.files, "rows_of_a_file": options.rows, "columns": options.columns + len(KEYS)}
    report(name, rows, **facts, runs=options.runs)


if __name__ == "__main__":
    main()
