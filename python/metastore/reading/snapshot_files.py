"""Rows of statistics as the store holds them, for the live files of one snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.data_files import FileKey, read_file_keys
from metastore.format.object_schemas import FILES, SUMMARY, TABLE_FILES
from metastore.format.table_column import Column, is_compatible
from metastore.store.block_files import DEPTHS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from metastore.adapters.table_facts import DataFile
    from metastore.format.manifest import Block, Manifest, Snapshot, SummaryRef
    from metastore.store import Store


Partition = list[tuple[str, str]] | None

_WHOLE_BYTES = 1 << 20  # objects up to this come by one request


@dataclass(frozen=True)
class SnapshotFiles:
    """The data files of a snapshot and the blocks that know them.

    Attributes:
        files: The snapshot's `table-files`.
        partitions: The partition of each file, where a block tells it.
        covered: For each block in order of preference, the ordinal in `files` of each of its own files (-1: not live).
    """

    files: pa.Table
    partitions: tuple[Partition, ...]
    covered: tuple[tuple[Block, np.ndarray], ...]

    def restrict_to(self, ordinal: int) -> SnapshotFiles:
        """The same with a single file."""
        covered = ((block, np.where(live == ordinal, live, -1)) for block, live in self.covered)
        held = tuple((block, live) for block, live in covered if (live >= 0).any())
        return SnapshotFiles(self.files, self.partitions, held)

    def sources(self, column: Column) -> Iterator[tuple[Block, int, np.ndarray]]:
        """The blocks that have a column, in order of preference: its ordinal in each, and the block's live files."""
        for block, live in self.covered:
            for ordinal, known in enumerate(block.columns):
                if is_compatible(known, column):
                    yield block, ordinal, live

    def is_covered(self) -> np.ndarray:
        """For each file, whether a block knows it."""
        covered = np.zeros(self.files.num_rows, dtype=bool)
        for _, live in self.covered:
            covered[live[live >= 0]] = True
        return covered


def read_snapshot_files(store: Store, manifest: Manifest, snapshot: Snapshot) -> SnapshotFiles:
    """Finds which blocks cover which files of a snapshot."""
    return match_files(store, manifest, store.get(snapshot.table_files))


def match_data_files(store: Store, manifest: Manifest, files: Sequence[DataFile]) -> SnapshotFiles:
    """Finds which blocks cover the data files that a table has now."""
    return match_files(store, manifest, _list_files(files))


def match_no_files(files: Sequence[DataFile]) -> SnapshotFiles:
    """The data files that a table has now, of which nothing is known."""
    return SnapshotFiles(_list_files(files), (None,) * len(files), ())


def match_files(store: Store, manifest: Manifest, files: pa.Table) -> SnapshotFiles:
    """Finds which blocks cover which data files."""
    position = {key: i for i, key in enumerate(read_file_keys(files))}
    partitions: list[Partition] = [None] * files.num_rows
    covered = []
    for block in _preferred(manifest.blocks):
        live = _live_files(store.get(block.files), position, partitions)
        if (live >= 0).any():
            covered.append((block, live))
    return SnapshotFiles(files, tuple(partitions), tuple(covered))


def read_statistics(
    store: Store, stored: SnapshotFiles, columns: Sequence[Column], wanted: Sequence[Column]
) -> pa.Table:
    """The best row of statistics for each live file and wanted column."""
    ordinals = {column.key: i for i, column in enumerate(columns) if column in wanted}
    parts = [part for block, live in stored.covered for part in _rows(store, block, live, columns, ordinals)]
    if not parts:
        return _empty()
    rows = pa.concat_tables(parts)
    places = rows.column("file").to_numpy().astype(np.int64) * len(columns) + rows.column("column").to_numpy()
    _, first = np.unique(places, return_index=True)  # the preferred blocks came first
    return rows.take(pa.array(first))


def read_column_rows(store: Store, ref: SummaryRef, columns: Sequence[int], names: Sequence[str]) -> pa.Table:
    """Fields of the rows of some columns, perhaps among others: of a large object no more is read than it takes."""
    if ref.object.length <= _WHOLE_BYTES or len(columns) == len(ref.columns):
        return store.get(ref.object, names)
    part = store.open_part(ref.object)
    groups = sorted({group for column in columns for group in part.groups_of_column(column)})
    return part.read_rows(groups, names)


def count_known_columns(stored: SnapshotFiles, columns: Sequence[Column]) -> np.ndarray:
    """For each live file, how many of the columns have statistics."""
    known = np.zeros((stored.files.num_rows, len(columns)), dtype=bool)
    for block, live in stored.covered:
        held = {i for ref in block.summary for i in ref.columns}
        keys = {block.columns[i].key for i in held}
        ordinals = [i for i, column in enumerate(columns) if column.key in keys]
        known[np.ix_(live[live >= 0], np.array(ordinals, dtype=np.int64))] = True
    counts: np.ndarray = known.sum(axis=1)
    return counts


def _list_files(files: Sequence[DataFile]) -> pa.Table:
    names = pa.schema([*(FILES.field(name) for name in (*FileKey._fields, "rows")), TABLE_FILES.field("deletes")])
    listed = [{**file.key._asdict(), "rows": file.rows, "deletes": file.deletes} for file in files]
    return pa.Table.from_pylist(listed, names)


def _preferred(blocks: Sequence[Block]) -> list[Block]:
    order = sorted(range(len(blocks)), key=lambda i: (DEPTHS[blocks[i].computed], i), reverse=True)
    return [blocks[i] for i in order]


def _live_files(files: pa.Table, position: Mapping[FileKey, int], partitions: list[Partition]) -> np.ndarray:
    ordinals = files.column("file").to_pylist()
    live = np.full(max(ordinals, default=-1) + 1, -1, dtype=np.int64)
    for ordinal, key, partition in zip(
        ordinals, read_file_keys(files), files.column("partition").to_pylist(), strict=True
    ):
        at = position.get(key)
        if at is not None:
            live[ordinal] = at
            partitions[at] = partitions[at] if partitions[at] is not None else partition
    return live


def _rows(
    store: Store, block: Block, live: np.ndarray, columns: Sequence[Column], ordinals: Mapping[str, int]
) -> Iterator[pa.Table]:
    matching = np.full(len(block.columns), -1, dtype=np.int64)
    for i, stored in enumerate(block.columns):
        at = ordinals.get(stored.key)
        if at is not None and is_compatible(stored, columns[at]):
            matching[i] = at
    for ref in block.summary:
        wanted = [i for i in ref.columns if matching[i] >= 0]
        if wanted:
            rows = read_column_rows(store, ref, wanted, SUMMARY.names)
            column = matching[rows.column("column").to_numpy()]
            file = live[rows.column("file").to_numpy()]
            rows = rows.set_column(0, "column", pa.array(column)).set_column(1, "file", pa.array(file))
            yield rows.filter(pc.and_(pc.greater_equal(rows["column"], 0), pc.greater_equal(rows["file"], 0)))


def _empty() -> pa.Table:
    return SUMMARY.empty_table()
