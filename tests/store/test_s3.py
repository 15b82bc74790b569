"""The store on an S3 server: the same promises as on a disk, through wrong replies, and without telling secrets."""

from __future__ import annotations

import logging
import pickle
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from metastore.errors import StoreNotReadable, StoreNotWritable, UnsupportedTable
from metastore.format.manifest import Manifest
from metastore.format.object_schemas import SKETCHES
from metastore.store import Store
from metastore.store.arrow_blobs import write_object
from metastore.store.credentials import Credentials, find_credentials, open_file_system
from metastore.store.folder import Folder
from metastore.store.retention import find_garbage
from metastore.store.verification import list_unchecked, verify_manifest
from store import s3
from store.small_blocks import TABLE, adding, block, bounds, snapshot

SKETCH = pa.Table.from_pylist([{"column": 0, "file": 0, "theta": b"x"}], SKETCHES)
KEYS = {"fs.s3a.access.key": s3.KEY, "fs.s3a.secret.key": s3.SECRET}


@pytest.fixture(scope="module")
def address():
    with s3.running() as server:
        yield server


@pytest.fixture
def store(address, request):
    uri = f"s3a://{s3.BUCKET}/{request.node.name}/_metastore"
    return Store.open(uri, access=s3.access(address), writable=True)


def test_commits_reads_and_upkeep(store):
    assert store.read() is None
    for i, path in enumerate("ab"):
        store.commit(TABLE, adding(block(store, [path], i), snapshots=[snapshot(store, path)]))
    manifest = store.read()
    assert manifest.sequence == 2
    assert bounds(store, manifest)["b", "0"] == [1]
    checked = list(verify_manifest(store, manifest))
    assert {finding.state for finding in [*checked, *list_unchecked(store, checked)]} == {"ok"}
    assert len(store.run(find_garbage(0)).blobs) == 0


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_the_environment_names_an_endpoint_without_tls(address, monkeypatch, name):
    environment = {
        name: address,
        "AWS_ACCESS_KEY_ID": s3.KEY,
        "AWS_SECRET_ACCESS_KEY": s3.SECRET,
        "AWS_REGION": "us-east-1",
    }
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    monkeypatch.delenv("AWS_ALLOW_HTTP", raising=False)
    store = Store.open(f"s3a://{s3.BUCKET}/by-environment/{name}/_metastore", writable=True)
    store.ensure_writable()
    assert store.read() is None
    assert Folder(f"s3a://{s3.BUCKET}/by-environment/{name}").exists() is False


def test_garbage_is_deleted(store):
    for path in "abc":
        made = block(store, [path])
        store.commit(TABLE, lambda _, made=made: Manifest(table=TABLE, blocks=(made,)))
    from metastore.store import retention  # noqa: PLC0415

    garbage = store.run(retention.collect_garbage(-1))
    assert [blob.path for blob in garbage.blobs if blob.path.startswith("log/")] == [f"log/{1:020}.json"]
    assert store.run(retention.find_garbage(-1)).blobs == ()
    assert store.commit(TABLE, adding()).sequence == 4


@pytest.mark.parametrize("name", ["t", "a b", "50%", "a%20b", "x#y", "p+q", "é😀", "k=v"])
def test_workers_write_where_the_driver_reads(address, name):
    uri, access = f"s3a://{s3.BUCKET}/warehouse/{name}/_metastore", s3.access(address)
    written = write_object(uri, "sketches", SKETCH, [1], access=pickle.loads(pickle.dumps(access)))  # noqa: S301
    store = Store.open(uri, access=access, writable=True)
    assert store.get(written).equals(SKETCH)
    assert store.get(store.put("sketches", SKETCH, [1])).equals(SKETCH)
    assert len(store.list_objects("sketches")) == 2


def test_the_environment_is_enough(address, monkeypatch):
    settings = {"ACCESS_KEY_ID": s3.KEY, "SECRET_ACCESS_KEY": s3.SECRET, "ENDPOINT": address, "ENDPOINT_URL": address,
                "REGION": "us-east-1", "ALLOW_HTTP": "true"}  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    uri = f"s3://{s3.BUCKET}/environment/_metastore"
    written = write_object(uri, "sketches", SKETCH, [1])
    assert Store.open(uri).get(written).equals(SKETCH)


@pytest.mark.parametrize("trouble", ["lose", "repeat", "refuse"])
def test_every_reply_to_a_commit_is_wrong_once(address, trouble):
    requests = set()

    def once(path):
        first = path not in requests
        requests.add(path)
        return trouble if first and path.endswith(".json") else None

    with s3.Proxy(address, once) as proxy:
        uri = f"s3://{s3.BUCKET}/{trouble}/_metastore"
        store = Store.open(uri, access=s3.access(proxy.address), writable=True)
        for i in range(3):
            mark = {f"mark{i}": 1}
            done = store.commit(
                TABLE,
                lambda old, m=mark: replace(
                    old or Manifest(table=TABLE), settings={**(old.settings if old else {}), **m}
                ),
            )
            assert done.sequence == i + 1
        assert proxy.caused == 3
    assert store.open(uri, access=s3.access(address)).read().settings == {f"mark{i}": 1 for i in range(3)}


def test_a_server_without_conditional_writes_is_refused(address):
    class Overwriting(s3.Proxy):
        pass

    with Overwriting(address, lambda _: None) as proxy:
        proxy.RequestHandlerClass = type("Unconditional", (s3._Passing,), {"_passed_on": _without_condition})
        store = Store.open(f"s3://{s3.BUCKET}/careless/_metastore", access=s3.access(proxy.address), writable=True)
        with pytest.raises(StoreNotWritable, match="conditional writes"):
            store.commit(TABLE, adding())
        assert store.read() is None


def _without_condition(self, body):
    del self.headers["If-None-Match"]
    return s3._Passing._passed_on(self, body)


def test_secrets_are_never_shown(address, caplog):
    caplog.set_level(logging.DEBUG)
    access = find_credentials("s3a://nowhere/t", {**KEYS, "fs.s3a.endpoint": address}.get)
    texts = [repr(access), str(access)]
    store = Store.open("s3a://nowhere/t", access=access, writable=True)
    for act in (
        store.read,
        store.ensure_writable,
        partial(write_object, store.uri, "sketches", SKETCH, [1], access=access),
    ):
        with pytest.raises((StoreNotReadable, StoreNotWritable)) as refused:
            act()
        texts += [str(refused.value), repr(refused.value), str(refused.value.__dict__)]
    log = "\n".join([*texts, caplog.text])
    assert s3.SECRET not in log
    assert s3.KEY not in log
    assert "METASTORE_STORE_NOT" in log


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        (KEYS, {"access_key_id": s3.KEY, "secret_access_key": s3.SECRET}),
        ({**KEYS, "fs.s3a.session.token": "t"},
         {"access_key_id": s3.KEY, "secret_access_key": s3.SECRET, "session_token": "t"}),
        ({"fs.s3a.access.key": "half"}, {}),
        ({**KEYS, "fs.s3a.bucket.b.access.key": "mine"}, {"access_key_id": "mine", "secret_access_key": s3.SECRET}),
        ({"fs.s3a.endpoint": "s3.amazonaws.com", "fs.s3a.endpoint.region": "eu-west-1"}, {"region": "eu-west-1"}),
        ({"fs.s3a.endpoint": "minio:9000"}, {"endpoint": "https://minio:9000", "virtual_hosted_style_request": True}),
        ({"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false"},
         {"endpoint": "http://minio:9000", "virtual_hosted_style_request": True}),
        ({"fs.s3a.endpoint": "s3.eu-west-1.amazonaws.com", "fs.s3a.path.style.access": "true"},
         {"endpoint": "https://s3.eu-west-1.amazonaws.com", "region": "eu-west-1",
          "virtual_hosted_style_request": False}),
        ({"fs.s3a.path.style.access": "true"}, {"virtual_hosted_style_request": False}),
        ({**KEYS, "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
         {"skip_signature": True}),
        ({**KEYS, "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider"},
         {}),
        ({"fs.s3a.aws.credentials.provider": "a.b.SimpleAWSCredentialsProvider,\n x.DefaultCredentialsProvider"}, {}),
    ],
)  # fmt: skip
def test_settings_of_s3a(settings, options):
    assert find_credentials("s3a://b/t", settings.get).options == options


@pytest.mark.parametrize(
    "providers",
    ["x.auth.AssumedRoleCredentialProvider", "x.EnvironmentVariableCredentialsProvider, com.example.Vault"],
)
def test_hadoop_is_asked_where_only_it_knows(providers):
    settings = {**KEYS, "fs.s3a.aws.credentials.provider": providers, "fs.s3a.endpoint.region": "eu-west-1"}
    role = Credentials({"access_key_id": "role"}, expires=5.0)
    access = find_credentials("s3a://b/t", settings.get, lambda: role)
    assert access == Credentials({"access_key_id": "role", "region": "eu-west-1"}, expires=5.0)


def test_hadoop_is_not_asked_for_keys_of_the_settings():
    settings = {**KEYS, "fs.s3a.aws.credentials.provider": "x.SimpleAWSCredentialsProvider"}
    assert find_credentials("s3a://b/t", settings.get, lambda: None).options["access_key_id"] == s3.KEY


def test_credentials_that_only_hadoop_knows_are_refused():
    settings = {"fs.s3a.aws.credentials.provider": "com.example.Vault, x.auth.AssumedRoleCredentialProvider"}
    with pytest.raises(UnsupportedTable, match=r"Vault, AssumedRoleCredentialProvider.*fs\.s3a\.access\.key"):
        find_credentials("s3a://b/t", settings.get)


AZURE = "acc.dfs.core.windows.net"


@pytest.mark.parametrize(
    ("uri", "settings", "options"),
    [
        ("gs://b/t", {}, {}),
        ("gs://b/t", {"google.cloud.auth.service.account.json.keyfile": "/k.json"}, {"service_account": "/k.json"}),
        ("gs://b/t", {"fs.gs.auth.type": "UNAUTHENTICATED"}, {"skip_signature": True}),
        (f"abfss://c@{AZURE}/t", {f"fs.azure.account.key.{AZURE}": "a2V5"}, {"account_key": "a2V5"}),
        (f"abfss://c@{AZURE}/t", {f"fs.azure.sas.fixed.token.{AZURE}": "sv=1"}, {"sas_key": "sv=1"}),
        (f"abfss://c@{AZURE}/t",
         {f"fs.azure.account.oauth2.client.endpoint.{AZURE}": "https://login.microsoftonline.com/ten/oauth2/token",
          "fs.azure.account.oauth2.client.id": "id", "fs.azure.account.oauth2.client.secret": "s"},
         {"client_id": "id", "client_secret": "s", "tenant_id": "ten"}),
        ("file:/t", KEYS, {}),
    ],
)  # fmt: skip
def test_settings_of_other_stores(uri, settings, options):
    assert find_credentials(uri, settings.get).options == options


@pytest.mark.parametrize(
    ("uri", "options", "kind", "path"),
    [
        ("s3a://b/t x/_metastore", {"access_key_id": "a", "secret_access_key": "b", "region": "eu-west-1"},
         "s3", "b/t x/_metastore"),
        ("gs://b/t", {"skip_signature": True}, "gcs", "b/t"),
        (f"abfss://c@{AZURE}/t", {"account_key": "a2V5"}, "abfs", "c/t"),
    ],
)  # fmt: skip
def test_file_systems_of_workers(uri, options, kind, path):
    system, found_path = open_file_system(uri, Credentials(options))
    assert (system.type_name, found_path) == (kind, path)
    Store.open(uri, access=Credentials(options))
