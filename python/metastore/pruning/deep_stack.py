"""Deeper stacks for nested filters: programs write a parenthesis for each term."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from metastore.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
_MOST_CALLS = 100_000
"""The limit of nested calls; a pair of parentheses takes about twenty."""
_STACK = 512 << 20
"""Bytes of address space; only used ones take memory."""
_ONE_AT_A_TIME = threading.Lock()
"""The recursion limit belongs to the process, so only one thread at a time may change it."""


def with_deep_stack(function: Callable[[], _T]) -> _T:
    """Call a function; if the stack is too small, call it again on a deeper one.

    Raises:
        InvalidArgument: The deeper stack is too small, too.

    Example:
        >>> from functools import reduce
        >>> nested = reduce(lambda inner, _: (inner,), range(900), ())
        >>> len(with_deep_stack(lambda: repr(nested)))
        2702
    """
    try:
        return function()
    except RecursionError:
        pass
    try:
        return _run_in_thread(function).result()
    except RecursionError:
        raise InvalidArgument(
            "filter", "it is nested too deeply", "Join its parts by AND and OR without parentheses, or use IN."
        ) from None


def _run_in_thread(function: Callable[[], _T]) -> Future[_T]:
    future: Future[_T] = Future()

    def run() -> None:
        limit = sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(max(limit, _MOST_CALLS))
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            future.set_exception(error)
        finally:
            sys.setrecursionlimit(limit)
            _ONE_AT_A_TIME.release()

    _ONE_AT_A_TIME.acquire()
    size = threading.stack_size(_STACK)
    try:
        threading.Thread(target=run, daemon=True).start()
    except RuntimeError as error:  # there is no memory for its stack
        _ONE_AT_A_TIME.release()
        future.set_exception(RecursionError(str(error)))
    finally:
        threading.stack_size(size)
    return future
