"""Folders of any object store, read only: what lies in them and what a file holds."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from metastore.errors import StoreNotReadable
from metastore.store.credentials import read_client_options
from metastore.store.location import local_path, remote_url

if TYPE_CHECKING:
    from collections.abc import Iterator


class Folder:
    """A folder that may or may not exist.

    Attributes:
        uri: Where it is, as the user or a manifest wrote it, without a slash at the end.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri.rstrip("/") or "/"
        path = local_path(self.uri)
        self._local = Path(path).absolute() if path is not None else None
        self._store: ObjectStore | None = None

    def __truediv__(self, name: str) -> Folder:
        return Folder(f"{self.uri.rstrip('/')}/{name}")

    def exists(self) -> bool:
        """Whether anything lies in it; a local folder may also be empty."""
        if self._local is not None:
            with self._reading():
                return self._local.is_dir()
        return bool(self._list())

    def names(self) -> tuple[str, ...]:
        """The names of what lies directly in it; none where it does not exist."""
        if self._local is not None:
            with self._reading():
                return tuple(sorted(one.name for one in self._local.iterdir())) if self._local.is_dir() else ()
        return tuple(sorted(self._list()))

    def read(self, name: str) -> bytes | None:
        """The bytes of a file in it, None where there is none."""
        with self._reading():
            # Whoever opens a pipe waits for a writer.
            if self._local is not None and not (self._local / name).is_file():
                return None
            try:
                return bytes(obstore.get(self._open(), name).bytes())
            except FileNotFoundError:
                return None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise StoreNotReadable(self.uri, str(error).partition("\n")[0]) from error

    def _list(self) -> list[str]:
        with self._reading():
            found = obstore.list_with_delimiter(self._open())
        paths = [*(one["path"] for one in found["objects"]), *found["common_prefixes"]]
        return [str(path).rstrip("/").rsplit("/", 1)[-1] for path in paths]

    def _open(self) -> ObjectStore:
        if self._store is None:
            self._store = LocalStore(self._local) if self._local is not None else _remote(remote_url(self.uri))
        return self._store


def _remote(url: str) -> ObjectStore:
    store: ObjectStore = from_url(url, client_options=read_client_options(url))
    return store
