"""Addresses of S3 buckets: a request has the bucket in the name of the host, or as the first folder of the path.

For virtual hosting pyarrow adds the bucket to an endpoint, and obstore does not. Both read endpoints of the
environment, each in its own way. So the address is computed here, and passed to both completely.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from metastore.errors import UnsupportedTable

if TYPE_CHECKING:
    from collections.abc import Mapping


_PREFERRED = "AWS_ENDPOINT_URL_S3"
"""The environment variable that obstore prefers to its own options."""
_UNSET = f"Unset {_PREFERRED} where the driver runs, or set it to the same."
_ENDPOINTS = (_PREFERRED, "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_BUCKET_IN_HOST = "AWS_VIRTUAL_HOSTED_STYLE_REQUEST"
_TRUE = {"true", "1", "on", "y", "yes"}
_HOST_LABEL = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
"""The name of a bucket that can be the first label of a host; no certificate covers a name with a dot."""
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_REGION = re.compile(
    r"(?:^|\.)s3(?:-fips)?(?:\.dualstack)?[.-]([a-z]{2,}(?:-[a-z]+)+-\d+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?$"
)


@dataclass(frozen=True, kw_only=True)
class BucketAddress:
    """The server that gets the requests for a bucket, and the position of the bucket in them.

    Attributes:
        bucket: The bucket's name.
        endpoint: The URL of the server, without the bucket; empty for Amazon's.
        bucket_in_host: Whether the bucket begins the host's name. Otherwise it begins the path.
    """

    bucket: str
    endpoint: str
    bucket_in_host: bool

    def to_obstore(self) -> dict[str, Any]:
        """Return the options with which obstore sends requests to this address.

        Raises:
            UnsupportedTable: If the environment names another endpoint, which obstore would prefer to its options.
        """
        options: dict[str, Any] = {"virtual_hosted_style_request": self.bucket_in_host}
        if not self.endpoint:
            return options
        endpoint = self._add_bucket() if self.bucket_in_host else self.endpoint
        options["endpoint"] = endpoint
        preferred = os.environ.get(_PREFERRED, "").strip().rstrip("/")
        if preferred and preferred != endpoint:
            raise UnsupportedTable(
                f"s3://{self.bucket}", f"{_PREFERRED} is not {endpoint}, where its bucket is", _UNSET
            )
        return options

    def _add_bucket(self) -> str:
        scheme, _, host = self.endpoint.partition("://")
        return f"{scheme}://{self.bucket}.{host}"

    def to_arrow(self) -> dict[str, Any]:
        """Return the arguments with which pyarrow sends requests to this address."""
        arguments: dict[str, Any] = {"force_virtual_addressing": self.bucket_in_host}
        if self.endpoint:
            arguments["scheme"], _, arguments["endpoint_override"] = self.endpoint.partition("://")
        return arguments


def resolve_address(bucket: str, options: Mapping[str, Any]) -> BucketAddress:
    """Find the address for requests for a bucket.

    The position of the bucket comes from the source of the endpoint: `fs.s3a.path.style.access` in Hadoop's settings,
    or `AWS_VIRTUAL_HOSTED_STYLE_REQUEST` in the environment. For an IP address, the bucket is always in the path.

    Args:
        bucket: The bucket's name.
        options: `endpoint`, without the bucket, and `virtual_hosted_style_request`, if settings have them.

    Raises:
        UnsupportedTable: If settings name an `access_point` for the bucket: its name may be somebody else's bucket.
    """
    access_point = options.get("access_point")
    if access_point:
        raise UnsupportedTable(f"s3://{bucket}", f"it is reached by the access point {access_point}")
    endpoint = str(options.get("endpoint") or "")
    environment_endpoint = "" if endpoint else _read_environment()
    bucket_in_host = os.environ.get(_BUCKET_IN_HOST, "").lower() in _TRUE
    if not environment_endpoint:
        bucket_in_host = bool(options.get("virtual_hosted_style_request", bucket_in_host))
    elif bucket_in_host:
        endpoint = remove_bucket(environment_endpoint, bucket)
    else:
        endpoint = environment_endpoint
    if _HOST_LABEL.fullmatch(bucket) is None or _is_address(endpoint):
        bucket_in_host = False
    return BucketAddress(bucket=bucket, endpoint=endpoint, bucket_in_host=bucket_in_host)


def find_region(endpoint: str) -> str | None:
    """Find the region in the name of one of Amazon's regional endpoints."""
    match = _REGION.search(_host(endpoint))
    return match[1] if match else None


def _read_environment() -> str:
    """Return the endpoint of the environment, with the variables in the order of obstore."""
    for name in _ENDPOINTS:
        endpoint = os.environ.get(name, "").strip()
        if not endpoint:
            continue
        if "://" not in endpoint:
            endpoint = f"https://{endpoint}"
        return endpoint.rstrip("/")
    return ""


def remove_bucket(endpoint: str, bucket: str) -> str:
    """Remove the bucket at the beginning of an endpoint's host, which obstore needs there."""
    scheme, _, host = endpoint.partition("://")
    return f"{scheme}://{host.removeprefix(f'{bucket}.')}"


def _host(endpoint: str) -> str:
    url = endpoint if "://" in endpoint else f"//{endpoint}"
    return urlsplit(url).hostname or ""


def _is_address(endpoint: str) -> bool:
    """Return whether the host of an endpoint is a number, or this machine, so that `bucket.host` is no name."""
    host = _host(endpoint)
    if host == "localhost" or host.endswith(".localhost"):
        return True
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
