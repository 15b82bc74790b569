"""Filters that are nested more deeply than Python's stack is: programs write such, a parenthesis for each term."""

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
"""Within each other, some twenty for each pair of parentheses."""
_STACK = 512 << 20
"""In bytes, of which the system takes what is used."""
_ONE_AT_A_TIME = threading.Lock()
"""The limit of calls is the process's."""


def with_deep_stack(function: Callable[[], _T]) -> _T:
    """What a function of a filter gives; it is called again on a deeper stack where it needs one.

    Raises:
        InvalidArgument: That is not deep enough either.

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
        return _start(function).result()
    except RecursionError:
        raise InvalidArgument(
            "filter", "it is nested too deeply", "Join its parts by AND and OR without parentheses, or use IN."
        ) from None


def _start(function: Callable[[], _T]) -> Future[_T]:
    found: Future[_T] = Future()

    def run() -> None:
        limit = sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(max(limit, _MOST_CALLS))
            found.set_result(function())
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            found.set_exception(error)
        finally:
            sys.setrecursionlimit(limit)
            _ONE_AT_A_TIME.release()

    _ONE_AT_A_TIME.acquire()
    size = threading.stack_size(_STACK)
    try:
        threading.Thread(target=run, daemon=True).start()
    except RuntimeError as error:  # there is no room for it
        _ONE_AT_A_TIME.release()
        found.set_exception(RecursionError(str(error)))
    finally:
        threading.stack_size(size)
    return found
