"""How commits stay whole: steps without I/O, so that tests can run every interleaving of writers, crashes and replies.

A commit is manifest n+1, put if absent. Whatever the store answers (created, exists, an error, nothing), it is what
stands at n+1 afterwards that counts: our own bytes, another writer's, or none.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import pairwise, takewhile
from typing import Any, TypeVar

import metastore
from metastore.contract import read_contract
from metastore.errors import (
    AnalyzeFailed,
    CommitUnknown,
    DamagedObject,
    FormatTooNew,
    StoreNotReadable,
    StoreNotWritable,
)
from metastore.format.manifest import Manifest, TableIdentity
from metastore.store.local_blobs import CreateReply
from metastore.visible_text import get_logger

_LOG = get_logger(__name__)

CONFLICTS = 64
RESENDS = 5
FARTHEST: int = read_contract("limits")["manifests_ahead"]
"""How far a manifest's number may be ahead of the one before it, which it follows by one wherever nothing was lost."""

_LOG_FILE = re.compile(r"(\d{20})\.json", re.ASCII)


@dataclass(frozen=True)
class ListLog:
    """Asks for the numbers of all manifests; the answer may be older than the log."""


@dataclass(frozen=True)
class ReadLog:
    """Asks for the bytes of a manifest, None where there is none; may be answered by `StoreNotReadable`.

    What stands at its place and has no bytes to read, as a FIFO, is answered by what is wrong with it.
    """

    sequence: int


@dataclass(frozen=True)
class CreateLog:
    """Asks to put a manifest if there is none of that number; answered by a reply and a reason."""

    sequence: int
    data: bytes


@dataclass(frozen=True)
class Pause:
    """Asks to wait, longer with every attempt."""

    attempt: int


T = TypeVar("T")
Answer = bytes | DamagedObject | None
Steps = Generator[ListLog | ReadLog | CreateLog | Pause, Any, T]
Change = Callable[[Manifest | None], Manifest | None]


@dataclass(frozen=True)
class Head:
    """The end of a log.

    Attributes:
        sequence: The highest number in use, 0 for an empty log.
        manifest: The highest manifest that is whole.
        damage: What is wrong with the one of the highest number, if anything.
    """

    sequence: int
    manifest: Manifest | None
    damage: DamagedObject | None = None


def log_name(sequence: int) -> str:
    """The name of a manifest's file."""
    return f"{sequence:020}.json"


def parse_log_names(names: Iterable[str]) -> dict[int, str]:
    """The numbers of the manifests among some names, ascending.

    A number beyond all that a log can have come to is none of it: a single odd name must not end the numbers.
    """
    found = sorted((int(match[1]), name) for name in names if (match := _LOG_FILE.fullmatch(name)) and int(match[1]))
    steps = pairwise([0, *(number for number, _ in found)])
    chain = len(list(takewhile(lambda step: step[1] - step[0] <= FARTHEST, steps)))
    return dict(found[:chain])


def find_head() -> Steps[Head]:
    """Steps that find the end of the log."""
    numbers = yield ListLog()
    top = max(numbers, default=0)
    while (yield ReadLog(top + 1)) is not None:  # a listing may be older than the log
        top += 1
    damage = None
    for number in sorted({*numbers, top} - {0}, reverse=True):
        try:
            return Head(top, _parsed(number, (yield ReadLog(number))), damage)
        except DamagedObject as e:
            _LOG.warning("%s The one before it is used.", e)
            damage = damage or e
    return Head(top, None, damage)


def commit(
    store: str, identity: TableIdentity, change: Change, finish: Change, over: frozenset[str] | None = None
) -> Steps[Manifest | None]:
    """Steps that commit a change."""
    for attempt in range(CONFLICTS):
        log = yield from find_head()
        if over is not None and log.manifest:
            refuse_other_table(log.manifest, identity, over)
        base = log.manifest if log.manifest and log.manifest.table.uuid == identity.uuid else None
        changed = change(base)
        finished = None if changed is None else finish(changed)
        if finished is None:
            return base
        manifest = _signed(finished, identity, log)
        data = manifest.to_bytes()
        if (yield from _publish(store, manifest.sequence, data)):
            committed = Manifest.from_bytes(data)
            yield from _refuse_a_gap(store, committed)
            return committed
        yield Pause(attempt)
    raise StoreNotWritable(store, f"other writers were first {CONFLICTS} times", "Try again later.")


def refuse_other_table(manifest: Manifest, identity: TableIdentity, over: frozenset[str]) -> None:
    """Refuses a manifest of a table that took this one's place."""
    if manifest.table.uuid != identity.uuid and manifest.table.uuid not in over:
        reason = "another table at its place was analyzed meanwhile"
        raise AnalyzeFailed(identity.name, reason, "Run the command again.")


def _publish(store: str, sequence: int, data: bytes) -> Steps[bool]:
    reason = ""
    for attempt in range(RESENDS):
        reply, reason = yield CreateLog(sequence, data)
        if reply is CreateReply.CREATED:
            return True
        # "Exists" may be our own bytes, stored by a request whose reply was lost and which was sent again.
        found = yield from _read_back(store, sequence)
        if found is not None:
            return _is_ours(store, sequence, found, data)
        yield Pause(attempt)
    raise CommitUnknown(store, sequence, reason)


def _refuse_a_gap(store: str, manifest: Manifest) -> Steps[None]:
    """A writer that slept may fill the number of a manifest that was collected: nobody would ever read it."""
    following = manifest.sequence + 1
    try:
        numbers = yield ListLog()
        if max(numbers, default=0) < following:
            return
        found = yield from _read_back(store, following)
        if found is not None and _parsed(following, found).previous == manifest.digest:
            return
    except (StoreNotReadable, DamagedObject, FormatTooNew) as e:
        raise CommitUnknown(store, manifest.sequence, e.message.rstrip(".")) from e
    raise CommitUnknown(store, manifest.sequence, "later ones were committed before it")


def _read_back(store: str, sequence: int) -> Steps[Answer]:
    reason = ""
    for attempt in range(RESENDS):
        try:
            found: Answer = yield ReadLog(sequence)
        except StoreNotReadable as e:
            reason = e.reason
            yield Pause(attempt)
        else:
            return found
    raise CommitUnknown(store, sequence, reason)


def _is_ours(store: str, sequence: int, found: Answer, data: bytes) -> bool:
    if found == data:
        return True
    try:
        _parsed(sequence, found)
    except FormatTooNew:
        return False
    except DamagedObject as e:
        raise CommitUnknown(store, sequence, e.reason) from e
    return False


def _parsed(sequence: int, data: Answer) -> Manifest:
    name = log_name(sequence)
    if data is None:
        raise DamagedObject(name, "it is listed and cannot be read")
    if isinstance(data, DamagedObject):
        raise data
    manifest = Manifest.from_bytes(data, name)
    if manifest.sequence != sequence:
        raise DamagedObject(name, f"it is manifest {manifest.sequence}")
    return manifest


def _signed(manifest: Manifest, identity: TableIdentity, log: Head) -> Manifest:
    return replace(
        manifest,
        table=identity,
        sequence=log.sequence + 1,
        commit=str(uuid.uuid4()),
        previous=log.manifest.digest if log.manifest else None,
        written_at=datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        writer=f"pyspark-metastore {metastore.__version__}",
    )
