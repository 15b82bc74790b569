"""The snapshots of an answer: the requested one, and the analyzed one whose statistics answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore.reading.summary_rows import FileCounts, Scope, count_live_rows, parse_instant

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from metastore.format.manifest import Snapshot
    from metastore.format.table_column import Column

    Moment = str | int | datetime
    """A requested snapshot: by its id, a branch, a tag or an instant."""


@dataclass(frozen=True)
class SnapshotAnswer:
    """A requested snapshot, and the analyzed one whose statistics answer for it.

    Attributes:
        snapshot: The analyzed snapshot.
        current: Whether the table is still at this snapshot, or None if unknown.
        columns: The columns of the requested snapshot, whose schema may differ.
        is_requested: Whether both snapshots are the same; the numbers of an ancestor are only approximate.
        files: The numbers of data files of both snapshots.
    """

    snapshot: Snapshot
    current: bool | None
    columns: tuple[Column, ...]
    is_requested: bool
    files: FileCounts

    @property
    def described(self) -> tuple[Column, ...]:
        """The columns, then the expressions that have statistics: a summary has one row for each."""
        return self.columns + self.snapshot.expressions

    @property
    def table_scope(self) -> Scope:
        """The scope of the rows of a summary of the table."""
        snapshot = self.snapshot
        return self._scope(snapshot.physical_rows, snapshot.rows, self.files, exact=snapshot.exact)

    def file_scope(self, file: Mapping[str, Any]) -> Scope:
        """The scope of the rows of a summary of a data file, which is a row of `table-files`."""
        return self._scope(
            file["rows"],
            count_live_rows(file),
            FileCounts.of_same_files(1),
            exact=file["deletes"] is None,
        )

    def _scope(self, physical: int | None, live: int | None, files: FileCounts, *, exact: bool) -> Scope:
        return Scope(
            rows=physical,
            live=live,
            exact=exact and self.is_requested,
            files=files,
            snapshot=self.snapshot.id,
            current=self.current,
            analyzed_at=parse_instant(self.snapshot.analyzed_at),
        )
