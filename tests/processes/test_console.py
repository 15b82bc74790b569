"""What the console of a driver says of its first SQL ANALYZE, which has to start a Python: it is not silent."""

from __future__ import annotations

import json
import os
import pty
import sys

import pytest

from lakes import SPARK
from processes.drivers import START, driver, needs_proc, submit

pytestmark = [pytest.mark.spark, pytest.mark.slow, needs_proc, pytest.mark.skipif(SPARK == "3.5", reason="same code")]

ANALYZE = f"""{START}
spark = start()
spark.sql("CREATE TABLE ice.db.console (id BIGINT) USING iceberg")
spark.sql("INSERT INTO ice.db.console SELECT id FROM range(100)")
print("statement", file=sys.stderr, flush=True)
spark.sql("ANALYZE TABLE ice.db.console COMPUTE STATISTICS FOR ALL COLUMNS")
print("answer", file=sys.stderr, flush=True)
spark.sql("DROP TABLE ice.db.console")
spark.stop()
"""
STARTING = "ANALYZE: starting Python"


def said_meanwhile(console: str) -> str:
    """What the console said between the statement and its answer."""
    assert "answer" in console, console
    return console.partition("statement")[2].partition("answer")[0]


@pytest.fixture
def console_conf(own_spark_conf):
    return {name: value for name, value in own_spark_conf.items() if name != "spark.ui.showConsoleProgress"}


def test_a_python_driver_says_what_it_does_and_shows_spark_s_bar(console_conf, tmp_path):
    """The bar is Spark's own: for a Python driver it is on unless somebody switches it off."""
    command = [sys.executable, "-c", ANALYZE, json.dumps(console_conf)]
    with driver(command, tmp_path) as running:
        said = said_meanwhile(running.ends())
    assert STARTING in said.partition("looking up what changed")[0], said
    assert "ice.db.console: looking up what changed" in said
    assert "[Stage " in said, said


def test_a_python_driver_without_the_bar_is_silent(own_spark_conf, tmp_path):
    command = [sys.executable, "-c", ANALYZE, json.dumps(own_spark_conf)]
    with driver(command, tmp_path) as running:
        said = said_meanwhile(running.ends())
    assert not said.strip()


def run_job(conf, folder, *, on_terminal: bool) -> str:
    """The console of a job that spark-submit runs."""
    script = folder / "job.py"
    script.write_text(ANALYZE)
    command = [*submit(script, conf), "{}"]
    if not on_terminal:
        with driver(command, folder) as running:
            return running.ends()
    terminal, its_end = pty.openpty()
    with driver(command, folder, output=its_end) as running:
        os.close(its_end)
        said = read_all(terminal)
        running.ends()
    os.close(terminal)
    return said


def read_all(terminal: int) -> str:
    """What is written to a terminal until nobody has it open."""
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # so Linux says that the other end is closed
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()


@pytest.mark.parametrize("on_terminal", [True, False])
def test_a_job_says_it_to_who_sits_at_a_terminal(console_conf, tmp_path, on_terminal):
    said = said_meanwhile(run_job(console_conf, tmp_path, on_terminal=on_terminal))
    assert (STARTING in said) == on_terminal, said
    assert ("looking up what changed" in said) == on_terminal, said
