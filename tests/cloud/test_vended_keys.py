"""Tables of a catalog that hands out keys: these alone open the place of a table, nobody else has any."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import metastore
from cloud.rest_catalog import Guard, RestCatalog
from store import s3
from versions.environments import fetch_locked

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
BY_KEYS = {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:9", "AWS_EC2_METADATA_DISABLED": "true"}


@pytest.fixture(scope="module")
def catalogs() -> Iterator[dict[str, RestCatalog]]:
    """Catalogs by name: keys come in a table's settings, or as credentials of a prefix."""
    with ExitStack() as stack:
        behind = stack.enter_context(s3.running())
        running = {}
        for name in ("settings", "prefix"):
            guard = stack.enter_context(Guard(behind))
            running[name] = stack.enter_context(RestCatalog(behind, guard, name))
        running["prefix"].vending.as_storage_credentials = True
        yield running


@pytest.fixture(scope="module")
def driver(catalogs, tmp_path_factory, spark_conf) -> dict[str, object]:
    """What Spark found of each catalog, and what it wrote for people."""
    folder = tmp_path_factory.mktemp("driver")
    settings = {
        **spark_conf,
        "spark.driver.memory": "1g",
        "spark.jars": ",".join([spark_conf["spark.jars"], *map(str, fetch_locked(HERE / "iceberg-aws.lock"))]),
    }
    for name, catalog in catalogs.items():
        settings[f"spark.sql.catalog.{name}"] = "org.apache.iceberg.spark.SparkCatalog"
        settings[f"spark.sql.catalog.{name}.type"] = "rest"
        settings[f"spark.sql.catalog.{name}.uri"] = catalog.address
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, str(HERE / "program.py"), json.dumps(settings), *catalogs],
        capture_output=True, text=True, check=False, timeout=300, cwd=folder, env={**environment, **BY_KEYS},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return {**json.loads(done.stdout.splitlines()[-1]), "texts": done.stdout + done.stderr}


@pytest.fixture(params=["settings", "prefix"])
def catalog(request, catalogs) -> RestCatalog:
    return catalogs[request.param]


@pytest.fixture
def told(driver, catalog) -> dict[str, object]:
    return driver[catalog.name]


def test_analyze_reads_and_writes_by_the_tables_keys(told):
    assert "there are no statistics" in told["before"]
    assert told["analyzed"] == [400, 4, []]
    assert told["other"] == [400, 4]
    assert (told["again"], told["without"]) == (0, 0)


def test_planning_and_functions_read_by_the_tables_keys(told):
    assert told["label"].startswith("4 -> 1 files")
    assert told["rows"] == ["n6"]
    assert told["summary"][0] == {"min": "0", "max": "399", "count": 400}
    assert (told["files"], told["source"], told["verified"], told["garbage"]) == (4, 2, True, 0)


def test_keys_that_end_are_asked_for_again(told):
    assert told["renewed"]


def test_each_request_had_a_key_of_its_own_table(told, catalog):
    assert catalog.guard.refused == []
    assert any("/_metastore/" in request for request in catalog.guard.requests)


def test_an_object_is_written_by_one_request(told, catalog):
    objects = [request for request in catalog.guard.requests if "/_metastore/objects/" in request]
    puts = [request for request in objects if request.startswith("PUT ")]
    assert len(puts) == len(set(puts)) == len(catalog.read_all("_metastore/objects/"))
    assert not [request for request in objects if request.startswith("POST ")]


def test_nothing_of_a_key_is_shown_or_written(driver, catalog):
    secrets = {"secret+of", "token-of", *catalog.guard.keys}
    assert not [secret for secret in secrets if secret in driver["texts"]]
    written = catalog.read_all("_metastore")
    assert len(written) > 10
    assert not [path for path, data in written.items() for secret in secrets if secret.encode() in data]


def test_pyiceberg_tables_are_opened_by_their_keys(told, catalog, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in BY_KEYS.items():
        monkeypatch.setenv(name, value)
    pyiceberg = pytest.importorskip("pyiceberg.catalog")
    table = pyiceberg.load_catalog("rest", type="rest", uri=catalog.address).load_table("db.keys")
    opened = metastore.open(table)
    assert opened.summary().column("id")["max"] == 399
    assert len(opened.files()) == 4
    assert "secret" not in repr(vars(opened))
    assert catalog.guard.refused == []
