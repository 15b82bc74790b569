"""A location for which nobody has keys is one error at once, without a request for keys to a cloud's address."""

from __future__ import annotations

import os
import time
from http.server import BaseHTTPRequestHandler

import pytest

import metastore
from metastore.errors import StoreNotReadable
from metastore.store import environment_keys
from metastore.store.credentials import FROM_ENVIRONMENT, Credentials, find_credentials
from metastore.store.environment_keys import require_keys
from store.local_server import LocalServer

HADOOPS_DEFAULT = """
    org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider,
    org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider,
    software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider,
    org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider
"""
LOCATIONS = {
    "s3://lake/t": ["fs.s3a.access.key", "AWS_ACCESS_KEY_ID"],
    "s3a://lake/t": ["fs.s3a.access.key", "AWS_ACCESS_KEY_ID"],
    "gs://lake/t": ["fs.gs.auth.service.account.json.keyfile", "GOOGLE_APPLICATION_CREDENTIALS"],
    "abfss://c@account.dfs.core.windows.net/t": ["fs.azure.account.key", "AZURE_STORAGE_ACCOUNT_KEY"],
}
"""Locations, and what the error names for each."""


@pytest.fixture
def vendor(monkeypatch, tmp_path):
    """An environment without keys, on a machine of nobody; the file that names its maker."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_", "IDENTITY_")):
            monkeypatch.delenv(name)
    file = tmp_path / "sys_vendor"
    monkeypatch.setattr(environment_keys, "_VENDOR", file)
    return file


@pytest.fixture
def requests(monkeypatch):
    """The requests to the address where a cloud's machine finds its keys."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            requests.append(self.path)
            self.send_error(404)

        do_GET = do_PUT  # noqa: N815 - as above

        def log_message(self, *_: object) -> None:
            """Requests are no news."""

    with LocalServer(Handler) as server:
        for name in ("AWS_METADATA_ENDPOINT", "AWS_EC2_METADATA_SERVICE_ENDPOINT"):
            monkeypatch.setenv(name, server.address)
        yield requests


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_location_without_keys_is_an_error_at_once(vendor, requests, location):
    began = time.monotonic()
    with pytest.raises(StoreNotReadable, match="nobody has keys for it") as refused:
        metastore.open(location).summary()
    assert time.monotonic() - began < 3
    assert requests == []
    for name in ("catalog of the table", "spark.metastore.store", *LOCATIONS[location]):
        assert name in str(refused.value)


@pytest.mark.parametrize(
    ("name", "location"),
    [
        ("AWS_ACCESS_KEY_ID", "s3://lake/t"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "s3://lake/t"),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "s3://lake/t"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "gs://lake/t"),
        ("AZURE_STORAGE_ACCOUNT_KEY", [*LOCATIONS][-1]),
    ],
)
def test_keys_of_the_environment_are_enough(vendor, monkeypatch, name, location):
    monkeypatch.setenv(name, "something")
    require_keys(location, FROM_ENVIRONMENT)


@pytest.mark.parametrize(("maker", "location"), [("Amazon EC2\n", "s3://lake/t"), ("Google\n", "gs://lake/t")])
def test_a_machine_of_the_cloud_gets_keys_from_it(vendor, monkeypatch, maker, location):
    vendor.write_text(maker)
    require_keys(location, FROM_ENVIRONMENT)
    if maker.startswith("Amazon"):
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        with pytest.raises(StoreNotReadable):
            require_keys(location, FROM_ENVIRONMENT)


def test_settings_may_name_the_machine_as_the_source(vendor):
    provider = {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider"}
    require_keys("s3a://lake/t", find_credentials("s3a://lake/t", provider.get))


@pytest.mark.parametrize(
    "providers",
    [
        "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
        HADOOPS_DEFAULT,
    ],
)
def test_a_machine_among_other_sources_is_not_asked(vendor, providers):
    settings = {"fs.s3a.aws.credentials.provider": providers}
    with pytest.raises(StoreNotReadable):
        require_keys("s3a://lake/t", find_credentials("s3a://lake/t", settings.get))


def test_a_file_of_googles_tools_is_enough(vendor, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(StoreNotReadable):
        require_keys("gs://lake/t", FROM_ENVIRONMENT)
    file = tmp_path / ".config/gcloud/application_default_credentials.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    require_keys("gs://lake/t", FROM_ENVIRONMENT)


def test_keys_of_settings_are_enough(vendor):
    require_keys("s3://lake/t", Credentials({"access_key_id": "key", "secret_access_key": "secret"}))
    require_keys("s3://lake/t", Credentials({"skip_signature": True}))
