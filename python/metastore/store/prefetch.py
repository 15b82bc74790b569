"""Detail objects that are decoded while it is still being found out which of their rows are wanted."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from metastore.format.data_files import list_detail_objects
from metastore.format.objects import decode_detail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor, Future

    import pyarrow as pa

    from metastore.store import Store
    from metastore.store.block_files import BlockFiles


T = TypeVar("T")
R = TypeVar("R")

PREFETCH_DEPTH = 4
"""So many objects are read together: more would take more memory."""


def prefetch(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Do work on items in threads, a few items ahead of the one whose answer is asked for."""
    with ThreadPoolExecutor(PREFETCH_DEPTH, "metastore-ahead") as threads:
        waiting: deque[Future[R]] = deque()
        for item in items:
            waiting.append(threads.submit(work, item))
            if len(waiting) == PREFETCH_DEPTH:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


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

    def take_rows(self, name: str) -> pa.Table | None:
        """The rows of an object, once; None if it is not at hand."""
        coming = self._coming.pop(name, None)
        return None if coming is None else coming.result()


def _decoded(store: Store, name: str, digest: str) -> pa.Table:
    return decode_detail(name, digest, store.read_bytes(name))
