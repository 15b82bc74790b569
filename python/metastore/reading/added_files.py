"""Data files that were added after a snapshot, as a table of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from metastore.adapters.identifiers import find_column
from metastore.adapters.table_facts import TableFacts
from metastore.errors import NoStatistics
from metastore.format.counts import add_up
from metastore.format.data_files import DataFile, FileKey, read_file_keys
from metastore.reading.detail_objects import read_table_details
from metastore.reading.summary_rows import count_live_rows
from metastore.store.block_files import read_block_files
from metastore.store.coverage import Coverage
from metastore.store.overlay_store import OverlayStore
from metastore.table_level.snapshot_level import write_table_level
from metastore.table_level.table_details import TableLevelOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.format.manifest import Manifest, Snapshot
    from metastore.reading.column_details import ColumnDetails
    from metastore.store import Store

    Files = Mapping[FileKey, Mapping[str, Any]]


class UnknownAddedFilesError(Exception):
    """The reason why it is unknown which data files hold added rows."""


def find_added_files(store: Store, snapshots: Sequence[Snapshot]) -> list[FileKey]:
    """Find the data files of the last snapshot with rows that were added after the first.

    If as many rows were removed as were added between two snapshots, data files were only rewritten, and the new files
    have no added rows. If rows were changed or deleted, or old and added rows were rewritten together, the answer is
    unknown.

    Args:
        store: The store with their lists of files.
        snapshots: The snapshots in the order in which they were made.

    Raises:
        UnknownAddedFilesError: The answer is unknown.
    """
    files = _read_files(store, snapshots[0])
    added: set[FileKey] = set()
    for snapshot in snapshots[1:]:
        later_files = _read_files(store, snapshot)
        removed = files.keys() - later_files.keys()
        new = later_files.keys() - files.keys()
        if not removed:
            added |= new
        elif not _have_equally_many_rows(files, removed, later_files, new):
            raise UnknownAddedFilesError(
                f"until snapshot {snapshot.id} {len(removed)} data files went and {len(new)} came with other rows: "
                "which of these are added is not known. ANALYZE right after the load tells"
            )
        elif removed <= added:
            added = (added - removed) | new
        elif removed & added:
            raise UnknownAddedFilesError(
                f"until snapshot {snapshot.id} data files were rewritten together with added ones: "
                "ANALYZE before rewriting tells"
            )
        files = later_files
    return sorted(added, key=lambda key: key.path)


def _read_files(store: Store, snapshot: Snapshot) -> dict[FileKey, Mapping[str, Any]]:
    rows = store.get(snapshot.table_files)
    return dict(zip(read_file_keys(rows), rows.to_pylist(), strict=True))


def _have_equally_many_rows(before: Files, removed: set[FileKey], after: Files, new: set[FileKey]) -> bool:
    """Return whether the removed and the new files have equally many live rows."""
    removed_rows = _count_rows(before, removed)
    new_rows = _count_rows(after, new)
    return removed_rows is not None and removed_rows == new_rows


def _count_rows(files: Files, keys: Iterable[FileKey]) -> int | None:
    """Return the live rows of data files, or None if unknown."""
    return add_up(count_live_rows(files[key]) for key in keys)


@dataclass(frozen=True)
class AddedFiles:
    """Statistics of the added data files, reduced in memory.

    Attributes:
        snapshot: The snapshot of these files alone.
        store: The store with its objects.
        table: The table's name.
    """

    snapshot: Snapshot
    store: Store
    table: str

    def details(self, column: str) -> ColumnDetails:
        """Read the value list and histogram of a column.

        Raises:
            ColumnNotFound: There is no such column.
            NoStatistics: It has no statistics.
        """
        analyzed = find_column(self.snapshot.described, column, self.table)
        details = read_table_details(self.store, self.snapshot, analyzed)
        if details is None:
            raise NoStatistics(self.table, detail=f"of the column {column}")
        return details


def reduce_added_files(
    store: Store, manifest: Manifest, snapshot: Snapshot, added: Sequence[FileKey], table: str
) -> AddedFiles:
    """Merge the statistics of the added data files, as ANALYZE does for all files of a table."""
    listed = _read_files(store, snapshot)
    files = tuple(_to_data_file(listed[key]) for key in added)
    identity = manifest.table
    facts = TableFacts(
        format=identity.format,
        uuid=identity.uuid,
        location=identity.location,
        root=identity.location,
        name=table,
        identifier=table,
        snapshot=snapshot.id,
        columns=snapshot.columns,
        files=files,
        defaults={},
        absent_is_null=False,
        local=False,
        snapshot_sql="",
    )
    settings = manifest.settings
    options = TableLevelOptions(
        bins=int(settings.get("histogram_bins", 1000)),
        top=int(settings.get("frequencies_top", 1000)),
        expressions=snapshot.expressions,
    )
    overlay = OverlayStore(store)
    level = write_table_level(overlay, facts, Coverage(read_block_files(store, manifest.blocks), files), options)
    return AddedFiles(replace(level.snapshot, analyzed_at=snapshot.analyzed_at), overlay, table)


def _to_data_file(row: Mapping[str, Any]) -> DataFile:
    return DataFile(
        path=row["path"],
        size=row["size"],
        rows=row["rows"],
        format="parquet",
        deletes=row["deletes"],
        deleted_rows=row["deleted_rows"] if row["deletes"] is not None else 0,
        modified=row["modified"],
    )
