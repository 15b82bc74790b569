"""Writing a block: its summaries, what a block of very many data files has beside them, and the list of its files."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from metastore._format import layout
from metastore._format.manifest import Block, describe_block
from metastore._format.objects import BLOCK_KEY
from metastore._format.pages import PAGE_ROWS_KEY
from metastore._format.references import SummaryRef
from metastore._format.zones import IDENTITIES_KEY, build_zones, hash_identities, read_row_counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore._format.columns import Column
    from metastore._format.manifest import TableIdentity
    from metastore._format.objects import ObjectRef


class PutObject(Protocol):
    """Writes one object, in the driver or in an executor."""

    def __call__(self, kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str]) -> ObjectRef:
        """Write a table as an object of a kind; return its reference."""


class BlockWriter:
    """Writes one block: its summaries, some columns at a time, then zones, and the list of its files last."""

    def __init__(
        self, put: PutObject, columns: Sequence[Column], files: pa.Table, zoned: int = layout.ZONED_FILES
    ) -> None:
        """Write nothing yet."""
        self.width = layout.columns_per_object(files.num_rows, zoned)
        """So many columns belong into one object."""
        self._written: list[SummaryRef] = []
        self._put, self._columns, self._files, self._zoned = put, tuple(columns), files, zoned
        self._per_group = layout.columns_per_row_group(files.num_rows, zoned)
        self._page_rows = layout.page_rows(files.num_rows, zoned)
        self._rows_of_files = read_row_counts(files)
        self._zones: list[tuple[pa.Table, tuple[int, ...]]] = []

    def add(self, rows: pa.Table, ordinals: Sequence[int]) -> None:
        """Write the rows of some columns, of which there are some."""
        extra = {PAGE_ROWS_KEY: str(self._page_rows)} if self._page_rows else {}
        ref = self._put("summary", rows, layout.size_row_groups(rows["column"], self._per_group), extra)
        self.keep(SummaryRef(ref, tuple(ordinals)), rows)

    def keep(self, ref: SummaryRef, rows: pa.Table) -> None:
        """Name an object that is there, as if its rows had been added."""
        self._written.append(ref)
        if self._page_rows:
            self._zones.append((build_zones(rows, self._columns, self._rows_of_files), ref.columns))

    def finish(
        self, computed: str, statistics: Mapping[str, int], table: TableIdentity, settings: Mapping[str, Any]
    ) -> Block:
        """Write the rest."""
        name, own, summary, zones = str(uuid.uuid4()), dict(statistics), tuple(self._written), self._put_zones()
        made_with = {key: value for key, value in settings.items() if key != "statistics"}
        footer = describe_block(name, computed, self._columns, (*summary, *zones), table, made_with, own)
        extra = {BLOCK_KEY: footer}
        if self._files.num_rows > self._zoned:
            extra[IDENTITIES_KEY] = hash_identities(self._files)
        files = self._put("files", self._files, [self._files.num_rows] if self._files.num_rows else [], extra)
        return Block(name, computed, self._columns, files, summary, own, zones)

    def _put_zones(self) -> tuple[SummaryRef, ...]:
        parts = [(rows, ordinals) for rows, ordinals in self._zones if rows.num_rows]
        step = max(1, layout.ZONED_COLUMNS // self.width)
        return tuple(self._of_zones(parts[start : start + step]) for start in range(0, len(parts), step))

    def _of_zones(self, parts: Sequence[tuple[pa.Table, tuple[int, ...]]]) -> SummaryRef:
        rows = pa.concat_tables(rows for rows, _ in parts)
        ref = self._put("zones", rows, layout.size_row_groups(rows["column"], 1), {})
        return SummaryRef(ref, tuple(ordinal for _, ordinals in parts for ordinal in ordinals))
