"""Which analyzed snapshot answers a question about a table."""

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
_SHOWN = 5


@dataclass(frozen=True)
class SnapshotAnswer:
    """What an answer is about.

    Attributes:
        snapshot: The analyzed snapshot that answers.
        current: Whether the table is still there; None where that is not known.
        columns: The columns of the snapshot asked for, which may have another schema.
        is_requested: Whether it is the snapshot asked for: an ancestor's numbers are near those of that one, no more.
        files: Its data files, and those of the snapshot asked for.
    """

    snapshot: Snapshot
    current: bool | None
    columns: tuple[Column, ...]
    is_requested: bool
    files: summary_rows.FileCounts

    @property
    def described(self) -> tuple[Column, ...]:
        """What a summary has rows of: the columns, then the expressions that have statistics."""
        return self.columns + self.snapshot.expressions

    @property
    def table_scope(self) -> summary_rows.Scope:
        """What the rows of a summary of the table share."""
        one = self.snapshot
        return self._scope(one.physical_rows, one.rows, self.files, exact=one.exact)

    def file_scope(self, file: Mapping[str, Any]) -> summary_rows.Scope:
        """What those of a data file share, a row of `table-files`."""
        return self._scope(
            file["rows"],
            summary_rows.count_live_rows(file),
            summary_rows.FileCounts(1, 1, 1),
            exact=file["deletes"] is None,
        )

    def _scope(
        self, physical: int | None, live: int | None, files: summary_rows.FileCounts, *, exact: bool
    ) -> summary_rows.Scope:
        moment = summary_rows.parse_instant(self.snapshot.analyzed_at)
        return summary_rows.Scope(
            physical, live, exact and self.is_requested, files, self.snapshot.id, self.current, moment
        )


class TableSnapshots:
    """A table whose snapshots can be asked about."""

    def __init__(self, place: Discovery, zone: str = "UTC", opened: CurrentTable | None = None) -> None:
        self._place = place
        self._zone = zone
        self._opened = opened

    @property
    def table(self) -> str:
        """The table's name, or the location where it has none."""
        manifest = self._place.manifest
        if self._place.is_named_by_path and self._place.has_moved:
            return self.location
        return (
            (manifest.table.name if manifest else "")
            or (self._opened.name if self._opened else "")
            or self._place.asked
        )

    @property
    def location(self) -> str:
        """The table's location."""
        return self._place.location

    @property
    def _snapshots(self) -> Sequence[Snapshot]:
        return self._place.manifest.snapshots if self._place.manifest else ()

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
        found = self._opened.lineage if self._opened else self._read_lineage(manifest.table.format)
        if found is not None and found.uuid != manifest.table.uuid:
            raise NoStatistics(self.table, detail="(those that are stored belong to a table that was here before)")
        return found

    def _read_lineage(self, table_format: str) -> Lineage | None:
        described = describe_format(table_format)
        if described.name_snapshot is not None:
            return read_directory_lineage(self._place)
        return described.read_lineage(Folder(self.location))

    def _at(self, at: str | int | datetime | None, argument: str = "at") -> SnapshotAnswer:
        """What answers a question about columns, asked by an argument of such a name."""
        among = [one for one in self._snapshots if one.computed != "files" or not one.files_total]
        try:
            shown = self._answering(at, among)
        except InvalidArgument as error:
            raise InvalidArgument(argument, error.reason, error.hint) from None
        if shown is None:
            raise self._missing(at, [one.id for one in among])
        return shown

    def _missing(self, at: str | int | datetime | None, analyzed: Sequence[str]) -> MetastoreError:
        """Why no snapshot answers: ANALYZE reaches the current one alone, of another one those near it are named."""
        if not self._snapshots:
            return self._place.explain_missing(self.table)
        found = self._lineage
        wanted = self._id_at(at) if at is not None else None
        if found is None or wanted is None or wanted == found.current or not analyzed:
            only_files = any(one.files_total for one in self._snapshots)
            return NoStatistics(
                self.table, "of columns for this snapshot or one that it was made from" if only_files else ""
            )
        line = found.ancestors(found.current)
        later = [one for one in line[: line.index(wanted)] if one in analyzed] if wanted in line else []
        detail = f"of columns for snapshot {wanted} or one that it was made from"
        return NoStatistics(self.table, detail, analyzed=[*reversed(later)] or [*reversed(analyzed)])

    def _answering(self, at: str | int | datetime | None, among: Sequence[Snapshot]) -> SnapshotAnswer | None:
        """The snapshot asked for, if it was analyzed, else its newest analyzed ancestor.

        Of ancestors that have expired only the manifest knows: the newest of them is taken.
        """
        if not self._snapshots:
            return None
        found, by_id = self._lineage, {one.id: one for one in among}
        wanted = self._id_at(at) if at is not None else found.current if found else self._snapshots[-1].id
        if at is not None and wanted not in by_id and (found is None or wanted not in found.parents):
            raise InvalidArgument("at", f"{at} was not analyzed", _list_analyzed([one.id for one in self._snapshots]))
        ancestors = found.ancestors(wanted) if found and wanted else (wanted or _NEVER_WRITTEN,)
        snapshot = next((by_id[one] for one in ancestors if one in by_id), None)
        if snapshot is None and found is not None and found.has_expired_ancestors(wanted):
            snapshot = next((one for one in reversed(among) if one.id not in found.parents), None)
        if snapshot is None:
            return None
        columns = found.columns(wanted) if found else ()
        is_requested = snapshot.id == (wanted or _NEVER_WRITTEN)
        files = self._count_files(snapshot, None if is_requested else found, wanted)
        current = self._is_current(snapshot)
        return SnapshotAnswer(snapshot, current and is_requested, columns or snapshot.columns, is_requested, files)

    def _id_at(self, at: str | int | datetime) -> str | None:
        if self._lineage is not None and str(at) in self._lineage.references:
            return self._lineage.references[str(at)]
        if str(at).isdecimal():
            return str(at)
        try:
            moment = at if isinstance(at, datetime) else datetime.fromisoformat(str(at).replace("Z", "+00:00"))
        except ValueError:
            return str(at)
        if self._lineage is None:
            raise InvalidArgument(
                "at", "without the table's own metadata no instant is known", "Give a snapshot: see snapshots()."
            )
        return self._lineage.at(moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc))

    def _count_files(self, snapshot: Snapshot, found: Lineage | None, wanted: str | None) -> summary_rows.FileCounts:
        """The data files of an analyzed snapshot; with a lineage, as one of its descendants has them."""
        number = snapshot.files_total
        if found is None or wanted is None:
            return summary_rows.FileCounts(number, number, number)
        is_listed = wanted == found.current and bool(found.listed)
        left = None if is_listed else found.files_left(wanted, snapshot.id, number)
        if is_listed:
            left = self._count_files_left(snapshot, found.listed)
        return summary_rows.FileCounts(number, left, found.files.get(wanted))

    def _count_files_left(self, snapshot: Snapshot, listed: Sequence[DataFile]) -> int:
        """How many data files of an analyzed snapshot are among those that are there now."""
        now = {file.key for file in listed}
        return sum(key in now for key in self._list_keys(snapshot))

    def _list_keys(self, snapshot: Snapshot) -> list[FileKey]:
        """The data files of an analyzed snapshot, in its order."""
        return read_file_keys(self._store.get(snapshot.table_files, [*FileKey._fields]))

    def _is_current(self, snapshot: Snapshot) -> bool | None:
        return None if self._lineage is None else snapshot.id == self._lineage.current


def _list_analyzed(ids: Sequence[str]) -> str:
    """The newest snapshots of those analyzed."""
    others = f" and {len(ids) - _SHOWN} earlier ones" if len(ids) > _SHOWN else ""
    return f"Analyzed: {', '.join(ids[-_SHOWN:])}{others}."
