"""How a task takes memory: from one allocator, which keeps what files of usual size take."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt
_KEPT, _LARGEST = 256 << 20, 32 << 20  # glibc takes no more for the second


@contextmanager
def use_system_allocator() -> Iterator[None]:
    """Let Arrow take memory from where numpy takes it: what one of them has given back serves the other."""
    _keep_freed()
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


@cache  # it is a setting of the process
def _keep_freed() -> None:
    """Let glibc keep what a column has given back for the next one: the system's pages take as long as reading.

    It stays so after the task, for the next one: Spark ends workers that have been idle for a minute.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, which has its own ways
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST)
    mallopt(_TRIM_THRESHOLD, _KEPT)
