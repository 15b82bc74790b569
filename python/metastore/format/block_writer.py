"""Writes a block: detail objects and summaries first, the list of files last."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa

from metastore.format import object_layout
from metastore.format.data_files import describe_detail
from metastore.format.manifest import Block, SummaryRef, describe_block
from metastore.format.object_layout import DETAIL_LAYOUTS, ZONED_FILES
from metastore.format.object_schemas import DETAILS, FILES, fill_schema
from metastore.format.objects import BLOCK_KEY
from metastore.format.summary_pages import PAGE_ROWS_KEY
from metastore.format.zones import IDENTITIES_KEY, build_zones, hash_identities, read_row_counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.format.data_files import DataFile
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
        self.width = object_layout.columns_per_object(files.num_rows, zoned)
        """Most columns of one object."""
        self._put = put
        self._columns = tuple(columns)
        self._files = files
        self._zoned = zoned
        self._columns_per_group = object_layout.columns_per_row_group(files.num_rows, zoned)
        self._page_rows = object_layout.page_rows(files.num_rows, zoned)
        self._rows_of_files = read_row_counts(files)
        self._summary: list[SummaryRef] = []
        self._zones: list[_ZonesOfColumns] = []

    def add(self, rows: pa.Table, ordinals: Sequence[int]) -> None:
        """Write the summary rows of these columns (at least one row)."""
        extra = {}
        if self._page_rows:
            extra[PAGE_ROWS_KEY] = str(self._page_rows)
        row_groups = object_layout.size_row_groups(rows["column"], self._columns_per_group)
        ref = self._put("summary", rows, row_groups, extra)
        self._summary.append(SummaryRef(ref, tuple(ordinals)))
        if self._page_rows:
            zones = build_zones(rows, self._columns, self._rows_of_files)
            self._zones.append(_ZonesOfColumns(zones, tuple(ordinals)))

    def finish(
        self, computed: str, statistics: Mapping[str, int], table: TableIdentity, settings: Mapping[str, Any]
    ) -> Block:
        """Write zones and the list of data files, and return the block."""
        summary = tuple(self._summary)
        zones = self._put_zones()
        block_settings = dict(settings)
        block_settings.pop("statistics", None)
        block_id = str(uuid.uuid4())
        description = describe_block(
            block_id=block_id,
            computed=computed,
            columns=self._columns,
            objects=(*summary, *zones),
            table=table,
            settings=block_settings,
            statistics=dict(statistics),
        )
        return Block(
            id=block_id,
            computed=computed,
            columns=self._columns,
            files=self._put_files(description),
            summary=summary,
            statistics=dict(statistics),
            zones=zones,
        )

    def _put_zones(self) -> tuple[SummaryRef, ...]:
        """Write the zones; an object has the zones of several summary objects."""
        parts = [zones for zones in self._zones if zones.rows.num_rows]
        step = max(1, object_layout.ZONED_COLUMNS // self.width)
        references = []
        for start in range(0, len(parts), step):
            ref = self._put_zones_together(parts[start : start + step])
            references.append(ref)
        return tuple(references)

    def _put_zones_together(self, parts: Sequence[_ZonesOfColumns]) -> SummaryRef:
        rows = pa.concat_tables(part.rows for part in parts)
        ordinals = chain.from_iterable(part.ordinals for part in parts)
        ref = self._put("zones", rows, object_layout.size_row_groups(rows["column"], 1), {})
        return SummaryRef(ref, tuple(ordinals))

    def _put_files(self, description: str) -> ObjectRef:
        extra = {BLOCK_KEY: description}
        count = self._files.num_rows
        if count > self._zoned:
            extra[IDENTITIES_KEY] = hash_identities(self._files)
        row_groups = list(filter(None, [count]))
        return self._put("files", self._files, row_groups, extra)


class _ZonesOfColumns(NamedTuple):
    """Rows of `zones` and the ordinals of their columns."""

    rows: pa.Table
    ordinals: tuple[int, ...]


@dataclass(frozen=True)
class BlockContent:
    """The content of a block to be written.

    Attributes:
        computed: `full`, `footer` or `files`.
        columns: The columns to which ordinals refer.
        files: The data files, in the order of their ordinals.
        rows: Rows of `summary` and of detail objects, by kind; without `frequencies` if values were not counted.
        statistics: User-defined statistics that were computed or failed: name to version.
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
    details = {}
    for kind in DETAILS:
        if kind in content.rows:
            ref = write_detail(put, kind, content.rows[kind])
            if ref is not None:
                details[kind] = ref
    files = _build_files_table(content.files, details)
    writer = BlockWriter(put, content.columns, files, zoned)
    _write_summary(writer, content)
    return writer.finish(content.computed, content.statistics, table, settings)


def write_detail(put: PutObject, kind: str, rows: pa.Table) -> ObjectRef | None:
    """Write a detail object if it has rows; an empty `frequencies` object records that values were counted."""
    if not rows.num_rows and kind != "frequencies":
        return None
    ordered, row_groups = DETAIL_LAYOUTS[kind](rows)
    return put(kind, ordered, row_groups, {})


def _write_summary(writer: BlockWriter, content: BlockContent) -> None:
    rows = content.rows.get("summary")
    if rows is None or rows.num_rows == 0:
        return
    ordered = rows.sort_by([("column", "ascending"), ("file", "ascending")])
    row_ordinals = ordered.column("column").to_numpy()
    for first in range(0, len(content.columns), writer.width):
        end = min(first + writer.width, len(content.columns))
        start_row, end_row = row_ordinals.searchsorted([first, first + writer.width])
        if start_row < end_row:
            writer.add(ordered.slice(start_row, end_row - start_row), range(first, end))


def _build_files_table(files: Sequence[DataFile], details: Mapping[str, ObjectRef]) -> pa.Table:
    """Build the rows of `files`; each row names every detail object."""
    count = len(files)
    values: dict[str, Sequence[Any]] = {"file": range(count)}
    for name in ("path", "size", "modified", "rows"):
        values[name] = list(map(attrgetter(name), files))
    values["partition"] = [list(file.partition.items()) or None for file in files]
    for kind, ref in details.items():
        for name, value in describe_detail(kind, ref).items():
            values[name] = [value] * count
        values[f"{kind}_file"] = range(count)
    return fill_schema(FILES, values, count)
