"""Requests of a driver for statistics on an object store, also where the store is slow, broken or silent."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import metastore
from cloud import program
from cloud.counting import CountingProxy
from cloud.requests_program import ROWS
from store import s3
from versions.environments import fetch_locked

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
LOCKS = ("iceberg-aws.lock", "hadoop-aws.lock", "sqlite-jdbc.lock")
WAREHOUSE = f"s3a://{s3.BUCKET}/requests"
ON_S3 = {
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.lake.warehouse": WAREHOUSE,
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    "spark.hadoop.fs.s3a.access.key": s3.KEY,
    "spark.hadoop.fs.s3a.secret.key": s3.SECRET,
    "spark.sql.catalog.own": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.own.type": "jdbc",
    "spark.sql.catalog.own.uri": "jdbc:sqlite:catalog.db",
    "spark.sql.catalog.own.jdbc.schema-version": "V1",
    "spark.sql.catalog.own.warehouse": f"s3://{s3.BUCKET}/own",
    "spark.sql.catalog.own.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    "spark.sql.catalog.own.s3.path-style-access": "true",
    "spark.sql.catalog.own.client.region": "us-east-1",
    "spark.sql.catalog.own.s3.access-key-id": s3.KEY,
    "spark.sql.catalog.own.s3.secret-access-key": s3.SECRET,
}
TABLES = {
    "iceberg": "lake.db.t",
    "iceberg by S3FileIO": "own.db.t",
    "delta": f"delta.`{WAREHOUSE}/delta`",
    "parquet": f"parquet.`{WAREHOUSE}/parquet`",
}
LIMITS = {
    "analyze again": (4, 4),
    "plan by bounds": (6, 3),
    "plan by values": (9, 4),
    "plan by bounds at once": (0, 0),
    "plan by values at once": (0, 0),
    "plan later": (1, 1),
    "layout": (20, 8),
    "layout later": (1, 1),
    **dict.fromkeys(("summary", "frequencies", "histogram", "quantiles"), (6, 6)),
    **{f"{name} later": (1, 1) for name in ("summary", "frequencies", "histogram", "quantiles")},
}
"""The most requests and round trips of each step."""
COMMAND_LIMIT = 3.0
"""Seconds that a command waits for statistics: fifteen times `SHORT_TIMEOUT`."""
PATIENCE = 15.0
"""Seconds beyond all limits that a busy machine may take."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3.running() as address:
        yield address


@pytest.fixture(scope="module")
def driver(server, tmp_path_factory, spark_conf) -> dict[str, Any]:
    """The requests and answers of a Spark driver."""
    locked = [str(jar) for lock in LOCKS for jar in fetch_locked(HERE / lock)]
    jars = ",".join([spark_conf["spark.jars"], *locked])
    settings = {**spark_conf, **ON_S3, "spark.driver.memory": "1g", "spark.jars": jars}
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [server, json.dumps(settings), json.dumps(TABLES)]
    folder = tmp_path_factory.mktemp("driver")
    results = program.run_file(HERE / "requests_program.py", arguments, folder, environment)
    return {**results, "exit": time.time() - results["exit"]}


def list_requests(step: dict[str, Any]) -> list[str]:
    return [f"{request['method']} {request['key']} {request['bytes']}" for request in step["requests"]]


@pytest.fixture(params=TABLES)
def table(request) -> str:
    return request.param


@pytest.fixture
def steps(driver, table) -> dict[str, Any]:
    """The requests for a table, by step."""
    return driver["requests"][table]


def test_a_driver_asks_the_store_seldom(steps):
    for name in steps.keys() - {"analyze"}:
        requests = list_requests(steps[name])
        most, rounds = LIMITS[name]
        assert min(1, most) <= len(requests) <= most, (name, requests)
        assert steps[name]["rounds"] <= rounds, (name, requests)


def test_nothing_is_read_twice(steps):
    for name, step in steps.items():
        requests = list_requests(step)
        assert len(requests) == len(set(requests)) or name.startswith("analyze"), (name, requests)


def test_an_object_is_written_by_one_request(steps):
    written = [
        request
        for request in steps["analyze"]["requests"]
        if "/objects/" in request["key"] and request["method"] != "GET"
    ]
    puts = [request["key"] for request in written if request["method"] == "PUT"]
    assert len(puts) == len(set(puts)) > 5
    assert not [request for request in written if request["method"] == "POST"]


@pytest.mark.parametrize("fault", ["errors", "slow", "silent", "memory"])
def test_a_store_that_misbehaves_costs_a_query_its_time_limit_at_most(driver, fault):
    outcome = driver["faults"][fault]
    assert [query["rows"] for query in outcome["queries"]] == [["text 5001"]] * 2
    assert max(query["seconds"] for query in outcome["queries"]) < PATIENCE
    assert outcome["served"] > 0


@pytest.mark.parametrize("table", ["iceberg", "delta"])
def test_a_store_that_misbehaves_costs_a_command_its_time_limit_at_most(driver, table):
    """The command deletes its row, also where it has to read all files."""
    for deleted, (fault, outcome) in enumerate(driver["commands"][table].items(), 1):
        assert outcome["rows"] == ROWS - deleted, fault
        assert outcome["with the key"] == 0, fault
        assert outcome["seconds"] < COMMAND_LIMIT + PATIENCE, fault


def test_explain_says_that_statistics_came_too_late(driver):
    silent = driver["faults"]["silent"]["queries"]
    assert "took longer than 1000 ms" in silent[0]["label"], silent
    assert "took longer than 1000 ms" in silent[1]["label"], silent


def test_the_look_up_goes_on_and_serves_the_next_query(driver):
    first, second = driver["faults"]["slow"]["queries"]
    assert "took longer than 1000 ms" in first["label"]
    assert second["label"].startswith("8 -> 1 files")


def test_what_was_read_before_serves_while_the_store_is_silent(driver):
    assert all(query["label"].startswith("8 -> 1 files") for query in driver["faults"]["memory"]["queries"])


def test_a_silent_store_does_not_delay_the_end(driver):
    assert driver["stop"] < PATIENCE
    assert driver["exit"] < PATIENCE


def test_open_reads_a_summary_by_few_requests(driver, server, monkeypatch):
    with CountingProxy(server, delay=0.02) as proxy:
        keys = {"AWS_ACCESS_KEY_ID": s3.KEY, "AWS_SECRET_ACCESS_KEY": s3.SECRET, "AWS_ENDPOINT_URL": proxy.address}
        for name, value in {**keys, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}.items():
            monkeypatch.setenv(name, value)
        requests = proxy.record(lambda: metastore.open(f"{WAREHOUSE}/db/t").summary())
    assert len(requests) <= 5, requests
