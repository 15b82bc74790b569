"""Runs work in threads before its results are needed."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future


T = TypeVar("T")
R = TypeVar("R")

PREFETCH_DEPTH = 4
"""Objects that are read at the same time: more would take more memory."""


def prefetch(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Do work on items in threads, a few items ahead of the caller."""
    with ThreadPoolExecutor(PREFETCH_DEPTH, "metastore-ahead") as threads:
        waiting: deque[Future[R]] = deque()
        for item in items:
            waiting.append(threads.submit(work, item))
            if len(waiting) == PREFETCH_DEPTH:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
