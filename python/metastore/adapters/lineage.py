"""The snapshots of a table by its own metadata."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from metastore.format.data_files import DataFile
    from metastore.format.name_mapping import NameMapping
    from metastore.format.table_column import Column


def list_leaf_fields(
    struct: Mapping[str, Any], parents: tuple[Mapping[str, Any], ...] = ()
) -> Iterator[tuple[Mapping[str, Any], ...]]:
    """List the leaves of a schema in JSON as Spark sees them, each as the fields on the way to it.

    Structs are not leaves, but their fields are; lists and maps are leaves.
    """
    for member in struct["fields"]:
        path = (*parents, member)
        kind = member["type"]
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from list_leaf_fields(kind, path)
        else:
            yield path


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """The snapshots of a table.

    Attributes:
        uuid: The table's uuid.
        current: The id of its current snapshot, or None.
        parents: The parent of each snapshot that has not expired.
        log: Times in milliseconds, each with the id of the snapshot that became current; oldest first.
        references: Branches and tags, by name.
        schema: The leaves of the table's schema; empty if they cannot be read.
        schemas: The leaves of each snapshot's own schema, as far as they can be read.
        files: Number of data files of each snapshot, as far as known.
        removed: Number of data files that each snapshot removed from its parent, as far as known.
        listed: The data files of the current snapshot, if it is a listing.
        name_mapping: The name mapping, for formats whose readers look for field ids.
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
        """Count the data files of an ancestor that a snapshot still has; None if unknown.

        The files that the ancestor's child removes are the ancestor's. Later snapshots may remove files that were added
        after the ancestor, so the number is only known if they remove none.
        """
        ancestors = self.ancestors(snapshot)
        if since not in ancestors:
            return None
        steps = ancestors[: ancestors.index(since)]
        *removed_later, removed_first = map(self.removed.get, steps)
        if removed_first is None or not set(removed_later) <= {0}:
            return None
        return files - removed_first

    def ancestors(self, snapshot: str | None) -> tuple[str, ...]:
        """List a snapshot and its ancestors, newest first."""
        ancestors: list[str] = []
        while snapshot is not None and snapshot not in ancestors:
            ancestors.append(snapshot)
            snapshot = self.parents.get(snapshot)
        return tuple(ancestors)

    def columns(self, snapshot: str | None) -> tuple[Column, ...]:
        """Return the leaves of a snapshot's schema, and the table's for the current snapshot; empty if unknown."""
        if snapshot == self.current:
            return self.schema
        if snapshot is None:
            return ()
        return self.schemas.get(snapshot, ())

    def has_expired_ancestors(self, snapshot: str | None) -> bool:
        """Return whether ancestors of a snapshot have expired, so that their ids are unknown."""
        ancestors = self.ancestors(snapshot)
        return bool(ancestors) and ancestors[-1] not in self.parents

    def at(self, moment: datetime) -> str | None:
        """Return the snapshot that was current at a moment, or None."""
        milliseconds = moment.timestamp() * 1000
        for since, snapshot in reversed(self.log):
            if since <= milliseconds:
                return snapshot
        return None
