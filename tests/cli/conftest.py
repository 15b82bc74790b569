from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

from metastore.cli.app import app
from reading.conftest import location

__all__ = ["location"]


@pytest.fixture
def run():
    runner = CliRunner()

    def call(*arguments, code=0):
        done = runner.invoke(app, [str(argument) for argument in arguments])
        assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
        return done

    return call


def findings(run, *arguments, code=0):
    """Run the doctor; its findings by the name of the check."""
    check_results = json.loads(run("doctor", *arguments, "--json", code=code).stdout)["findings"]
    return {result["check"]: result for result in check_results}


@pytest.fixture
def healthy(monkeypatch, tmp_path):
    """An environment in which nothing is wrong."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
