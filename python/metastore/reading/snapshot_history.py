"""The history of a table's snapshots, by the manifest alone or by the table's own metadata."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from metastore.errors import InvalidArgument
from metastore.reading.summary_rows import FileCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from metastore.adapters.lineage import Lineage
    from metastore.format.data_files import DataFile, FileKey
    from metastore.format.manifest import Snapshot
    from metastore.format.table_column import Column
    from metastore.reading.snapshot import Moment

    ListFileKeys = Callable[[Snapshot], Sequence[FileKey]]


NEVER_WRITTEN = "none"
"""The id under which the manifest lists the statistics of a table without snapshots."""


class ManifestHistory:
    """The history of a table whose own metadata cannot be read: only analyzed snapshots are known.

    Attributes:
        current: The id of the newest analyzed snapshot, which counts as the current one; None if there is none.
        listed: The data files of a folder as it is listed now; empty for tables with metadata.
    """

    current: str | None
    listed: Sequence[DataFile] = ()

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self.current = snapshots[-1].id if snapshots else None

    def has(self, snapshot: str | None) -> bool:  # noqa: ARG002 - `TableHistory` needs it
        """Return whether the table has a snapshot."""
        return False

    def is_current(self, snapshot: Snapshot) -> bool | None:  # noqa: ARG002 - `TableHistory` needs it
        """Return whether the table is at a snapshot, or None if unknown."""
        return None

    def is_earlier(self, snapshot: str) -> bool:  # noqa: ARG002 - `TableHistory` needs it
        """Return whether a snapshot is certainly not the current one."""
        return False

    def parse_id(self, at: Moment) -> str | None:
        """Find the id of a snapshot by its id, a branch, a tag or an instant.

        Raises:
            InvalidArgument: It is an instant, and the table's own metadata cannot be read.
        """
        name = str(at)
        reference = self.find_reference(name)
        if reference is not None:
            return reference
        if name.isdecimal():
            return name
        if isinstance(at, datetime):
            return self.find_at(at)
        try:
            instant = datetime.fromisoformat(name.replace("Z", "+00:00"))
        except ValueError:
            return name
        return self.find_at(instant)

    def find_reference(self, name: str) -> str | None:  # noqa: ARG002 - `TableHistory` needs it
        """Return the snapshot of a branch or tag, or None."""
        return None

    def find_at(self, instant: datetime) -> str | None:  # noqa: ARG002 - `TableHistory` needs it
        """Return the snapshot that was current at an instant."""
        raise InvalidArgument(
            "at", "without the table's own metadata no instant is known", "Give a snapshot: see snapshots()."
        )

    def list_columns(self, snapshot: str | None) -> tuple[Column, ...]:  # noqa: ARG002 - `TableHistory` needs it
        """Return the columns of a snapshot; empty if unknown."""
        return ()

    def list_ancestors(self, snapshot: str | None) -> tuple[str, ...]:  # noqa: ARG002 - `TableHistory` needs it
        """Return a snapshot and its ancestors, newest first; empty if unknown."""
        return ()

    def find_analyzed(self, requested: str | None, analyzed: Mapping[str, Snapshot]) -> Snapshot | None:
        """Return the requested snapshot or its newest analyzed ancestor, or None.

        Args:
            requested: The id; None for a table without snapshots.
            analyzed: The analyzed snapshots by id, oldest first.
        """
        return analyzed.get(requested or NEVER_WRITTEN)

    def count_files(self, snapshot: Snapshot, requested: str | None, list_keys: ListFileKeys) -> FileCounts:  # noqa: ARG002 - `TableHistory` needs it
        """Count the data files of an analyzed snapshot, and those that a descendant still has."""
        return FileCounts.of_same_files(snapshot.files_total)


class TableHistory(ManifestHistory):
    """The history of a table by its own metadata."""

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self.current = lineage.current
        self.listed = lineage.listed

    def has(self, snapshot: str | None) -> bool:
        """Return whether the metadata list a snapshot."""
        return snapshot in self._lineage.parents

    def is_current(self, snapshot: Snapshot) -> bool:
        """Return whether the table is at a snapshot."""
        return snapshot.id == self.current

    def is_earlier(self, snapshot: str) -> bool:
        """Return whether a snapshot is not the current one."""
        return snapshot != self.current

    def find_reference(self, name: str) -> str | None:
        """Return the snapshot of a branch or tag, or None."""
        return self._lineage.references.get(name)

    def find_at(self, instant: datetime) -> str | None:
        """Return the snapshot that was current at an instant, or None; without a time zone it is in UTC."""
        return self._lineage.at(instant if instant.tzinfo else instant.replace(tzinfo=timezone.utc))

    def list_columns(self, snapshot: str | None) -> tuple[Column, ...]:
        """Return the columns of a snapshot; empty if they cannot be read."""
        return self._lineage.columns(snapshot)

    def list_ancestors(self, snapshot: str | None) -> tuple[str, ...]:
        """Return a snapshot and its ancestors, newest first."""
        return self._lineage.ancestors(snapshot)

    def find_analyzed(self, requested: str | None, analyzed: Mapping[str, Snapshot]) -> Snapshot | None:
        """Return the requested snapshot or its newest analyzed ancestor, or None."""
        if not requested:
            return analyzed.get(NEVER_WRITTEN)
        for ancestor in self._lineage.ancestors(requested):
            if ancestor in analyzed:
                return analyzed[ancestor]
        return self._find_expired(requested, analyzed)

    def _find_expired(self, requested: str, analyzed: Mapping[str, Snapshot]) -> Snapshot | None:
        """Find the newest analyzed snapshot that has expired: only the manifest still lists such ancestors."""
        if self._lineage.has_expired_ancestors(requested):
            for snapshot in reversed(list(analyzed.values())):
                if not self.has(snapshot.id):
                    return snapshot
        return None

    def count_files(self, snapshot: Snapshot, requested: str | None, list_keys: ListFileKeys) -> FileCounts:
        """Count the data files of an analyzed snapshot, and those that a descendant still has."""
        if requested is None:
            return FileCounts.of_same_files(snapshot.files_total)
        return FileCounts(
            described=snapshot.files_total,
            remaining=self._count_remaining_files(snapshot, requested, list_keys),
            total=self._lineage.files.get(requested),
        )

    def _count_remaining_files(self, snapshot: Snapshot, requested: str, list_keys: ListFileKeys) -> int | None:
        if requested != self.current or not self.listed:
            return self._lineage.files_left(requested, snapshot.id, snapshot.files_total)
        listed_keys = {file.key for file in self.listed}
        return sum(key in listed_keys for key in list_keys(snapshot))
