"""Opens stores for the driver; through its JVM those on HDFS, and those to which only Iceberg's FileIO has access."""

from __future__ import annotations

import json
from concurrent.futures import Future
from datetime import datetime, timezone
from functools import partial
from threading import TIMEOUT_MAX, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from metastore.format.manifest import TableIdentity
    from metastore.store.obstore_blobs import Blobs


T = TypeVar("T")

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
        connect = partial(_open_hadoop, uri, access, _time_limit(spark))
        return Store(uri, connect, writable=writable), JvmTaskStore(uri, jvm_access=access)
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
        connect = partial(_open_signed, uri, access, _time_limit(spark))
        return Store(uri, connect, writable=writable), JvmTaskStore(uri, jvm_access=access)
    return Store.open(uri, access=credentials, writable=writable), TaskStore(uri, credentials)


def _time_limit(spark: SparkSession) -> float:
    """Return the seconds after which a store that does not answer is an error."""
    seconds = int(configuration.get("spark.metastore.analyze.timeout", spark)) / 1000
    return min(seconds, TIMEOUT_MAX)


def _open_hadoop(uri: str, access: Any, seconds: float, *, writable: bool) -> Blobs:
    blobs = JvmBlobs(uri, access.open(), seconds)
    if writable:
        blobs.require_atomic_rename()
    return blobs


def _open_signed(uri: str, access: Any, seconds: float, *, writable: bool) -> Blobs:  # noqa: ARG001 - the same for both
    return JvmBlobs(uri, access.open(), seconds)


class _NoAnswerError(Exception):
    """A call has not ended in time."""


class _JvmCall(Thread, Generic[T]):
    """A call of the JVM in a thread of its own: a file system that hangs blocks this thread alone."""

    def __init__(self, call: Callable[[], T]) -> None:
        super().__init__(name="metastore-store", daemon=True)
        self._call = call
        self._result: Future[T] = Future()

    def run(self) -> None:
        try:
            self._result.set_result(self._call())
        except Exception as error:  # noqa: BLE001 - the thread that waits raises it
            self._result.set_exception(error)

    def wait(self, seconds: float) -> T:
        """Return the result of the call.

        Raises:
            _NoAnswerError: There is none after these seconds.
        """
        self.join(seconds)
        if self.is_alive():
            raise _NoAnswerError
        return self._result.result()


class JvmBlobs:
    """Blobs in a folder that only the JVM reaches.

    Args:
        uri: The folder.
        folder: Its object in the JVM.
        seconds: The time after which a call without an answer is an error.
    """

    def __init__(self, uri: str, folder: Any, seconds: float) -> None:
        self._uri = uri
        self._folder = folder
        self._seconds = seconds

    def require_atomic_rename(self) -> None:
        """Make the folder, and refuse a file system that may lose commits."""
        served_by = self._call(StoreNotWritable, self._folder.servedBy)
        if served_by not in _PROVEN:
            reason = (
                f"{served_by} does not promise that a file is created once: writers could undo each other's commits"
            )
            raise StoreNotWritable(self._uri, reason, _ELSEWHERE)

    def list_folder(self, folder: str) -> dict[str, BlobEntry]:
        listed = json.loads(self._call(StoreNotReadable, lambda: self._folder.names(folder)))
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
        part: bytes | None = self._call(StoreNotReadable, lambda: self._folder.part(path, start, length))
        return part

    def size(self, path: str) -> int | None:
        size = int(self._call(StoreNotReadable, lambda: self._folder.size(path)))
        return None if size < 0 else size

    def put(self, path: str, data: bytes) -> None:
        self._call(StoreNotWritable, lambda: self._folder.put(path, data))

    def create(self, path: str, data: bytes) -> tuple[CreateReply, str]:
        try:
            is_created = _start(lambda: self._folder.create(path, data)).wait(self._seconds)
        except _NoAnswerError:
            return CreateReply.UNKNOWN, self._describe_silence()
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() in _REFUSALS:
                raise StoreNotWritable(self._uri, find_cause(error)) from error
            return CreateReply.UNKNOWN, find_cause(error)
        return (CreateReply.CREATED, "") if is_created else (CreateReply.EXISTS, "it exists")

    def delete(self, path: str) -> None:
        self._call(StoreNotWritable, lambda: self._folder.delete(path))

    def _call(self, error: type[StoreNotReadable | StoreNotWritable], call: Callable[[], Any]) -> Any:
        """Call the JVM; raise its errors, and that it does not answer, as errors of a class."""
        try:
            return _start(call).wait(self._seconds)
        except _NoAnswerError:
            raise error(self._uri, self._describe_silence()) from None
        except Py4JJavaError as failure:
            raise error(self._uri, find_cause(failure)) from failure

    def _describe_silence(self) -> str:
        return f"it has not answered for {self._seconds:g} seconds (spark.metastore.analyze.timeout)"


def _start(call: Callable[[], T]) -> _JvmCall[T]:
    started = _JvmCall(call)
    started.start()
    return started
