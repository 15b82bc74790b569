"""The operations that a store needs from a disk or an object store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    NotFoundError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from metastore.errors import DamagedObject, StoreNotReadable, StoreNotWritable
from metastore.store.local_blobs import BlobEntry, CreateReply, LocalBlobs
from metastore.store.location import local_path
from metastore.store.remote_folder import ERRORS, RemoteFolder
from metastore.visible_text import first_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from metastore.store.credentials import Credentials


T = TypeVar("T")

_NOT_FOUND = (FileNotFoundError, NotFoundError)


class Blobs(Protocol):
    """Named byte strings under one root."""

    def list_folder(self, folder: str) -> dict[str, BlobEntry]:
        """List the blobs directly in a folder, by name.

        Raises:
            StoreNotReadable: If the store does not answer.
        """

    def list_odd_entries(self, folder: str) -> dict[str, str]:
        """List the entries of a folder that are not blobs: their kinds by name.

        Raises:
            StoreNotReadable: If the store does not answer.
        """

    def get(self, path: str, most: int) -> bytes | None:
        """Return the bytes at a path, None if there are none.

        Raises:
            DamagedObject: If there are more than `most` bytes, which are then not read.
            StoreNotReadable: If the store does not answer.
        """

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Return some of the bytes at a path, fewer if it ends before, None if there are none.

        Raises:
            StoreNotReadable: If the store does not answer.
        """

    def size(self, path: str) -> int | None:
        """Return the number of bytes at a path, None if there are none."""

    def put(self, path: str, data: bytes) -> None:
        """Write bytes at a path that no other writer uses; repeating this is harmless."""

    def create(self, path: str, data: bytes) -> tuple[CreateReply, str]:
        """Write bytes at a path if there are none, and return the store's answer with a reason."""

    def delete(self, path: str) -> None:
        """Remove a path."""


class ObstoreBlobs:
    """Blobs on an object store that obstore reaches: S3, GCS, Azure."""

    def __init__(self, uri: str, folder: RemoteFolder) -> None:
        self._uri = uri
        self._folder = folder

    def list_folder(self, folder: str) -> dict[str, BlobEntry]:
        """See `Blobs`."""
        try:
            listed = self._folder.list_below(folder)
        except ERRORS as e:
            raise StoreNotReadable(self._uri, first_line(e)) from e
        prefix = f"{self._folder.key(folder)}/"
        entries = {}
        for meta in listed:
            name = meta["path"].removeprefix(prefix)
            if "/" not in name:
                entries[name] = BlobEntry(meta["size"], meta["last_modified"])
        return entries

    def list_odd_entries(self, folder: str) -> dict[str, str]:  # noqa: ARG002 - the same for all
        """See `Blobs`; an object store has none."""
        return {}

    def get(self, path: str, most: int) -> bytes | None:
        """See `Blobs`."""

        def read_all(key: str) -> bytes:
            result = obstore.get(self._folder.store, key)
            size = result.meta["size"]
            if size > most:
                raise DamagedObject(path, f"it has {size} bytes")
            return bytes(result.bytes())

        return self._read(path, read_all)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """See `Blobs`."""
        return self._read(
            path, lambda key: bytes(obstore.get_range(self._folder.store, key, start=start, length=length))
        )

    def size(self, path: str) -> int | None:
        """See `Blobs`."""
        return self._read(path, lambda key: int(obstore.head(self._folder.store, key)["size"]))

    def _read(self, path: str, read: Callable[[str], T]) -> T | None:
        """Read something of a blob by its key; None if there is no blob."""
        try:
            return read(self._folder.key(path))
        except _NOT_FOUND as e:
            self._folder.check_missing(path, e)
            return None
        except ERRORS as e:
            raise StoreNotReadable(self._uri, first_line(e)) from e

    def put(self, path: str, data: bytes) -> None:
        """See `Blobs`."""
        try:
            obstore.put(self._folder.store, self._folder.key(path), data, mode="overwrite")
        except ERRORS as e:
            raise StoreNotWritable(self._uri, first_line(e)) from e

    def create(self, path: str, data: bytes) -> tuple[CreateReply, str]:
        """See `Blobs`."""
        try:
            # Never in parts: a blob that is put at once is complete or absent.
            obstore.put(self._folder.store, self._folder.key(path), data, mode="create", use_multipart=False)
        except AlreadyExistsError as e:
            return CreateReply.EXISTS, first_line(e)
        except (PermissionDeniedError, UnauthenticatedError, NotSupportedError) as e:
            raise StoreNotWritable(self._uri, first_line(e)) from e
        except ERRORS as e:
            return CreateReply.UNKNOWN, first_line(e)
        return CreateReply.CREATED, ""

    def delete(self, path: str) -> None:
        """See `Blobs`."""
        try:
            obstore.delete(self._folder.store, self._folder.key(path))
        except _NOT_FOUND:
            return
        except ERRORS as e:
            raise StoreNotWritable(self._uri, first_line(e)) from e


def open_blobs(uri: str, access: Credentials, *, writable: bool) -> Blobs:
    """Open the blobs under a URI; a local folder is made if they are to be written."""
    path = local_path(uri)
    if path is None:
        return ObstoreBlobs(uri, RemoteFolder(uri, access))
    blobs = LocalBlobs(uri, Path(path))
    if writable:
        blobs.create_folder()
    return blobs
