"""Ctrl-C and SIGTERM end the command line at once, with one line and the exit code of shells."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.blocked import blocked
from processes.drivers import LIMIT, Driver, driver, needs_proc
from sql import servers

PROGRAM = Path(sys.executable).parent / "metastore"
ENDS = [
    (signal.SIGINT, 130, "interrupted"),
    pytest.param(signal.SIGTERM, 143, "terminated", marks=pytest.mark.night),
]

pytestmark = [needs_proc, pytest.mark.parametrize(("number", "code", "line"), ENDS)]


@pytest.fixture(autouse=True)
def heed_interrupts():
    """Let processes heed SIGINT: whoever runs the tests in the background has them inherit that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def command(folder, *arguments):
    """The program as a shell starts it: what a terminal sends goes to all of its group."""
    with driver([str(PROGRAM), *map(str, arguments)], folder, start_new_session=True) as running:
        yield running


def stopped(running: Driver, number: int, code: int, line: str) -> None:
    """Signals as a terminal does, the whole group, or as `kill`, the process; what was said until the end."""
    if number == signal.SIGINT and os.getpgid(running.process.pid) == running.process.pid:
        os.killpg(running.process.pid, number)
    else:
        running.process.send_signal(number)
    said = running.ends()
    assert running.process.returncode == code, said
    assert said.splitlines()[-1] == line, said
    assert "Traceback" not in said
    assert "doctor" not in said
    assert "error:" not in said


@pytest.mark.slow
@pytest.mark.spark
def test_while_spark_starts(own_spark_conf, tmp_path, number, code, line):
    with command(tmp_path, "summary", "ice.db.t", *servers.options(own_spark_conf)) as running:
        assert "starting Spark" in running.says("metastore:")
        stopped(running, number, code, line)


@pytest.mark.spark
@pytest.mark.slow
def test_while_it_analyzes(spark, own_spark_conf, tmp_path, number, code, line):
    name = f"ice.db.interrupted_{code}"
    spark.range(0, 100, 1, 2).writeTo(name).using("iceberg").createOrReplace()
    path = spark.table(f"{name}.files").collect()[0].file_path
    with blocked(path), command(tmp_path, "analyze", name, *servers.options(own_spark_conf)) as running:
        assert "reading 0/2 files" in running.says("reading")
        deadline = time.monotonic() + LIMIT
        while not running.pids("pyspark.daemon"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        stopped(running, number, code, line)
    assert not list(Path(path).parents[1].glob("_metastore/log/*.json"))
    spark.sql(f"DROP TABLE {name}")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "step", [*(pytest.param(step, marks=pytest.mark.campaign) for step in ("[1/6]", "[2/6]")), "[3/6]"]
)
def test_during_the_demonstration(tmp_path, number, code, line, step):
    with command(tmp_path, "demo", "--scale", "0.01") as running:
        running.says(step)
        stopped(running, number, code, line)


HANGS = """
import sys
from metastore.cli import termination
termination.listen_for_signals()
import obstore
from obstore.store import LocalStore
print("hangs", flush=True)
obstore.get(LocalStore(prefix=sys.argv[1]), "pipe").bytes()
"""


def test_twice_where_a_library_does_not_look(tmp_path, number, code, line):
    os.mkfifo(tmp_path / "pipe")
    with driver([sys.executable, "-c", HANGS, str(tmp_path)], tmp_path) as running:
        running.says("hangs")
        time.sleep(0.5)
        running.process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            running.process.wait(0.5)
        stopped(running, number, code, line)
