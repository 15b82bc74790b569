"""The statistics of one table: immutable objects, and a log of manifests that name the valid ones."""

from __future__ import annotations

import random
import time
import uuid
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from metastore.errors import DamagedObject, StoreNotReadable, StoreNotWritable
from metastore.format.manifest import MAX_READ_BYTES, iterate_objects
from metastore.format.object_schemas import DETAILS
from metastore.store import commit_log, retention
from metastore.store.credentials import FROM_ENVIRONMENT, Credentials
from metastore.store.location import local_path
from metastore.store.manifest_limits import shrink_to_limits
from metastore.store.obstore_blobs import open_blobs
from metastore.store.stored_objects import StoredObjects
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from metastore.format.manifest import Manifest, TableIdentity
    from metastore.store.local_blobs import BlobEntry, CreateReply
    from metastore.store.obstore_blobs import Blobs


_LOG = get_logger(__name__)

T = TypeVar("T")

KEEP_SNAPSHOTS = 10

_PAUSE_SECONDS = 0.01
_LONGEST_PAUSE = 2.0
_FOLDERS = ("log", "objects")


@dataclass
class _LogMemory:
    """The names that the last search for garbage read in the log of a store."""

    names: retention.LogNames = field(default_factory=retention.LogNames)


@lru_cache(maxsize=8)
def _remember_log(_uri: str) -> _LogMemory:
    return _LogMemory()


class Store(StoredObjects):
    """The statistics of one table, on a local disk or an object store.

    Any number of processes may read and commit at the same time. Objects and manifests are created by `put` and
    `commit`, never overwritten, and only the collection of garbage deletes them. Other files in `log`, probes and
    claims, come and go. Even a search for garbage writes a probe, to read the store's clock.
    """

    def __init__(self, uri: str, open_blobs: Callable[..., Blobs], *, writable: bool) -> None:
        super().__init__(uri, open_blobs, writable=writable)
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
        store.keep_decoded_rows()
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

    def list_entries(self) -> dict[str, int | str]:
        """List the entries of the store's folders by path: the bytes of a plain file, or the kind of another entry."""
        blobs = self._blobs()
        files = _list_by_path(blobs.list_folder)
        sizes = {path: entry.size for path, entry in files.items()}
        kinds = _list_by_path(blobs.list_odd_entries)
        return {**sizes, **kinds}

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
                self.note_present(iterate_objects(old))
            return change(old)

        def finish(manifest: Manifest) -> Manifest:
            smaller = shrink_to_limits(manifest, self, keep)
            self.require_present(iterate_objects(smaller))
            return smaller

        self.ensure_writable()
        steps = commit_log.commit(self.uri, identity, change_newest, finish, replaceable)
        manifest: Manifest | None = self.run(steps)
        return manifest

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
