"""Writes a block: detail objects and summaries first, the list of files last."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from metastore.format import object_layout
from metastore.format.data_files import describe_detail
from metastore.format.manifest import Block, SummaryRef, describe_block
from metastore.format.object_layout import DETAIL_LAYOUTS, ZONED_FILES
from metastore.format.object_schemas import DETAILS, FILES
from metastore.format.objects import BLOCK_KEY
from metastore.format.summary_pages import PAGE_ROWS_KEY
from metastore.format.zones import IDENTITIES_KEY, build_zones, hash_identities, read_row_counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.adapters.table_facts import DataFile
    from metastore.format.manifest import TableIdentity
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column


class PutObject(Protocol):
    """Writes one object, in the driver or in an executor."""

    def __call__(self, kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str]) -> ObjectRef:
        """Write a table as an object of a kind; return its reference."""


class BlockWriter:
    """Writes one block: its summaries, some columns at a time, then zones, and the list of its files last."""

    def __init__(
        self, put: PutObject, columns: Sequence[Column], files: pa.Table, zoned: int = object_layout.ZONED_FILES
    ) -> None:
        """Write nothing yet."""
        self.width = object_layout.columns_per_object(files.num_rows, zoned)
        """So many columns belong into one object."""
        self._written: list[SummaryRef] = []
        self._put, self._columns, self._files, self._zoned = put, tuple(columns), files, zoned
        self._per_group = object_layout.columns_per_row_group(files.num_rows, zoned)
        self._page_rows = object_layout.page_rows(files.num_rows, zoned)
        self._rows_of_files = read_row_counts(files)
        self._zones: list[tuple[pa.Table, tuple[int, ...]]] = []

    def add(self, rows: pa.Table, ordinals: Sequence[int]) -> None:
        """Write the rows of some columns, of which there are some."""
        extra = {PAGE_ROWS_KEY: str(self._page_rows)} if self._page_rows else {}
        ref = self._put("summary", rows, object_layout.size_row_groups(rows["column"], self._per_group), extra)
        self.add_reference(SummaryRef(ref, tuple(ordinals)), rows)

    def add_reference(self, ref: SummaryRef, rows: pa.Table) -> None:
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
        step = max(1, object_layout.ZONED_COLUMNS // self.width)
        return tuple(self._of_zones(parts[start : start + step]) for start in range(0, len(parts), step))

    def _of_zones(self, parts: Sequence[tuple[pa.Table, tuple[int, ...]]]) -> SummaryRef:
        rows = pa.concat_tables(rows for rows, _ in parts)
        ref = self._put("zones", rows, object_layout.size_row_groups(rows["column"], 1), {})
        return SummaryRef(ref, tuple(ordinal for _, ordinals in parts for ordinal in ordinals))


@dataclass(frozen=True)
class BlockContent:
    """What a block will hold.

    Attributes:
        computed: `full`, `footer` or `files`.
        columns: The columns that ordinals mean.
        files: The data files, in the order of their ordinals.
        rows: Rows of `summary` and of detail objects, by kind; none of `frequencies` where values were not counted.
        statistics: User-defined statistics that were computed, or tried: name to version.
    """

    computed: str
    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    rows: Mapping[str, pa.Table] = field(default_factory=dict)
    statistics: Mapping[str, int] = field(default_factory=dict)


def write_block(
    put: PutObject,
    content: BlockContent,
    table: TableIdentity,
    settings: Mapping[str, Any],
    *,
    zoned: int = ZONED_FILES,
) -> Block:
    """Write the objects of a block."""
    made = {kind: write_detail(put, kind, content.rows[kind]) for kind in DETAILS if kind in content.rows}
    details = {kind: ref for kind, ref in made.items() if ref is not None}
    writer = BlockWriter(put, content.columns, _files_table(content.files, details), zoned)
    _write_summary(writer, content)
    return writer.finish(content.computed, content.statistics, table, settings)


def write_detail(put: PutObject, kind: str, rows: pa.Table) -> ObjectRef | None:
    """Write a detail object if there are rows for it; one of value lists says also without that values were counted."""
    return put(kind, *DETAIL_LAYOUTS[kind](rows), {}) if rows.num_rows or kind == "frequencies" else None


def _write_summary(writer: BlockWriter, content: BlockContent) -> None:
    if "summary" not in content.rows or content.rows["summary"].num_rows == 0:
        return
    ordered = content.rows["summary"].sort_by([("column", "ascending"), ("file", "ascending")])
    ordinals = ordered.column("column").to_numpy()
    for first in range(0, len(content.columns), writer.width):
        start, end = ordinals.searchsorted([first, first + writer.width])
        if start < end:
            held = range(first, min(first + writer.width, len(content.columns)))
            writer.add(ordered.slice(start, end - start), held)


def _files_table(files: Sequence[DataFile], details: Mapping[str, ObjectRef]) -> pa.Table:
    count = len(files)
    partitions = [list(file.partition.items()) or None for file in files]
    values = {
        "file": range(count),
        "path": [file.path for file in files],
        "size": [file.size for file in files],
        "modified": [file.modified for file in files],
        "rows": [file.rows for file in files],
        "partition": partitions,
    }
    for kind, ref in details.items():
        values |= {name: [value] * count for name, value in describe_detail(kind, ref).items()}
        values[f"{kind}_file"] = range(count)
    return pa.table([pa.array(values.get(field.name, [None] * count), field.type) for field in FILES], schema=FILES)
