"""The immutable objects of a store: written once, verified when they are read."""

from __future__ import annotations

import math
import re
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from metastore.errors import DamagedObject, StoreNotWritable
from metastore.format.object_part import ObjectPart
from metastore.format.objects import (
    MAX_OBJECT_BYTES,
    content_name,
    decode_object,
    encode_object,
    make_reference,
    mark_unique,
    object_kind,
)
from metastore.store.decoded_rows import DecodedRows
from metastore.store.local_blobs import CreateReply
from metastore.store.location import local_path
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from metastore.format.objects import ObjectRef
    from metastore.store.local_blobs import BlobEntry
    from metastore.store.obstore_blobs import Blobs


_LOG = get_logger(__name__)

_REQUESTS = 16
_MOST_SINGLE_REQUESTS = 2  # a listing returns 1,000 objects by one request
_MOST_LOCAL_REQUESTS = 1000
_LISTING_SECONDS = 5.0  # nobody deletes objects in use that soon
_MOST_PARTS = 64
_SMALL_FOOTER = 1 << 17


class StoredObjects:
    """The objects of a store, on a local disk or an object store."""

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

    def keep_decoded_rows(self) -> None:
        """Keep the rows that are decoded from now on, and return them when they are read again."""
        self._decoded = DecodedRows()
        self._parts = {}

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

    def note_present(self, references: Iterable[ObjectRef]) -> None:
        """Note that objects are here, so that `require_present` leaves them out."""
        self._present.update(ref.name for ref in references)

    def require_present(self, references: Iterable[ObjectRef]) -> None:
        """Raise an error if one of these objects is absent here: a worker may have another disk."""
        lengths = {ref.name: ref.length for ref in references if ref.name not in self._present}
        absent = self.find_absent(lengths)
        if absent:
            raise StoreNotWritable(
                self.uri,
                f"{min(absent)} was written and is not there",
                "Driver and workers must share the folder: set spark.metastore.store to one that they do.",
            )
        self._present.update(lengths)

    def ensure_writable(self) -> Blobs:
        """Check once that the folder can be written, and that it refuses to create a file twice."""
        if self._writing is None:
            if not self._writable:
                raise StoreNotWritable(self.uri, "it was opened for reading", "Open it with writable=True.")
            blobs = self.open_blobs(writable=True)
            _probe(self.uri, blobs)
            self._writing = self._reading = blobs
        return self._writing

    def _blobs(self) -> Blobs:
        if self._reading is None:
            self._reading = self.open_blobs(writable=False)
        return self._reading


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
