"""Single values that statistics know of files: lists of values and bloom filters, analyzed or drawn at random."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from oracle.columns import BYTES, is_nan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from oracle.columns import Leaf
    from oracle.tables import Subject
    from oracle.zones import Zone

LONGEST = 1024  # longer values are in no list
ROOM = 8 << 10  # all lists of a small file may take that
FEWEST = 9  # so few values are always listed
KINDS = ("complete", "complete", "filter", "filter", "top", "none")


@dataclass(frozen=True)
class Detail:
    """The stored detail of one leaf in one file: a list of `listed` values of a `kind`, a filter of all values."""

    kind: str
    listed: Sequence[Any]
    filtered: Sequence[Any] | None


def analyzed(subject: Subject) -> Subject:
    """The same subject with the single values that ANALYZE surely lists, by what docs/format.md promises."""
    zones = {
        file: {leaf: _listed(zone, leaf, subject.values[file]) for leaf, zone in of_file.items()}
        for file, of_file in subject.zones.items()
    }
    return replace(subject, zones=zones)


def _listed(zone: Zone, leaf: Leaf, values: dict[Leaf, list[Any]]) -> Zone:
    non_null = plain(values[leaf])
    room = sum(map(_size, {v for column in values.values() for v in plain(column)}))
    if any(leaf.type in BYTES and len(v) > LONGEST for v in non_null) or (room > ROOM and len(non_null) > FEWEST):
        return zone
    return replace(zone, values=non_null, listed=True)


def _size(value: Any) -> int:
    return 3 + len(value) if isinstance(value, bytes) else 19


def plain(values: Sequence[Any]) -> frozenset[Any]:
    """Distinct values that are neither null nor NaN."""
    return frozenset(v for v in values if v is not None and not is_nan(v))


def draw(leaf: Leaf, values: Sequence[Any], rng: Random) -> Detail:
    """Draws what statistics hold of a leaf in a file; lists and filters have NaN among their values."""
    ordered = sorted(plain(values)) + [v for v in values if is_nan(v)][:1]
    kind = rng.choice(KINDS)
    if kind == "complete" and any(leaf.type in BYTES and len(v) > LONGEST for v in ordered):
        kind = "filter"
    if kind == "none":
        return Detail(kind, [], None)
    if kind == "complete":
        return Detail(kind, ordered, None)
    short = [v for v in ordered if not (leaf.type in BYTES and len(v) > LONGEST)]
    return Detail("top", short[: len(short) // 2], ordered if kind == "filter" else None)


def known_values(zone: Zone, values: Sequence[Any], detail: Detail) -> Zone:
    """Bounds with the single values that a detail tells of."""
    if detail.kind == "complete":
        return replace(zone, values=plain(values), listed=True)
    return replace(zone, values=plain(values)) if detail.filtered is not None else zone
