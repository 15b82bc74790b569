"""Credentials and endpoints of object stores, as Hadoop's settings name them, for obstore and for pyarrow.

Whoever reads a table on S3, GCS or Azure through Spark has its credentials in `fs.s3a.*`, `fs.gs.*` or `fs.azure.*`.
Where these say nothing, both libraries find credentials themselves: environment, instance, container, web identity.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from metastore.errors import UnsupportedTable
from metastore.store.location import local_path, remote_url, split_scheme_and_host
from metastore.store.s3_address import find_region, resolve_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyarrow import fs

    Lookup = Callable[[str], str | None]
    AskHadoop = Callable[[], "Credentials"]


_FROM_KEYS = {"SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider"}
_ANONYMOUS = {"AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider"}
_OF_INSTANCE = {
    "IAMInstanceCredentialsProvider",
    "InstanceProfileCredentialsProvider",
    "EC2ContainerCredentialsProviderWrapper",
}
_OF_ENVIRONMENT = {
    *_OF_INSTANCE,
    "DefaultCredentialsProvider",
    "DefaultAWSCredentialsProviderChain",
    "EnvironmentVariableCredentialsProvider",
    "ContainerCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider",
    "WebIdentityTokenCredentialsProvider",
}
_KNOWN_PROVIDERS = frozenset({*_FROM_KEYS, *_ANONYMOUS, *_OF_ENVIRONMENT})
_KEYS_OR_ENVIRONMENT = "Set fs.s3a.access.key and fs.s3a.secret.key, or AWS_* in the environment of driver and workers."
_S3_KEYS = {
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
}
_AZURE_KEYS = {
    "account_key": "account.key",
    "sas_key": "sas.fixed.token",
}
_AZURE_CLIENT = {
    "client_id": "account.oauth2.client.id",
    "client_secret": "account.oauth2.client.secret",
}
_KEYS = frozenset({*_S3_KEYS, *_AZURE_KEYS, *_AZURE_CLIENT, "service_account", "access_token", "skip_signature"})
_AMAZON = "s3.amazonaws.com"
_GOOGLE = "https://storage.googleapis.com"
_GOOGLE_KEY_FILES = (
    "fs.gs.auth.service.account.json.keyfile",
    "google.cloud.auth.service.account.json.keyfile",
)


@dataclass(frozen=True)
class Credentials:
    """Settings that give access to an object store; their values are never shown.

    Attributes:
        options: Settings of obstore's store; an `endpoint` of S3 is the server's, without the bucket. Besides, a token
            of Google as `access_token`, and its end in milliseconds since 1970 as `access_token_expires`.
        asks_instance: Whether the settings name the cloud's own machines as the only source of keys.
        expires: When the keys end, in seconds since 1970; infinite if nobody says so.
        renew: Returns the keys of now, in the driver; None if they cannot be renewed.
        obtained: When the keys were found, in seconds since 1970.
    """

    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    asks_instance: bool = False
    expires: float = math.inf
    renew: Callable[[], Credentials] | None = field(default=None, repr=False, compare=False)
    obtained: float = field(default_factory=time.time, repr=False, compare=False)

    @property
    def is_aging(self) -> bool:
        """Whether half of the time is over for which the keys are valid: tasks need them for a while."""
        return time.time() >= (self.obtained + self.expires) / 2

    def renewed(self) -> Credentials:
        """Return these credentials, or newer ones if these are aging."""
        if self.renew is None or not self.is_aging:
            return self
        return self.renew()

    def __reduce__(self) -> tuple[type[Credentials], tuple[Any, ...]]:
        # A job's tasks get the keys that are valid when it begins; they cannot ask the catalog themselves.
        current = self.renewed()
        return Credentials, (current.options, current.asks_instance, current.expires)

    @property
    def has_keys(self) -> bool:
        """Whether the settings say who asks, so that the environment is not searched."""
        return not _KEYS.isdisjoint(self.options)

    @property
    def names_source(self) -> bool:
        """Whether the settings have keys, or name their only source."""
        return self.has_keys or self.asks_instance


FROM_ENVIRONMENT = Credentials()
"""Access as the libraries find it in the environment."""


def find_credentials(uri: str, lookup: Lookup, ask_hadoop: AskHadoop | None = None) -> Credentials:
    """Find the access to a location in Hadoop's settings.

    Args:
        uri: The location.
        lookup: Looks up a setting.
        ask_hadoop: Asks Hadoop for its keys of now, where the settings name classes of credentials that only it has;
            None if there is no Hadoop.

    Raises:
        UnsupportedTable: Only Hadoop has keys, and there is none.
    """
    if local_path(uri) is not None:
        return FROM_ENVIRONMENT
    scheme, host = split_scheme_and_host(uri)
    if scheme == "s3":
        of_bucket = _prefer_bucket(host, lookup)
        address = {**_find_s3_address(of_bucket), **_find_access_point(host, lookup)}
        providers = set(_list_s3_providers(of_bucket))
        if ask_hadoop is not None and not providers <= _KNOWN_PROVIDERS:
            access = ask_hadoop()
            return replace(access, options={**access.options, **address})
        asks_instance = bool(providers) and providers <= _OF_INSTANCE  # Hadoop's default names one among others
        options = {**_find_s3_credentials(uri, of_bucket), **address}
        return Credentials(options, asks_instance)
    if scheme == "gs":
        return Credentials(_find_google_options(lookup))
    return Credentials(_find_azure_options(host, lookup))


def make_store_options(uri: str, access: Credentials) -> dict[str, Any]:
    """Make the settings of obstore's store for a location: the address of its server, and the access to it.

    An endpoint with `http://` means it, without a second setting (`AWS_ALLOW_HTTP`).
    """
    options = dict(access.options)
    scheme, host = split_scheme_and_host(uri)
    if scheme == "s3":
        options |= resolve_address(host, options).to_obstore()
    keys = _take_keys(options)
    if keys:
        options["credential_provider"] = lambda: keys
    endpoint = str(options.get("endpoint") or options.get("base_url") or "")
    if endpoint.startswith("http://"):
        options["client_options"] = {"allow_http": True, **options.get("client_options", {})}
    return options


def open_file_system(uri: str, access: Credentials) -> tuple[fs.FileSystem, str]:
    """Open the file system of pyarrow that reaches a location, and return it with the path of the location in it."""
    from pyarrow import fs  # noqa: PLC0415 - slow to import, and only workers write through it

    scheme, _ = split_scheme_and_host(uri)
    options = access.options
    _, _, path = uri.partition("://")
    path = path.rstrip("/")
    root, _, key = path.partition("/")
    if scheme == "s3":
        address = resolve_address(root, options)
        if options or address.endpoint:
            arguments = {**_rename_options(options, _ARROW_S3), **address.to_arrow()}
            # A file that is opened at its first bytes is one PUT if it is small, else three requests at least.
            return fs.S3FileSystem(**arguments, allow_delayed_open=True), path
    if not options:
        delayed = "?allow_delayed_open=true" if scheme == "s3" else ""
        system, path = fs.FileSystem.from_uri(f"{remote_url(uri)}{delayed}")
        return system, path
    if scheme == "gs":
        arguments = {**_rename_options(options, _ARROW_GOOGLE), **_name_google_server(options)}
        if "access_token" in options:
            arguments["credential_token_expiration"] = _pop_token_end(dict(options))
        return fs.GcsFileSystem(**arguments), path
    container, _, host = root.partition("@")
    system = fs.AzureFileSystem(**_name_azure_account(host, options), **_rename_options(options, _ARROW_AZURE))
    return system, f"{container}/{key}"


_ARROW_GOOGLE = {"skip_signature": "anonymous", "access_token": "access_token"}
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


def _rename_options(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Give pyarrow's names to the options that have one."""
    return {names[key]: value for key, value in options.items() if key in names}


def _take_keys(options: dict[str, Any]) -> dict[str, Any]:
    """Take the keys out of the options, as obstore wants them of a provider.

    Among its options obstore would complete them by keys of the environment, which are somebody else's.
    """
    if "access_key_id" in options:
        keys = {"access_key_id": options.pop("access_key_id"), "secret_access_key": options.pop("secret_access_key")}
        return {**keys, "token": options.pop("session_token", None), "expires_at": None}
    if "sas_key" in options:
        return {"sas_token": options.pop("sas_key").removeprefix("?"), "expires_at": None}
    if "account_key" in options:
        return {"access_key": options.pop("account_key"), "expires_at": None}
    if "access_token" in options:
        return {"token": options.pop("access_token"), "expires_at": _pop_token_end(options)}
    return {}


def _pop_token_end(options: dict[str, Any]) -> datetime:
    """Take the end of a token of Google out of the options; an hour from now where nobody said when."""
    milliseconds = options.pop("access_token_expires", 0)
    if milliseconds:
        return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return datetime.now(timezone.utc) + timedelta(hours=1)


def _name_google_server(options: Mapping[str, Any]) -> dict[str, str]:
    scheme, _, host = str(options.get("base_url", "")).partition("://")
    return {"scheme": scheme, "endpoint_override": host} if host else {}


def _name_azure_account(host: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Name an account and its servers: the same name belongs to somebody else in another of Azure's clouds."""
    account, _, servers = host.partition(".")
    _, _, suffix = servers.partition(".")
    names = {"account_name": str(options.get("account_name", account))}
    if suffix:
        names["blob_storage_authority"] = f".blob.{suffix}"
        names["dfs_storage_authority"] = f".dfs.{suffix}"
    return names


def _prefer_bucket(bucket: str, lookup: Lookup) -> Lookup:
    """Make a lookup of S3A's settings that prefers those of a bucket."""

    def look_up(name: str) -> str | None:
        return _look_up_first(lookup, f"fs.s3a.bucket.{bucket}.{name}", f"fs.s3a.{name}")

    return look_up


def _look_up_first(lookup: Lookup, *names: str) -> str | None:
    """Return the first of these settings that is not empty, or None."""
    values = filter(None, map(lookup, names))
    return next(values, None)


def _look_up_all(lookup: Lookup, names: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that are not empty, by the names of options."""
    values = {option: lookup(name) for option, name in names.items()}
    return {option: value for option, value in values.items() if value}


def _find_s3_address(lookup: Lookup) -> dict[str, Any]:
    options: dict[str, Any] = {}
    endpoint = _read_text(lookup, "endpoint")
    has_endpoint = endpoint not in ("", _AMAZON)
    if has_endpoint:
        options["endpoint"] = _complete_endpoint(endpoint, lookup)
    region = lookup("endpoint.region") or find_region(endpoint)
    if region:
        options["region"] = region
    bucket_in_path = _read_flag(lookup, "path.style.access")
    if has_endpoint or bucket_in_path is not None:
        options["virtual_hosted_style_request"] = not bucket_in_path
    return options


def _find_access_point(bucket: str, lookup: Lookup) -> dict[str, Any]:
    """Find the access point of a bucket; S3A has no setting for all buckets."""
    access_point = _read_text(lookup, f"fs.s3a.bucket.{bucket}.accesspoint.arn")
    return {"access_point": access_point} if access_point else {}


def _complete_endpoint(endpoint: str, lookup: Lookup) -> str:
    if "://" not in endpoint:
        uses_http = _read_flag(lookup, "connection.ssl.enabled") is False
        endpoint = f"http://{endpoint}" if uses_http else f"https://{endpoint}"
    return endpoint.rstrip("/")


def _read_text(lookup: Lookup, name: str) -> str:
    return (lookup(name) or "").strip()


def _read_flag(lookup: Lookup, name: str) -> bool | None:
    """Read a truth value as Hadoop does; None for any other text."""
    return {"true": True, "false": False}.get(_read_text(lookup, name).lower())


def _find_s3_credentials(uri: str, lookup: Lookup) -> dict[str, Any]:
    keys = _find_s3_keys(lookup)
    providers = _list_s3_providers(lookup)
    if not providers:
        return keys
    for provider in providers:
        if provider in _FROM_KEYS and keys:
            return keys
        if provider in _ANONYMOUS:
            return {"skip_signature": True}
        if provider in _OF_ENVIRONMENT:
            return {}
    reason = f"credentials of {', '.join(providers)} are not to be had outside of Hadoop"
    raise UnsupportedTable(uri, reason, _KEYS_OR_ENVIRONMENT)


def _find_s3_keys(lookup: Lookup) -> dict[str, Any]:
    """Find access key, secret key and session token; none of them without both keys."""
    keys = _look_up_all(lookup, _S3_KEYS)
    has_both = {"access_key_id", "secret_access_key"} <= keys.keys()
    return keys if has_both else {}


def _list_s3_providers(lookup: Lookup) -> list[str]:
    """List the names of the classes of credentials, without their packages."""
    classes = re.split(r"[\s,]+", _read_text(lookup, "aws.credentials.provider"))
    return [name.rpartition(".")[2] for name in classes if name]


def _find_google_options(lookup: Lookup) -> dict[str, Any]:
    options = {}
    server = _read_text(lookup, "fs.gs.storage.root.url").rstrip("/")
    if server not in ("", _GOOGLE):
        options["base_url"] = server
    key_file = _look_up_first(lookup, *_GOOGLE_KEY_FILES)
    if key_file:
        return {**options, "service_account": key_file}
    if lookup("fs.gs.auth.type") == "UNAUTHENTICATED":
        return {**options, "skip_signature": True}
    return options


def _find_azure_options(host: str, lookup: Lookup) -> dict[str, Any]:
    _, _, account = host.partition("@")

    def look_up(name: str) -> str | None:
        return _look_up_first(lookup, f"fs.azure.{name}.{account}", f"fs.azure.{name}")

    for option, name in _AZURE_KEYS.items():
        key = look_up(name)
        if key:
            return {option: key}
    client = _look_up_all(look_up, _AZURE_CLIENT)
    tenant = re.search(r"://[^/]+/([^/]+)/", _read_text(look_up, "account.oauth2.client.endpoint"))
    if tenant is None or len(client) < len(_AZURE_CLIENT):
        return {}
    return {**client, "tenant_id": tenant[1]}
