"""Garbage collection: what no manifest needs that anybody can still be reading.

The steps are without I/O, as those of a commit are, and run in the same exhaustive search. Three rules make them safe:
what is stored is listed before the manifests are read, so that whatever is named later is either seen as named or too
young; a manifest is kept, with all that it names, until it was out of use for the whole grace period; and a writer that
slept so long that its number was collected looks for later manifests after its commit.
"""

from __future__ import annotations

import re
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

_LEFT_BEHIND = (
    re.compile(r"(?:log|objects)/\.[0-9a-f-]{36}\.tmp"),
    re.compile(r"objects/[^/]+\.parquet#\d+"),
    re.compile(r"log/\d{20}\.json#\d+"),
    re.compile(r"log/probe-[0-9a-f-]{36}"),
    re.compile(r"log/claim-[a-z]+"),
)


@dataclass(frozen=True)
class Blob:
    """Something stored.

    Attributes:
        path: Below the root of the store.
        size: In bytes.
        age: Seconds since it was written, by the store's clock.
    """

    path: str
    size: int
    age: float


@dataclass(frozen=True)
class ListStore:
    """Asks for all that is stored; answered by a list of `Blob`."""


@dataclass(frozen=True)
class ReadDetails:
    """Asks for the names of the detail objects in a `files` object; answered by a set, or `DamagedObject`."""

    ref: ObjectRef


@dataclass(frozen=True)
class Delete:
    """Asks to delete a path."""

    path: str


@dataclass(frozen=True)
class Garbage:
    """What nobody needs.

    Attributes:
        blobs: What to delete, in the order of deletion.
    """

    blobs: tuple[Blob, ...]


def find_garbage(grace: float) -> Generator[Any, Any, Garbage]:
    """Steps that find garbage."""
    stored: Sequence[Blob] = yield ListStore()
    logged = {blob.path.removeprefix("log/"): blob for blob in stored if blob.path.startswith("log/")}
    log = {number: logged[name] for number, name in parse_log_names(logged).items()}
    kept = _kept({number: blob.age for number, blob in log.items()}, grace)
    named: set[str] = set()
    followed: set[str] = set()
    for number in kept:
        named |= yield from _named_by(number, followed)
    old = [blob for blob in stored if blob.age > grace]
    victims = [blob for blob in old if _is_ours(blob.path) and blob.path.removeprefix("objects/") not in named]
    victims += [log[number] for number in sorted(log.keys() - kept)]
    return Garbage(tuple(victims))


def collect_garbage(grace: float) -> Generator[Any, Any, Garbage]:
    """Steps that find garbage and delete it; the same errors as `find_garbage`."""
    garbage = yield from find_garbage(grace)
    for blob in garbage.blobs:
        yield Delete(blob.path)
    return garbage


def _kept(ages: Mapping[int, float], grace: float) -> set[int]:
    """The newest manifests, and those whose successor was written within the grace period."""
    numbers = sorted(ages)
    replaced = {number: ages[following] for number, following in pairwise(numbers)}
    recent = {number for number, age in replaced.items() if age <= grace}
    lowest = min([*recent, *numbers[-NEWEST_MANIFESTS:]], default=0)
    return {number for number in numbers if number >= lowest}


def _named_by(number: int, followed: set[str]) -> Generator[Any, Any, set[str]]:
    """Names in a manifest and in its `files` objects, except in those that were followed before."""
    data = yield ReadLog(number)
    if data is None:
        raise CollectionRefused(f"{log_name(number)} is listed and cannot be read")
    try:
        if isinstance(data, DamagedObject):
            raise data
        manifest = Manifest.from_bytes(data, log_name(number))
        named = find_object_names(data)
        for files in (block.files for block in manifest.blocks if block.files.name not in followed):
            named |= yield ReadDetails(files)
            followed.add(files.name)
    except DamagedObject as e:
        raise CollectionRefused(e.message.rstrip(".")) from e
    return named


def is_leftover(path: str) -> bool:
    """Whether a path is one that a writer uses for a moment."""
    return any(pattern.fullmatch(path) for pattern in _LEFT_BEHIND)


def _is_ours(path: str) -> bool:
    if is_leftover(path):
        return True
    folder, _, name = path.partition("/")
    try:
        return folder == "objects" and object_kind(name) in SCHEMAS
    except DamagedObject:
        return False
