"""Tables of Iceberg catalogs that have the keys: these alone open the place of a table, nobody else has any.

A REST catalog hands keys out with each table, or signs each request itself; a JDBC catalog has them among its own
settings.
"""

from __future__ import annotations

import math
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import metastore
from cloud import program
from cloud.rest_catalog import Guard, RestCatalog, VendedKey
from store import s3
from versions.environments import fetch_locked

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
LOCKS = ("iceberg-aws.lock", "sqlite-jdbc.lock")
REST = ("settings", "prefix")
SIGNING = "signing"
KEY = "CATALOGKEY"


class Catalog(NamedTuple):
    """A catalog, and what guards the place of its tables.

    Attributes:
        name: The name, and the folder of its tables.
        behind: The address of the server behind the guard.
        guard: The guard.
        settings: The catalog's properties in Spark.
        python: The properties by which pyiceberg finds it.
    """

    name: str
    behind: str
    guard: Guard
    settings: dict[str, str]
    python: dict[str, str]

    def read_all(self, part: str) -> dict[str, bytes]:
        """Read all objects of the catalog's tables with this in their path."""
        return s3.read_all(self.behind, f"{s3.BUCKET}/{self.name}", part)


def name_rest_catalog(catalog: RestCatalog) -> Catalog:
    """Describe a REST catalog."""
    properties = {"type": "rest", "uri": catalog.address}
    return Catalog(catalog.name, catalog.behind, catalog.guard, properties, properties)


def name_jdbc_catalog(behind: str, guard: Guard, folder: Path) -> Catalog:
    """Describe a catalog in a database, whose properties have the keys."""
    guard.keys[KEY] = VendedKey(f"{s3.BUCKET}/jdbc", math.inf)
    properties = {
        "s3.access-key-id": KEY,
        "s3.secret-access-key": f"vended/secret+of={KEY}",
        "s3.endpoint": guard.address,
        "s3.path-style-access": "true",
        "client.region": "us-east-1",
        "warehouse": f"s3://{s3.BUCKET}/jdbc",
    }
    settings = {
        **properties,
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{folder / 'catalog.db'}",
        "jdbc.schema-version": "V1",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    }
    return Catalog(
        "jdbc", behind, guard, settings, {**properties, "type": "sql", "uri": f"sqlite:///{folder / 'catalog.db'}"}
    )


@pytest.fixture(scope="module")
def catalogs(tmp_path_factory) -> Iterator[dict[str, Catalog]]:
    """Catalogs by name: keys are in a table's settings, credentials of prefixes, the catalog's settings, or nowhere."""
    with ExitStack() as stack:
        behind = stack.enter_context(s3.running())
        running = {}
        for name in (*REST, SIGNING):
            guard = stack.enter_context(Guard(behind))
            catalog = stack.enter_context(RestCatalog(behind, guard, name))
            catalog.vending.as_storage_credentials = name == "prefix"
            catalog.vending.signs = name == SIGNING
            running[name] = name_rest_catalog(catalog)
        guard = stack.enter_context(Guard(behind))
        running["jdbc"] = name_jdbc_catalog(behind, guard, tmp_path_factory.mktemp("jdbc"))
        yield running


@pytest.fixture(scope="module")
def driver(catalogs, tmp_path_factory, spark_conf) -> dict[str, Any]:
    """The results of each catalog, and the texts that Spark wrote for people."""
    folder = tmp_path_factory.mktemp("driver")
    jars = [str(jar) for lock in LOCKS for jar in fetch_locked(HERE / lock)]
    settings = {
        **spark_conf,
        "spark.driver.memory": "1g",
        "spark.hadoop.fs.s3a.access.key": "SESSIONKEY",  # no guard knows it
        "spark.hadoop.fs.s3a.secret.key": "session/secret+of=SESSIONKEY",
        "spark.jars": ",".join([spark_conf["spark.jars"], *jars]),
    }
    for name, catalog in catalogs.items():
        settings[f"spark.sql.catalog.{name}"] = "org.apache.iceberg.spark.SparkCatalog"
        for key, value in catalog.settings.items():
            settings[f"spark.sql.catalog.{name}.{key}"] = value
    tables: dict[str, dict[str, str | None]] = {
        name: {f"{name}.db.keys": None, f"{name}.db.other": None} for name in (*REST, "jdbc", SIGNING)
    }
    return program.run(settings, tables, folder)


@pytest.fixture(params=[*REST, "jdbc", SIGNING])
def catalog(request, catalogs) -> Catalog:
    return catalogs[request.param]


@pytest.fixture
def results(driver, catalog) -> dict[str, Any]:
    return driver[catalog.name]


def test_analyze_reads_and_writes_by_the_tables_keys(results):
    assert "there are no statistics" in results["before"]
    assert results["analyzed"] == [400, 4, []]
    assert results["other"] == [400, 4]
    assert (results["again"], results["without"], results["automatic"]) == (0, 0, 5)


def test_planning_and_functions_read_by_the_tables_keys(results):
    assert results["label"].startswith("4 -> 1 files")
    assert results["rows"] == ["n6"]
    assert results["summary"][0] == {"min": "0", "max": "399", "count": 400}
    assert (results["files"], results["source"], results["verified"], results["garbage"]) == (4, 2, True, 0)


def test_commands_use_the_tables_keys(driver):
    assert driver["files by command"] == 4


def test_keys_are_the_tables_and_asked_for_again_if_they_end(results, catalog):
    assert results["has_keys"] == (catalog.name != SIGNING)
    assert results.get("renewed", False) == (catalog.name in REST)


def test_each_request_had_a_key_of_its_own_table(results, catalog):
    assert catalog.guard.refused == []
    assert any("/_metastore/" in request for request in catalog.guard.requests)


def test_an_object_is_written_by_one_request(results, catalog):
    objects = [request for request in catalog.guard.requests if "/_metastore/objects/" in request]
    puts = [request for request in objects if request.startswith("PUT ")]
    assert len(puts) == len(set(puts)) == len(catalog.read_all("_metastore/objects/"))
    assert not [request for request in objects if request.startswith("POST ")]


def test_nothing_of_a_key_is_shown_or_written(driver, catalog):
    secrets = {"secret+of", "token-of", "SESSIONKEY", *catalog.guard.keys}
    assert not [secret for secret in secrets if secret in driver["texts"]]
    written = catalog.read_all("_metastore")
    assert len(written) > 10
    assert not [path for path, data in written.items() for secret in secrets if secret.encode() in data]


@pytest.mark.parametrize("catalog", [*REST, "jdbc"], indirect=True)
def test_pyiceberg_tables_are_opened_by_their_keys(results, catalog, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in program.NO_INSTANCE.items():
        monkeypatch.setenv(name, value)
    pyiceberg = pytest.importorskip("pyiceberg.catalog")
    table = pyiceberg.load_catalog(catalog.name, **catalog.python).load_table("db.keys")
    opened = metastore.open(table)
    assert opened.summary().column("id")["max"] == 399
    assert len(opened.files()) == 4
    assert "secret" not in repr(vars(opened))
    assert catalog.guard.refused == []


def test_a_catalog_that_signs_signed_all_requests(driver, catalogs):
    assert catalogs[SIGNING].guard.keys.keys() == {"SIGNEDSIGNING"}
