"""Stored statistics of the data files of one snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from metastore.format.data_files import FileKey, read_file_keys
from metastore.format.object_schemas import FILES, SUMMARY, TABLE_FILES
from metastore.format.table_column import Column, is_compatible
from metastore.store.block_files import DEPTHS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from metastore.format.data_files import DataFile
    from metastore.format.manifest import Block, Manifest, Snapshot, SummaryRef
    from metastore.store import Store


Partition = list[tuple[str, str]] | None

_WHOLE_BYTES = 1 << 20
"""Objects up to this size are read by one request."""


@dataclass(frozen=True)
class CoveredFiles:
    """The data files that a block has statistics of.

    Attributes:
        block: The block.
        positions: For each file of the block its position in the snapshot's list, or -1.
    """

    block: Block
    positions: np.ndarray

    def find_file(self, file: int) -> int | None:
        """Return the number in the block of a file of the snapshot, or None."""
        numbers = np.flatnonzero(self.positions == file)
        if not len(numbers):
            return None
        return int(numbers[0])


@dataclass(frozen=True)
class SnapshotFiles:
    """The data files of a snapshot, and the blocks with their statistics.

    Attributes:
        files: The snapshot's `table-files`.
        partitions: The partition of each file, or None if no block has it.
        covered: The files of each block, in order of preference.
    """

    files: pa.Table
    partitions: tuple[Partition, ...]
    covered: tuple[CoveredFiles, ...]

    def restrict_to(self, file: int) -> SnapshotFiles:
        """Leave out the statistics of all other files."""
        covered = []
        for files in self.covered:
            positions = np.where(files.positions == file, files.positions, -1)
            if (positions >= 0).any():
                covered.append(CoveredFiles(files.block, positions))
        return SnapshotFiles(self.files, self.partitions, tuple(covered))

    def sources(self, column: Column) -> Iterator[tuple[CoveredFiles, int]]:
        """Find the blocks that have a column, in order of preference: their files, and the column's ordinal."""
        for files in self.covered:
            for ordinal in files.block.ordinals.get(column.key, ()):
                if is_compatible(files.block.columns[ordinal], column):
                    yield files, ordinal

    def is_covered(self) -> np.ndarray:
        """Return for each file whether a block has statistics of it."""
        covered = np.zeros(self.files.num_rows, dtype=bool)
        for files in self.covered:
            covered[files.positions[files.positions >= 0]] = True
        return covered


def read_snapshot_files(store: Store, manifest: Manifest, snapshot: Snapshot) -> SnapshotFiles:
    """Find the blocks that cover the files of a snapshot."""
    return match_files(store, manifest, store.get(snapshot.table_files))


def match_data_files(store: Store, manifest: Manifest, files: Sequence[DataFile]) -> SnapshotFiles:
    """Find the blocks that cover the data files that a table has now."""
    return match_files(store, manifest, _list_files(files))


def match_no_files(files: Sequence[DataFile]) -> SnapshotFiles:
    """List the data files that a table has now, without statistics."""
    return SnapshotFiles(_list_files(files), (None,) * len(files), ())


def match_files(store: Store, manifest: Manifest, files: pa.Table) -> SnapshotFiles:
    """Find the blocks that cover data files."""
    positions = {key: position for position, key in enumerate(read_file_keys(files))}
    partitions: list[Partition] = [None] * files.num_rows
    covered = []
    for block in _sort_by_preference(manifest.blocks):
        block_files = store.get(block.files)
        file_positions = _match_block(block_files, positions)
        if (file_positions >= 0).any():
            covered.append(CoveredFiles(block, file_positions))
            _add_partitions(block_files, file_positions, partitions)
    return SnapshotFiles(files, tuple(partitions), tuple(covered))


def read_statistics(
    store: Store, stored: SnapshotFiles, columns: Sequence[Column], selected: Sequence[Column]
) -> pa.Table:
    """Read the best row of statistics for each live file and selected column.

    Args:
        store: The store.
        stored: The data files.
        columns: The columns of the table, whose positions the rows contain.
        selected: The columns whose rows are read.
    """
    ordinals = {column.key: number for number, column in enumerate(columns) if column in selected}
    parts: list[pa.Table] = []
    for files in stored.covered:
        parts += _read_block_rows(store, files, columns, ordinals)
    if not parts:
        return SUMMARY.empty_table()
    rows = pa.concat_tables(parts)
    files_of_rows = rows.column("file").to_numpy().astype(np.int64)
    columns_of_rows = rows.column("column").to_numpy()
    cells = files_of_rows * len(columns) + columns_of_rows
    _, first = np.unique(cells, return_index=True)  # the preferred blocks came first
    return rows.take(pa.array(first))


def read_column_rows(store: Store, ref: SummaryRef, columns: Sequence[int], names: Sequence[str]) -> pa.Table:
    """Read fields of the rows of columns, and perhaps of others; of a large object, only the row groups needed."""
    if ref.object.length <= _WHOLE_BYTES or len(columns) == len(ref.columns):
        return store.get(ref.object, names)
    part = store.open_part(ref.object)
    groups = {group for column in columns for group in part.groups_of_column(column)}
    return part.read_rows(sorted(groups), names)


def count_known_columns(stored: SnapshotFiles, columns: Sequence[Column]) -> np.ndarray:
    """Count for each live file the columns that have statistics."""
    is_analyzed = np.zeros((stored.files.num_rows, len(columns)), dtype=bool)
    for files in stored.covered:
        keys = _list_analyzed_keys(files.block)
        ordinals = [number for number, column in enumerate(columns) if column.key in keys]
        positions = files.positions[files.positions >= 0]
        is_analyzed[np.ix_(positions, np.array(ordinals, dtype=np.int64))] = True
    counts: np.ndarray = is_analyzed.sum(axis=1)
    return counts


def _list_analyzed_keys(block: Block) -> set[str]:
    ordinals = chain.from_iterable(ref.columns for ref in block.summary)
    return {block.columns[ordinal].key for ordinal in ordinals}


def _list_files(files: Sequence[DataFile]) -> pa.Table:
    fields = [FILES.field(name) for name in (*FileKey._fields, "rows")]
    rows = [{**file.key._asdict(), "rows": file.rows, "deletes": file.deletes} for file in files]
    return pa.Table.from_pylist(rows, pa.schema([*fields, TABLE_FILES.field("deletes")]))


def _sort_by_preference(blocks: Sequence[Block]) -> list[Block]:
    """Sort the deepest blocks first, and the newest first among those of equal depth."""
    newest_first = reversed(blocks)
    return sorted(newest_first, key=lambda block: DEPTHS[block.computed], reverse=True)


def _match_block(block_files: pa.Table, positions: Mapping[FileKey, int]) -> np.ndarray:
    """Return the position of each file of a block in the snapshot's list, or -1."""
    ordinals = block_files.column("file").to_numpy()
    count = ordinals.max(initial=-1) + 1
    block_positions = np.full(count, -1, dtype=np.int64)
    block_positions[ordinals] = [positions.get(key, -1) for key in read_file_keys(block_files)]
    return block_positions


def _add_partitions(block_files: pa.Table, positions: np.ndarray, partitions: list[Partition]) -> None:
    """Add the partitions of a block's files that no earlier block has given."""
    ordinals = block_files.column("file").to_pylist()
    for ordinal, partition in zip(ordinals, block_files.column("partition").to_pylist(), strict=True):
        file = positions[ordinal]
        if file >= 0 and partitions[file] is None:
            partitions[file] = partition


def _read_block_rows(
    store: Store, files: CoveredFiles, columns: Sequence[Column], ordinals: Mapping[str, int]
) -> Iterator[pa.Table]:
    """Read the rows of a block, with the snapshot's positions of files and columns."""
    numbers = _match_columns(files.block, columns, ordinals)
    for ref in files.block.summary:
        selected = [ordinal for ordinal in ref.columns if numbers[ordinal] >= 0]
        if not selected:
            continue
        rows = read_column_rows(store, ref, selected, SUMMARY.names)
        column = numbers[rows.column("column").to_numpy()]
        file = files.positions[rows.column("file").to_numpy()]
        rows = rows.set_column(0, "column", pa.array(column))
        rows = rows.set_column(1, "file", pa.array(file))
        yield rows.filter(pa.array((column >= 0) & (file >= 0)))


def _match_columns(block: Block, columns: Sequence[Column], ordinals: Mapping[str, int]) -> np.ndarray:
    """Return the position of each column of a block in the snapshot, or -1 if it is no selected column."""
    numbers = np.full(len(block.columns), -1, dtype=np.int64)
    for number, analyzed in enumerate(block.columns):
        ordinal = ordinals.get(analyzed.key)
        if ordinal is not None and is_compatible(analyzed, columns[ordinal]):
            numbers[number] = ordinal
    return numbers
