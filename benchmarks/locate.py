"""Finds the rows of 1, 1,000 and 100,000 keys in tables of 64 and 1,000 data files, against joining table and keys.

    python benchmarks/locate.py [--files 256 --rows 40000 --columns 20]

`id` is a random identifier: every file holds any of them. `number` ascends from file to file; `together` are keys that
are neighbours, as are those of rows that came together, `spread` are keys at even distances from all files. Both sides
read the key's column and count the rows in each file.
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

COUNTS = (1, 1_000, 100_000)
KINDS = (("id", "present"), ("id", "absent"), ("number", "together"), ("number", "spread"))
KEYS = ("id", "number")


def write(spark: SparkSession, table: str, files: int, rows: int, columns: int = 2) -> None:
    """Writes and analyzes the table, with so many columns besides the keys."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    more = [f"rand({number}) AS amount{number}" for number in range(columns - 1)]
    made = spark.range(0, files * rows, 1, files).selectExpr(
        "md5(cast(id AS string)) AS id", "id AS number", "md5(cast(-id AS string)) AS payload", *more
    )
    made.writeTo(table).using("iceberg").tableProperty("write.distribution-mode", "none").create()
    metastore.analyze(spark, table, list(KEYS), progress=False)


def keys(spark: SparkSession, column: str, kind: str, count: int, total: int) -> DataFrame:
    """So many keys, spread over the table's rows or neighbours; those that are absent are like those that are there."""
    first = {"together": total // 2, "absent": total}.get(kind, 0)
    step = max(total // count, 1) if kind in ("present", "spread") else 1
    numbers = spark.range(first, first + count * step, step)
    return numbers.selectExpr("id AS number" if column == "number" else "md5(cast(id AS string)) AS id")


def scanned(spark: SparkSession, table: str, column: str, wanted_keys: DataFrame) -> DataFrame:
    """The alternative: all rows of the table joined with the keys."""
    rows = spark.table(table).select(column, "_file", "_pos")
    return rows.join(wanted_keys, column).withColumnRenamed("_file", "path")


def run(frame: DataFrame) -> int:
    """Counts the rows in each file: a query, for inside of a write planning leaves no files out."""
    return sum(row[1] for row in frame.groupBy("path").agg({"*": "count"}).collect())


def measure(
    spark: SparkSession, table: str, total: int, column: str, kind: str, count: int, runs: int
) -> dict[str, Any]:
    """Measure one line of the result for a number of keys."""
    wanted_keys = keys(spark, column, kind, count, total).cache()
    wanted_keys.count()
    assert run(metastore.locate(spark, table, column, wanted_keys)) == (0 if kind == "absent" else count)

    def without(frame: DataFrame) -> None:
        spark.conf.set("spark.metastore.enabled", "false")
        try:
            run(frame)
        finally:
            spark.conf.unset("spark.metastore.enabled")

    times = alternate(
        {
            "locate": lambda: run(metastore.locate(spark, table, column, wanted_keys)),
            "scan": lambda: without(scanned(spark, table, column, wanted_keys)),
        },
        runs,
    )
    located, all_read = median(times["locate"]), median(times["scan"])
    wanted_keys.unpersist()
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
    parser.add_argument("--files", type=int, nargs="+", default=[64, 1_000], help="of each table")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 20_000], help="of a file of each table")
    parser.add_argument("--columns", type=int, default=2, help="besides the keys")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, spark_session(Path(scratch)) as spark:
        rows = []
        for files, rows_of_a_file in zip(options.files, options.rows, strict=True):
            table = f"ice.db.rows_{files}"
            write(spark, table, files, rows_of_a_file, options.columns)
            rows += [
                {"files": files, "rows": files * rows_of_a_file}
                | measure(
                    spark,
                    table=table,
                    total=files * rows_of_a_file,
                    column=column,
                    kind=kind,
                    count=count,
                    runs=options.runs,
                )
                for column, kind in KINDS
                for count in COUNTS
            ]
    report("locate", rows, columns=options.columns + len(KEYS), runs=options.runs)


if __name__ == "__main__":
    main()
