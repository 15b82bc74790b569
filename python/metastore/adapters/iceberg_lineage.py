"""What a table's own metadata says about its snapshots, where a location alone tells it.

Only Iceberg's file system tables (`v7.metadata.json`, as a Hadoop catalog writes them) keep their truth at their
location. Where a catalog names the metadata file, a file that lies there may be the trace of a commit that never took
place: nothing is claimed about it, and `current` is unknown.
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from metastore.adapters.iceberg_schema import describe_leaves, walk_leaves
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from metastore.format.table_column import Column
    from metastore.reading.folder import Folder


_LOG = get_logger(__name__)
_VERSION = re.compile(r"v(\d+)(\.gz)?\.metadata\.json(\.gz)?")
_OF_A_CATALOG = re.compile(r"\d+-[0-9a-f-]{36}(\.gz)?\.metadata\.json(\.gz)?")


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


def read_lineage(table: Folder) -> Lineage | None:
    """What the metadata at a table's location says; None where nothing is certain."""
    folder = table / "metadata"
    try:
        name = _newest(folder.names())
        data = folder.read(name) if name else None
        if name is None or data is None:
            return None
        return _parse(json.loads(gzip.decompress(data) if ".gz" in name else data))
    except (OSError, ValueError, KeyError, TypeError) as error:
        _LOG.info("the metadata of %s cannot be read, its current snapshot is unknown: %s", table.uri, error)
        return None


def _newest(names: tuple[str, ...]) -> str | None:
    if any(_OF_A_CATALOG.fullmatch(name) for name in names):
        return None
    # A Hadoop catalog commits by creating the next number; version-hint.text is only where it starts to look.
    versions = [(int(match[1]), name) for name in names if (match := _VERSION.fullmatch(name))]
    return max(versions)[1] if versions else None


def _parse(metadata: dict[str, Any]) -> Lineage:
    current = metadata.get("current-snapshot-id")
    snapshots = metadata.get("snapshots") or []
    schemas = {one.get("schema-id", 0): _leaves(one) for one in metadata.get("schemas") or []}
    summaries = {str(one["snapshot-id"]): one.get("summary") or {} for one in snapshots}
    return Lineage(
        uuid=metadata["table-uuid"],
        current=None if current in (None, -1) else str(current),
        parents={str(one["snapshot-id"]): _id(one.get("parent-snapshot-id")) for one in snapshots},
        log=tuple((int(one["timestamp-ms"]), str(one["snapshot-id"])) for one in metadata.get("snapshot-log") or []),
        references={name: str(one["snapshot-id"]) for name, one in (metadata.get("refs") or {}).items()},
        schema=schemas.get(metadata.get("current-schema-id"), ()),
        schemas={str(one["snapshot-id"]): schemas.get(one.get("schema-id"), ()) for one in snapshots},
        files={id_: int(one["total-data-files"]) for id_, one in summaries.items() if "total-data-files" in one},
        removed={id_: int(one.get("deleted-data-files", 0)) for id_, one in summaries.items() if "operation" in one},
    )


def _leaves(schema: dict[str, Any]) -> tuple[Column, ...]:
    return describe_leaves(tuple(walk_leaves(schema)))[0]


def _id(value: object) -> str | None:
    return None if value is None else str(value)
