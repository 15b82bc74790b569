"""A table with statistics: its analyzed snapshots, and which of them answers a question."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from metastore.adapters.descriptors import FORMAT_NAMES, describe_format
from metastore.errors import InvalidArgument, NoStatistics
from metastore.format.data_files import FileKey, read_file_keys
from metastore.reading.directory_lineage import read_directory_lineage
from metastore.reading.snapshot import SnapshotAnswer
from metastore.reading.snapshot_files import SnapshotFiles, read_snapshot_files
from metastore.reading.snapshot_history import NEVER_WRITTEN, ManifestHistory, TableHistory
from metastore.reading.summary_rows import FileCounts
from metastore.store.folder import Folder
from metastore.suggestions import suggest_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.adapters.current_tables import CurrentTable
    from metastore.adapters.lineage import Lineage
    from metastore.errors import MetastoreError
    from metastore.format.manifest import Manifest, Snapshot
    from metastore.reading.discovery import Discovery
    from metastore.reading.snapshot import Moment
    from metastore.store import Store


_MOST_LISTED = 5
_MOST_COMPARED = 1000
"""A mistyped path is compared with at most this many data files."""


class AnalyzedTable:
    """The analyzed snapshots of a table, and the table's own metadata about their lineage.

    Attributes:
        discovery: The table's statistics.
        zone: The time zone of texts.
        opened: The table as another library has opened it, or None.
    """

    def __init__(
        self, discovery: Discovery, zone: str = "UTC", opened: CurrentTable | None = None, *, reads_lineage: bool = True
    ) -> None:
        self.discovery = discovery
        self.zone = zone
        self.opened = opened
        self._reads_lineage = reads_lineage

    @property
    def name(self) -> str:
        """The table's name, or its location if it has no name."""
        if self.discovery.is_named_by_path and self.discovery.has_moved:
            return self.location
        if self.discovery.catalog_name:
            return self.discovery.catalog_name
        if self.opened and self.opened.name:
            return self.opened.name
        return self.discovery.subject

    @property
    def location(self) -> str:
        """The table's location."""
        return self.discovery.location

    @property
    def snapshots(self) -> Sequence[Snapshot]:
        """The analyzed snapshots, oldest first."""
        return self.discovery.snapshots

    @property
    def manifest(self) -> Manifest:
        """The store's manifest.

        Raises:
            NoStatistics: The table was not analyzed.
            UnsupportedTable: The table cannot be analyzed.
        """
        if self.discovery.manifest is None:
            raise self.discovery.explain_missing(self.name)
        return self.discovery.manifest

    @property
    def store(self) -> Store:
        """The store of the statistics; raises as `manifest` does."""
        if self.discovery.store is None:
            raise self.discovery.explain_missing(self.name)
        return self.discovery.store

    @cached_property
    def history(self) -> ManifestHistory:
        """The table's snapshots.

        Raises:
            NoStatistics: The statistics are of another table that was at this location.
        """
        lineage = self._read_lineage() if self._reads_lineage else None
        if lineage is None:
            return ManifestHistory(self.snapshots)
        return TableHistory(lineage)

    def _read_lineage(self) -> Lineage | None:
        opened_lineage = self.opened.lineage if self.opened else None
        manifest = self.discovery.manifest
        if manifest is None or manifest.table.format not in FORMAT_NAMES:
            return opened_lineage
        lineage = opened_lineage or self._read_stored_lineage(manifest.table.format)
        if lineage is not None and lineage.uuid != manifest.table.uuid:
            raise NoStatistics(self.name, detail="(those that are stored belong to a table that was here before)")
        return lineage

    def _read_stored_lineage(self, table_format: str) -> Lineage | None:
        descriptor = describe_format(table_format)
        if descriptor.name_snapshot is not None:
            return read_directory_lineage(self.discovery)
        return descriptor.read_lineage(Folder(self.location, self.discovery.access))

    def at(self, at: Moment | None, argument: str = "at") -> SnapshotAnswer:
        """Find the analyzed snapshot whose column statistics answer for a requested snapshot.

        Args:
            at: A snapshot id, version or instant; the current one if None.
            argument: The name of the argument in errors.

        Raises:
            NoStatistics: There is none.
            InvalidArgument: The table has no such snapshot.
        """
        analyzed = list(filter(_has_columns, self.snapshots))
        try:
            answer = self._answer(at, analyzed)
        except InvalidArgument as error:
            raise InvalidArgument(argument, error.reason, error.hint) from None
        if answer is None:
            raise self._explain_missing(at, _list_ids(analyzed))
        return answer

    def find(self, at: Moment | None = None) -> SnapshotAnswer | None:
        """Find the analyzed snapshot whose list of data files answers for a requested snapshot, or None."""
        return self._answer(at, self.snapshots)

    def _answer(self, at: Moment | None, analyzed: Sequence[Snapshot]) -> SnapshotAnswer | None:
        """Return the requested snapshot, if it was analyzed, else its newest analyzed ancestor."""
        if not self.snapshots:
            return None
        history = self.history
        by_id = {snapshot.id: snapshot for snapshot in analyzed}
        requested = history.current if at is None else self._find_requested(at, by_id)
        snapshot = history.find_analyzed(requested, by_id)
        if snapshot is None:
            return None
        return self._make_answer(snapshot, requested)

    def _make_answer(self, snapshot: Snapshot, requested: str | None) -> SnapshotAnswer:
        """Make the answer of an analyzed snapshot, which is the requested one or an ancestor of it."""
        history = self.history
        columns = history.list_columns(requested) or snapshot.columns
        if snapshot.id == (requested or NEVER_WRITTEN):
            return SnapshotAnswer(
                snapshot,
                current=history.is_current(snapshot),
                columns=columns,
                is_requested=True,
                files=FileCounts.of_same_files(snapshot.files_total),
            )
        return SnapshotAnswer(
            snapshot,
            current=False,
            columns=columns,
            is_requested=False,
            files=history.count_files(snapshot, requested, self.list_file_keys),
        )

    def _find_requested(self, at: Moment, analyzed: Mapping[str, Snapshot]) -> str | None:
        """Return the id of a requested snapshot.

        Raises:
            InvalidArgument: Neither the table nor the manifest has this snapshot.
        """
        requested = self.history.parse_id(at)
        if requested in analyzed or self.history.has(requested):
            return requested
        raise InvalidArgument("at", f"{at} was not analyzed", _list_analyzed(_list_ids(self.snapshots)))

    def _explain_missing(self, at: Moment | None, analyzed: Sequence[str]) -> MetastoreError:
        """Make the error that no snapshot answers; the hint is ANALYZE or, for an earlier one, analyzed snapshots."""
        if not self.snapshots:
            return self.discovery.explain_missing(self.name)
        if at is None or not analyzed:
            return self._explain_missing_current()
        requested = self.history.parse_id(at)
        if requested is None or not self.history.is_earlier(requested):
            return self._explain_missing_current()
        detail = f"of columns for snapshot {requested} or one that it was made from"
        alternatives = self._list_descendants(requested, analyzed) or analyzed
        return NoStatistics(self.name, detail, analyzed=list(reversed(alternatives)))

    def _explain_missing_current(self) -> MetastoreError:
        if not any(snapshot.files_total for snapshot in self.snapshots):
            return NoStatistics(self.name)
        return NoStatistics(self.name, "of columns for this snapshot or one that it was made from")

    def _list_descendants(self, snapshot: str, analyzed: Sequence[str]) -> list[str]:
        """List the analyzed snapshots after an ancestor of the current one, newest first; empty if it is none."""
        line = self.history.list_ancestors(self.history.current)
        if snapshot not in line:
            return []
        later = line[: line.index(snapshot)]
        return [descendant for descendant in later if descendant in analyzed]

    def list_file_keys(self, snapshot: Snapshot) -> list[FileKey]:
        """Return the data files of an analyzed snapshot, in its order."""
        return read_file_keys(self.store.get(snapshot.table_files, [*FileKey._fields]))

    def read_files(self, snapshot: Snapshot) -> SnapshotFiles:
        """Read the data files of a snapshot, with the blocks that have their statistics."""
        return read_snapshot_files(self.store, self.manifest, snapshot)

    def find_file(self, file: str, stored: SnapshotFiles) -> int:
        """Find the number of a data file by its path.

        Raises:
            InvalidArgument: The table has no such data file.
        """
        paths: list[str] = stored.files.column("path").to_pylist()
        if file in paths:
            return paths.index(file)
        hint = ""
        if len(paths) <= _MOST_COMPARED:
            hint = suggest_names(file, paths)
        raise InvalidArgument("file", f"{file} is no data file of {self.name}", hint or "files() lists them.")


def _list_ids(snapshots: Iterable[Snapshot]) -> list[str]:
    return [snapshot.id for snapshot in snapshots]


def _has_columns(snapshot: Snapshot) -> bool:
    """Return whether columns were analyzed; a table without data files has nothing else to analyze."""
    return snapshot.computed != "files" or not snapshot.files_total


def _list_analyzed(ids: Sequence[str]) -> str:
    """Return the newest analyzed snapshots."""
    newest = ", ".join(ids[-_MOST_LISTED:])
    if len(ids) <= _MOST_LISTED:
        return f"Analyzed: {newest}."
    return f"Analyzed: {newest} and {len(ids) - _MOST_LISTED} earlier ones."
