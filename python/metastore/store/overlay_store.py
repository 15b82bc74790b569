"""A store with additional objects in memory, for an answer that is not stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from metastore.format.object_part import ObjectPart
from metastore.format.objects import MAX_OBJECT_BYTES, content_name, encode_object, make_reference, mark_unique
from metastore.store.table_store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from metastore.format.objects import ObjectRef
    from metastore.store.obstore_blobs import Blobs


class OverlayStore(Store):
    """The objects of a store, and new ones in memory; nothing is written to the store."""

    def __init__(self, below: Store) -> None:
        super().__init__(below.uri, below.open_blobs, writable=False)
        self._below = below
        self._objects: dict[str, bytes] = {}

    def put(
        self, kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str] | None = None
    ) -> ObjectRef:
        """Store an object in memory and return its reference."""
        data = encode_object(kind, table, row_groups, mark_unique(extra))
        name = content_name(kind, data)
        self._objects[name] = data
        return make_reference(name, data, table.num_rows)

    def read_bytes(self, name: str, most: int = MAX_OBJECT_BYTES) -> bytes:
        """Read the bytes of an object here or in the store, not verified."""
        data = self._objects.get(name)
        return self._below.read_bytes(name, most) if data is None else data

    def open_part(self, ref: ObjectRef) -> ObjectPart:
        """Open an object here or in the store of which only some columns and row groups are read."""
        data = self._objects.get(ref.name)
        if data is None:
            return self._below.open_part(ref)
        return ObjectPart(ref, lambda start, length: data[start : start + length])

    def ensure_writable(self) -> Blobs:
        """Return nothing: memory can be written, and there are no blobs."""
        return cast("Blobs", None)
