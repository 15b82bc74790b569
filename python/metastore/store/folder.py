"""Folders of any object store, read only: their entries and the bytes of their files."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.store import LocalStore

from metastore.errors import StoreNotReadable
from metastore.store.credentials import FROM_ENVIRONMENT, Credentials
from metastore.store.location import local_path
from metastore.store.remote_folder import ERRORS, RemoteFolder
from metastore.visible_text import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator


class Folder:
    """A folder that may or may not exist.

    Attributes:
        uri: Its location as the user or a manifest wrote it, without a slash at the end.
        access: How it is reached on an object store.
    """

    def __init__(self, uri: str, access: Credentials = FROM_ENVIRONMENT) -> None:
        self.uri = uri.rstrip("/") or "/"
        self.access = access
        path = local_path(self.uri)
        self._local = Path(path).absolute() if path is not None else None

    def __truediv__(self, name: str) -> Folder:
        return Folder(f"{self.uri.rstrip('/')}/{name}", self.access)

    def exists(self) -> bool:
        """Whether anything lies in it; a local folder may also be empty."""
        if self._local is not None:
            with self._reading():
                return self._local.is_dir()
        return bool(self._list())

    def names(self) -> tuple[str, ...]:
        """The names of its direct entries in order; empty if it does not exist."""
        if self._local is None:
            return tuple(sorted(self._list()))
        with self._reading():
            if not self._local.is_dir():
                return ()
            return tuple(sorted(entry.name for entry in self._local.iterdir()))

    def read(self, name: str) -> bytes | None:
        """The bytes of a file in it, or None if there is no such file."""
        with self._reading():
            if self._local is not None:
                return self._read_local(self._local, name)
            folder = self._remote
            try:
                return bytes(obstore.get(folder.store, folder.key(name)).bytes())
            except FileNotFoundError as error:
                folder.check_missing(name, error)
                return None

    @staticmethod
    def _read_local(folder: Path, name: str) -> bytes | None:
        if not (folder / name).is_file():  # whoever opens a pipe waits for a writer
            return None
        try:
            return bytes(obstore.get(LocalStore(folder), name).bytes())
        except FileNotFoundError:
            return None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except ERRORS as error:
            raise StoreNotReadable(self.uri, first_line(error)) from error

    def _list(self) -> list[str]:
        with self._reading():
            return self._remote.list_names()

    @cached_property
    def _remote(self) -> RemoteFolder:
        return RemoteFolder(self.uri, self.access)
