"""Whose turn it is: drivers that analyze the same table without being asked do not compute the same twice.

A claim is a file in the store. Who holds it writes it again and again, for some hours at most, so that its age by the
store's clock tells whether its holder lives and gets on. It spares work and protects nothing: what two writers compute
at once is right, too.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from metastore.errors import StoreNotWritable
from metastore.store.local_blobs import CreateReply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from metastore.store.table_store import Store


LEASE_SECONDS = 60.0
_RENEWALS = 6  # a lease; some of them may fail
LONGEST_SECONDS = 6 * 3600.0


@contextmanager
def claim(
    store: Store, depth: str, *, lease: float = LEASE_SECONDS, longest: float = LONGEST_SECONDS
) -> Iterator[bool]:
    """Whether the turn at statistics of a depth is this process's, until the end; nobody is waited for.

    Who takes longer than `longest` seconds hangs as far as others can tell: the turn is theirs after that.
    """
    path = f"log/claim-{depth}"
    if not _take(store, path, lease):
        yield False
        return
    done = Event()
    seconds = lease / _RENEWALS
    given = (store, path, seconds, int(longest / seconds), done)
    renewal = Thread(target=_renew, args=given, name="metastore-claim", daemon=True)
    renewal.start()
    try:
        yield True
    finally:
        done.set()
        renewal.join()
        with suppress(StoreNotWritable):
            store.ensure_writable().delete(path)


def _take(store: Store, path: str, lease: float) -> bool:
    """A store that does not tell whether there is a claim is no reason not to begin."""
    blobs = store.ensure_writable()
    if blobs.create(path, b"")[0] is not CreateReply.EXISTS:
        return True
    held = blobs.list_folder("log").get(path.removeprefix("log/"))
    if held is None or (store.read_clock() - held.modified).total_seconds() <= lease:
        return False
    blobs.delete(path)
    return blobs.create(path, b"")[0] is not CreateReply.EXISTS


def _renew(store: Store, path: str, seconds: float, times: int, done: Event) -> None:
    for _ in range(times):
        if done.wait(seconds):
            return
        with suppress(StoreNotWritable):
            store.ensure_writable().put(path, b"")
