"""Drivers end when their users think that they do, without `spark.stop()`, and leave no process behind."""

from __future__ import annotations

import itertools
import os
import shlex
import signal
import sys
import time

import pytest

from pipeline.blocked import blocked
from processes.drivers import LIMIT, driver, needs_proc, submit
from sql import servers

pytestmark = [pytest.mark.spark, needs_proc]

SQL = "spark.sql('ANALYZE TABLE ice.db.ended COMPUTE STATISTICS FOR ALL COLUMNS')"
PYTHON = "import metastore; metastore.analyze(spark, 'ice.db.ended')"
READ = (
    "assert spark.sql(\"SELECT * FROM metastore.summary('ice.db.ended')\").count() == 2\n"
    "assert spark.sql('SELECT * FROM ice.db.ended WHERE id = 3').count() == 1"
)
HELD = """
def held():
    found = spark._jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()
    return {thread.getName() for thread in found if not thread.isDaemon()}
before = held()
"""
THREADS = "print('HELD BY US', sorted(held() - before))"
TWO_SESSIONS = """
from threading import Thread
def analyze(session):
    session.sql("ANALYZE TABLE ice.db.ended COMPUTE STATISTICS FOR ALL COLUMNS")
threads = [Thread(target=analyze, args=(spark.newSession(),)) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
SCRIPT = """
import time
from pathlib import Path
from pyspark.sql import SparkSession
def wait(word):
    while not Path(word).exists():
        time.sleep(0.05)
spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
spark.range(100).selectExpr("id", "'s' || id AS s").writeTo("ice.db.ended").using("iceberg").createOrReplace()
print("FILE", spark.table("ice.db.ended.files").collect()[0].file_path, flush=True)
{}
print("LAST", flush=True)
"""
WAIT = "wait('begin')\n"
BESIDE = f"{WAIT}from threading import Thread\nThread(target=lambda: {SQL}, daemon=True).start()\nwait('end')"

HOW, BODIES = ("spark-submit", "python"), {"sql": SQL, "python": PYTHON, "two sessions": TWO_SESSIONS}
VICTIMS, SIGNALS = ("driver", "jvm"), (signal.SIGTERM, signal.SIGKILL)


def mark_campaign(cases, few):
    """All cases, of which only these few are run without `-m campaign`."""
    return [pytest.param(*case, marks=() if at in few else pytest.mark.campaign) for at, case in enumerate(cases)]


def script_command(how, conf, folder, body):
    """A command that runs a script, and its environment."""
    script = folder / "script.py"
    script.write_text(SCRIPT.format(body))
    if how == "spark-submit":
        return submit(script, conf), {}
    return [sys.executable, str(script)], {"PYSPARK_SUBMIT_ARGS": f"{shlex.join(servers.options(conf))} pyspark-shell"}


def run(how, conf, folder, body):
    command, environment = script_command(how, conf, folder, body)
    with driver(command, folder, **environment) as running:
        said = running.ends()
        assert "LAST" in said, said
        assert running.process.returncode == 0, said
    return said


@pytest.mark.slow
def test_a_submitted_script_ends_after_its_last_line(own_spark_conf, tmp_path):
    said = run("spark-submit", own_spark_conf, tmp_path, f"{HELD}\n{SQL}\n{READ}\n{THREADS}")
    assert "HELD BY US []" in said


@pytest.mark.slow
@pytest.mark.parametrize(("how", "body"), mark_campaign(itertools.product(HOW, BODIES), [0, 4, 2]))
def test_every_script_ends(own_spark_conf, tmp_path, how, body):
    run(how, own_spark_conf, tmp_path, BODIES[body])


@pytest.mark.slow
def test_a_shell_ends_with_its_input(own_spark_conf, tmp_path):
    lines = (
        'spark.sql("CREATE OR REPLACE TABLE ice.ended USING iceberg AS SELECT 1 AS a")\n'
        'spark.sql("ANALYZE TABLE ice.ended COMPUTE STATISTICS FOR ALL COLUMNS").show()\nprintln("LA" + "ST")\n'
    )
    command = [str(servers.HOME / "bin/spark-shell"), *servers.options(own_spark_conf)]
    with driver(command, tmp_path) as running:
        running.process.stdin.write(lines)
        running.process.stdin.close()
        running.process.stdin = None
        assert "LAST" in running.ends()


def analyzing(running, folder):
    """Lets the script in a folder go on, and waits until the job of its ANALYZE has a Python that reads."""
    (folder / "begin").touch()
    deadline = time.monotonic() + LIMIT
    while not running.pids("pyspark.daemon") or not running.pids("metastore.spark.attached_process"):
        assert running.process.poll() is None
        assert time.monotonic() < deadline, running.processes()
        time.sleep(0.1)
    time.sleep(2)
    assert running.process.poll() is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "victim", "number"), mark_campaign(itertools.product(HOW, VICTIMS, SIGNALS), [0, 3, 6])
)
def test_nothing_is_left_of_a_driver_that_is_killed_while_it_analyzes(own_spark_conf, tmp_path, how, victim, number):
    command, environment = script_command(how, own_spark_conf, tmp_path, WAIT + SQL)
    with driver(command, tmp_path, **environment) as running:
        path = running.says("FILE").split()[-1]
        with blocked(path):
            analyzing(running, tmp_path)
            (jvm,) = running.pids("org.apache.spark.deploy.SparkSubmit")
            os.kill(jvm if victim == "jvm" else running.process.pid, number)
            running.ends()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["spark-submit", "python"])
def test_a_script_ends_while_another_thread_of_it_analyzes(own_spark_conf, tmp_path, how):
    command, environment = script_command(how, own_spark_conf, tmp_path, BESIDE)
    with driver(command, tmp_path, **environment) as running:
        path = running.says("FILE").split()[-1]
        with blocked(path):
            analyzing(running, tmp_path)
            (tmp_path / "end").touch()
            assert "LAST" in running.ends()
