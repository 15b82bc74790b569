"""Credentials and endpoints of object stores, as Hadoop's settings name them, for obstore and for pyarrow.

Whoever reads a table on S3, GCS or Azure through Spark has its credentials in `fs.s3a.*`, `fs.gs.*` or `fs.azure.*`.
Where these say nothing, both libraries find credentials themselves: environment, instance, container, web identity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from metastore.errors import UnsupportedTable
from metastore.store.location import local_path, remote_url
from metastore.store.s3_address import find_region, resolve_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyarrow import fs

    Lookup = Callable[[str], str | None]


_FROM_KEYS = {"SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider"}
_ANONYMOUS = {"AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider"}
_FOUND_BY_THE_LIBRARY = {
    "DefaultCredentialsProvider",
    "DefaultAWSCredentialsProviderChain",
    "EnvironmentVariableCredentialsProvider",
    "IAMInstanceCredentialsProvider",
    "InstanceProfileCredentialsProvider",
    "ContainerCredentialsProvider",
    "EC2ContainerCredentialsProviderWrapper",
    "WebIdentityTokenFileCredentialsProvider",
    "WebIdentityTokenCredentialsProvider",
}
_KEYS_OR_ENVIRONMENT = "Set fs.s3a.access.key and fs.s3a.secret.key, or AWS_* in the environment of driver and workers."
_AMAZON = "s3.amazonaws.com"
_GOOGLE = "https://storage.googleapis.com"


@dataclass(frozen=True)
class Credentials:
    """How an object store is reached; its values are never shown.

    Attributes:
        options: Settings of obstore's store; an `endpoint` of S3 is the server's, without the bucket.
    """

    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


FROM_ENVIRONMENT = Credentials()
"""Whatever the libraries find out from the environment."""


def find_credentials(uri: str, lookup: Lookup) -> Credentials:
    """The access to a location."""
    if local_path(uri) is not None:
        return FROM_ENVIRONMENT
    url = remote_url(uri)
    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0]
    if scheme == "s3":
        return Credentials(_s3(uri, _of_bucket(host, lookup)))
    if scheme == "gs":
        return Credentials(_gcs(lookup))
    return Credentials(_azure(host, lookup))


def make_store_options(uri: str, access: Credentials) -> dict[str, Any]:
    """Make the settings of obstore's store for a location: how its server is reached, and where that is.

    Whoever writes `http://` into an endpoint means it, and should not have to say it twice (`AWS_ALLOW_HTTP`).
    """
    options = dict(access.options)
    scheme, _, rest = remote_url(uri).partition("://")
    if scheme == "s3":
        options |= resolve_address(rest.partition("/")[0], options).to_obstore()
    endpoint = str(options.get("endpoint") or options.get("base_url") or "")
    if endpoint.startswith("http://"):
        options["client_options"] = {"allow_http": True, **options.get("client_options", {})}
    return options


def open_file_system(uri: str, access: Credentials) -> tuple[fs.FileSystem, str]:
    """The file system of pyarrow that reaches a location, and the path of the location in it."""
    from pyarrow import fs  # noqa: PLC0415 - slow to import, and only workers write through it

    url = remote_url(uri)
    options = access.options
    scheme = url.partition("://")[0]
    path = uri.partition("://")[2].rstrip("/")
    if scheme == "s3":
        address = resolve_address(path.partition("/")[0], options)
        if options or address.endpoint:
            return fs.S3FileSystem(**_named(options, _ARROW_S3), **address.to_arrow()), path
    if not options:
        system, path = fs.FileSystem.from_uri(url)
        return system, path
    if scheme == "gs":
        return fs.GcsFileSystem(**_named(options, {"skip_signature": "anonymous"}), **_google_server(options)), path
    container, _, rest = path.partition("/")
    container, _, host = container.partition("@")
    return fs.AzureFileSystem(**_azure_account(host, options), **_named(options, _ARROW_AZURE)), f"{container}/{rest}"


_ARROW_S3 = {
    "access_key_id": "access_key",
    "secret_access_key": "secret_key",
    "session_token": "session_token",
    "region": "region",
    "skip_signature": "anonymous",
}
_ARROW_AZURE = {
    "account_key": "account_key",
    "sas_key": "sas_token",
    "client_id": "client_id",
    "client_secret": "client_secret",
    "tenant_id": "tenant_id",
}


def _named(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names[key]: value for key, value in options.items() if key in names}


def _google_server(options: Mapping[str, Any]) -> dict[str, str]:
    scheme, _, host = str(options.get("base_url", "")).partition("://")
    return {"scheme": scheme, "endpoint_override": host} if host else {}


def _azure_account(host: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Name an account and its servers: the same name belongs to somebody else in another of Azure's clouds."""
    account, _, servers = host.partition(".")
    suffix = servers.partition(".")[2]
    names = {"account_name": str(options.get("account_name", account))}
    if suffix:
        names |= {"blob_storage_authority": f".blob.{suffix}", "dfs_storage_authority": f".dfs.{suffix}"}
    return names


def _of_bucket(bucket: str, lookup: Lookup) -> Lookup:
    """Settings of S3A, those of a bucket before those of all."""

    def found(name: str) -> str | None:
        return lookup(f"fs.s3a.bucket.{bucket}.{name}") or lookup(f"fs.s3a.{name}") or None

    return found


def _s3(uri: str, found: Lookup) -> dict[str, Any]:
    options = _s3_credentials(uri, found)
    endpoint = (found("endpoint") or "").strip()
    is_named = endpoint not in ("", _AMAZON)
    if is_named:
        scheme = "http" if _flag(found, "connection.ssl.enabled") is False else "https"
        options["endpoint"] = (endpoint if "://" in endpoint else f"{scheme}://{endpoint}").rstrip("/")
    region = found("endpoint.region") or find_region(endpoint)
    if region:
        options["region"] = region
    in_path = _flag(found, "path.style.access")
    if is_named or in_path is not None:
        options["virtual_hosted_style_request"] = not in_path
    return options


def _flag(found: Lookup, name: str) -> bool | None:
    """Read a truth value as Hadoop does; None where there is none."""
    return {"true": True, "false": False}.get((found(name) or "").strip().lower())


def _s3_credentials(uri: str, found: Lookup) -> dict[str, Any]:
    keys = {"access_key_id": found("access.key"), "secret_access_key": found("secret.key")}
    token = found("session.token")
    given = {**keys, "session_token": token} if token else keys
    classes = re.split(r"[\s,]+", (found("aws.credentials.provider") or "").strip())
    providers = [name.rpartition(".")[2] for name in classes if name]
    if not providers:
        return dict(given) if all(keys.values()) else {}
    for provider in providers:
        if provider in _FROM_KEYS and all(keys.values()):
            return dict(given)
        if provider in _ANONYMOUS:
            return {"skip_signature": True}
        if provider in _FOUND_BY_THE_LIBRARY:
            return {}
    reason = f"credentials of {', '.join(providers)} are not to be had outside of Hadoop"
    raise UnsupportedTable(uri, reason, _KEYS_OR_ENVIRONMENT)


def _gcs(lookup: Lookup) -> dict[str, Any]:
    keys = ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile")
    file = next((found for key in keys if (found := lookup(key))), None)
    server = (lookup("fs.gs.storage.root.url") or "").strip().rstrip("/")
    options = {"base_url": server} if server not in ("", _GOOGLE) else {}
    if file:
        return {**options, "service_account": file}
    anonymous = lookup("fs.gs.auth.type") == "UNAUTHENTICATED"
    return {**options, "skip_signature": True} if anonymous else options


def _azure(host: str, lookup: Lookup) -> dict[str, Any]:
    account = host.partition("@")[2]

    def found(name: str) -> str | None:
        return lookup(f"fs.azure.{name}.{account}") or lookup(f"fs.azure.{name}") or None

    if found("account.key"):
        return {"account_key": found("account.key")}
    if found("sas.fixed.token"):
        return {"sas_key": found("sas.fixed.token")}
    tenant = re.search(r"://[^/]+/([^/]+)/", found("account.oauth2.client.endpoint") or "")
    client, secret = found("account.oauth2.client.id"), found("account.oauth2.client.secret")
    if tenant and client and secret:
        return {"client_id": client, "client_secret": secret, "tenant_id": tenant[1]}
    return {}
