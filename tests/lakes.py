"""The table formats of a test session: their real jars, extensions and catalogs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyspark

from metastore import jars

if TYPE_CHECKING:
    from pathlib import Path

SPARK = ".".join(pyspark.__version__.split(".")[:2])
"""The line of Spark under test."""

_ALL = {"4.1": ("iceberg", "delta"), "3.5": ("delta", "iceberg", "hudi")}[SPARK]
FORMATS = tuple(os.environ.get("METASTORE_TEST_FORMATS", ",".join(_ALL)).split(","))
"""The formats whose extensions are listed, in this order.

Hudi's takes VERSION AS OF of all tables for its own. On Spark 3.5, Iceberg's before Delta's fails on UPDATE of Delta's.
"""

EXTENSIONS = {
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "hudi": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
}
OURS = "org.metastore.spark.MetastoreExtensions"
CALENDAR = {
    f"spark.sql.parquet.{kind}RebaseModeIn{way}": "CORRECTED"  # as in Spark 4
    for kind in ("datetime", "int96")
    for way in ("Read", "Write")
}
HUDI = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    # Tables are small: a task makes a file, and nothing is compacted behind our back.
    "hoodie.spark.sql.insert.into.operation": "bulk_insert",
    "hoodie.bulkinsert.sort.mode": "NONE",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.compact.inline": "false",
    "hoodie.compact.inline.max.delta.commits": "100",
}


def lakes(warehouse: Path) -> dict[str, str]:
    """Settings of a session: Iceberg tables in the catalog `ice`, below `warehouse`, all others in Spark's own."""
    found = [jar for name in FORMATS for jar in jars.fetch_all(f"{name}-{SPARK}")]
    listed = [EXTENSIONS[name] for name in FORMATS]
    return {
        "spark.jars": ",".join(map(str, found)),
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(warehouse),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        # Spark 3.5 does not look for extensions in the jars of its own folder.
        "spark.sql.extensions": ",".join(listed if SPARK == "4.1" else [*listed, OURS]),
        **(CALENDAR if SPARK == "3.5" else {}),
        **(HUDI if "hudi" in FORMATS else {}),
    }
