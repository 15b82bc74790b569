"""Keys of the environment, found without a request to the network.

If libraries of object stores find no keys, they ask an address of the cloud, which takes seconds outside of the cloud.
So they are only used if the environment has keys, or if the machine belongs to the cloud of the store.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from metastore.errors import StoreNotReadable
from metastore.store.location import split_scheme_and_host

if TYPE_CHECKING:
    from metastore.store.credentials import Credentials

_VENDOR = Path("/sys/devices/virtual/dmi/id/sys_vendor")
"""The maker of the machine by Linux: clouds have their own names there, in containers as well."""
_NO_INSTANCE = "AWS_EC2_METADATA_DISABLED"


class _Cloud(NamedTuple):
    """The keys of a kind of object store.

    Attributes:
        variables: Environment variables; one of them is enough.
        settings: Settings of Spark that would help, for the error.
        vendor: The beginning of the vendor's name on the cloud's own machines.
        key_file: A file below the home folder with keys of the cloud's own tools, if the libraries read it.
    """

    variables: tuple[str, ...]
    settings: str
    vendor: str
    key_file: str = ""

    def has_key_file(self) -> bool:
        """Return whether there is a key file of the cloud's own tools."""
        return bool(self.key_file) and (Path.home() / self.key_file).exists()


_CLOUDS = {
    "s3": _Cloud(
        (
            "AWS_ACCESS_KEY_ID",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_SKIP_SIGNATURE",
        ),
        "fs.s3a.access.key and fs.s3a.secret.key",
        "Amazon EC2",
    ),
    "gs": _Cloud(
        (
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_SERVICE_ACCOUNT",
            "GOOGLE_SERVICE_ACCOUNT_PATH",
            "GOOGLE_SERVICE_ACCOUNT_KEY",
            "GOOGLE_SKIP_SIGNATURE",
        ),
        "fs.gs.auth.service.account.json.keyfile",
        "Google",
        ".config/gcloud/application_default_credentials.json",
    ),
    "azure": _Cloud(
        (
            "AZURE_STORAGE_ACCOUNT_KEY",
            "AZURE_STORAGE_ACCESS_KEY",
            "AZURE_STORAGE_SAS_KEY",
            "AZURE_STORAGE_SAS_TOKEN",
            "AZURE_STORAGE_TOKEN",
            "AZURE_STORAGE_USE_EMULATOR",
            "AZURE_STORAGE_CLIENT_SECRET",
            "AZURE_CLIENT_SECRET",
            "AZURE_FEDERATED_TOKEN_FILE",
            "AZURE_USE_AZURE_CLI",
            "AZURE_SKIP_SIGNATURE",
            "IDENTITY_ENDPOINT",
        ),
        "fs.azure.account.key.ACCOUNT",
        "Microsoft Corporation",
    ),
}


def require_keys(uri: str, access: Credentials) -> None:
    """Require that keys for a location on an object store can be found.

    Raises:
        StoreNotReadable: Neither settings nor environment have keys, and the machine does not belong to the cloud.
    """
    if access.names_source:
        return
    scheme, _ = split_scheme_and_host(uri)
    cloud = _CLOUDS.get(scheme, _CLOUDS["azure"])
    if any(map(os.environ.get, cloud.variables)) or cloud.has_key_file() or _is_instance_of(cloud):
        return
    variables = ", ".join(cloud.variables)
    reason = f"nobody has keys for it: no catalog of the table, not {cloud.settings}, and none of {variables}"
    hint = f"Set {cloud.settings}, or spark.metastore.store to a place that can be written."
    raise StoreNotReadable(uri, reason, hint)


def _is_instance_of(cloud: _Cloud) -> bool:
    """Return whether this machine belongs to the cloud, which gives keys to its own machines."""
    if os.environ.get(_NO_INSTANCE, "").lower() == "true":
        return False
    try:
        return _VENDOR.read_text("utf-8").startswith(cloud.vendor)
    except OSError:
        return False
