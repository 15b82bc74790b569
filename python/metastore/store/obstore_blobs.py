"""The few operations that the store needs of a disk or an object store."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import from_url

from metastore.errors import DamagedObject, StoreNotReadable, StoreNotWritable, UnsupportedTable
from metastore.store.credentials import read_client_options
from metastore.store.local_blobs import BlobEntry, CreateReply, LocalBlobs
from metastore.store.location import local_path, remote_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obstore.store import ObjectStore, RetryConfig


_RETRIES: RetryConfig = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}
_ERRORS = (BaseError, OSError)


class Blobs(Protocol):
    """Named byte strings under one root."""

    def list_folder(self, folder: str) -> dict[str, BlobEntry]:
        """What lies directly in a folder, by name.

        Raises:
            StoreNotReadable: If the store does not answer.
        """

    def get(self, path: str, most: int) -> bytes | None:
        """The bytes at a path, None where there are none.

        Raises:
            DamagedObject: If there are more of them than expected at most; they are not read then.
            StoreNotReadable: If the store does not answer.
        """

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Some of the bytes at a path, fewer where it ends before, None where there are none.

        Raises:
            StoreNotReadable: If the store does not answer.
        """

    def size(self, path: str) -> int | None:
        """The number of bytes at a path, None where there are none."""

    def put(self, path: str, data: bytes) -> None:
        """Writes bytes at a path that nobody else uses; to repeat it does no harm."""

    def create(self, path: str, data: bytes) -> tuple[CreateReply, str]:
        """Writes bytes at a path if there are none, and says what the store answered."""

    def delete(self, path: str) -> None:
        """Removes a path."""


class ObstoreBlobs:
    """Blobs on what obstore reaches: S3, GCS, Azure."""

    def __init__(self, uri: str, store: ObjectStore) -> None:
        self._uri = uri
        self._store = store

    def list_folder(self, folder: str) -> dict[str, BlobEntry]:
        """See `Blobs`."""
        try:
            listed = [meta for chunk in obstore.list(self._store, folder) for meta in chunk]
        except _ERRORS as e:
            raise StoreNotReadable(self._uri, _reason(e)) from e
        below = ((meta["path"].removeprefix(f"{folder}/"), meta) for meta in listed)
        return {name: BlobEntry(meta["size"], meta["last_modified"]) for name, meta in below if "/" not in name}

    def get(self, path: str, most: int) -> bytes | None:
        """See `Blobs`."""
        try:
            found = obstore.get(self._store, path)
            size = found.meta["size"]
            if size <= most:
                return bytes(found.bytes())
        except (FileNotFoundError, NotFoundError):
            return None
        except _ERRORS as e:
            raise StoreNotReadable(self._uri, _reason(e)) from e
        raise DamagedObject(path, f"it has {size} bytes")

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """See `Blobs`."""
        try:
            return bytes(obstore.get_range(self._store, path, start=start, length=length))
        except (FileNotFoundError, NotFoundError):
            return None
        except _ERRORS as e:
            raise StoreNotReadable(self._uri, _reason(e)) from e

    def size(self, path: str) -> int | None:
        """See `Blobs`."""
        try:
            return int(obstore.head(self._store, path)["size"])
        except (FileNotFoundError, NotFoundError):
            return None
        except _ERRORS as e:
            raise StoreNotReadable(self._uri, _reason(e)) from e

    def put(self, path: str, data: bytes) -> None:
        """See `Blobs`."""
        try:
            obstore.put(self._store, path, data, mode="overwrite")
        except _ERRORS as e:
            raise StoreNotWritable(self._uri, _reason(e)) from e

    def create(self, path: str, data: bytes) -> tuple[CreateReply, str]:
        """See `Blobs`."""
        try:
            # Never in parts: what is put at once is there at once or not at all.
            obstore.put(self._store, path, data, mode="create", use_multipart=False)
        except AlreadyExistsError as e:
            return CreateReply.EXISTS, _reason(e)
        except (PermissionDeniedError, UnauthenticatedError, NotSupportedError) as e:
            raise StoreNotWritable(self._uri, _reason(e)) from e
        except _ERRORS as e:
            return CreateReply.UNKNOWN, _reason(e)
        return CreateReply.CREATED, ""

    def delete(self, path: str) -> None:
        """See `Blobs`."""
        try:
            obstore.delete(self._store, path)
        except (FileNotFoundError, NotFoundError):
            return
        except _ERRORS as e:
            raise StoreNotWritable(self._uri, _reason(e)) from e


def open_blobs(uri: str, options: Mapping[str, Any] | None, *, writable: bool) -> Blobs | None:
    """The blobs under a URI, None where a folder does not exist that only shall be read."""
    path = local_path(uri)
    if path is None:
        return ObstoreBlobs(uri, _remote(uri, options))
    blobs = LocalBlobs(uri, Path(path))
    if writable:
        blobs.create_folder()
        return blobs
    return blobs if blobs.exists() else None


def _remote(uri: str, options: Mapping[str, Any] | None) -> ObjectStore:
    try:
        config: Any = dict(options or {})
        url = remote_url(uri)
        client = config.pop("client_options", None) or read_client_options(url, config)
        store: ObjectStore = from_url(url, config=config, client_options=client, retry_config=_RETRIES)
    except BaseError as e:
        raise UnsupportedTable(uri, _reason(e)) from e
    return store


def _reason(error: Exception) -> str:
    # obstore appends a debug dump, which may hold credentials, to the sentence that says what went wrong
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__
