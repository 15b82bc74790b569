"""What a table's own metadata says about its snapshots, where a location alone tells it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from metastore.adapters.table_facts import DataFile
    from metastore.format.name_mapping import NameMapping
    from metastore.format.table_column import Column


@dataclass(frozen=True)
class Lineage:
    """The snapshots of a table.

    Attributes:
        uuid: The table's uuid.
        current: The id of the snapshot it is at, None where it has none.
        parents: The parent of each snapshot that has not expired.
        log: When which snapshot became current: milliseconds and id, oldest first.
        references: Branches and tags, by name.
        schema: The leaves of the table's schema; none where they cannot be read.
        schemas: The leaves of each snapshot's own schema, as far as they can be read.
        files: How many data files each snapshot has, as far as it says so.
        removed: How many data files each snapshot took away from its parent, as far as it says so.
        listed: The data files of the current snapshot, where they are all that is known of it.
        name_mapping: How data files without field ids are read, where readers look for field ids.
    """

    uuid: str
    current: str | None
    parents: dict[str, str | None]
    log: tuple[tuple[int, str], ...]
    references: Mapping[str, str] = field(default_factory=dict)
    schema: tuple[Column, ...] = ()
    schemas: Mapping[str, tuple[Column, ...]] = field(default_factory=dict)
    files: Mapping[str, int] = field(default_factory=dict)
    removed: Mapping[str, int] = field(default_factory=dict)
    listed: tuple[DataFile, ...] = ()
    name_mapping: NameMapping | None = None

    def files_left(self, snapshot: str, since: str, files: int) -> int | None:
        """How many of an ancestor's data files a snapshot still has; None where their numbers do not tell.

        What the ancestor's child takes away is of the ancestor; what later ones take away may have been added between.
        """
        found = self.ancestors(snapshot)
        if since not in found:
            return None
        *later, first = (self.removed.get(step) for step in found[: found.index(since)])
        return files - first if first is not None and later.count(0) == len(later) else None

    def ancestors(self, snapshot: str | None) -> tuple[str, ...]:
        """A snapshot and those it came from, newest first."""
        found: list[str] = []
        while snapshot is not None and snapshot not in found:
            found.append(snapshot)
            snapshot = self.parents.get(snapshot)
        return tuple(found)

    def columns(self, snapshot: str | None) -> tuple[Column, ...]:
        """The leaves of a snapshot's schema, the table's own for the current one; none where they are not known."""
        return self.schema if snapshot == self.current else self.schemas.get(snapshot or "", ())

    def has_expired_ancestors(self, snapshot: str | None) -> bool:
        """Whether older ancestors of a snapshot have expired: then they cannot be told by name."""
        oldest = ([None, *self.ancestors(snapshot)])[-1]
        return oldest is not None and oldest not in self.parents

    def at(self, moment: datetime) -> str | None:
        """The snapshot that was current at a moment."""
        milliseconds = moment.timestamp() * 1000
        return next((snapshot for since, snapshot in reversed(self.log) if since <= milliseconds), None)
