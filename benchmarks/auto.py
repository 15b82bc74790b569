"""The cost of automatic ANALYZE for the write that adds the data files.

An analyzed Iceberg table gets one data file more, a hundredth of its rows, again and again: as it is, with
`spark.metastore.analyze.auto` = `background`, and with `wait`. Between two writes nothing is left to do.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from common import median, report, seconds, spark_session, tpch

import metastore

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

MODES = ("off", "background", "wait")
PATIENCE = 120.0


def create(spark: SparkSession, mode: str, rows: str, files: int) -> str:
    """Makes the analyzed table of a mode."""
    name = f"ice.db.auto_{mode}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    spark.read.parquet(rows).repartition(files).writeTo(name).using("iceberg").create()
    metastore.analyze(spark, name, progress=False)
    return name


def settle(spark: SparkSession, table: str) -> tuple[float, float]:
    """Seconds until the footers of all data files are known, and until their values are."""
    start = time.perf_counter()

    def wait(is_known: Callable[[], bool]) -> float:
        while not is_known():
            if time.perf_counter() - start > PATIENCE:
                raise TimeoutError(table)
            time.sleep(0.05)
        return time.perf_counter() - start

    def has_values() -> bool:
        return all(row["distinct"] is not None for row in metastore.columns(spark, table, "l_orderkey"))

    return wait(lambda: all(row["analyzed"] for row in metastore.files(spark, table))), wait(has_values)


def main() -> None:
    """Measures and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, spark_session(Path(folder)) as spark:
        rows = str(tpch(Path(folder), "lineitem", options.scale, 1))
        tables = {mode: create(spark, mode, rows, options.files) for mode in MODES}
        spark.read.parquet(rows).sample(0.01, seed=1).coalesce(1).createOrReplaceTempView("more")
        times: dict[str, list[float]] = {mode: [] for mode in MODES}
        later: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES}
        for run in range(options.runs + 1):
            for mode, table in tables.items():
                spark.conf.set("spark.metastore.analyze.auto", mode)
                took = seconds(lambda table=table: spark.sql(f"INSERT INTO {table} SELECT * FROM more"))
                waited = settle(spark, table) if mode != "off" else (0.0, 0.0)
                if run:
                    times[mode].append(took)
                    later[mode].append(waited)
        results = [
            {
                "analyze.auto": mode,
                "write s": median(times[mode]),
                "added %": round(100 * (median(times[mode]) / median(times["off"]) - 1), 1),
                "footers s later": median([footers for footers, _ in later[mode]]),
                "analyzed s later": median([values for _, values in later[mode]]),
            }
            for mode in MODES
        ]
        report("auto", results, scale=options.scale, files=options.files, runs=options.runs)


if __name__ == "__main__":
    main()
