"""Fixtures of every test: one Spark with the real jars of Iceberg and Delta, one folder for Iceberg's tables."""

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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--oracle-seed", type=int, default=20, help="seed of the oracle's random tables and predicates")


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the Iceberg catalog `ice`."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def spark_conf(warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings of a local Spark, Iceberg as catalog `ice`, Delta in its own; servers of other tests have the same."""
    from lakes import session_conf  # noqa: PLC0415 - tests without Spark do not need it

    return session_conf(tmp_path_factory.mktemp("spark"), warehouse)


@pytest.fixture
def own_spark_conf(spark_conf: dict[str, str]) -> dict[str, str]:
    """The same settings for a Spark of a test's own, beside that of all."""
    return {**spark_conf, "spark.driver.memory": "1g"}


@pytest.fixture(scope="session")
def spark(spark_conf: dict[str, str]) -> Iterator[SparkSession]:
    """The Spark of the whole run: classic, our shim from `pyspark/jars`, Iceberg tables in `ice.db`."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from lakes import FORMATS  # noqa: PLC0415 - as above

    builder = SparkSession.builder.appName("tests")
    for key, value in spark_conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if "iceberg" in FORMATS:
        session.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    yield session
    session.stop()
