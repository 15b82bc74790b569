"""Garbage collection of objects that no manifest needs, unless a reader may still use that manifest.

The steps are without I/O, as those of a commit are, and run in the same exhaustive search. Three rules make them safe:
the store is listed before the manifests are read, so that an object that is named later is either read as named or too
young; a manifest stays, with all that it names, until it was out of use for the entire grace period; and a writer that
slept so long that its number was collected looks for later manifests after its commit.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from metastore.errors import CollectionRefused, DamagedObject
from metastore.format.manifest import Manifest
from metastore.format.object_schemas import SCHEMAS
from metastore.format.objects import find_object_names, object_kind
from metastore.store.commit_log import ReadLog, log_name, parse_log_names

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from metastore.format.objects import ObjectRef


NEWEST_MANIFESTS = 2
"""Always kept: a torn last manifest makes readers take the one before."""

_LEFTOVER = re.compile(
    r"(?:log|objects)/\.[0-9a-f-]{36}\.tmp"
    r"|objects/[^/]+\.parquet#\d+"
    r"|log/\d{20}\.json#\d+"
    r"|log/probe-[0-9a-f-]{36}"
    r"|log/claim-[a-z]+"
)


@dataclass(frozen=True)
class Blob:
    """A file or object in a store.

    Attributes:
        path: Its path below the root of the store.
        size: Its bytes.
        age: Seconds since it was written, by the store's clock.
    """

    path: str
    size: int
    age: float


@dataclass(frozen=True)
class ListStore:
    """Requests a list of the store's content; answered by a list of `Blob`."""


@dataclass(frozen=True)
class ReadDetails:
    """Requests the names of the detail objects in a `files` object; answered by a set, or `DamagedObject`."""

    ref: ObjectRef


@dataclass(frozen=True)
class Delete:
    """Requests the deletion of a path."""

    path: str


@dataclass(frozen=True)
class NamesInManifest:
    """The names of objects in a manifest, its digest and that of the manifest before it."""

    names: set[str]
    digest: str
    previous: str | None


@dataclass(kw_only=True)
class LogNames:
    """The names in the manifests that searches for garbage have read, so that the next one reads later manifests alone.

    A manifest has the digest of the one before: if the last one is still that which was read, so are those before it.

    Attributes:
        last: The highest number of a manifest that was read.
        digest: The digest of that manifest.
        first: The number from which on each manifest has the digest of the one before.
        read: The numbers of the manifests that were read.
        users: Names of objects to the highest number of a manifest that names them.
        details: Names of `files` objects to the names of the detail objects in them.
    """

    last: int = 0
    digest: str = ""
    first: int = 0
    read: set[int] = field(default_factory=set)
    users: dict[str, int] = field(default_factory=dict)
    details: dict[str, set[str]] = field(default_factory=dict)

    def add(self, number: int, manifest: NamesInManifest) -> None:
        """Add the names in a manifest."""
        self.read.add(number)
        for name in manifest.names:
            self.users[name] = max(number, self.users.get(name, 0))
        if number < self.last:  # its number was free when later ones were read
            return
        if manifest.previous != self.digest:
            self.first = number
        self.last = number
        self.digest = manifest.digest

    def since(self, first: int) -> LogNames:
        """Return the names that manifests from this number on name."""
        users = {name: number for name, number in self.users.items() if number >= first}
        return LogNames(
            last=self.last,
            digest=self.digest,
            first=self.first,
            read={number for number in self.read if number >= first},
            users=users,
            details={name: details for name, details in self.details.items() if name in users},
        )

    def list_names(self) -> set[str]:
        """List the names in the manifests, and in the `files` objects that they name."""
        return set(self.users).union(*self.details.values())


@dataclass(frozen=True)
class Garbage:
    """Blobs that nobody needs.

    Attributes:
        blobs: The blobs, in the order of deletion.
        log_names: The names in the manifests that are needed.
    """

    blobs: tuple[Blob, ...]
    log_names: LogNames = field(repr=False, compare=False)


NOTHING_READ = LogNames()


def find_garbage(grace: float, earlier: LogNames = NOTHING_READ) -> Generator[Any, Any, Garbage]:
    """Find garbage, in steps.

    Args:
        grace: The seconds for which something must have been out of use.
        earlier: The result of an earlier search in the same store: manifests that it read are not read again.
    """
    stored: Sequence[Blob] = yield ListStore()
    manifests = _select_manifests(stored)
    needed = _select_needed({number: blob.age for number, blob in manifests.items()}, grace)
    log_names = yield from _read_log_names(sorted(needed), earlier)
    named = log_names.list_names()
    garbage = [blob for blob in stored if _is_garbage(blob, grace, named)]
    garbage += [manifests[number] for number in sorted(manifests.keys() - needed)]
    return Garbage(tuple(garbage), log_names)


def collect_garbage(grace: float, earlier: LogNames = NOTHING_READ) -> Generator[Any, Any, Garbage]:
    """Find garbage and delete it, in steps; arguments and errors are those of `find_garbage`."""
    garbage = yield from find_garbage(grace, earlier)
    for blob in garbage.blobs:
        yield Delete(blob.path)
    return garbage


def _select_manifests(stored: Sequence[Blob]) -> dict[int, Blob]:
    """Select the manifests by their numbers."""
    blobs = {blob.path.removeprefix("log/"): blob for blob in stored}
    return {number: blobs[name] for number, name in parse_log_names(blobs).items()}


def _select_needed(ages: Mapping[int, float], grace: float) -> set[int]:
    """Select the newest manifests, and all from the first whose successor was written within the grace period."""
    numbers = sorted(ages)
    needed = numbers[-NEWEST_MANIFESTS:]
    for number, successor in pairwise(numbers):
        if ages[successor] <= grace:
            needed.append(number)
    first = min(needed, default=0)
    return set(numbers[bisect_left(numbers, first) :])


def _is_garbage(blob: Blob, grace: float, named: set[str]) -> bool:
    """Return whether a blob is of this format, older than the grace period, and named by no needed manifest."""
    if blob.age <= grace or not _is_ours(blob.path):
        return False
    name = blob.path.removeprefix("objects/")
    return name not in named


def _read_log_names(numbers: Sequence[int], earlier: LogNames) -> Generator[Any, Any, LogNames]:
    """Read the names in some manifests; those that were read before are not read again."""
    log_names = yield from _select_current(earlier, numbers)
    for number in sorted(set(numbers) - log_names.read):
        manifest = yield from _read_names(number, log_names.details)
        log_names.add(number, manifest)
    return log_names


def _select_current(earlier: LogNames, numbers: Sequence[int]) -> Generator[Any, Any, LogNames]:
    """Select the names in these manifests that are known, if the log still has the manifests of an earlier search."""
    if earlier.last not in numbers or earlier.first > numbers[0]:
        return LogNames()
    manifest = yield from _read_names(earlier.last, dict(earlier.details))
    if manifest.digest != earlier.digest:
        return LogNames()
    return earlier.since(numbers[0])


def _read_names(number: int, details: dict[str, set[str]]) -> Generator[Any, Any, NamesInManifest]:
    """Read the names in a manifest, and the details in its `files` objects, except in those that are known."""
    data = yield ReadLog(number)
    if data is None:
        raise CollectionRefused(f"{log_name(number)} is listed and cannot be read")
    try:
        if isinstance(data, DamagedObject):
            raise data
        manifest = Manifest.from_bytes(data, log_name(number))
        for block in manifest.blocks:
            if block.files.name not in details:
                details[block.files.name] = yield ReadDetails(block.files)
    except DamagedObject as e:
        raise CollectionRefused(e.message.rstrip(".")) from e
    return NamesInManifest(find_object_names(data), manifest.digest, manifest.previous)


def is_leftover(path: str) -> bool:
    """Return whether a path is a temporary one of a writer."""
    return _LEFTOVER.fullmatch(path) is not None


def _is_ours(path: str) -> bool:
    if is_leftover(path):
        return True
    folder, _, name = path.partition("/")
    try:
        return folder == "objects" and object_kind(name) in SCHEMAS
    except DamagedObject:
        return False
