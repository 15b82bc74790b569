"""Commits as steps without I/O, so that tests can run every interleaving of writers, crashes and replies.

A commit is manifest n+1, put if absent. Whatever the store answers (created, exists, an error, nothing), only the bytes
at n+1 afterwards count: our own, another writer's, or none.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
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
"""The largest difference of the numbers of two successive manifests; it is 1 unless manifests were lost."""

_LOG_FILE = re.compile(r"(?!0{20})(\d{20})\.json", re.ASCII)
"""The name of a manifest: its number, which is at least 1, in 20 digits."""


@dataclass(frozen=True)
class ListLog:
    """Requests the numbers of all manifests; the answer may be older than the log."""


@dataclass(frozen=True)
class ReadLog:
    """Requests the bytes of a manifest, None if there is none; may be answered by `StoreNotReadable`.

    Something without bytes at its path, such as a FIFO, is answered by `DamagedObject`.
    """

    sequence: int


@dataclass(frozen=True)
class CreateLog:
    """Requests to put a manifest if there is none of that number; answered by a reply and a reason."""

    sequence: int
    data: bytes


@dataclass(frozen=True)
class Pause:
    """Requests to wait, longer with every attempt."""

    attempt: int


T = TypeVar("T")
Answer = bytes | DamagedObject | None
Steps = Generator[ListLog | ReadLog | CreateLog | Pause, Any, T]
Change = Callable[[Manifest | None], Manifest | None]
Finish = Callable[[Manifest], Manifest]


@dataclass(frozen=True)
class Head:
    """The end of a log.

    Attributes:
        sequence: The highest number in use, 0 for an empty log.
        manifest: The highest manifest that is intact.
        damage: The damage of the manifest with the highest number, or None.
    """

    sequence: int
    manifest: Manifest | None
    damage: DamagedObject | None = None


def log_name(sequence: int) -> str:
    """Return the name of a manifest's file."""
    return f"{sequence:020}.json"


def parse_log_names(names: Iterable[str]) -> dict[int, str]:
    """Find the numbers of the manifests among names, ascending.

    Numbers after a gap that no log can have are ignored: a single wrong name must not use up the numbers.
    """
    log: dict[int, str] = {}
    previous = 0
    for number, name in sorted(_number_names(names)):
        if number - previous > FARTHEST:
            break
        log[number] = name
        previous = number
    return log


def _number_names(names: Iterable[str]) -> list[tuple[int, str]]:
    numbered = []
    for name in names:
        match = _LOG_FILE.fullmatch(name)
        if match:
            numbered.append((int(match[1]), name))
    return numbered


def find_head() -> Steps[Head]:
    """Find the end of the log, in steps."""
    numbers = yield ListLog()
    top = max(numbers, default=0)
    while (yield ReadLog(top + 1)) is not None:  # a listing may be older than the log
        top += 1
    return (yield from _find_intact({*numbers, top} - {0}))


def find_newest() -> Steps[Head]:
    """Find the newest manifest for a reader, in steps; one that is not listed yet may be left out."""
    numbers = yield ListLog()
    if not numbers:  # perhaps of another bucket: what is missing in it shows that
        yield ReadLog(1)
    return (yield from _find_intact(set(numbers)))


def _find_intact(numbers: set[int]) -> Steps[Head]:
    top = max(numbers, default=0)
    damage = None
    for number in sorted(numbers, reverse=True):
        try:
            data = yield ReadLog(number)
            return Head(top, _parse(number, data), damage)
        except DamagedObject as e:
            _LOG.warning("%s The one before it is used.", e)
            damage = damage or e
    return Head(top, None, damage)


def commit(
    store: str, identity: TableIdentity, change: Change, finish: Finish, replaceable: frozenset[str] | None = None
) -> Steps[Manifest | None]:
    """Commit a change, in steps.

    Args:
        store: The URI of the store.
        identity: The table.
        change: Makes the new manifest from the newest one of the table, or None if there is nothing to change.
        finish: Completes a new manifest.
        replaceable: The uuids of other tables whose statistics may be replaced; None for all.
    """
    for attempt in range(CONFLICTS):
        log = yield from find_head()
        if replaceable is not None and log.manifest:
            refuse_other_table(log.manifest, identity, replaceable)
        base = _manifest_of_table(log, identity)
        changed = change(base)
        if changed is None:
            return base
        manifest = _sign(finish(changed), identity, log)
        data = manifest.to_bytes()
        if (yield from _publish(store, manifest.sequence, data)):
            committed = Manifest.from_bytes(data)
            yield from _refuse_a_gap(store, committed)
            return committed
        yield Pause(attempt)
    raise StoreNotWritable(store, f"other writers were first {CONFLICTS} times", "Try again later.")


def _manifest_of_table(log: Head, identity: TableIdentity) -> Manifest | None:
    if log.manifest is None or log.manifest.table.uuid != identity.uuid:
        return None
    return log.manifest


def refuse_other_table(manifest: Manifest, identity: TableIdentity, replaceable: frozenset[str]) -> None:
    """Raise an error if a manifest is of another table at the same location that may not be replaced."""
    if manifest.table.uuid != identity.uuid and manifest.table.uuid not in replaceable:
        reason = "another table at its place was analyzed meanwhile"
        raise AnalyzeFailed(identity.name, reason, "Run the command again.")


def _publish(store: str, sequence: int, data: bytes) -> Steps[bool]:
    """Create a manifest, and return whether it stands in the log."""
    reason = ""
    for attempt in range(RESENDS):
        reply, reason = yield CreateLog(sequence, data)
        if reply is CreateReply.CREATED:
            return True
        # "Exists" may be our own bytes, stored by a request whose reply was lost and which was sent again.
        stored = yield from _read_back(store, sequence)
        if stored is not None:
            return _is_ours(store, sequence, stored, data)
        yield Pause(attempt)
    raise CommitUnknown(store, sequence, reason)


def _refuse_a_gap(store: str, manifest: Manifest) -> Steps[None]:
    """Raise an error if the next manifest does not name ours as the previous one.

    A writer that was suspended may take the number of a manifest that garbage collection deleted; no reader would use
    it.
    """
    following = manifest.sequence + 1
    try:
        numbers = yield ListLog()
        if max(numbers, default=0) < following:
            return
        stored = yield from _read_back(store, following)
        if stored is not None and _parse(following, stored).previous == manifest.digest:
            return
    except (StoreNotReadable, DamagedObject, FormatTooNew) as e:
        raise CommitUnknown(store, manifest.sequence, e.message.rstrip(".")) from e
    raise CommitUnknown(store, manifest.sequence, "later ones were committed before it")


def _read_back(store: str, sequence: int) -> Steps[Answer]:
    reason = ""
    for attempt in range(RESENDS):
        try:
            answer: Answer = yield ReadLog(sequence)
        except StoreNotReadable as e:
            reason = e.reason
            yield Pause(attempt)
        else:
            return answer
    raise CommitUnknown(store, sequence, reason)


def _is_ours(store: str, sequence: int, stored: Answer, data: bytes) -> bool:
    if stored == data:
        return True
    try:
        _parse(sequence, stored)
    except FormatTooNew:
        return False
    except DamagedObject as e:
        raise CommitUnknown(store, sequence, e.reason) from e
    return False


def _parse(sequence: int, data: Answer) -> Manifest:
    name = log_name(sequence)
    if data is None:
        raise DamagedObject(name, "it is listed and cannot be read")
    if isinstance(data, DamagedObject):
        raise data
    manifest = Manifest.from_bytes(data, name)
    if manifest.sequence != sequence:
        raise DamagedObject(name, f"it is manifest {manifest.sequence}")
    return manifest


def _sign(manifest: Manifest, identity: TableIdentity, log: Head) -> Manifest:
    """Number a manifest as the next of the log."""
    return replace(
        manifest,
        table=identity,
        sequence=log.sequence + 1,
        commit=str(uuid.uuid4()),
        previous=log.manifest.digest if log.manifest else None,
        written_at=datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        writer=f"pyspark-metastore {metastore.__version__}",
    )
