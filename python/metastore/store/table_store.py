"""The statistics of one table: immutable objects, and a log of manifests that name the valid ones."""

from __future__ import annotations

import math
import random
import re
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from metastore.errors import DamagedObject, StoreNotReadable, StoreNotWritable
from metastore.format.manifest import MAX_READ_BYTES, iterate_objects
from metastore.format.object_part import ObjectPart
from metastore.format.object_schemas import DETAILS
from metastore.format.objects import (
    MAX_OBJECT_BYTES,
    content_name,
    decode_object,
    encode_object,
    make_reference,
    mark_unique,
    object_kind,
)
from metastore.store import commit_log, retention
from metastore.store.compaction import shrink_to_limits
from metastore.store.credentials import FROM_ENVIRONMENT, Credentials
from metastore.store.decoded_rows import DecodedRows
from metastore.store.local_blobs import BlobEntry, CreateReply
from metastore.store.location import local_path
from metastore.store.obstore_blobs import open_blobs
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Mapping, Sequence

    import pyarrow as pa

    from metastore.format.manifest import Manifest, TableIdentity
    from metastore.format.objects import ObjectRef
    from metastore.store.obstore_blobs import Blobs


_LOG = get_logger(__name__)

T = TypeVar("T")

KEEP_SNAPSHOTS = 10

_PAUSE_SECONDS = 0.01
_LONGEST_PAUSE = 2.0
_REQUESTS = 16
_MOST_SINGLE_REQUESTS = 2  # a listing returns 1,000 objects by one request
_MOST_LOCAL_REQUESTS = 1000
_LISTING_SECONDS = 5.0  # nobody deletes objects in use that soon
_MOST_PARTS = 64
_SMALL_FOOTER = 1 << 17
_FOLDERS = ("log", "objects")


@dataclass
class _LogMemory:
    """The names that the last search for garbage read in the log of a store."""

    names: retention.LogNames = field(default_factory=retention.LogNames)


@lru_cache(maxsize=8)
def _remember_log(_uri: str) -> _LogMemory:
    return _LogMemory()


class Store:
    """The statistics of one table, on a local disk or an object store.

    Any number of processes may read and commit at the same time. Objects and manifests are created by `put` and
    `commit`, never overwritten, and only the collection of garbage deletes them. Other files in `log`, probes and
    claims, come and go. Even a search for garbage writes a probe, to read the store's clock.
    """

    def __init__(self, uri: str, open_blobs: Callable[..., Blobs], *, writable: bool) -> None:
        self.uri = uri
        self.open_blobs = open_blobs
        self._writable = writable
        self._reading: Blobs | None = None
        self._writing: Blobs | None = None
        self._present: set[str] = set()
        """Names of objects that need no check: written here, or named by a manifest in the log."""
        self._parts: dict[ObjectRef, ObjectPart] = {}
        self._decoded: DecodedRows | None = None
        self._is_local = local_path(uri) is not None
        self._listed: dict[str, int] = {}
        """Names and bytes of the objects that a listing had a moment ago."""
        self._listed_at = -math.inf
        self._listed_log: dict[int, BlobEntry] = {}
        self._last_read: tuple[int, BlobEntry, bytes] | None = None
        """The last manifest that was read, with its number and its entry in the listing."""

    @classmethod
    def open(cls, uri: str, *, access: Credentials = FROM_ENVIRONMENT, writable: bool = False) -> Store:
        """Open the store at a URI: `file:/x`, `file:///x`, a bare path, `s3://`, `gs://`, `abfss://`."""
        store = cls(uri, partial(open_blobs, uri, access), writable=writable)
        if local_path(uri) is None:
            store._blobs()
        return store

    def writable(self) -> Store:
        """Open the same store for writing."""
        return Store(self.uri, self.open_blobs, writable=True)

    def keep_reads(self) -> Store:
        """Return the same store, for many questions: the rows that were decoded last are kept."""
        store = copy(self)
        store._decoded = DecodedRows()  # noqa: SLF001 - of this class
        store._parts = {}  # noqa: SLF001 - of this class
        return store

    def is_empty(self) -> bool:
        """Return whether nothing was ever written."""
        return not any(map(self._blobs().list_folder, _FOLDERS))

    def read(self) -> Manifest | None:
        """Read the newest manifest; None if there are no statistics."""
        # A file system has kinds of entries that a listing leaves out: asking for the next number names them.
        head = self.run(commit_log.find_head() if self._is_local else commit_log.find_newest())
        if head.manifest is None and head.damage is not None:
            raise head.damage
        manifest: Manifest | None = head.manifest
        return manifest

    def get(self, ref: ObjectRef, columns: Sequence[str] | None = None) -> pa.Table:
        """Read and verify the rows of an object: all columns, or those that are named."""

        def decode() -> pa.Table:
            data = self.read_bytes(ref.name, ref.length)
            return decode_object(ref, data, columns)

        return self.decode((ref, None if columns is None else tuple(columns)), decode)

    def decode(self, key: Hashable, decode: Callable[[], pa.Table]) -> pa.Table:
        """Decode rows, which the key identifies, or return those that are kept."""
        return decode() if self._decoded is None else self._decoded.get(key, decode)

    def read_bytes(self, name: str, most: int = MAX_OBJECT_BYTES) -> bytes:
        """Read the bytes of an object as they are, not verified."""
        object_kind(name)
        data = self._blobs().get(f"objects/{name}", most)
        if data is None:
            raise DamagedObject(name, f"it is missing in {self.uri}")
        return data

    def open_part(self, ref: ObjectRef) -> ObjectPart:
        """Open an object to read some of its columns and row groups; the last few footers are cached."""
        cached = self._parts.get(ref)
        if cached is not None:
            return cached
        object_kind(ref.name)
        blobs = self._blobs()

        def fetch(start: int, length: int) -> bytes:
            data = blobs.get_range(f"objects/{ref.name}", start, length)
            if data is None:
                raise DamagedObject(ref.name, f"it is missing in {self.uri}")
            return data

        part = ObjectPart(ref, fetch, self.decode)
        if ref.footer_length <= _SMALL_FOOTER:
            last_parts = list(self._parts.items())[1 - _MOST_PARTS :]
            self._parts = {**dict(last_parts), ref: part}
        return part

    def list_objects(self, kind: str) -> dict[str, Any]:
        """List the names of all objects of a kind, referenced or not, with the times of their writing."""
        pattern = re.compile(rf"{kind}-[0-9a-f-]{{36}}\.parquet")
        entries = self._list_objects()
        return {name: entry.modified for name, entry in entries.items() if pattern.fullmatch(name)}

    def _list_objects(self) -> Mapping[str, BlobEntry]:
        entries = self._blobs().list_folder("objects")
        self._listed = {name: entry.size for name, entry in entries.items()}
        self._listed_at = time.monotonic()
        return entries

    def list_entries(self) -> dict[str, int | str]:
        """List the entries of the store's folders by path: the bytes of a plain file, or the kind of another entry."""
        blobs = self._blobs()
        files = _list_by_path(blobs.list_folder)
        sizes = {path: entry.size for path, entry in files.items()}
        kinds = _list_by_path(blobs.list_odd_entries)
        return {**sizes, **kinds}

    def find_absent(self, lengths: Mapping[str, int]) -> set[str]:
        """Find the objects that are missing or not of the stated length."""
        blobs = self._blobs()
        doubtful = dict(lengths)
        if not self._is_local and time.monotonic() - self._listed_at < _LISTING_SECONDS:
            doubtful = self._leave_out_listed(doubtful)
        most = _MOST_LOCAL_REQUESTS if self._is_local else _MOST_SINGLE_REQUESTS
        if len(doubtful) > most:
            self._list_objects()
            doubtful = self._leave_out_listed(doubtful)
        with ThreadPoolExecutor(_REQUESTS) as pool:
            sizes = pool.map(lambda name: blobs.size(f"objects/{name}"), doubtful)
            return {name for name, size in zip(doubtful, sizes, strict=True) if size != lengths[name]}

    def _leave_out_listed(self, lengths: Mapping[str, int]) -> dict[str, int]:
        """Leave out the objects that the last listing has in this length."""
        return {name: length for name, length in lengths.items() if self._listed.get(name) != length}

    def put(
        self, kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str] | None = None
    ) -> ObjectRef:
        """Write an object and return its reference; readers use it once a manifest names it."""
        data = encode_object(kind, table, row_groups, mark_unique(extra))
        name = content_name(kind, data)
        self.ensure_writable().put(f"objects/{name}", data)
        self._present.add(name)
        return make_reference(name, data, table.num_rows)

    def commit(
        self,
        identity: TableIdentity,
        change: commit_log.Change,
        *,
        keep: int = KEEP_SNAPSHOTS,
        replaceable: frozenset[str] | None = None,
    ) -> Manifest | None:
        """Commit a change and return the manifest that then is the newest.

        Args:
            identity: The table.
            change: Makes the new manifest from the newest one of the table, or None if there is nothing to change.
            keep: Number of snapshots to keep.
            replaceable: The uuids of other tables whose statistics may be replaced; None for all.
        """

        def change_newest(old: Manifest | None) -> Manifest | None:
            if old is not None:
                self._present.update(ref.name for ref in iterate_objects(old))
            return change(old)

        def finish(manifest: Manifest) -> Manifest:
            smaller = shrink_to_limits(manifest, self, keep)
            self._require_objects(smaller)
            return smaller

        self.ensure_writable()
        steps = commit_log.commit(self.uri, identity, change_newest, finish, replaceable)
        manifest: Manifest | None = self.run(steps)
        return manifest

    def ensure_writable(self) -> Blobs:
        """Check once that the folder can be written, and that it refuses to create a file twice."""
        if self._writing is None:
            if not self._writable:
                raise StoreNotWritable(self.uri, "it was opened for reading", "Open it with writable=True.")
            blobs = self.open_blobs(writable=True)
            _probe(self.uri, blobs)
            self._writing = self._reading = blobs
        return self._writing

    def read_clock(self) -> datetime:
        """Read the time of the store's clock, by which the ages of its entries are computed."""
        blobs = self.ensure_writable()
        probe = f"probe-{uuid.uuid4()}"
        blobs.put(f"log/{probe}", b"")
        now = blobs.list_folder("log")[probe].modified
        blobs.delete(f"log/{probe}")
        return now

    def find_garbage(self, grace: float, *, delete: bool) -> retention.Garbage:
        """Find garbage, and delete it on demand; see `retention`. A process reads each manifest once for this."""
        memory = _remember_log(self.uri)
        steps = retention.collect_garbage if delete else retention.find_garbage
        garbage: retention.Garbage = self.run(steps(grace, memory.names))
        memory.names = garbage.log_names
        return garbage

    def _list_blobs(self, _: retention.ListStore) -> list[retention.Blob]:
        """List the store's content with ages by its clock, or by this machine's if nothing can be deleted."""
        if self.is_empty():
            return []
        now = self._read_time_for_ages()
        content = []
        files = _list_by_path(self._blobs().list_folder)
        for path, entry in files.items():
            age = now - entry.modified
            content.append(retention.Blob(path, entry.size, age.total_seconds()))
        return content

    def _read_time_for_ages(self) -> datetime:
        if self._writable:
            return self.read_clock()
        try:
            return self.writable().read_clock()
        except StoreNotWritable as e:
            _LOG.warning("ages are by the clock of this machine, for that of the store cannot be read: %s", e)
            return datetime.now(timezone.utc)

    def _blobs(self) -> Blobs:
        if self._reading is None:
            self._reading = self.open_blobs(writable=False)
        return self._reading

    def _require_objects(self, manifest: Manifest) -> None:
        """Raise an error if a manifest names objects that are absent here: a worker may have another disk."""
        lengths = {ref.name: ref.length for ref in iterate_objects(manifest) if ref.name not in self._present}
        absent = self.find_absent(lengths)
        if absent:
            raise StoreNotWritable(
                self.uri,
                f"{min(absent)} was written and is not there",
                "Driver and workers must share the folder: set spark.metastore.store to one that they do.",
            )
        self._present.update(lengths)

    def run(self, steps: Generator[Any, Any, Any]) -> Any:
        """Answer the requests of steps without I/O, and return their result."""
        try:
            request = next(steps)
            while True:
                try:
                    answer = self._answer(request)
                except (StoreNotReadable, DamagedObject) as e:
                    request = steps.throw(e)
                else:
                    request = steps.send(answer)
        except StopIteration as done:
            return done.value

    def _answer(self, request: object) -> Any:
        answers: Mapping[type, Callable[[Any], Any]] = {
            retention.ListStore: self._list_blobs,
            retention.ReadDetails: self._read_detail_names,
            retention.Delete: self._delete,
            commit_log.ListLog: self._list_log,
            commit_log.ReadLog: self._read_log,
            commit_log.CreateLog: self._create_log,
            commit_log.Pause: self._pause,
        }
        answer = answers[type(request)]
        return answer(request)

    def _read_detail_names(self, request: retention.ReadDetails) -> set[str]:
        rows = self.get(request.ref, [f"{kind}_name" for kind in DETAILS])
        names: set[str] = set()
        for column in rows.columns:
            names.update(column.drop_null().to_pylist())
        return names

    def _delete(self, request: retention.Delete) -> None:
        self.ensure_writable().delete(request.path)

    def _list_log(self, _: commit_log.ListLog) -> list[int]:
        entries = self._blobs().list_folder("log")
        numbers = commit_log.parse_log_names(entries)
        self._listed_log = {number: entries[name] for number, name in numbers.items()}
        return list(numbers)

    def _read_log(self, request: commit_log.ReadLog) -> bytes | DamagedObject | None:
        name = commit_log.log_name(request.sequence)
        entry = self._listed_log.get(request.sequence)
        if self._last_read is not None and (request.sequence, entry) == self._last_read[:2]:
            return self._last_read[2]
        try:
            data = self._blobs().get(f"log/{name}", MAX_READ_BYTES)
        except DamagedObject as damage:  # no manifest, and its number is in use
            return DamagedObject(name, damage.reason)
        if data is not None and entry is not None and not self._is_local:
            self._last_read = (request.sequence, entry, data)
        return data

    def _create_log(self, request: commit_log.CreateLog) -> tuple[CreateReply, str]:
        name = commit_log.log_name(request.sequence)
        return self.ensure_writable().create(f"log/{name}", request.data)

    def _pause(self, request: commit_log.Pause) -> None:
        longest = min(_LONGEST_PAUSE, _PAUSE_SECONDS * 2**request.attempt)
        time.sleep(random.uniform(0, longest))  # noqa: S311 - writers shall not meet again, no more


def _list_by_path(list_folder: Callable[[str], Mapping[str, T]]) -> dict[str, T]:
    """List the entries of the store's folders by path."""
    entries = {}
    for folder in _FOLDERS:
        for name, entry in list_folder(folder).items():
            entries[f"{folder}/{name}"] = entry
    return entries


def _probe(uri: str, blobs: Blobs) -> None:
    """Require that the store can be written, lists new files, and refuses to create a file twice."""
    path = f"log/probe-{uuid.uuid4()}"
    blobs.get(path, 0)  # raises if the server takes another bucket for ours, before anything is written into that
    reply, reason = blobs.create(path, b"")
    if blobs.get(path, len(b"again")) is None:
        raise StoreNotWritable(uri, reason or "what was written cannot be read")
    if path.removeprefix("log/") not in blobs.list_folder("log"):
        raise StoreNotWritable(uri, "what was written is not listed", "Use a store whose listings are up to date.")
    reply, _ = blobs.create(path, b"again")
    try:
        blobs.delete(path)
    except StoreNotWritable as e:
        _LOG.info("%s stays behind: %s", path, e)
    if reply is not CreateReply.EXISTS:
        raise StoreNotWritable(
            uri,
            "it overwrites what it was asked to create only, so that writers would undo each other's commits",
            "Use a store with conditional writes (If-None-Match).",
        )
