"""Two drivers write the same table at once: each data file is read once, whoever wrote it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import metastore
from metastore.format.manifest import Manifest
from metastore.store import Store
from metastore.store.block_files import BlockFilesCache
from pipeline.checks import location
from processes.drivers import START, driver, needs_proc

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = [pytest.mark.spark, pytest.mark.slow, needs_proc]

ROUNDS = 2
WRITER = (
    START
    + """
table, rounds = sys.argv[2], int(sys.argv[3])
spark = start()
spark.sql(f"SELECT * FROM {table}").collect()
print("ready", flush=True)
sys.stdin.readline()
for _ in range(rounds):
    spark.sql(f"INSERT INTO {table} SELECT /*+ REPARTITION(2) */ id, uuid(), rand() FROM range(200000)")
known = lambda: all(row["analyzed"] for row in metastore.files(spark, table)) and all(
    row["distinct"] is not None for row in metastore.columns(spark, table, "id"))
until = time.monotonic() + 600
while not known() and time.monotonic() < until:
    time.sleep(0.2)
print("known" if known() else "unknown", flush=True)
sys.stdin.readline()
"""
)


def times_computed(store: Store, folder: Path) -> Mapping[str, Counter[str]]:
    """How often each data file stands in a block that was committed, by depth."""
    read = (Manifest.from_bytes(file.read_bytes()) for file in sorted((folder / "log").glob("*.json")))
    blocks = {block.id: block for manifest in read for block in manifest.blocks}
    computed: dict[str, Counter[str]] = {"footer": Counter(), "full": Counter()}
    for block_files in BlockFilesCache(store).read(tuple(blocks.values())):
        computed[block_files.block.computed].update(str(key) for key in block_files.ordinals)
    return computed


def test_no_data_file_is_read_twice(spark, own_spark_conf, tmp_path):
    table = "ice.db.written_by_two"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, name STRING, value DOUBLE) USING iceberg")
    conf = {**own_spark_conf, "spark.metastore.analyze.auto": "background"}
    command = [sys.executable, "-c", WRITER, json.dumps(conf), table, str(ROUNDS)]
    try:
        with driver(command, tmp_path) as first, driver(command, tmp_path) as other:
            for step in ("ready", "known"):
                assert [running.says(step) for running in (first, other)] == [f"{step}\n"] * 2
                for running in (first, other):
                    running.process.stdin.write("\n")
                    running.process.stdin.flush()
        spark.sql(f"REFRESH TABLE {table}")
        files = len(metastore.files(spark, table))
        folder = Path(location(spark, table).removeprefix("file:")) / "_metastore"
        times = times_computed(Store.open(str(folder)), folder)
        assert files == 2 * 2 * ROUNDS
        assert {depth: set(times.values()) for depth, times in times.items()} == {"footer": {1}, "full": {1}}
        assert len(times["full"]) == files
    finally:
        spark.sql(f"DROP TABLE {table} PURGE")
