"""The console of a driver during an automatic ANALYZE."""

from __future__ import annotations

import json
import sys

import pytest

from lakes import SPARK
from processes.drivers import START, driver, needs_proc

pytestmark = [pytest.mark.spark, pytest.mark.slow, needs_proc, pytest.mark.skipif(SPARK == "3.5", reason="same code")]

WRITER = f"""{START}
spark = start()
spark.sql("CREATE TABLE ice.db.heard (id BIGINT) USING iceberg")
spark.sql("INSERT INTO ice.db.heard SELECT id FROM range(100)")
while not all(row["analyzed"] for row in metastore.files(spark, "ice.db.heard")):
    time.sleep(0.2)
spark.sql("DROP TABLE ice.db.heard")
spark.stop()
"""


@pytest.mark.parametrize(("mode", "is_shown"), [("wait", True), ("background", False)])
def test_only_who_waits_hears_how_far_it_is(own_spark_conf, tmp_path, mode, is_shown):
    session_conf = {"spark.metastore.analyze.auto": mode, "spark.ui.showConsoleProgress": "true"}
    command = [sys.executable, "-c", WRITER, json.dumps({**own_spark_conf, **session_conf})]
    with driver(command, tmp_path) as running:
        said = running.ends()
    assert running.process.returncode == 0, said
    assert ("ANALYZE: starting Python" in said, "looking up what changed" in said) == (is_shown, is_shown), said
