"""Opens stores for the driver; through its JVM those on HDFS, and those to which only Iceberg's FileIO has access."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # it has no types

from metastore import configuration, jvm_session
from metastore.adapters.spark_errors import find_cause
from metastore.errors import DamagedObject, StoreNotReadable, StoreNotWritable
from metastore.spark_jobs.table_access import find_session_credentials, find_table_credentials
from metastore.spark_jobs.task_store import JvmTaskStore, TaskStore
from metastore.store import Store
from metastore.store.local_blobs import BlobEntry, CreateReply
from metastore.store.location import needs_hadoop, store_uri
from metastore.store.table_credentials import RemoteSigning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from metastore.format.manifest import TableIdentity
    from metastore.store.obstore_blobs import Blobs


_PROVEN = frozenset({"org.apache.hadoop.fs.Hdfs"})
"""File systems whose rename is atomic and never replaces a file: HDFS, whose name node does it in one step."""
_REFUSALS = frozenset(
    {"AccessControlException", "SafeModeException", "NSQuotaExceededException", "DSQuotaExceededException"}
)
_ELSEWHERE = "Set spark.metastore.store to a place on HDFS, on an object store or on a shared disk."


def open_store_at(spark: SparkSession, uri: str, *, writable: bool) -> tuple[Store, TaskStore]:
    """Open the store at a URI for the driver and for tasks, with the keys of the session."""
    if needs_hadoop(uri):
        access = jvm_session.make_hadoop_access(spark, uri)
        return Store(uri, partial(_open_hadoop, uri, access), writable=writable), JvmTaskStore(uri, jvm_access=access)
    credentials = find_session_credentials(spark, uri)
    return Store.open(uri, access=credentials, writable=writable), TaskStore(uri, credentials)


def open_table_store(
    spark: SparkSession, table: TableIdentity, identifier: str, *, writable: bool
) -> tuple[Store, TaskStore]:
    """Open the store of a table: beside it with its own keys, or where the settings have it with the session's.

    Args:
        spark: The session.
        table: The table.
        identifier: The table as quoted SQL.
        writable: Whether it is written to.
    """
    location = configuration.get("spark.metastore.store", spark)
    uri = store_uri(table, location)
    if location or needs_hadoop(uri):
        return open_store_at(spark, uri, writable=writable)
    try:
        credentials = find_table_credentials(spark, table, identifier, uri)
    except RemoteSigning:
        access = jvm_session.find_folder_access(spark, identifier, table.uuid, uri)
        return Store(uri, partial(_open_signed, uri, access), writable=writable), JvmTaskStore(uri, jvm_access=access)
    return Store.open(uri, access=credentials, writable=writable), TaskStore(uri, credentials)


def _open_hadoop(uri: str, access: Any, *, writable: bool) -> Blobs:
    folder = access.open()
    if writable:
        _require_atomic_rename(uri, folder)
    return JvmBlobs(uri, folder)


def _open_signed(uri: str, access: Any, *, writable: bool) -> Blobs:  # noqa: ARG001 - the same for both
    return JvmBlobs(uri, access.open())


def _require_atomic_rename(uri: str, folder: Any) -> None:
    try:
        served_by = folder.servedBy()
    except Py4JJavaError as error:
        raise StoreNotWritable(uri, find_cause(error)) from error
    if served_by not in _PROVEN:
        reason = f"{served_by} does not promise that a file is created once: writers could undo each other's commits"
        raise StoreNotWritable(uri, reason, _ELSEWHERE)


class JvmBlobs:
    """Blobs in a folder that only the JVM reaches."""

    def __init__(self, uri: str, folder: Any) -> None:
        self._uri = uri
        self._folder = folder

    def list_folder(self, folder: str) -> dict[str, BlobEntry]:
        with self._raise_as(StoreNotReadable):
            listed = json.loads(self._folder.names(folder))
        entries = {}
        for name, size, milliseconds in listed:
            modified = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
            entries[name] = BlobEntry(size, modified)
        return entries

    def list_odd_entries(self, folder: str) -> dict[str, str]:  # noqa: ARG002 - the same for all
        return {}

    def get(self, path: str, most: int) -> bytes | None:
        size = self.size(path)
        if size is None:
            return None
        if size > most:
            raise DamagedObject(path, f"it has {size} bytes")
        return self.get_range(path, 0, size)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        with self._raise_as(StoreNotReadable):
            part: bytes | None = self._folder.part(path, start, length)
        return part

    def size(self, path: str) -> int | None:
        with self._raise_as(StoreNotReadable):
            size = int(self._folder.size(path))
        return None if size < 0 else size

    def put(self, path: str, data: bytes) -> None:
        with self._raise_as(StoreNotWritable):
            self._folder.put(path, data)

    def create(self, path: str, data: bytes) -> tuple[CreateReply, str]:
        try:
            is_created = self._folder.create(path, data)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() in _REFUSALS:
                raise StoreNotWritable(self._uri, find_cause(error)) from error
            return CreateReply.UNKNOWN, find_cause(error)
        return (CreateReply.CREATED, "") if is_created else (CreateReply.EXISTS, "it exists")

    def delete(self, path: str) -> None:
        with self._raise_as(StoreNotWritable):
            self._folder.delete(path)

    @contextmanager
    def _raise_as(self, kind: type[StoreNotReadable | StoreNotWritable]) -> Iterator[None]:
        """Raise errors of the JVM as errors of this class."""
        try:
            yield
        except Py4JJavaError as error:
            raise kind(self._uri, find_cause(error)) from error
