"""The statistics of one table: immutable objects and the log that says which of them count."""

from __future__ import annotations

import random
import re
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

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
from metastore.store.local_blobs import CreateReply, LocalBlobs
from metastore.store.location import local_path
from metastore.store.obstore_blobs import open_blobs
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    import pyarrow as pa

    from metastore.format.manifest import Manifest, TableIdentity
    from metastore.format.objects import ObjectRef
    from metastore.store.obstore_blobs import Blobs


_LOG = get_logger(__name__)

KEEP_SNAPSHOTS = 10

_PAUSE_SECONDS, _LONGEST_PAUSE = 0.01, 2.0
_REQUESTS = 16
_MOST_ASKED = 1000  # objects, one by one: a request lists as many
_KEPT_FOOTERS, _SMALL_FOOTER = 64, 1 << 17


class Store:
    """A place for the statistics of one table, on a local disk or an object store.

    Any number of processes may read and commit at the same time. Objects and manifests are created by `put` and
    `commit`, never overwritten, and only the collection of garbage deletes them. What else lies in `log`, probes and
    claims, comes and goes; a probe also when garbage is only looked for, since it tells the store's clock.
    """

    def __init__(self, uri: str, blobs: Callable[..., Blobs | None], *, writable: bool) -> None:
        """A store over blobs; see `open`."""
        self.uri = uri
        self._open = blobs
        self._writable = writable
        self._reading: Blobs | None = None
        self._writing: Blobs | None = None
        self._seen: set[str] = set()
        self._parts: dict[ObjectRef, ObjectPart] = {}

    @classmethod
    def open(cls, uri: str, *, access: Credentials = FROM_ENVIRONMENT, writable: bool = False) -> Store:
        """The store at a URI: `file:/x`, `file:///x`, a bare path, `s3://`, `gs://`, `abfss://`."""
        store = cls(uri, partial(open_blobs, uri, access.options), writable=writable)
        if local_path(uri) is None:
            store._blobs()
        return store

    def writable(self) -> Store:
        """The same store, to be written."""
        return Store(self.uri, self._open, writable=True)

    def is_empty(self) -> bool:
        """Whether nothing was ever written."""
        blobs = self._blobs()
        return blobs is None or not any(blobs.list_folder(folder) for folder in ("log", "objects"))

    def read(self) -> Manifest | None:
        """The newest manifest, None where there are no statistics."""
        head = self.run(commit_log.find_head())
        if head.manifest is None and head.damage is not None:
            raise head.damage
        manifest: Manifest | None = head.manifest
        return manifest

    def get(self, ref: ObjectRef, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of an object, verified; all columns or those asked for."""
        return decode_object(ref, self.read_bytes(ref.name, ref.length), columns)

    def read_bytes(self, name: str, most: int = MAX_OBJECT_BYTES) -> bytes:
        """The bytes of an object as they are, not verified."""
        object_kind(name)
        blobs = self._blobs()
        data = blobs.get(f"objects/{name}", most) if blobs else None
        if data is None:
            raise DamagedObject(name, f"it is missing in {self.uri}")
        return data

    def open_part(self, ref: ObjectRef) -> ObjectPart:
        """An object of which only what is asked for is read. The footers of the last few are kept."""
        kept = self._parts.get(ref)
        if kept is not None:
            return kept
        object_kind(ref.name)
        blobs = self._blobs()

        def fetch(start: int, length: int) -> bytes:
            data = blobs.get_range(f"objects/{ref.name}", start, length) if blobs else None
            if data is None:
                raise DamagedObject(ref.name, f"it is missing in {self.uri}")
            return data

        part = ObjectPart(ref, fetch)
        if ref.footer_length <= _SMALL_FOOTER:
            self._parts = {**dict(list(self._parts.items())[1 - _KEPT_FOOTERS :]), ref: part}
        return part

    def list_objects(self, kind: str) -> dict[str, Any]:
        """The names of all objects of a kind, referenced or not, with the times of their writing."""
        blobs = self._blobs()
        names = blobs.list_folder("objects") if blobs else {}
        return {
            name: found.modified
            for name, found in names.items()
            if re.fullmatch(rf"{kind}-[0-9a-f-]{{36}}\.parquet", name)
        }

    def list_entries(self) -> dict[str, int | str]:
        """All that lies in the store's folders, by path: its bytes, or what it is where it is no plain file."""
        blobs = self._blobs()
        found: dict[str, int | str] = {}
        if blobs is None:
            return found
        for folder in ("log", "objects"):
            found |= {f"{folder}/{name}": one.size for name, one in blobs.list_folder(folder).items()}
            if isinstance(blobs, LocalBlobs):
                found |= {f"{folder}/{name}": kind for name, kind in blobs.list_odd_entries(folder).items()}
        return found

    def find_absent(self, lengths: Mapping[str, int]) -> set[str]:
        """The names of those objects that are missing or not of the stated length."""
        blobs = self._blobs()
        if blobs is None:
            return set(lengths)
        doubtful = set(lengths)
        if len(doubtful) > _MOST_ASKED:
            listed = blobs.list_folder("objects")
            doubtful = {name for name in doubtful if name not in listed or listed[name].size != lengths[name]}
        with ThreadPoolExecutor(_REQUESTS) as pool:
            sizes = pool.map(lambda name: (name, blobs.size(f"objects/{name}")), doubtful)
            return {name for name, size in sizes if size != lengths[name]}

    def put(
        self, kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str] | None = None
    ) -> ObjectRef:
        """Writes an object and returns its reference; it counts once a manifest names it."""
        data = encode_object(kind, table, row_groups, mark_unique(extra))
        name = content_name(kind, data)
        self.ensure_writable().put(f"objects/{name}", data)
        self._seen.add(name)
        return make_reference(name, data, table.num_rows)

    def commit(
        self,
        identity: TableIdentity,
        change: commit_log.Change,
        *,
        keep: int = KEEP_SNAPSHOTS,
        over: frozenset[str] | None = None,
    ) -> Manifest | None:
        """Commits a change and returns the manifest that then is the newest."""

        def changed(old: Manifest | None) -> Manifest | None:
            self._seen.update(ref.name for ref in iterate_objects(old)) if old else None
            return change(old)

        def finish(manifest: Manifest | None) -> Manifest | None:
            return manifest and self._with_objects(shrink_to_limits(manifest, self, keep))

        self.ensure_writable()
        manifest: Manifest | None = self.run(commit_log.commit(self.uri, identity, changed, finish, over))
        return manifest

    def ensure_writable(self) -> Blobs:
        """Makes sure, once, that the place can be written and really refuses to create twice."""
        if self._writing is None:
            if not self._writable:
                raise StoreNotWritable(self.uri, "it was opened for reading", "Open it with writable=True.")
            blobs = self._open(writable=True)
            if blobs is None:
                raise StoreNotWritable(self.uri, "there is no such folder")
            _probe(self.uri, blobs)
            self._writing = self._reading = blobs
        return self._writing

    def _manifest(self, blobs: Blobs, sequence: int) -> bytes | DamagedObject | None:
        path = f"log/{commit_log.log_name(sequence)}"
        try:
            return blobs.get(path, MAX_READ_BYTES)
        except DamagedObject as damage:  # no manifest, and its number is in use
            return DamagedObject(commit_log.log_name(sequence), damage.reason)

    def read_clock(self) -> datetime:
        """What the store's clock says, which decides how old something in it is."""
        blobs, mark = self.ensure_writable(), f"probe-{uuid.uuid4()}"
        blobs.put(f"log/{mark}", b"")
        found = blobs.list_folder("log")[mark].modified
        blobs.delete(f"log/{mark}")
        return found

    def _listing(self) -> list[retention.Blob]:
        """All that is stored, with ages by the store's clock; only where nothing can be deleted, by this machine's."""
        blobs = self._blobs()
        if blobs is None:
            return []
        try:
            now = self.read_clock() if self._writable else self.writable().read_clock()
        except StoreNotWritable as e:
            if self._writable:
                raise
            _LOG.warning("ages are by the clock of this machine, for that of the store cannot be read: %s", e)
            now = datetime.now(timezone.utc)
        found = {
            f"{folder}/{name}": one for folder in ("log", "objects") for name, one in blobs.list_folder(folder).items()
        }
        return [retention.Blob(path, one.size, (now - one.modified).total_seconds()) for path, one in found.items()]

    def _blobs(self) -> Blobs | None:
        if self._reading is None:
            self._reading = self._open(writable=False)
        return self._reading

    def _with_objects(self, manifest: Manifest) -> Manifest:
        """Refuses a manifest that names objects which this process does not see: a worker may have another disk."""
        lengths = {ref.name: ref.length for ref in iterate_objects(manifest) if ref.name not in self._seen}
        absent = self.find_absent(lengths)
        if absent:
            raise StoreNotWritable(
                self.uri,
                f"{min(absent)} was written and is not there",
                "Driver and workers must share the folder: set spark.metastore.store to one that they do.",
            )
        self._seen.update(lengths)
        return manifest

    def run(self, steps: Generator[Any, Any, Any]) -> Any:
        """Does what steps without I/O ask for, and returns what they come to."""
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
        match request:
            case retention.ListStore():
                return self._listing()
            case retention.ReadDetails(ref):
                named = self.get(ref, [f"{kind}_name" for kind in DETAILS])
                return {name for column in named.columns for name in column.to_pylist() if name is not None}
            case retention.Delete(path):
                return self.ensure_writable().delete(path)
        return self._answer_of_log(request)

    def _answer_of_log(self, request: object) -> Any:
        blobs = self._blobs()
        match request:
            case commit_log.ListLog():
                names = blobs.list_folder("log") if blobs else {}
                return list(commit_log.parse_log_names(names))
            case commit_log.ReadLog(sequence):
                return self._manifest(blobs, sequence) if blobs else None
            case commit_log.CreateLog(sequence, data):
                return self.ensure_writable().create(f"log/{commit_log.log_name(sequence)}", data)
            case commit_log.Pause(attempt):
                longest = min(_LONGEST_PAUSE, _PAUSE_SECONDS * 2**attempt)
                time.sleep(random.uniform(0, longest))  # noqa: S311 - writers shall not meet again, no more
                return None
        raise TypeError(f"no answer to {request!r}")


def _probe(uri: str, blobs: Blobs) -> None:
    path = f"log/probe-{uuid.uuid4()}"
    blobs.get(path, 0)  # raises where the server takes another bucket for ours, before anything is written into that
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
