"""The attached Python process lives as long as the SparkContext that started it, and no longer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from processes.drivers import START

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DRIVER = (
    START
    + """
def attach():
    spark = start()
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    spark.sql("CREATE OR REPLACE TABLE ice.db.attached USING iceberg AS SELECT 1 AS a")
    spark.sql("ANALYZE TABLE ice.db.attached COMPUTE STATISTICS NOSCAN")
    jvm = spark._jvm.java.lang.ProcessHandle.current()
    children = {child.pid(): child.info().commandLine().orElse("") for child in jvm.children().toArray()}
    (attached,) = [pid for pid, command in children.items() if "metastore.spark.attached_process" in command]
    print(jvm.pid(), attached, flush=True)
    sys.stdin.readline()
    return spark
attach().stop()
print("stopped", flush=True)
sys.stdin.readline()
attach()
"""
)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(pid: int) -> bool:
    deadline = time.monotonic() + 30
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_alive(pid)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="processes are looked up in /proc")
def test_it_ends_with_its_context_and_with_its_jvm(own_spark_conf):
    command = [sys.executable, "-c", DRIVER, json.dumps(own_spark_conf)]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:

        def go_on() -> str:
            driver.stdin.write("\n")
            driver.stdin.flush()
            return driver.stdout.readline()

        jvm, first = map(int, driver.stdout.readline().split())
        assert is_alive(first)
        assert go_on() == "stopped\n"
        assert ends(first)
        assert is_alive(jvm)
        same, second = map(int, go_on().split())
        assert (same, is_alive(second)) == (jvm, True)
        os.kill(jvm, signal.SIGKILL)
        assert ends(second)
        driver.kill()
