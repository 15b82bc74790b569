"""The table formats of a test session: their real jars, extensions and catalogs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyspark

from metastore import jars
from metastore.contract import read_contract

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

SPARK = ".".join(pyspark.__version__.split(".")[:2])
"""The line of Spark under test."""

_RELEASED = {"3.5": "delta,iceberg,hudi", "4.0": "iceberg,delta", "4.1": "iceberg,delta", "4.2": "delta", "4.3": ""}
FORMATS = tuple(filter(None, os.environ.get("METASTORE_TEST_FORMATS", _RELEASED[SPARK]).split(",")))
"""The formats whose extensions are listed, in this order.

Hudi's takes VERSION AS OF of all tables for its own. On Spark 3.5, Iceberg's before Delta's fails on UPDATE of Delta's.
"""

EXTENSIONS = {
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "hudi": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
}
SESSION_CATALOGS = {
    "hudi": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "delta": "org.apache.spark.sql.delta.catalog.DeltaCatalog",  # serves Hudi's tables too
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


ONE_COMPILER = "-XX:TieredStopAtLevel=1"
"""Little of a test's code runs often: the second compiler took a third of the JVM's time."""
SMALL = ("-XX:ReservedCodeCacheSize=256m", "-XX:+UseSerialGC")

QUIET_LOG = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
logger.delta.name = org.apache.spark.sql.delta.DeltaParquetFileFormat
logger.delta.level = off
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n%throwable{1}
"""


def _session_catalog(formats: Collection[str]) -> dict[str, str]:
    serving = [name for name in SESSION_CATALOGS if name in formats]
    return {"spark.sql.catalog.spark_catalog": SESSION_CATALOGS[serving[-1]]} if serving else {}


def lakes(warehouse: Path, releases: Mapping[str, str] | None = None) -> dict[str, str]:
    """Settings of a session: Iceberg tables in the catalog `ice`, below `warehouse`, all others in Spark's own.

    Args:
        warehouse: folder of the catalog `ice`.
        releases: the formats, each with the name of its jar in `jars.lock`; those of FORMATS as we usually test them.
    """
    of_format = {name: f"{name}-{SPARK}" for name in FORMATS} if releases is None else releases
    jar_paths = [jar for name in of_format.values() for jar in jars.fetch_all(name)]
    listed = [EXTENSIONS[name] for name in of_format]
    return {
        "spark.jars": ",".join(map(str, jar_paths)),
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(warehouse),
        **_session_catalog(of_format),
        "spark.databricks.delta.snapshotPartitions": "2",
        # Spark 3.5 does not look for extensions in the jars of its own folder.
        "spark.sql.extensions": ",".join([*listed, OURS] if SPARK == "3.5" else listed),
        **(CALENDAR if SPARK == "3.5" else {}),
        **(HUDI if "hudi" in of_format else {}),
    }


def _local_files() -> dict[str, str]:
    """Settings that save a process for each written file; a wheel's jars do not have the class."""
    if not (jars.pyspark_jars() / "metastore-tests.jar").exists():
        return {}
    build = next(spark_build["name"] for spark_build in read_contract("spark_builds") if SPARK in spark_build["serves"])
    ours = f"org.metastore.spark.v{build.replace('.', '')}.files"
    return {
        "spark.hadoop.fs.file.impl": f"{ours}.LocalFiles",
        "spark.hadoop.fs.AbstractFileSystem.file.impl": f"{ours}.LocalFileContext",
    }


def session_conf(scratch: Path, warehouse: Path, releases: Mapping[str, str] | None = None) -> dict[str, str]:
    """Settings of a local Spark for small tables, whose own things are in `scratch`; the others as of `lakes`."""
    log = scratch / "log4j2.properties"
    log.write_text(QUIET_LOG)
    java = [ONE_COMPILER, *SMALL, f"-Dlog4j2.configurationFile={log}", f"-Dderby.system.home={scratch}"]
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": " ".join(java),
        **lakes(warehouse, releases),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM has as many tasks, 10,000 by default
        "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
        # Most tests count rows to see which files a scan reads.
        "spark.metastore.aggregates.enabled": "false",
        # A busy machine may pause for long; the limit itself is tested with the reader.
        "spark.metastore.planning.timeout": "60s",
        # Tables are small: compiling a plan takes longer than running it.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        **_local_files(),
        "spark.ui.enabled": "false",
        "spark.sql.ui.explainMode": "simple",
        "spark.ui.showConsoleProgress": "false",
    }
