"""`format("metastore")` where Spark asks another Python for data sources than the driver's: what the error says."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lakes import SPARK
from sql import servers

pytestmark = [pytest.mark.spark, pytest.mark.skipif(SPARK != "4.1", reason="the error is Spark's own before 4.1")]

SCRIPT = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
try:
    spark.read.format("{}").load("/no/where").collect()
except Exception as error:
    print("SAID", str(error)[:500].replace(chr(10), " "))
"""


@pytest.fixture
def environment(tmp_path):
    """A shell in which no virtual environment is active: `python3` has nothing but itself."""
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    return {**servers.environment(), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}


def said(source: str, environment, folder) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(source)],
        env=environment, cwd=folder, check=False, capture_output=True, text=True, timeout=servers.LIMIT,
    )  # fmt: skip
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("SAID "))
    return line.removeprefix("SAID ")


@pytest.mark.slow
def test_the_python_to_set_is_named(environment, tmp_path):
    message = said("Metastore", environment, tmp_path)
    assert message.startswith("[METASTORE_INVALID_SETTING] Spark finds no data source metastore: ")
    assert "python3 of the PATH" in message
    assert "export PYSPARK_PYTHON=" in message
    named = message.partition("export PYSPARK_PYTHON=")[2].partition(",")[0]
    assert "METASTORE_TABLE_NOT_FOUND" in said("metastore", {**environment, "PYSPARK_PYTHON": named}, tmp_path)


@pytest.mark.slow
def test_sources_of_others_get_sparks_own_error(environment, tmp_path):
    assert "[DATA_SOURCE_NOT_FOUND]" in said("metastores", environment, tmp_path)
