"""The table formats of a test session: their real jars, extensions and catalogs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore import jars

if TYPE_CHECKING:
    from pathlib import Path

EXTENSIONS = (
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "io.delta.sql.DeltaSparkSessionExtension",
)


def lakes(warehouse: Path) -> dict[str, str]:
    """Settings of a session: Iceberg tables in the catalog `ice`, below `warehouse`, Delta tables in Spark's own."""
    found = [jars.fetch("iceberg-4.1"), *jars.fetch_all("delta-4.1")]
    return {
        "spark.jars": ",".join(map(str, found)),
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(warehouse),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.extensions": ",".join(EXTENSIONS),
    }
