"""Detail objects that are decoded while it is still being found out which of their rows are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore._format.files import list_detail_objects
from metastore._format.objects import decode_detail

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor, Future

    import pyarrow as pa

    from metastore._analyze.coverage import BlockFiles
    from metastore._store import Store

_MOST_BYTES = 16 << 20  # what is more is read a few objects at a time
_KINDS = ("frequencies", "histograms")


class DetailPrefetch:
    """The lists and histograms of blocks, as far as they are small enough to be held together."""

    def __init__(self, store: Store, blocks: Sequence[BlockFiles], threads: Executor) -> None:
        """Begin to read."""
        named = {one for indexed in blocks for kind in _KINDS for one in list_detail_objects(indexed.files, kind)}
        small = sum(length for _, length, _ in named) <= _MOST_BYTES
        self._coming: dict[str, Future[pa.Table]] = {
            name: threads.submit(_decoded, store, name, digest) for name, _, digest in (named if small else ())
        }

    def rows(self, name: str) -> pa.Table | None:
        """The rows of an object, once; None if it is not at hand."""
        coming = self._coming.pop(name, None)
        return None if coming is None else coming.result()


def _decoded(store: Store, name: str, digest: str) -> pa.Table:
    return decode_detail(name, digest, store.raw(name))
