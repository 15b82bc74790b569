"""Keys of a catalog that end during an ANALYZE: its tasks get new ones, and no request comes with an old one."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cloud import long_analyze, program
from cloud.rest_catalog import Guard, RestCatalog
from store import s3
from versions.environments import fetch_locked

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
SECONDS = 20.0
"""The time for which a key is valid; a job of ANALYZE takes less than half of it."""
DELAY = 0.3
"""Seconds by which the guard delays each read of a part of a data file."""


class SlowGuard(Guard):
    """A guard that delays the readers of data files."""

    def explain_refusal(self, path: str, headers: Any, body: bytes) -> str | None:
        reason = super().explain_refusal(path, headers, body)
        if "/data/" in path and "Range" in headers:
            time.sleep(DELAY)
        return reason


PREFIXES = pytest.param(True, id="credentials of prefixes", marks=pytest.mark.campaign)


@pytest.mark.parametrize("as_storage_credentials", [pytest.param(False, id="settings of the table"), PREFIXES])
def test_analyze_takes_longer_than_its_keys_are_valid(as_storage_credentials, spark_conf, tmp_path):
    with s3.running() as behind, SlowGuard(behind) as guard, RestCatalog(behind, guard, "short") as catalog:
        catalog.vending.seconds = SECONDS
        catalog.vending.as_storage_credentials = as_storage_credentials
        jars = map(str, fetch_locked(HERE / "iceberg-aws.lock"))
        settings = {
            **spark_conf,
            "spark.driver.memory": "1g",
            "spark.jars": ",".join([spark_conf["spark.jars"], *jars]),
            "spark.sql.catalog.short": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.short.type": "rest",
            "spark.sql.catalog.short.uri": catalog.address,
        }
        environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
        arguments = [json.dumps(settings), "short.db.long"]
        results = program.run_file(long_analyze.__file__, arguments, tmp_path, environment)
    assert results["seconds"] > 1.5 * SECONDS
    assert (results["files_read"], results["refused"], results["again"]) == (long_analyze.FILES, [], 0)
    assert results["label"].startswith(f"{long_analyze.FILES} -> 1 files")
    assert results["rows"] == ["n700"]
    assert guard.refused == []
