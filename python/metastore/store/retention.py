"""Garbage collection of objects that no manifest needs, unless a reader may still use that manifest.

The steps are without I/O, as those of a commit are, and run in the same exhaustive search. Three rules make them safe:
the store is listed before the manifests are read, so that an object that is named later is either read as named or too
young; a manifest stays, with all that it names, until it was out of use for the entire grace period; and a writer that
slept so long that its number was collected looks for later manifests after its commit.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
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
class Garbage:
    """Blobs that nobody needs.

    Attributes:
        blobs: The blobs, in the order of deletion.
    """

    blobs: tuple[Blob, ...]


def find_garbage(grace: float) -> Generator[Any, Any, Garbage]:
    """Find garbage, in steps."""
    stored: Sequence[Blob] = yield ListStore()
    manifests = _select_manifests(stored)
    needed = _select_needed({number: blob.age for number, blob in manifests.items()}, grace)
    named: set[str] = set()
    followed: set[str] = set()
    for number in needed:
        named |= yield from _read_names(number, followed)
    garbage = [blob for blob in stored if _is_garbage(blob, grace, named)]
    garbage += [manifests[number] for number in sorted(manifests.keys() - needed)]
    return Garbage(tuple(garbage))


def collect_garbage(grace: float) -> Generator[Any, Any, Garbage]:
    """Find garbage and delete it, in steps; raises the errors of `find_garbage`."""
    garbage = yield from find_garbage(grace)
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
    """Whether a blob is of this format, older than the grace period, and named by no needed manifest."""
    if blob.age <= grace or not _is_ours(blob.path):
        return False
    name = blob.path.removeprefix("objects/")
    return name not in named


def _read_names(number: int, followed: set[str]) -> Generator[Any, Any, set[str]]:
    """Read the names in a manifest and in its `files` objects, except in those that were followed before."""
    data = yield ReadLog(number)
    if data is None:
        raise CollectionRefused(f"{log_name(number)} is listed and cannot be read")
    try:
        if isinstance(data, DamagedObject):
            raise data
        manifest = Manifest.from_bytes(data, log_name(number))
        names = find_object_names(data)
        for block in manifest.blocks:
            if block.files.name not in followed:
                names |= yield ReadDetails(block.files)
                followed.add(block.files.name)
    except DamagedObject as e:
        raise CollectionRefused(e.message.rstrip(".")) from e
    return names


def is_leftover(path: str) -> bool:
    """Whether a path is a temporary one of a writer."""
    return _LEFTOVER.fullmatch(path) is not None


def _is_ours(path: str) -> bool:
    if is_leftover(path):
        return True
    folder, _, name = path.partition("/")
    try:
        return folder == "objects" and object_kind(name) in SCHEMAS
    except DamagedObject:
        return False
