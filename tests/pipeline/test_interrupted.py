"""A killed ANALYZE leaves what it finished; executors need Python, numpy and pyarrow alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyspark
import pytest

import metastore
from pipeline.checks import check_table, location

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILES = 300
"""So many that there are more tasks than cores: one has not begun when the first has finished."""
ANALYZE = """
import importlib.util, json, os, sys
from pyspark.sql import SparkSession
import metastore
builder = SparkSession.builder
for key, value in json.loads(sys.argv[1]).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
absent = lambda _: [importlib.util.find_spec(name) is None for name in ("metastore", "obstore", "pyspark.no")]
assert spark.sparkContext.parallelize([0], 1).map(absent).collect() == [[True, True, True]]
print("starts", flush=True)
print(metastore.analyze(spark, sys.argv[2], progress=False).files_read, flush=True)
"""


@pytest.fixture
def bare_python(tmp_path):
    """A Python for workers that sees the standard library, numpy, pyarrow and nothing else."""
    site = tmp_path / "site"
    site.mkdir()
    for package in (np, pa):
        folder = Path(package.__file__).parent
        for source in (folder, folder.with_name(f"{folder.name}.libs")):
            if source.exists():
                (site / source.name).symlink_to(source)
    script = tmp_path / "python"
    spark_home = Path(pyspark.__file__).parents[1]
    py4j = next(spark_home.glob("pyspark/python/lib/py4j-*.zip"), spark_home / "py4j-missing")
    for name in ("pyspark", "py4j"):
        if not py4j.exists() and (spark_home / name).exists():
            (site / name).symlink_to(spark_home / name)
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{site}:$PYTHONPATH" exec {sys.executable} -S "$@"\n')
    script.chmod(0o755)
    return script


def test_finished_blocks_of_a_killed_run_are_used(spark, own_spark_conf, table, bare_python):
    spark.sql(f"CREATE TABLE {table} (id BIGINT, name STRING) USING iceberg")
    spark.sql(f"INSERT INTO {table} SELECT /*+ REPARTITION({FILES}) */ id, concat('n', id) FROM range({FILES * 10})")
    total = spark.table(f"{table}.files").count()
    objects = Path(location(spark, table)) / "_metastore" / "objects"
    environment = {**os.environ, "PYSPARK_PYTHON": str(bare_python), "PYSPARK_DRIVER_PYTHON": sys.executable}
    command = [sys.executable, "-c", ANALYZE, json.dumps(own_spark_conf), table]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout.readline() == b"starts\n"
        while process.poll() is None and not list(objects.glob("files-*.parquet")):
            time.sleep(0.005)
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
    assert not list(objects.glob("../log/*.json"))
    report = metastore.analyze(spark, table, progress=False)
    assert report.files == total
    assert 0 < report.files_read < total
    check_table(spark, table)
    assert metastore.analyze(spark, table, progress=False).files_read == 0
