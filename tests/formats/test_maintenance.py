"""The formats' own tidying deletes files that no table names: statistics beside a table are not among them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import metastore
from planner.plans import check, conf

pytestmark = pytest.mark.spark

TIDY = {
    "iceberg": [
        "CALL ice.system.rewrite_data_files(table => '{t}', options => map('min-input-files', '2'))",
        "CALL ice.system.expire_snapshots(table => '{t}', older_than => now(), retain_last => 1)",
        "CALL ice.system.remove_orphan_files(table => '{t}')",
    ],
    "delta": ["OPTIMIZE {t}", "VACUUM {t} RETAIN 0 HOURS"],
    "hudi": ["CALL run_clean(table => '{t}')"],
}


def make_old(folder: Path, days: int = 30) -> None:
    """Date everything back that lies in a table's folder."""
    for path in folder.rglob("*"):
        os.utime(path, (time.time() - days * 86_400,) * 2)


def test_statistics_survive_the_tidying_of_a_table(filled):
    if filled.kind.format not in TIDY:
        pytest.skip("directories of Parquet files are tidied by nobody")
    filled.analyze()
    spark, folder = filled.spark, Path(filled.location.removeprefix("file:"))
    stray = folder / "stray.parquet"
    stray.touch()
    make_old(folder)
    names = {path.name for path in (folder / "_metastore").rglob("*")}
    with conf(spark, spark__databricks__delta__retentionDurationCheck__enabled=False):
        for statement in TIDY[filled.kind.format]:
            spark.sql(statement.format(t=filled.name.removeprefix("ice."))).collect()
    assert names
    assert {path.name for path in (folder / "_metastore").rglob("*")} == names
    assert stray.exists() == (filled.kind.format == "hudi"), "what removes files has run"
    filled.analyze()
    assert {row["state"] for row in metastore.verify(spark, filled.name)} == {"ok"}
    check(spark, f"SELECT * FROM {filled.name} WHERE id = 250")
