"""Reads and decodes the value lists and histograms of blocks in threads, ahead of their use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore.format.data_files import list_detail_references
from metastore.format.objects import decode_detail

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor, Future

    import pyarrow as pa

    from metastore.format.objects import ObjectRef
    from metastore.store import Store
    from metastore.store.block_files import BlockFiles


_MOST_BYTES = 16 << 20  # larger objects are not read ahead: they would take much memory
_KINDS = ("frequencies", "histograms")


class DetailPrefetch:
    """The lists and histograms of blocks, read ahead if all of them fit in memory."""

    def __init__(self, store: Store, blocks: Sequence[BlockFiles], threads: Executor) -> None:
        objects: set[ObjectRef] = set()
        for indexed in blocks:
            objects |= list_detail_references(indexed.files, _KINDS)
        self._futures: dict[str, Future[pa.Table]] = {}
        if sum(ref.length for ref in objects) <= _MOST_BYTES:
            for ref in objects:
                self._futures[ref.name] = threads.submit(_decode, store, ref.name, ref.sha256)

    def take_rows(self, name: str) -> pa.Table | None:
        """Return the rows of an object, once; None if it was not read ahead."""
        future = self._futures.pop(name, None)
        return None if future is None else future.result()


def _decode(store: Store, name: str, digest: str) -> pa.Table:
    return decode_detail(name, digest, store.read_bytes(name))
