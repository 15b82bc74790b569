"""Keys that end while statistics are written: the driver's store and the tasks go on with new ones."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import metastore
from cloud.rest_catalog import Guard, RestCatalog
from metastore.errors import TableNotFound
from metastore.format.object_schemas import SKETCHES
from metastore.spark_jobs.task_store import TaskStore
from metastore.store import Store
from metastore.store.table_credentials import find_file_io_credentials
from store import s3

if TYPE_CHECKING:
    from metastore.store.credentials import Credentials

pa = pytest.importorskip("pyarrow")

SECONDS = 2.0
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "int"}]}


@pytest.fixture(scope="module")
def catalog():
    with s3.running() as behind, Guard(behind) as guard, RestCatalog(behind, guard, "expiring") as running:
        running.vending.seconds = SECONDS
        running.create({"name": "t", "schema": SCHEMA})
        yield running


@pytest.fixture
def uri(catalog) -> str:
    return f"s3://{s3.BUCKET}/expiring/db/t/_metastore"


def find_keys(catalog: RestCatalog, uri: str) -> Credentials:
    """Keys of the table, which the catalog renews."""
    keys = find_file_io_credentials(uri, catalog.load("t")["config"])
    return replace(keys, renew=lambda: find_keys(catalog, uri))


def sketch(text: str):
    return pa.Table.from_pylist([{"column": 0, "file": 0, "theta": text.encode()}], SKETCHES)


def test_driver_and_tasks_go_on_with_new_keys(catalog, uri):
    access = find_keys(catalog, uri)
    store = Store.open(uri, access=access, writable=True)
    tasks = TaskStore(uri, access)
    first_keys = set(catalog.guard.keys)
    began = time.monotonic()
    written = set()
    while time.monotonic() - began < 2 * SECONDS:
        written.add(store.put("sketches", sketch(f"driver {len(written)}"), [1]).name)
        of_task = pickle.loads(pickle.dumps(tasks))  # noqa: S301 - as Spark sends it
        written.add(of_task.write("sketches", sketch(f"task {len(written)}"), [1]).name)
    assert set(store.list_objects("sketches")) == written
    assert catalog.guard.refused == []
    assert set(catalog.guard.keys) > first_keys


def test_without_new_keys_the_server_refuses(catalog, uri):
    access = replace(find_keys(catalog, uri), renew=None)
    store = Store.open(uri, access=access, writable=True)
    time.sleep(SECONDS)
    with pytest.raises(Exception, match=r"ExpiredToken|403"):
        store.list_objects("sketches")
    catalog.guard.refused.clear()


def test_keys_that_were_sent_are_not_renewed_and_secret(catalog, uri):
    access = find_keys(catalog, uri)
    sent = pickle.loads(pickle.dumps(access))  # noqa: S301 - our own
    assert sent == access
    assert sent.renew is None
    assert sent.renewed() is sent
    assert "secret" not in repr(access)


def test_a_table_is_opened_by_its_name_in_pyicebergs_configuration(catalog, monkeypatch, tmp_path):
    pytest.importorskip("pyiceberg")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", catalog.address)
    monkeypatch.chdir(tmp_path)
    assert list(metastore.open("lake.db.t").snapshots()) == []
    with pytest.raises(TableNotFound, match=r"lake\.db\.other"):
        metastore.open("lake.db.other")
    with pytest.raises(TableNotFound, match="unknown"):
        metastore.open("unknown.db.t").summary()
