"""Deletion vectors that list more rows than their data file has, as no careful writer's do: Delta reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import metastore
from delta.conftest import append, create, location
from nightly import others_nightly
from planner.plans import conf, plain, rows

pytestmark = pytest.mark.spark

QUERIES = (
    "SELECT count(*) FROM {t}",
    "SELECT count(id) FROM {t} WHERE id < 100",
    "SELECT min(day), max(day) FROM {t} WHERE id < 100",
    "SELECT count(*) FROM (SELECT id FROM {t} ORDER BY id LIMIT 70)",
    "SELECT id FROM {t} ORDER BY id LIMIT 90",
)


@pytest.fixture(params=others_nightly(["the log counts rows", "the log counts no rows"]))
def odd_table(request, spark, table):
    """A file of a hundred rows with the vector of one of a thousand, of which every fifth row was deleted."""
    create(spark, table)
    append(spark, table, 0, 100, 1)
    append(spark, table, 100, 1100, 1)
    spark.sql(f"DELETE FROM {table} WHERE id >= 100 AND id % 5 = 0")
    log = Path(location(spark, table).removeprefix("file:"), "_delta_log")
    give_vector(log)
    if request.param == "the log counts no rows":
        leave_out_statistics(log)
    for checksum in log.glob("*.crc"):
        checksum.unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    return table


def give_vector(log: Path) -> None:
    """Makes the last commit one that gives the vector of the second file to the first."""
    commits = sorted(log.glob("*.json"))
    (first,) = (action["add"] for action in read(commits[1]) if "add" in action)
    last = read(commits[-1])
    (vector,) = (action["add"]["deletionVector"] for action in last if "add" in action)
    assert vector["cardinality"] == 200
    for action in last:
        if "remove" in action:
            action["remove"].update(path=first["path"], size=first["size"])
        if "add" in action:
            action["add"] = {**first, "deletionVector": vector}
    write(commits[-1], last)


def leave_out_statistics(log: Path) -> None:
    for commit in log.glob("*.json"):
        actions = read(commit)
        for action in actions:
            action.get("add", {}).pop("stats", None)
        write(commit, actions)


def read(commit: Path) -> list[dict]:
    return list(map(json.loads, commit.read_text("utf-8").splitlines()))


def write(commit: Path, actions: list[dict]) -> None:
    commit.write_text("\n".join(map(json.dumps, actions)) + "\n", "utf-8")


def test_they_count_no_rows(spark, odd_table):
    metastore.analyze(spark, odd_table, progress=False)
    with conf(
        spark,
        spark__metastore__aggregates__enabled=True,
        spark__databricks__delta__optimizeMetadataQuery__enabled=False,  # Delta itself counts what the log says
    ):
        assert spark.sql(f"SELECT count(*) FROM {odd_table}").first()[0] == 1080
        for query in QUERIES:
            statement = query.format(t=odd_table)
            assert rows(spark.sql(statement)) == plain(spark, statement), statement


@pytest.mark.parametrize("odd_table", ["the log counts rows"], indirect=True)
def test_statistics_do_not_know_how_many_rows_live(spark, odd_table):
    metastore.analyze(spark, odd_table, progress=False)
    deleted = {row["rows"]: row["deleted_rows"] for row in metastore.files(spark, odd_table)}
    assert deleted == {100: None, 1000: 0}
    assert metastore.summary(spark, odd_table).column("id")["count"] is None
