"""What every test may ask for: one Spark with the real jars of Iceberg and Delta, one folder for Iceberg's tables."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

ONE_COMPILER = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m")
"""Little of a test's code runs often: the second compiler took a third of the JVM's time."""

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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--oracle-seed", type=int, default=20, help="seed of the oracle's random tables and predicates")


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the Iceberg catalog `ice`."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def spark_conf(warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings of a local Spark, Iceberg as catalog `ice`, Delta in its own; servers of other tests have the same."""
    from lakes import lakes  # noqa: PLC0415 - tests without Spark do not need it

    scratch = tmp_path_factory.mktemp("spark")
    log = scratch / "log4j2.properties"
    log.write_text(QUIET_LOG)
    java = [*ONE_COMPILER, f"-Dlog4j2.configurationFile={log}", f"-Dderby.system.home={scratch}"]
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": " ".join(java),
        **lakes(warehouse),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
        # Tables are small: compiling a plan takes longer than running it.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


@pytest.fixture
def own_spark_conf(spark_conf: dict[str, str]) -> dict[str, str]:
    """The same settings for a Spark of a test's own, beside that of all."""
    return {**spark_conf, "spark.driver.memory": "1g"}


@pytest.fixture(scope="session")
def spark(spark_conf: dict[str, str]) -> Iterator[SparkSession]:
    """The Spark of the whole run: classic, our shim from `pyspark/jars`, Iceberg tables in `ice.db`."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.appName("tests")
    for key, value in spark_conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    yield session
    session.stop()
