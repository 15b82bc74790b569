"""ANALYZE on a cluster whose hosts have Pythons of their own, in places that the driver's host does not have."""

from __future__ import annotations

import json
import re
import socket
import sys
from pathlib import Path

import pytest

from cloud import cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not cluster.can_hide(), reason="this user may not hide a folder from a process (unshare)"),
]

PROGRAM = Path(__file__).with_name("cluster_program.py")
NO_SUCH_PYTHON = "/opt/no/such/python"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with cluster.running(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def analyze(running, spark_conf, tmp_path):
    """Run the program with settings and variables; what it answers."""

    def run(settings: dict[str, str], **environment: str) -> dict[str, str]:
        chosen_conf = {
            key: value for key, value in spark_conf.items() if key in ("spark.sql.extensions", "spark.ui.enabled")
        }
        addresses = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        formats = {"spark.metastore.analyze.formats": "parquet"}
        conf = {
            **chosen_conf,
            **addresses,
            **formats,
            "spark.master": running.master,
            "spark.executor.memory": "512m",
            **settings,
        }
        done = running.run_driver([str(PROGRAM), json.dumps(conf), tmp_path.as_uri()], environment)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_python3_of_each_host(analyze):
    assert analyze({"spark.pyspark.python": "python3"}, PYSPARK_PYTHON="python3") == {"sql": "1000", "python": "1000"}


@pytest.mark.night
def test_a_path_that_the_drivers_host_does_not_have(running, analyze):
    python = str(running.workers_python)
    assert analyze({"spark.pyspark.python": python}, PYSPARK_PYTHON=python) == {"sql": "1000", "python": "1000"}


@pytest.mark.night
def test_a_packed_environment(running, analyze):
    settings = {"spark.archives": f"{running.archive()}#environment"}
    rows = analyze(settings, PYSPARK_PYTHON="./environment/bin/python", PYSPARK_DRIVER_PYTHON=sys.executable)
    assert rows == {"sql": "1000", "python": "1000"}


def test_the_error_names_the_pythons_of_both_hosts(analyze):
    messages = analyze({"spark.pyspark.python": NO_SUCH_PYTHON}, PYSPARK_PYTHON=NO_SUCH_PYTHON)
    for message in messages.values():
        assert message.startswith("[METASTORE_ANALYZE_FAILED] ")
        assert re.search(rf"driver on {socket.gethostname()} runs \S*python\S*", message)
        assert f"the executor on 127.0.0.1 runs {NO_SUCH_PYTHON}" in message
        assert "Set spark.pyspark.python" in message
