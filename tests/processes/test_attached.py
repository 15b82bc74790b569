"""The attached Python, or a worker of its jobs, is killed: ANALYZE says so, and the next one works."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

import metastore
from pipeline.blocked import blocked, wait_until
from processes.drivers import LIMIT, needs_proc

pytestmark = [pytest.mark.spark, needs_proc]

ANALYZE = "ANALYZE TABLE {} COMPUTE STATISTICS FOR ALL COLUMNS"


@pytest.fixture
def table(spark):
    name = "ice.db.killed"
    spark.range(100).selectExpr("id", "'s' || id AS s").writeTo(name).using("iceberg").createOrReplace()
    yield name
    spark.sql(f"DROP TABLE {name}")


def children(process, word):
    """The processes that a JVM's one started, with a word in their command."""
    found = process.descendants().toArray()
    return [int(one.pid()) for one in found if word in one.info().commandLine().orElse("")]


def raised_when_killed(spark, table, analyze, word):
    """What ANALYZE raises when the processes with a word in their command are killed while it reads, until it ends."""
    jvm = spark._jvm.java.lang.ProcessHandle.current()
    path = spark.table(f"{table}.files").collect()[0].file_path
    with ThreadPoolExecutor(1) as threads, blocked(path):
        running = threads.submit(analyze)
        wait_until(lambda: spark.sparkContext.statusTracker().getActiveJobsIds(), "the job runs")
        deadline = time.monotonic() + LIMIT
        while not wait([running], 0.5).done:
            assert time.monotonic() < deadline
            for pid in children(jvm, word):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not children(jvm, word), "those that were killed are gone")  # Spark may still hand one out
        return str(running.exception()).split("\n\nJVM stacktrace")[0].strip()


@pytest.mark.slow
def test_a_killed_process_says_so_and_is_replaced(spark, table):
    said = raised_when_killed(
        spark, table, lambda: spark.sql(ANALYZE.format(table)), "metastore.spark.attached_process"
    )
    assert said.startswith(f"[METASTORE_ANALYZE_FAILED] ANALYZE of {table} failed: its Python process was killed")
    assert "SIGKILL" in said
    assert "137" in said
    assert "memory" in said
    assert "pip install" not in said
    assert len(said.splitlines()) == 1
    assert spark.sql(ANALYZE.format(table)).collect()[0]["rows"] == 100


@pytest.mark.slow
def test_a_killed_worker_is_told_of(spark, table):
    def analyze():
        metastore.analyze(spark, table, progress=False)

    said = raised_when_killed(spark, table, analyze, "pyspark.daemon")
    assert said.startswith(f"[METASTORE_ANALYZE_FAILED] ANALYZE of {table} failed: ")
    assert "spark.executor.memoryOverhead" in said, said
    assert len(said.splitlines()) == 1
    assert metastore.analyze(spark, table, progress=False).rows == 100
