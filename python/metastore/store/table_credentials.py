"""Credentials of a table itself: the properties of Iceberg's FileIO, and the options of deltalake.

Catalogs hand out keys with a table. The names are those of Iceberg's S3FileIO, GCSFileIO and ADLSFileIO, which
pyiceberg shares: https://iceberg.apache.org/docs/latest/aws/#s3-fileio and
https://py.iceberg.apache.org/configuration/#fileio.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from metastore.errors import UnsupportedTable
from metastore.store.credentials import Credentials
from metastore.store.location import local_path, split_scheme_and_host
from metastore.store.s3_address import find_region, remove_bucket

if TYPE_CHECKING:
    from collections.abc import Mapping

_S3_KEYS = {
    "access_key_id": ("s3.access-key-id", "client.access-key-id"),
    "secret_access_key": ("s3.secret-access-key", "client.secret-access-key"),
    "session_token": ("s3.session-token", "client.session-token"),
}
_AZURE_KEYS = {
    "account_key": "adls.account-key",
    "client_id": "adls.client-id",
    "client_secret": "adls.client-secret",
    "tenant_id": "adls.tenant-id",
}
_SAS_TOKEN = "adls.sas-token"  # noqa: S105 - a name
_SAS_END = "adls.sas-token-expires-at-ms"
_GOOGLE_TOKEN_EXPIRES = "gcs.oauth2.token-expires-at"  # noqa: S105 - as above
_OBJECT_STORE_PREFIXES = ("aws_", "google_", "azure_storage_", "azure_")
_OBJECT_STORE_NAMES = {
    "endpoint_url": "endpoint",
    "default_region": "region",
    "aws_token": "session_token",
    "access_key": "account_key",
    "service_account_path": "service_account",
    "sas_token": "sas_key",
    "account_client_id": "client_id",
    "account_client_secret": "client_secret",
    "account_tenant_id": "tenant_id",
}
_FLAGS = ("virtual_hosted_style_request", "skip_signature")
_OBJECT_STORE_OPTIONS = frozenset(
    {
        *("access_key_id", "secret_access_key", "session_token", "region", "endpoint"),
        *("service_account", "base_url"),
        *("account_name", "account_key", "sas_key", "client_id", "client_secret", "tenant_id"),
    }
)


class RemoteSigning(UnsupportedTable):
    """The catalog of a table signs each request of Iceberg's FileIO, and hands out no keys."""

    def __init__(self, uri: str) -> None:
        reason = "its catalog signs each request and hands out no keys"
        super().__init__(uri, reason, "Only a classic Spark session reaches it.")


def find_file_io_credentials(uri: str, properties: Mapping[str, str], *, bucket_in_host: bool = True) -> Credentials:
    """Find the access to a location in the properties of Iceberg's FileIO.

    Args:
        uri: The location.
        properties: The properties, with the keys that the catalog handed out.
        bucket_in_host: Whether the bucket begins the name of an endpoint's host if the properties do not say so: in
            Java it does, in pyiceberg it does not.

    Raises:
        RemoteSigning: The catalog signs each request itself.
    """
    if local_path(uri) is not None:
        return Credentials()
    scheme, host = split_scheme_and_host(uri)
    if scheme == "s3":
        options = _find_s3_options(uri, properties, bucket_in_host=bucket_in_host)
        return Credentials(options, expires=_read_expiry(properties, "s3.session-token-expires-at-ms"))
    if scheme == "gs":
        return Credentials(_find_google_options(properties), expires=_read_expiry(properties, _GOOGLE_TOKEN_EXPIRES))
    ends = [name.replace(_SAS_TOKEN, _SAS_END) for name in _name_sas_tokens(host)]
    return Credentials(_find_azure_options(host, properties), expires=_read_expiry(properties, *ends))


def _read_expiry(properties: Mapping[str, str], *names: str) -> float:
    """Read the first of these times, in milliseconds since 1970, as seconds; infinite if none is a number."""
    milliseconds = _first_value(properties, *names) or ""
    return int(milliseconds) / 1000 if milliseconds.isdecimal() else math.inf


def _find_s3_options(uri: str, properties: Mapping[str, str], *, bucket_in_host: bool) -> dict[str, Any]:
    options = _find_s3_keys(properties)
    if not options and _is_true(properties, "s3.remote-signing-enabled"):
        raise RemoteSigning(uri)
    if not options and _is_true(properties, "s3.anonymous"):
        options["skip_signature"] = True
    endpoint = properties.get("s3.endpoint", "").rstrip("/")
    if endpoint:
        options["endpoint"] = endpoint
        options["virtual_hosted_style_request"] = _read_style(properties, bucket_in_host=bucket_in_host)
    region = _first_value(properties, "s3.region", "client.region") or find_region(endpoint)
    if region:
        options["region"] = region
    _, bucket = split_scheme_and_host(uri)
    access_point = properties.get(f"s3.access-points.{bucket}")
    if access_point:
        options["access_point"] = access_point
    return options


def _find_s3_keys(properties: Mapping[str, str]) -> dict[str, Any]:
    keys = {option: _first_value(properties, *names) for option, names in _S3_KEYS.items()}
    if not (keys["access_key_id"] and keys["secret_access_key"]):
        return {}
    return {option: key for option, key in keys.items() if key}


def _first_value(properties: Mapping[str, str], *names: str) -> str | None:
    """Return the first of these properties that is not empty."""
    for name in names:
        value = properties.get(name)
        if value:
            return value
    return None


def _read_style(properties: Mapping[str, str], *, bucket_in_host: bool) -> bool:
    """Return whether the bucket begins the host's name."""
    if "s3.force-virtual-addressing" in properties:
        return _is_true(properties, "s3.force-virtual-addressing")
    if "s3.path-style-access" in properties:
        return not _is_true(properties, "s3.path-style-access")
    return bucket_in_host


def _find_google_options(properties: Mapping[str, str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    token = properties.get("gcs.oauth2.token")
    if token:
        options["access_token"] = token
        options["access_token_expires"] = int(properties.get(_GOOGLE_TOKEN_EXPIRES) or 0)
    elif _is_true(properties, "gcs.no-auth"):
        options["skip_signature"] = True
    server = properties.get("gcs.service.host", "").rstrip("/")
    if server:
        options["base_url"] = server
    return options


def _find_azure_options(host: str, properties: Mapping[str, str]) -> dict[str, Any]:
    token = _first_value(properties, *_name_sas_tokens(host))
    if token:
        return {"sas_key": token}
    return {option: properties[name] for option, name in _AZURE_KEYS.items() if properties.get(name)}


def _name_sas_tokens(host: str) -> tuple[str, ...]:
    """Name the properties that may have the token: for the account's server, for its name, for all accounts."""
    _, _, server = host.partition("@")
    account, _, _ = server.partition(".")
    return f"{_SAS_TOKEN}.{server}", f"{_SAS_TOKEN}.{account}", _SAS_TOKEN


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    return str(properties.get(name, "")).lower() == "true"


def find_object_store_credentials(uri: str, options: Mapping[str, str]) -> Credentials:
    """Find the access to a location in the options of deltalake.

    Rust's object_store has several spellings of each option, such as `AWS_ACCESS_KEY_ID` and `access_key_id`. Options
    of the client are left out.
    """
    if local_path(uri) is not None:
        return Credentials()
    access: dict[str, Any] = {}
    for spelling, value in options.items():
        name = _normalize_name(spelling)
        if name in _FLAGS:
            access[name] = str(value).lower() in ("true", "1")
        elif name in _OBJECT_STORE_OPTIONS:
            access[name] = value
    if "endpoint" in access and access.get("virtual_hosted_style_request"):
        _, bucket = split_scheme_and_host(uri)
        access["endpoint"] = remove_bucket(str(access["endpoint"]), bucket)
    return Credentials(access)


def _normalize_name(spelling: str) -> str:
    spelling = spelling.lower()
    prefix = next(filter(spelling.startswith, _OBJECT_STORE_PREFIXES), "")
    name = spelling.removeprefix(prefix)
    return _OBJECT_STORE_NAMES.get(spelling) or _OBJECT_STORE_NAMES.get(name, name)
