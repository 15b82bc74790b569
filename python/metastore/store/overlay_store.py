"""A store with objects over it that are kept in memory, for an answer that nobody else is to see."""

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


def _nothing(*, writable: bool) -> None:
    """No blobs: what is there is asked of the store below."""


class OverlayStore(Store):
    """Reads what a store has and what was put here; nothing is written to the store."""

    def __init__(self, below: Store) -> None:
        """Begin with what a store has."""
        super().__init__(below.uri, _nothing, writable=False)
        self._below = below
        self._made: dict[str, bytes] = {}

    def put(
        self, kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str] | None = None
    ) -> ObjectRef:
        """Keeps an object and returns its reference."""
        data = encode_object(kind, table, row_groups, mark_unique(extra))
        name = content_name(kind, data)
        self._made[name] = data
        return make_reference(name, data, table.num_rows)

    def read_bytes(self, name: str, most: int = MAX_OBJECT_BYTES) -> bytes:
        """The bytes of an object of either, not verified."""
        made = self._made.get(name)
        return self._below.read_bytes(name, most) if made is None else made

    def open_part(self, ref: ObjectRef) -> ObjectPart:
        """An object of either of which only what is asked for is read."""
        made = self._made.get(ref.name)
        if made is None:
            return self._below.open_part(ref)
        return ObjectPart(ref, lambda start, length: made[start : start + length])

    def ensure_writable(self) -> Blobs:
        """Memory is; there are no blobs to write."""
        return cast("Blobs", None)
