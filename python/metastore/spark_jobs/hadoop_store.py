"""Opens stores for the driver; those on HDFS and other Hadoop file systems through its JVM."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # it has no types

from metastore import configuration, jvm_session
from metastore.adapters.spark_errors import find_cause
from metastore.errors import DamagedObject, StoreNotReadable, StoreNotWritable, UnsupportedTable
from metastore.spark_jobs.task_store import HadoopTaskStore, TaskStore
from metastore.store import Store
from metastore.store.credentials import FROM_ENVIRONMENT, Credentials, find_credentials
from metastore.store.data_file_access import DataFileAccess, find_bucket
from metastore.store.local_blobs import BlobEntry, CreateReply
from metastore.store.location import needs_hadoop, store_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile
    from metastore.format.manifest import TableIdentity
    from metastore.store.obstore_blobs import Blobs


_PROVEN = frozenset({"org.apache.hadoop.fs.Hdfs"})
"""File systems whose rename is atomic and never replaces a file: HDFS, whose name node does it in one step."""
_REFUSALS = frozenset(
    {"AccessControlException", "SafeModeException", "NSQuotaExceededException", "DSQuotaExceededException"}
)
_ELSEWHERE = "Set spark.metastore.store to a place on HDFS, on an object store or on a shared disk."


def open_store_at(spark: SparkSession, uri: str, *, writable: bool) -> tuple[Store, TaskStore]:
    """Open the store at a URI for the driver and for tasks."""
    if needs_hadoop(uri):
        hadoop = jvm_session.get_hadoop_configuration(spark)
        return Store(uri, partial(_open, spark, uri), writable=writable), HadoopTaskStore(uri, settings=hadoop)
    access = find_credentials(uri, make_hadoop_lookup(spark))
    return Store.open(uri, access=access, writable=writable), TaskStore(uri, access)


def open_table_store(spark: SparkSession, table: TableIdentity, *, writable: bool) -> tuple[Store, TaskStore]:
    """Open the store of a table, at the location of the settings."""
    location = configuration.get("spark.metastore.store", spark)
    return open_store_at(spark, store_uri(table, location), writable=writable)


def find_data_file_access(spark: SparkSession, facts: TableFacts, store: TaskStore) -> DataFileAccess:
    """Find how tasks open a table's data files.

    Python opens those in the bucket of the store, and those for whose bucket the settings have keys.
    """
    buckets = {}
    store_bucket = find_bucket(store.uri)
    if store_bucket is not None:
        buckets[store_bucket] = store.access
    for bucket in _list_buckets(facts.files).difference(buckets):
        credentials = _find_keys(spark, bucket)
        if credentials.has_keys:
            buckets[bucket] = credentials
    return DataFileAccess(has_local_paths=facts.local, buckets=buckets)


def _list_buckets(files: Sequence[DataFile]) -> set[str]:
    """The buckets of data files; most files have the same, so that few locations are read closely."""
    roots = {"/".join(file.location.split("/", 3)[:3]) for file in files}
    return set(filter(None, map(find_bucket, roots)))


def _find_keys(spark: SparkSession, bucket: str) -> Credentials:
    """The credentials of a bucket; without keys if only Hadoop can find them."""
    try:
        return find_credentials(bucket, make_hadoop_lookup(spark))
    except UnsupportedTable:
        return FROM_ENVIRONMENT


def make_hadoop_lookup(spark: SparkSession) -> Callable[[str], str | None]:
    """Return a function that looks up Hadoop's settings, also secrets in a credential provider."""
    conf = jvm_session.get_hadoop_configuration(spark)

    def lookup(key: str) -> str | None:
        characters = conf.getPassword(key)
        return None if characters is None else "".join(characters)

    return lookup


def _open(spark: SparkSession, uri: str, *, writable: bool) -> Blobs:
    folder = jvm_session.load_shim_class(spark, "HadoopFolder")(uri, jvm_session.get_hadoop_configuration(spark))
    if writable:
        _require_atomic_rename(uri, folder)
    return HadoopBlobs(uri, folder)


def _require_atomic_rename(uri: str, folder: Any) -> None:
    try:
        served_by = folder.servedBy()
    except Py4JJavaError as error:
        raise StoreNotWritable(uri, find_cause(error)) from error
    if served_by not in _PROVEN:
        reason = f"{served_by} does not promise that a file is created once: writers could undo each other's commits"
        raise StoreNotWritable(uri, reason, _ELSEWHERE)


class HadoopBlobs:
    """Blobs in a folder of a Hadoop file system."""

    def __init__(self, uri: str, folder: Any) -> None:
        """Wrap a folder."""
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
        """Raise errors of Hadoop as errors of this class."""
        try:
            yield
        except Py4JJavaError as error:
            raise kind(self._uri, find_cause(error)) from error
