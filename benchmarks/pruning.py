"""Data files that queries read, and what planning them takes, with each format's own skipping and with the Metastore.

One table of each format: `id`, `day`, `name` and `c0` to `c9` ascend from file to file (the last ten overlap), `key`
and `number` are in no order, and ANALYZE is told to store where their values live. "Ideal" are the files that hold a
row of the answer.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import median, planning, report, spark_session

import metastore
from metastore import jars
from metastore._demo.executed import files_read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = {"iceberg": "ice.db.pruned", "delta": "pruned_delta", "parquet": "pruned_parquet"}
OWN = {"iceberg": "_file", "delta": "_metadata.file_path", "parquet": "_metadata.file_path"}
WIDE = 10


def conf() -> dict[str, str]:
    """Settings of a session with Iceberg and Delta."""
    found = [jars.fetch("iceberg-4.1"), *jars.fetch_all("delta-4.1")]
    return {
        "spark.jars": ",".join(map(str, found)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def rows(spark: SparkSession, files: int, each: int) -> DataFrame:
    """The rows of a table, a partition a file."""
    wide = [f"CAST(id + pmod(hash(id, {i}), {3 * each}) AS INT) AS c{i}" for i in range(WIDE)]
    return spark.range(0, files * each, 1, files).selectExpr(
        "id",
        f"date_add(DATE '2000-01-01', CAST(id DIV {each} AS INT)) AS day",
        "concat('user-', lpad(CAST(id AS STRING), 9, '0')) AS name",
        "md5(CAST(id AS STRING)) AS key",
        "xxhash64(id) AS number",
        *wide,
    )


def write(spark: SparkSession, form: str, files: int, each: int) -> None:
    """Writes and analyzes the table of one format."""
    made, name = rows(spark, files, each), TABLES[form]
    if form == "iceberg":
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
        made.writeTo(name).using("iceberg").tableProperty("write.distribution-mode", "none").create()
    else:
        made.write.format(form).saveAsTable(name)
    metastore.analyze(spark, name, distribution=["key", "number"], progress=False)


def queries(files: int, each: int) -> dict[str, str]:
    """Conditions by the name of what they show."""
    middle = files * each // 2
    hidden = [f"md5('{middle + step}')" for step in (1, 7, 9)]
    return {
        "point": f"id = {middle}",
        "range": f"id BETWEEN {middle} AND {middle + each}",
        "in": f"id IN (5, {middle}, {files * each - 1})",
        "date": "day = DATE '2000-01-03'",
        "string": f"name = 'user-{middle:09d}'",
        "like": f"name LIKE 'user-{middle // 100:07d}%'",
        "unsorted string": f"key = {hidden[0]}",
        "unsorted in": f"key IN ({', '.join(hidden)})",
        "unsorted number": f"number = xxhash64({middle}L)",
        "ten columns": " AND ".join(f"c{i} BETWEEN {middle} AND {middle + 4 * each}" for i in range(WIDE)),
        "nothing": f"id = {files * each + 1}",
    }


class Measured:
    """The runs of one query on one side."""

    def __init__(self) -> None:
        self.files, self.answer = 0, -1
        self.planning: list[float] = []
        self.seconds: list[float] = []

    def run(self, spark: SparkSession, query: str) -> None:
        """Runs the query once."""
        start = time.perf_counter()
        frame = spark.sql(query)
        self.answer = len(frame.collect())
        self.seconds.append(time.perf_counter() - start)
        self.planning.append(planning(frame))
        self.files = sum(files_read(frame))


def measure(spark: SparkSession, form: str, condition: str, runs: int) -> dict[str, Any]:
    """Runs one query in turn with the Metastore and without it; the first round warms up."""
    query = f"SELECT id FROM {TABLES[form]} WHERE {condition}"
    sides = {"true": Measured(), "false": Measured()}
    for run in range(runs + 1):
        for enabled, side in sides.items():
            spark.conf.set("spark.metastore.enabled", enabled)
            side.run(spark, query)
            if run == 0:
                side.planning.clear()
                side.seconds.clear()
    spark.conf.set("spark.metastore.enabled", "false")
    ideal = spark.sql(f"SELECT count(DISTINCT {OWN[form]}) FROM {TABLES[form]} WHERE {condition}").first()[0]
    ours, own = sides["true"], sides["false"]
    assert ours.answer == own.answer, (form, condition)
    return {
        "rows": own.answer,
        "ideal files": ideal,
        "own files": own.files,
        "our files": ours.files,
        "own planning ms": median(own.planning),
        "our planning ms": median(ours.planning),
        "own seconds": median(own.seconds),
        "our seconds": median(ours.seconds),
    }


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=2000, help="of a file")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as scratch, spark_session(Path(scratch), **conf()) as spark:
        for form in TABLES:
            write(spark, form, options.files, options.rows)
            for name, condition in queries(options.files, options.rows).items():
                found.append({"format": form, "query": name, **measure(spark, form, condition, options.runs)})
                sys.stderr.write(f"{found[-1]}\n")
    report("pruning", found, files=options.files, rows_of_a_file=options.rows, runs=options.runs)


if __name__ == "__main__":
    main()
