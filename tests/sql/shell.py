"""The command line in a session of the tests."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from metastore.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@contextmanager
def _lent(session: SparkSession) -> Iterator[SparkSession]:
    yield session


def run_in_session(session: SparkSession, *arguments: str) -> None:
    """Run a command; what it says of its failure is raised as an AssertionError in one line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("metastore.spark.local_session.start_local_spark", lambda *_: _lent(session))
        done = CliRunner().invoke(app, list(arguments))
    if done.exit_code:
        raise AssertionError(" ".join(done.stderr.split()))
