"""Work on many objects of a store, a few at a time: most of it waits for the store or runs outside of Python."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 4
"""So many objects are read together: more would take more memory."""


def ahead(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Do work on items in threads, a few items ahead of the one whose answer is asked for."""
    with ThreadPoolExecutor(AT_ONCE, "metastore-ahead") as threads:
        waiting: deque[Future[R]] = deque()
        for item in items:
            waiting.append(threads.submit(work, item))
            if len(waiting) == AT_ONCE:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
