"""Locations of statistics: URIs as Spark and the table formats write them, and the folders behind them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from metastore.errors import UnsupportedTable

if TYPE_CHECKING:
    from metastore.format.manifest import TableIdentity


FOLDER = "_metastore"
_REMOTE_SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "az": "az",
    "abfs": "abfs",
    "abfss": "abfss",
    "adl": "adl",
    "azure": "azure",
    "wasb": "abfs",
    "wasbs": "abfss",
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?(.*)", re.DOTALL)
_UUID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_HINT = "Set spark.metastore.store to a local folder or to an s3, gs or abfss location."
_ASK_SPARK = "Ask with Spark, by the name of the table, or set spark.metastore.store to an s3, gs or abfss location."


def store_uri(identity: TableIdentity, root: str | None = None) -> str:
    """Return the URI of a table's store."""
    if not root:
        return default_store_uri(identity.location)
    if not _UUID.fullmatch(identity.uuid):
        raise UnsupportedTable(identity.name, f"its uuid {identity.uuid!r} is no name of a folder")
    return f"{root.rstrip('/')}/{identity.format}-{identity.uuid}"


def default_store_uri(location: str) -> str:
    """Return the URI of the store beside a table."""
    return f"{location.rstrip('/')}/{FOLDER}"


def local_path(uri: str) -> PurePosixPath | None:
    """Return the path of a `file:` URI or a bare path; None for locations that are not local.

    Spark's and Iceberg's locations are Hadoop paths: percent signs, spaces and hashes in them mean themselves.
    """
    match = _SCHEME.fullmatch(uri)
    if not match:
        return PurePosixPath(uri)
    scheme, host, path = match.groups()
    if scheme.lower() != "file":
        return None
    if host not in (None, "", "localhost"):
        raise UnsupportedTable(uri, f"it lies on the disk of {host}", _HINT)
    return PurePosixPath(path)


def needs_hadoop(uri: str) -> bool:
    """Return whether only a Hadoop file system can reach a location."""
    match = _SCHEME.fullmatch(uri)
    return match is not None and match[1].lower() not in {"file", *_REMOTE_SCHEMES}


def remote_url(uri: str) -> str:
    """Return a location on an object store as the URL that obstore and pyarrow read, special characters encoded."""
    scheme, host, path = _split_uri(uri)
    if scheme not in _REMOTE_SCHEMES or not host:
        hint = _ASK_SPARK if needs_hadoop(uri) else _HINT
        raise UnsupportedTable(uri, f"locations of the scheme {scheme}: are not reached without Spark", hint)
    return f"{_REMOTE_SCHEMES[scheme]}://{host}{quote(path)}"


def split_scheme_and_host(uri: str) -> tuple[str, str]:
    """Split a location on an object store into the scheme of its URL and its bucket, or container and account."""
    scheme, _, path = remote_url(uri).partition("://")
    host, _, _ = path.partition("/")
    return scheme, host


def split_remote(uri: str) -> tuple[str, str]:
    """Split a location on an object store into the URL of its bucket and its key, which is empty at the root."""
    root = "/".join(remote_url(uri).split("/", 3)[:3])
    _, _, path = _split_uri(uri)
    return root, path.strip("/")


def _split_uri(uri: str) -> tuple[str, str, str]:
    """Split a URI into scheme, host and path; a bare path has none of these."""
    match = _SCHEME.fullmatch(uri)
    if match is None:
        return "", "", ""
    scheme, host, path = match.groups()
    return scheme.lower(), host or "", path


def openable_path(path: str, location: str) -> str:
    """Return the local path or the URI by which pyarrow, DuckDB, Polars and Daft open a data file.

    Args:
        path: Its path in the statistics: relative to the table, or absolute.
        location: The table's root.

    Example:
        >>> openable_path("day=1/a.parquet", "file:/warehouse/t"), openable_path("s3a://bucket/t/a.parquet", "s3a://bucket/t")
        ('/warehouse/t/day=1/a.parquet', 's3://bucket/t/a.parquet')
    """
    is_absolute = path.startswith("/") or ":/" in path
    uri = path if is_absolute else f"{location.rstrip('/')}/{path}"
    local = local_path(uri)
    if local is not None:
        return str(local)
    scheme, _, key = uri.partition("://")
    if scheme.lower() in ("s3a", "s3n"):
        scheme = "s3"
    return f"{scheme}://{key}"
