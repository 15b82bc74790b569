"""Claims: drivers that analyze the same table automatically do not compute the same statistics twice.

A claim is a file in the store. Its owner writes it again and again, for some hours at most, so that its age by the
store's clock shows whether the owner still works. A claim only saves work: statistics stay correct if two writers
compute them at the same time.
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
_RENEWALS = 6  # per lease, as some of them may fail
LONGEST_SECONDS = 6 * 3600.0


@contextmanager
def claim(
    store: Store, depth: str, *, lease: float = LEASE_SECONDS, longest: float = LONGEST_SECONDS
) -> Iterator[bool]:
    """Try to claim statistics of a depth until the end of the context, without waiting; yield whether it succeeded.

    After `longest` seconds the claim is no longer renewed, because this process may hang.
    """
    path = f"log/claim-{depth}"
    if not _take(store, path, lease):
        yield False
        return
    done = Event()
    seconds = lease / _RENEWALS
    arguments = (store, path, seconds, int(longest / seconds), done)
    renewal = Thread(target=_renew, args=arguments, name="metastore-claim", daemon=True)
    renewal.start()
    try:
        yield True
    finally:
        done.set()
        renewal.join()
        with suppress(StoreNotWritable):
            store.ensure_writable().delete(path)


def _take(store: Store, path: str, lease: float) -> bool:
    """Create the claim, or replace one that is too old; an unclear answer of the store counts as success."""
    blobs = store.ensure_writable()
    reply, _ = blobs.create(path, b"")
    if reply is not CreateReply.EXISTS:
        return True
    existing = blobs.list_folder("log").get(path.removeprefix("log/"))
    if existing is None:
        return False
    age = store.read_clock() - existing.modified
    if age.total_seconds() <= lease:
        return False
    blobs.delete(path)
    reply, _ = blobs.create(path, b"")
    return reply is not CreateReply.EXISTS


def _renew(store: Store, path: str, seconds: float, times: int, done: Event) -> None:
    for _ in range(times):
        if done.wait(seconds):
            return
        with suppress(StoreNotWritable):
            store.ensure_writable().put(path, b"")
