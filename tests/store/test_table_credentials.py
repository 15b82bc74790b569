"""Keys that a table brings along, under the names of Iceberg's FileIO and of Rust's object_store."""

from __future__ import annotations

import math
import pickle

import pytest

from metastore.errors import UnsupportedTable
from metastore.store.credentials import Credentials, make_store_options, open_file_system
from metastore.store.table_credentials import find_file_io_credentials, find_object_store_credentials

KEYS = {"s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.session-token": "token"}
OPTIONS = {"access_key_id": "key", "secret_access_key": "secret", "session_token": "token"}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, {}),
        (KEYS, OPTIONS),
        ({"client.access-key-id": "key", "client.secret-access-key": "secret"}, {**OPTIONS, "session_token": None}),
        ({**KEYS, "client.region": "eu-west-1"}, {**OPTIONS, "region": "eu-west-1"}),
        ({**KEYS, "s3.region": "a", "client.region": "b"}, {**OPTIONS, "region": "a"}),
        (
            {**KEYS, "s3.endpoint": "http://minio:9000/", "s3.path-style-access": "true"},
            {**OPTIONS, "endpoint": "http://minio:9000", "virtual_hosted_style_request": False},
        ),
        (
            {**KEYS, "s3.endpoint": "https://s3.eu-west-1.amazonaws.com"},
            {
                **OPTIONS,
                "region": "eu-west-1",
                "endpoint": "https://s3.eu-west-1.amazonaws.com",
                "virtual_hosted_style_request": True,
            },
        ),
        ({"s3.anonymous": "true"}, {"skip_signature": True}),
        ({**KEYS, "s3.remote-signing-enabled": "true"}, OPTIONS),
        ({**KEYS, "s3.access-points.lake": "arn:mine"}, {**OPTIONS, "access_point": "arn:mine"}),
        ({**KEYS, "s3.access-points.pond": "arn:mine"}, OPTIONS),
    ],
)
def test_properties_of_s3(properties, expected):
    options = find_file_io_credentials("s3://lake/t", properties).options
    assert options == {name: value for name, value in expected.items() if value is not None}


def test_pyiceberg_puts_the_bucket_into_the_path():
    properties = {**KEYS, "s3.endpoint": "http://minio:9000"}
    of_pyiceberg = find_file_io_credentials("s3://lake/t", properties, bucket_in_host=False)
    assert make_store_options("s3://lake/t", of_pyiceberg)["endpoint"] == "http://minio:9000"
    forced = {**properties, "s3.force-virtual-addressing": "true"}
    options = make_store_options("s3://lake/t", find_file_io_credentials("s3://lake/t", forced, bucket_in_host=False))
    assert options["endpoint"] == "http://lake.minio:9000"


def test_a_catalog_that_signs_each_request_hands_out_no_keys():
    with pytest.raises(UnsupportedTable, match=r"signs each request.*Spark session"):
        find_file_io_credentials("s3://lake/t", {"s3.remote-signing-enabled": "true"})


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("adls.sas-token", "abfss://c@account.dfs.core.windows.net/t"),
        ("adls.sas-token.account", "abfss://c@account.dfs.core.windows.net/t"),
        ("adls.sas-token.account.dfs.core.windows.net", "abfss://c@account.dfs.core.windows.net/t"),
    ],
)
def test_properties_of_azure(name, uri):
    assert find_file_io_credentials(uri, {name: "sv=1"}).options == {"sas_key": "sv=1"}
    assert find_file_io_credentials(uri, {"adls.sas-token.other": "sv=1"}).options == {}


def test_tokens_of_google():
    properties = {"gcs.oauth2.token": "secret", "gcs.oauth2.token-expires-at": "1900000000000"}
    access = find_file_io_credentials("gs://lake/t", properties)
    assert access.has_keys
    assert "secret" not in repr(access)
    provided = make_store_options("gs://lake/t", access)["credential_provider"]()
    assert (provided["token"], provided["expires_at"].timestamp()) == ("secret", 1.9e9)
    system, path = open_file_system("gs://lake/t", pickle.loads(pickle.dumps(access)))  # noqa: S301 - our own
    assert (system.type_name, path) == ("gcs", "lake/t")


def test_local_tables_need_no_keys():
    assert not find_file_io_credentials("/warehouse/t", KEYS).has_keys
    assert not find_object_store_credentials("file:/warehouse/t", {"AWS_ACCESS_KEY_ID": "key"}).has_keys


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"AWS_ACCESS_KEY_ID": "key", "aws_secret_access_key": "secret", "session_token": "token", "timeout": "5s"},
            OPTIONS,
        ),
        (
            {"AWS_ENDPOINT_URL": "http://minio:9000", "AWS_REGION": "a", "AWS_ALLOW_HTTP": "true"},
            {"endpoint": "http://minio:9000", "region": "a"},
        ),
        (
            {"endpoint": "https://lake.minio", "virtual_hosted_style_request": "true"},
            {"endpoint": "https://minio", "virtual_hosted_style_request": True},
        ),
        ({"AWS_SKIP_SIGNATURE": "true"}, {"skip_signature": True}),
        ({"aws_token": "t"}, {"session_token": "t"}),
        ({"AZURE_STORAGE_TOKEN": "t", "AZURE_STORAGE_ACCESS_KEY": "k"}, {"account_key": "k"}),
    ],
)
def test_options_of_deltalake(options, expected):
    assert find_object_store_credentials("s3://lake/t", options).options == expected


def test_half_a_pair_of_keys_is_none():
    properties = {"s3.access-key-id": "key", "s3.session-token": "token"}
    assert find_file_io_credentials("s3://lake/t", properties).options == {}


@pytest.mark.parametrize(
    "name", ["adls.sas-token", "adls.sas-token.account", "adls.sas-token.account.dfs.core.windows.net"]
)
def test_the_end_of_a_token_of_azure(name):
    uri = "abfss://c@account.dfs.core.windows.net/t"
    end = name.replace("sas-token", "sas-token-expires-at-ms")
    assert find_file_io_credentials(uri, {name: "sv=1", end: "1900000000000"}).expires == 1.9e9
    assert find_file_io_credentials(uri, {name: "sv=1", end: "soon"}).expires == math.inf


@pytest.mark.parametrize(
    ("uri", "access", "expected"),
    [
        (
            "s3://lake/t",
            {"access_key_id": "key", "secret_access_key": "secret"},
            {"access_key_id": "key", "secret_access_key": "secret", "token": None, "expires_at": None},
        ),
        ("abfss://c@a.dfs.core.windows.net/t", {"sas_key": "?sv=1"}, {"sas_token": "sv=1", "expires_at": None}),
    ],
)
def test_keys_are_not_completed_by_those_of_the_environment(uri, access, expected):
    options = make_store_options(uri, Credentials(access))
    assert options["credential_provider"]() == expected
    assert not set(options) & {"access_key_id", "secret_access_key", "session_token", "sas_key", "account_key"}
