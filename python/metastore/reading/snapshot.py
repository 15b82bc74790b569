"""The analyzed snapshot that answers a question about a table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any

from metastore.adapters.descriptors import FORMAT_NAMES, describe_format
from metastore.errors import InvalidArgument, NoStatistics
from metastore.format.data_files import FileKey, read_file_keys
from metastore.reading import summary_rows
from metastore.reading.directory_lineage import read_directory_lineage
from metastore.reading.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.adapters.current_tables import CurrentTable
    from metastore.adapters.lineage import Lineage
    from metastore.adapters.table_facts import DataFile
    from metastore.errors import MetastoreError
    from metastore.format.manifest import Snapshot
    from metastore.format.table_column import Column
    from metastore.reading.discovery import Discovery
    from metastore.store import Store


_NEVER_WRITTEN = "none"
"""The id under which the manifest lists the statistics of a table without snapshots."""
_MOST_LISTED = 5


@dataclass(frozen=True)
class SnapshotAnswer:
    """The subject of an answer: a requested snapshot, and the analyzed one that answers for it.

    Attributes:
        snapshot: The analyzed snapshot.
        current: Whether the table is still at this snapshot, or None if unknown.
        columns: The columns of the requested snapshot, whose schema may differ.
        is_requested: Whether both snapshots are the same: the numbers of an ancestor are only close.
        files: The numbers of data files of both snapshots.
    """

    snapshot: Snapshot
    current: bool | None
    columns: tuple[Column, ...]
    is_requested: bool
    files: summary_rows.FileCounts

    @property
    def described(self) -> tuple[Column, ...]:
        """The subjects of a summary's rows: the columns, then the expressions that have statistics."""
        return self.columns + self.snapshot.expressions

    @property
    def table_scope(self) -> summary_rows.Scope:
        """The scope of the rows of a summary of the table."""
        snapshot = self.snapshot
        return self._scope(snapshot.physical_rows, snapshot.rows, self.files, exact=snapshot.exact)

    def file_scope(self, file: Mapping[str, Any]) -> summary_rows.Scope:
        """The scope of the rows of a summary of a data file, which is a row of `table-files`."""
        return self._scope(
            file["rows"],
            summary_rows.count_live_rows(file),
            summary_rows.FileCounts(1, 1, 1),
            exact=file["deletes"] is None,
        )

    def _scope(
        self, physical: int | None, live: int | None, files: summary_rows.FileCounts, *, exact: bool
    ) -> summary_rows.Scope:
        return summary_rows.Scope(
            rows=physical,
            live=live,
            exact=exact and self.is_requested,
            files=files,
            snapshot=self.snapshot.id,
            current=self.current,
            analyzed_at=summary_rows.parse_instant(self.snapshot.analyzed_at),
        )


class TableSnapshots:
    """The analyzed snapshots of a table, and the table's own metadata about their lineage."""

    def __init__(self, place: Discovery, zone: str = "UTC", opened: CurrentTable | None = None) -> None:
        self._place = place
        self._zone = zone
        self._opened = opened

    @property
    def table(self) -> str:
        """The table's name, or its location if it has no name."""
        manifest = self._place.manifest
        if self._place.is_named_by_path and self._place.has_moved:
            return self.location
        if manifest and manifest.table.name:
            return manifest.table.name
        if self._opened and self._opened.name:
            return self._opened.name
        return self._place.subject

    @property
    def location(self) -> str:
        """The table's location."""
        return self._place.location

    @property
    def _snapshots(self) -> Sequence[Snapshot]:
        manifest = self._place.manifest
        return manifest.snapshots if manifest else ()

    @property
    def _store(self) -> Store:
        if self._place.store is None:
            raise self._place.explain_missing(self.table)
        return self._place.store

    @cached_property
    def _lineage(self) -> Lineage | None:
        manifest = self._place.manifest
        if manifest is None or manifest.table.format not in FORMAT_NAMES:
            return self._opened.lineage if self._opened else None
        lineage = self._opened.lineage if self._opened else self._read_lineage(manifest.table.format)
        if lineage is not None and lineage.uuid != manifest.table.uuid:
            raise NoStatistics(self.table, detail="(those that are stored belong to a table that was here before)")
        return lineage

    def _read_lineage(self, table_format: str) -> Lineage | None:
        descriptor = describe_format(table_format)
        if descriptor.name_snapshot is not None:
            return read_directory_lineage(self._place)
        return descriptor.read_lineage(Folder(self.location))

    def _at(self, at: str | int | datetime | None, argument: str = "at") -> SnapshotAnswer:
        """The snapshot that answers a question about columns; errors name the argument."""
        analyzed = [snapshot for snapshot in self._snapshots if _has_columns(snapshot)]
        try:
            answer = self._answering(at, analyzed)
        except InvalidArgument as error:
            raise InvalidArgument(argument, error.reason, error.hint) from None
        if answer is None:
            raise self._missing(at, [snapshot.id for snapshot in analyzed])
        return answer

    def _missing(self, at: str | int | datetime | None, analyzed: Sequence[str]) -> MetastoreError:
        """The error that no snapshot answers: ANALYZE can mend it for the current one, else it names analyzed ones."""
        if not self._snapshots:
            return self._place.explain_missing(self.table)
        lineage = self._lineage
        requested = self._id_at(at) if at is not None else None
        if lineage is None or requested is None or not analyzed or requested == lineage.current:
            return self._missing_for_current()
        detail = f"of columns for snapshot {requested} or one that it was made from"
        alternatives = _descendants(lineage, requested, analyzed) or analyzed
        return NoStatistics(self.table, detail, analyzed=list(reversed(alternatives)))

    def _missing_for_current(self) -> MetastoreError:
        has_only_files = any(snapshot.files_total for snapshot in self._snapshots)
        detail = "of columns for this snapshot or one that it was made from" if has_only_files else ""
        return NoStatistics(self.table, detail)

    def _answering(self, at: str | int | datetime | None, analyzed: Sequence[Snapshot]) -> SnapshotAnswer | None:
        """The requested snapshot, if it was analyzed, else its newest analyzed ancestor."""
        if not self._snapshots:
            return None
        requested = self._find_requested(at, analyzed)
        snapshot = self._find_analyzed(requested, analyzed)
        if snapshot is None:
            return None
        is_requested = snapshot.id == (requested or _NEVER_WRITTEN)
        return SnapshotAnswer(
            snapshot,
            current=self._is_current(snapshot) and is_requested,
            columns=self._list_columns(requested) or snapshot.columns,
            is_requested=is_requested,
            files=_same_files(snapshot) if is_requested else self._count_files(snapshot, requested),
        )

    def _find_requested(self, at: str | int | datetime | None, analyzed: Sequence[Snapshot]) -> str | None:
        """The id of the requested snapshot, by default the current one; None for a table without snapshots.

        Raises:
            InvalidArgument: Neither the table nor the manifest has this snapshot.
        """
        lineage = self._lineage
        if at is None:
            return lineage.current if lineage else self._snapshots[-1].id
        requested = self._id_at(at)
        is_analyzed = any(snapshot.id == requested for snapshot in analyzed)
        is_in_table = lineage is not None and requested in lineage.parents
        if not is_analyzed and not is_in_table:
            hint = _list_analyzed([snapshot.id for snapshot in self._snapshots])
            raise InvalidArgument("at", f"{at} was not analyzed", hint)
        return requested

    def _find_analyzed(self, requested: str | None, analyzed: Sequence[Snapshot]) -> Snapshot | None:
        """A snapshot or its newest analyzed ancestor.

        Only the manifest knows of ancestors that have expired: the newest of them is taken.
        """
        lineage = self._lineage
        by_id = {snapshot.id: snapshot for snapshot in analyzed}
        if lineage is None or not requested:
            return by_id.get(requested or _NEVER_WRITTEN)
        for ancestor in lineage.ancestors(requested):
            if ancestor in by_id:
                return by_id[ancestor]
        if lineage.has_expired_ancestors(requested):
            expired = [snapshot for snapshot in analyzed if snapshot.id not in lineage.parents]
            return expired[-1] if expired else None
        return None

    def _list_columns(self, snapshot: str | None) -> tuple[Column, ...]:
        """The columns of a snapshot by the table's own metadata; empty if that does not have them."""
        return self._lineage.columns(snapshot) if self._lineage else ()

    def _id_at(self, at: str | int | datetime) -> str | None:
        """The id of a snapshot by its id, a branch, a tag or an instant."""
        name = str(at)
        lineage = self._lineage
        if lineage is not None and name in lineage.references:
            return lineage.references[name]
        if name.isdecimal():
            return name
        try:
            moment = at if isinstance(at, datetime) else datetime.fromisoformat(name.replace("Z", "+00:00"))
        except ValueError:
            return name
        if lineage is None:
            raise InvalidArgument(
                "at", "without the table's own metadata no instant is known", "Give a snapshot: see snapshots()."
            )
        return lineage.at(moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc))

    def _count_files(self, snapshot: Snapshot, requested: str | None) -> summary_rows.FileCounts:
        """The data files of an analyzed snapshot, and those that a descendant still has."""
        lineage = self._lineage
        if lineage is None or requested is None:
            return _same_files(snapshot)
        described = snapshot.files_total
        if requested == lineage.current and lineage.listed:
            remaining: int | None = self._count_remaining_files(snapshot, lineage.listed)
        else:
            remaining = lineage.files_left(requested, snapshot.id, described)
        return summary_rows.FileCounts(described, remaining, lineage.files.get(requested))

    def _count_remaining_files(self, snapshot: Snapshot, listed: Sequence[DataFile]) -> int:
        """The number of data files of an analyzed snapshot that the table still lists."""
        listed_keys = {file.key for file in listed}
        return sum(key in listed_keys for key in self._list_keys(snapshot))

    def _list_keys(self, snapshot: Snapshot) -> list[FileKey]:
        """The data files of an analyzed snapshot, in its order."""
        return read_file_keys(self._store.get(snapshot.table_files, [*FileKey._fields]))

    def _is_current(self, snapshot: Snapshot) -> bool | None:
        return None if self._lineage is None else snapshot.id == self._lineage.current


def _has_columns(snapshot: Snapshot) -> bool:
    """Whether columns were analyzed; a table without data files has nothing else to analyze."""
    return snapshot.computed != "files" or not snapshot.files_total


def _same_files(snapshot: Snapshot) -> summary_rows.FileCounts:
    """The data files of a snapshot that answers for itself."""
    files = snapshot.files_total
    return summary_rows.FileCounts(files, files, files)


def _descendants(lineage: Lineage, snapshot: str, analyzed: Sequence[str]) -> list[str]:
    """The analyzed snapshots between the current one and an ancestor, newest first; empty if it is no ancestor."""
    line = lineage.ancestors(lineage.current)
    if snapshot not in line:
        return []
    later = line[: line.index(snapshot)]
    return [descendant for descendant in later if descendant in analyzed]


def _list_analyzed(ids: Sequence[str]) -> str:
    """The newest analyzed snapshots."""
    newest = ", ".join(ids[-_MOST_LISTED:])
    if len(ids) <= _MOST_LISTED:
        return f"Analyzed: {newest}."
    return f"Analyzed: {newest} and {len(ids) - _MOST_LISTED} earlier ones."
