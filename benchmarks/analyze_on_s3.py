"""ANALYZE of every column of tables on S3, ours against Spark's own of the same files: `analyze.py --on s3`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import object_store
from common import cpu_seconds, report, seconds, spark_session, tpch
from pyarrow.fs import S3FileSystem

import metastore
from metastore import jars

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

from store import s3
from versions.environments import fetch_locked

FILES = 8
ROOT = f"s3a://{s3.BUCKET}"
LOCK = object_store.Path(__file__).resolve().parents[1] / "tests/cloud/hadoop-aws.lock"
TABLES = {
    "iceberg": ("lake.db.lineitem", f"{ROOT}/ice/db/lineitem", "data"),
    "delta": (f"delta.`{ROOT}/delta/lineitem`", f"{ROOT}/delta/lineitem", ""),
    "parquet": (f"parquet.`{ROOT}/parquet/lineitem`", f"{ROOT}/parquet/lineitem", ""),
}
"""Of each format the table's name, its folder, and the folder of the data files below it."""


def run(options: Namespace, work: Path) -> None:
    """Measures wall and CPU seconds of both, of each format, in turn in one Spark."""
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    source = tpch(work, "lineitem", options.scale, FILES)
    before = object_store.children()
    with object_store.running(options.delay / 1000) as address:
        servers = object_store.children() - before
        with spark_session(work, **make_settings(address)) as spark:
            create_tables(spark, source)
            rows = []
            for name in TABLES:
                rows += measure(spark, name, address, servers, options.runs)
    report(f"analyze-s3-{options.delay:g}ms", rows, scale=options.scale, files=FILES, delay_ms=options.delay)


def make_settings(address: str) -> dict[str, str]:
    """Makes the settings of a Spark with the three formats on an S3 server."""
    jar_paths = [*jars.fetch_all("iceberg-4.1"), *jars.fetch_all("delta-4.1"), *fetch_locked(LOCK)]
    return {
        "spark.jars": ",".join(map(str, jar_paths)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": f"{ROOT}/ice",
        "spark.hadoop.fs.s3a.endpoint": address,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.access.key": s3.KEY,
        "spark.hadoop.fs.s3a.secret.key": s3.SECRET,
    }


def create_tables(spark: SparkSession, source: Path) -> None:
    """Writes the same rows in each format, a data file for each source file."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    first, *later_files = sorted(str(file) for file in source.glob("*.parquet"))
    spark.read.parquet(first).coalesce(1).writeTo(TABLES["iceberg"][0]).create()
    for file in later_files:
        spark.read.parquet(file).coalesce(1).writeTo(TABLES["iceberg"][0]).append()
    for file in (first, *later_files):
        for name in ("delta", "parquet"):
            spark.read.parquet(file).coalesce(1).write.format(name).mode("append").save(TABLES[name][1])
    for name, (_, folder, data) in TABLES.items():
        spark.catalog.createTable(f"raw_{name}", f"{folder}/{data}".rstrip("/"), "parquet")


def measure(spark: SparkSession, name: str, address: str, servers: set[int], runs: int) -> list[dict[str, Any]]:
    """Measures one format; the first round warms up."""
    table, folder, _ = TABLES[name]
    system = S3FileSystem(access_key=s3.KEY, secret_key=s3.SECRET, endpoint_override=address, region="us-east-1")

    def ours() -> None:
        system.delete_dir_contents(f"{folder.removeprefix('s3a://')}/_metastore", missing_dir_ok=True)
        metastore.analyze(spark, table, progress=False)

    def sparks() -> None:
        spark.sql(f"ANALYZE TABLE raw_{name} COMPUTE STATISTICS FOR ALL COLUMNS")

    results = []
    for what, action in (("metastore", ours), ("spark", sparks)):
        taken = [_measure_once(spark, action, servers) for _ in range(runs + 1)][1:]
        best = min(taken, key=lambda measured: measured["cpu"])
        sys.stderr.write(f"{name} {what}: {best['seconds']:.2f} s, CPU {best['cpu']:.2f} s\n")
        results.append({"format": name, "what": what, **best})
    results[0]["cpu_ratio"] = results[0]["cpu"] / results[1]["cpu"]
    results[1]["cpu_ratio"] = 1.0
    return results


def _measure_once(spark: SparkSession, action: Callable[[], None], servers: set[int]) -> dict[str, Any]:
    cpu, shuffled = cpu_seconds(servers), object_store.shuffled_bytes(spark)
    wall = seconds(action)
    return {
        "seconds": wall,
        "cpu": cpu_seconds(servers) - cpu,
        "shuffled": object_store.shuffled_bytes(spark) - shuffled,
    }
