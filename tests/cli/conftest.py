from __future__ import annotations

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
