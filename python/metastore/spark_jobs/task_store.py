"""Access to the objects of a store for tasks, and for the driver that runs their jobs."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from metastore import jvm_session
from metastore.errors import DamagedObject
from metastore.format.objects import ObjectRef, content_name, encode_object, make_reference, mark_unique, object_kind
from metastore.store.arrow_blobs import read_object, write_object
from metastore.store.credentials import FROM_ENVIRONMENT, Credentials

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame


T = TypeVar("T")

ReadContent = Callable[[], bytes]
"""Returns the bytes of an object, not verified; raises `DamagedObject` if it is missing."""

_FRAME = 4
_WAITING: ContextVar[list[bytes]] = ContextVar("_WAITING")


@dataclass(frozen=True)
class TaskStore:
    """A store that tasks reach themselves: a shared folder or an object store.

    A job that writes objects ends in `collect` or `collect_rows`; one that reads them begins with
    `distribute_with_content`.

    Attributes:
        access: The credentials of an object store.
    """

    uri: str
    access: Credentials = FROM_ENVIRONMENT

    def write(
        self, kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str] | None = None
    ) -> ObjectRef:
        """Write an object, in a task."""
        return write_object(self.uri, kind, table, row_groups, extra, access=self.access)

    def distribute_with_content(
        self, context: SparkContext, items: Sequence[T], slices: int, name: Callable[[T], str | None]
    ) -> RDD[tuple[T, ReadContent]]:
        """Distribute items, each with the content of the object that it names."""
        uri = self.uri
        access = self.access

        def add_content(item: T) -> tuple[T, ReadContent]:
            return item, partial(read_object, uri, name(item) or "", access=access)

        return context.parallelize(items, slices).map(add_content)

    def collect(self, results: RDD[T]) -> list[T]:
        """Run a job whose tasks write objects, and return their results."""
        return results.collect()

    def pack_results(self, results: Iterable[Any]) -> Iterator[bytes]:
        """Pack the results of a task, and the objects that it wrote, into the rows that `collect_rows` reads."""
        return map(pickle.dumps, results)

    def collect_rows(self, rows: DataFrame) -> list[Any]:
        """Run a job whose tasks write objects and return rows of `pack_results` in one column."""
        return [pickle.loads(row[0]) for row in rows.collect()]  # noqa: S301 - written by our own task


@dataclass(frozen=True)
class JvmTaskStore(TaskStore):
    """A store that Python tasks do not reach: the JVM of their executor reads and writes objects for them.

    Attributes:
        jvm_access: The access of the JVM, an object in that of the driver; None in tasks.
    """

    jvm_access: Any = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the driver's JVM."""
        return JvmTaskStore, (self.uri,)

    def write(
        self, kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str] | None = None
    ) -> ObjectRef:
        """See `TaskStore`; the bytes wait until `pack_results` sends them."""
        data = encode_object(kind, table, row_groups, mark_unique(extra))
        name = content_name(kind, data)
        _WAITING.get().append(_record(name, data))
        return make_reference(name, data, table.num_rows)

    def distribute_with_content(
        self, context: SparkContext, items: Sequence[T], slices: int, name: Callable[[T], str | None]
    ) -> RDD[tuple[T, ReadContent]]:
        requests = [_record(_check_name(name(item)), pickle.dumps(item)) for item in items]
        distributed = context.parallelize(requests, slices)
        answers = self._objects(context).read(jvm_session.to_jvm_bytes(distributed))
        return jvm_session.from_jvm_bytes(answers, context).map(_with_content)

    def collect(self, results: RDD[T]) -> list[T]:
        records = results.mapPartitions(self.pack_results)
        return self._write_and_unpack(results.ctx, jvm_session.to_jvm_bytes(records))

    def pack_results(self, results: Iterable[Any]) -> Iterator[bytes]:
        """See `TaskStore`; objects come before the result that names them."""
        waiting: list[bytes] = []
        _WAITING.set(waiting)
        for result in results:
            yield from waiting
            waiting.clear()
            yield _record("", pickle.dumps(result))
        yield from waiting

    def collect_rows(self, rows: DataFrame) -> list[Any]:
        return self._write_and_unpack(rows.sparkSession.sparkContext, jvm_session.to_jvm_rows(rows))

    def _write_and_unpack(self, context: SparkContext, records: Any) -> list[Any]:
        results = jvm_session.from_jvm_bytes(self._objects(context).write(records), context).collect()
        return [pickle.loads(record[1:]) for record in results]  # noqa: S301 - written by our own task

    def _objects(self, context: SparkContext) -> Any:
        return jvm_session.load_shim_class(context, "CarriedObjects")(self.jvm_access)


def _check_name(name: str | None) -> str:
    """Return the name of an object; an empty text for a name that may be a path."""
    try:
        object_kind(name)
    except DamagedObject:
        return ""
    return str(name)


def _record(name: str, data: bytes) -> bytes:
    """Encode a record for `CarriedObjects` of the shim."""
    return bytes([len(name)]) + name.encode("ascii") + data


def _with_content(answer: bytes) -> tuple[Any, ReadContent]:
    end = _FRAME + int.from_bytes(answer[:_FRAME], "big")
    start = _FRAME + 1 + answer[_FRAME]
    name = answer[_FRAME + 1 : start].decode("ascii")
    data = answer[end:]

    def read_content() -> bytes:
        if not data:
            raise DamagedObject(name, "it is missing")
        return data

    return pickle.loads(answer[start:end]), read_content  # noqa: S301 - written by our own driver
