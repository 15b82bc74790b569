"""A driver that analyzes tables of Parquet files in SQL and in Python, and prints the answers as JSON."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import metastore
from metastore.errors import MetastoreError


def try_statement(spark: SparkSession, table: str) -> str:
    """The number of rows that SQL's ANALYZE counts, or the first line of its error."""
    try:
        return str(spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").first()["rows"])
    except Exception as error:  # noqa: BLE001 - what a person reads of it is what is tested
        return str(error).splitlines()[0]


def try_function(spark: SparkSession, table: str) -> str:
    """The number of rows that `metastore.analyze` counts, or its error."""
    try:
        return str(metastore.analyze(spark, table, progress=False).rows)
    except MetastoreError as error:
        return str(error)


def main() -> None:
    """Write two tables, and analyze one in each way."""
    builder = SparkSession.builder
    for key, value in json.loads(sys.argv[1]).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    answers = {}
    for name, analyze in (("sql", try_statement), ("python", try_function)):
        location = f"{sys.argv[2]}/{name}"
        spark.range(0, 1000, 1, 4).write.parquet(location)
        answers[name] = analyze(spark, f"parquet.`{location}`")
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
