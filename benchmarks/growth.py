"""Costs that grow with a table: ANALYZE of many unchanged data files, and garbage collection of a long log.

The data files are listed by an Iceberg table and do not exist: ANALYZE ... NOSCAN opens none of them. CPU seconds are
those of Spark's JVM, of this process and of all below it, in a session that has analyzed a small table before.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import cpu_seconds, median, report, spark_session

import metastore
from metastore.store import Store
from metastore.store.local_blobs import LocalBlobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

ROWS, BYTES = 1_000, 10_000
SMALL = 100


class Traffic:
    """The bytes that this process reads and writes in stores."""

    def __init__(self) -> None:
        """Count from zero."""
        self.read = 0
        self.written = 0
        get, put = LocalBlobs.get, LocalBlobs.put

        def counted_get(blobs: LocalBlobs, path: str, most: int) -> bytes | None:
            data = get(blobs, path, most)
            self.read += len(data or b"")
            return data

        def counted_put(blobs: LocalBlobs, path: str, data: bytes) -> None:
            self.written += len(data)
            put(blobs, path, data)

        LocalBlobs.get, LocalBlobs.put = counted_get, counted_put


def measured(traffic: Traffic, runs: int, action: Callable[[], object]) -> dict[str, Any]:
    """The median CPU seconds of some runs of an action, and the bytes that the last one read and wrote."""
    seconds = []
    for _ in range(runs):
        traffic.read = traffic.written = 0
        start = cpu_seconds()
        action()
        seconds.append(cpu_seconds() - start)
    return {"cpu s": median(seconds), "kB read": traffic.read // 1000, "kB written": traffic.written // 1000}


def append(spark: SparkSession, table: str, first: int, files: int) -> None:
    """Commits data files that do not exist."""
    iceberg = spark._jvm.org.apache.iceberg  # noqa: SLF001 - SQL commits only files that it has written
    target = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)  # noqa: SLF001 - as above
    change = target.newAppend()
    builder = iceberg.DataFiles.builder(target.spec()).withFormat("parquet").withFileSizeInBytes(BYTES)
    builder = builder.withRecordCount(ROWS)
    for number in range(first, first + files):
        path = f"{target.location()}/data/00000-{number}-0ea1f1c9-5b0c-4b7e-9a37-4c0f2b1f7d11-00001.parquet"
        change.appendFile(builder.withPath(path).build())
    change.commit()
    spark.sql(f"REFRESH TABLE {table}")


def create(spark: SparkSession, files: int) -> str:
    """Makes a table of data files that do not exist."""
    table = f"ice.db.growth_{files}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    spark.sql(f"CREATE TABLE {table} (id BIGINT, day DATE, price DOUBLE, shop STRING) USING iceberg")
    append(spark, table, 0, files)
    return table


def analyses(spark: SparkSession, traffic: Traffic, files: int, runs: int) -> list[dict[str, Any]]:
    """ANALYZE of a new table, of an unchanged one, and after each of some appends of one data file."""
    table = create(spark, files)

    def analyze() -> None:
        metastore.analyze(spark, table, depth="files", progress=False)

    rows = [{"measure": "listed for the first time", **measured(traffic, 1, analyze)}]
    rows.append({"measure": "unchanged", **measured(traffic, runs, analyze)})
    after_appends = []
    for run in range(runs):
        append(spark, table, files + run, 1)
        after_appends.append(measured(traffic, 1, analyze))
    seconds = median([row["cpu s"] for row in after_appends])
    rows.append({"measure": "one data file more", **after_appends[-1], "cpu s": seconds})
    return [{"of": f"{files} data files", **row} for row in rows]


def collections(store: Store, traffic: Traffic, manifests: int, runs: int) -> list[dict[str, Any]]:
    """Garbage collection of a log of many manifests that all may be in use."""
    newest = store.read()
    for number in range(newest.sequence, manifests):
        settings = {**newest.settings, "number": number}
        store.commit(newest.table, lambda old, settings=settings: replace(old, settings=settings))

    def collect() -> None:
        metastore.gc(store.uri, delete=True, grace_days=1)

    first = measured(traffic, 1, collect)
    again = measured(traffic, runs, collect)
    of = f"a log of {manifests} manifests"
    return [{"of": of, "measure": "garbage", **first}, {"of": of, "measure": "garbage again", **again}]


def main() -> None:
    """Measures and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--manifests", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    traffic = Traffic()
    rows = []
    with tempfile.TemporaryDirectory() as folder, spark_session(Path(folder)) as spark:
        analyses(spark, traffic, SMALL, 3)
        for files in options.files:
            rows += analyses(spark, traffic, files, options.runs)
        store = Store.open(f"{folder}/ice/db/growth_{SMALL}/_metastore", writable=True)
        for manifests in options.manifests:
            rows += collections(store, traffic, manifests, options.runs)
    report("growth", rows, rows_of_a_file=ROWS)


if __name__ == "__main__":
    main()
