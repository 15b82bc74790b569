"""Folders of object stores, with a check that answers are for the requested bucket and keys.

A server for virtual hosting that does not know its own name takes the first folder of a path for the bucket. It would
answer a listing with nothing, and a read with an object of another bucket.
"""

from __future__ import annotations

import html
import re
from datetime import timedelta
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import BaseError
from obstore.store import from_url

from metastore.errors import StoreNotReadable, UnsupportedTable
from metastore.store.credentials import Credentials, make_store_options
from metastore.store.environment_keys import require_keys
from metastore.store.location import split_remote
from metastore.visible_text import first_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from obstore import ListResult, ObjectMeta
    from obstore.store import ObjectStore, RetryConfig


ERRORS = (BaseError, OSError)
"""Errors of obstore; only the first line of their texts is used, because a debug dump with credentials may follow."""
_RETRIES: RetryConfig = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}
_ABSENT = "absent"
_NO_BUCKET = re.compile(r"<Code>(NoSuchBucket|ContainerNotFound)</Code>")
_KEY = re.compile(r"<Key>([^<]*)</Key>")
_BUCKET = re.compile(r"<BucketName>([^<]*)</BucketName>")
_HINT = "Set fs.s3a.path.style.access to true where the server does not take buckets from the host's name."


class RemoteFolder:
    """A folder of an object store."""

    def __init__(self, uri: str, access: Credentials) -> None:
        self._uri = uri
        self._root, self._folder = split_remote(uri)
        self._bucket = self._root.partition("://")[2]
        require_keys(uri, access)
        self._opened = (access, self._open(access))

    def _open(self, access: Credentials) -> ObjectStore:
        try:
            options: Any = make_store_options(self._uri, access)
            arguments = {name: options.pop(name, None) for name in ("client_options", "credential_provider")}
            return from_url(self._root, config=options, retry_config=_RETRIES, **arguments)
        except BaseError as error:
            raise UnsupportedTable(self._uri, first_line(error)) from error

    @property
    def store(self) -> ObjectStore:
        """Obstore's store of the bucket, opened again if its credentials were renewed."""
        access, store = self._opened
        current = access.renewed()
        if current is not access:
            store = self._open(current)
            self._opened = (current, store)  # both at once: other threads read them
        return store

    def key(self, path: str) -> str:
        """Return the key of a path below the folder."""
        return f"{self._folder}/{path}".strip("/")

    def list_below(self, path: str) -> list[ObjectMeta]:
        """List the objects below a path, at any depth.

        Raises:
            StoreNotReadable: If the answer is about other keys.
        """
        folder = self.key(path)
        entries = {}
        for entry in chain.from_iterable(obstore.list(self.store, folder)):
            entries[entry["path"]] = entry
        entries.pop(folder, None)
        self._check_keys(path, entries)
        return list(entries.values())

    def list_names(self) -> list[str]:
        """List the names of objects and folders directly in the folder.

        Raises:
            StoreNotReadable: If the answer is about other keys, or another bucket.
        """
        result: ListResult[Any] = obstore.list_with_delimiter(self.store, self._folder)
        listed = [*map(itemgetter("path"), result["objects"]), *result["common_prefixes"]]
        keys = [key for key in listed if key.rstrip("/") != self._folder]
        self._check_keys("", keys)
        if not keys:
            self._check_bucket()
        return [key.rstrip("/").rpartition("/")[2] for key in keys]

    def check_missing(self, path: str, error: Exception) -> None:
        """Check that a server without an object looked for it in the right bucket.

        Raises:
            StoreNotReadable: If it looked elsewhere.
        """
        text = str(error)
        bucket = _find_element(_BUCKET, text) or self._bucket
        if _NO_BUCKET.search(text):
            raise StoreNotReadable(self._uri, f"the server has no bucket {bucket}", _HINT)
        if bucket != self._bucket:
            raise StoreNotReadable(self._uri, f"the server looked into bucket {bucket}", _HINT)
        answered_key = _find_element(_KEY, text).lstrip("/")
        if answered_key:
            self._check_answered_key(self.key(path), answered_key)

    def _check_answered_key(self, key: str, answered_key: str) -> None:
        is_within = key.endswith(f"/{answered_key}")
        is_around = answered_key.endswith(f"/{key}")
        if is_within or is_around:
            raise StoreNotReadable(self._uri, f"the server looked for {answered_key} in place of {key}", _HINT)

    def _check_keys(self, path: str, keys: Iterable[str]) -> None:
        folder = f"{self.key(path)}/".lstrip("/")
        for key in keys:
            if not key.startswith(folder):
                raise StoreNotReadable(self._uri, f"a listing of {folder} has {key}, which is not in it", _HINT)

    def _check_bucket(self) -> None:
        try:
            obstore.get(self.store, self.key(_ABSENT))
        except FileNotFoundError as error:
            self.check_missing(_ABSENT, error)


def _find_element(pattern: re.Pattern[str], text: str) -> str:
    """Find the text of an element in the XML of an error; empty if there is none."""
    match = pattern.search(text)
    return html.unescape(match[1]) if match else ""
