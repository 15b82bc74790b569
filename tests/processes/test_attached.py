"""The attached Python, or a worker of its jobs, is killed: ANALYZE says so, and the next one works."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

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


def named(processes, word):
    """The numbers of the processes with a word in their command."""
    return {int(process.pid()) for process in processes.toArray() if word in process.info().commandLine().orElse("")}


def attached_processes(jvm):
    return named(jvm.children(), "metastore.spark.attached_process")


def workers(jvm):
    """Not their daemon: it buries them, as where memory runs out, and Spark hands out none that is dead."""
    return named(jvm.descendants(), "pyspark.daemon") - named(jvm.children(), "pyspark.daemon")


def raised_when_killed(spark, table, analyze, find_processes):
    """Kill processes below the JVM while ANALYZE reads, until it ends; return the error that it raises."""
    jvm = spark._jvm.java.lang.ProcessHandle.current()
    killed = set()
    path = spark.table(f"{table}.files").collect()[0].file_path
    with ThreadPoolExecutor(1) as threads, blocked(path):
        running = threads.submit(analyze)
        wait_until(lambda: spark.sparkContext.statusTracker().getActiveJobsIds(), "the job runs")
        deadline = time.monotonic() + LIMIT
        while not wait([running], 0.5).done:
            assert time.monotonic() < deadline
            for pid in find_processes(jvm):
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in killed), "those that were killed are gone")
        return str(running.exception()).split("\n\nJVM stacktrace")[0].strip()


@pytest.mark.slow
def test_a_killed_process_says_so_and_is_replaced(spark, table):
    said = raised_when_killed(spark, table, lambda: spark.sql(ANALYZE.format(table)), attached_processes)
    assert said.startswith(f"[METASTORE_ANALYZE_FAILED] ANALYZE of {table} failed: its Python process was killed")
    assert "SIGKILL" in said
    assert "137" in said
    assert "memory" in said
    assert "pip install" not in said
    assert len(said.splitlines()) == 1
    assert spark.sql(ANALYZE.format(table)).collect()[0]["rows"] == 100


@pytest.mark.slow
def test_a_process_that_died_between_statements_is_replaced(spark, table):
    spark.sql(ANALYZE.format(table))
    attached = attached_processes(spark._jvm.java.lang.ProcessHandle.current())
    assert attached
    for pid in attached:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in attached), "those that were killed are gone")
    assert spark.sql(ANALYZE.format(table)).collect()[0]["rows"] == 100


@pytest.mark.slow
def test_a_killed_worker_is_told_of(spark, table):
    def analyze():
        metastore.analyze(spark, table, progress=False)

    said = raised_when_killed(spark, table, analyze, workers)
    assert said.startswith(f"[METASTORE_ANALYZE_FAILED] ANALYZE of {table} failed: ")
    assert "spark.executor.memoryOverhead" in said, said
    assert len(said.splitlines()) == 1
    assert metastore.analyze(spark, table, progress=False).rows == 100
