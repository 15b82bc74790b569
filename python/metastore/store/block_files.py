"""The data files of blocks, as the blocks list them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from metastore.errors import DamagedObject
from metastore.format.data_files import list_detail_references, read_file_keys
from metastore.format.manifest import COMPUTED
from metastore.store.prefetch import prefetch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from metastore.format.data_files import FileKey
    from metastore.format.manifest import Block
    from metastore.format.table_column import Column
    from metastore.store.stored_objects import StoredObjects


class BlockDamageError(Exception):
    """A block with an object that is not what was written.

    Attributes:
        block: Its id.
        reason: What is wrong.
    """

    def __init__(self, block: str, reason: str) -> None:
        super().__init__(block, reason)
        self.block = block
        self.reason = reason


@contextmanager
def attribute_damage(block: str) -> Iterator[None]:
    """Name the block of a damaged object in the error."""
    try:
        yield
    except DamagedObject as damage:
        raise BlockDamageError(block, str(damage)) from damage


DEPTHS = {name: rank for rank, name in enumerate(COMPUTED)}


ColumnKey = tuple[str, str]
"""Key and type of a column: statistics of another type are those of another column."""


@dataclass(frozen=True)
class BlockFiles:
    """A block and its list of files.

    Attributes:
        block: The manifest's entry.
        files: The rows of its `files` object.
        ordinals: Key of a data file to its ordinal in the block.
        absent: Ordinal of a data file to the columns without a row in the block: merged blocks may have gaps.
    """

    block: Block
    files: pa.Table
    ordinals: Mapping[FileKey, int]
    absent: Mapping[int, frozenset[ColumnKey]]

    @property
    def depth(self) -> int:
        """The depth of its statistics."""
        return DEPTHS[self.block.computed]

    def known_columns(self, file: int) -> frozenset[ColumnKey]:
        """Return the columns that have a row for one of the block's data files."""
        return self._columns_without[self.absent.get(file, frozenset())]

    @cached_property
    def _columns_without(self) -> Mapping[frozenset[ColumnKey], frozenset[ColumnKey]]:
        """Each set of absent columns to the other columns: one set serves many data files."""
        columns = column_keys(self.block.columns)
        columns_without = {frozenset[ColumnKey](): columns}
        for absent in set(self.absent.values()):
            if absent:
                columns_without[absent] = columns - absent
        return columns_without


def read_block_files(store: StoredObjects, blocks: Iterable[Block]) -> list[BlockFiles]:
    """Read the lists of files of blocks."""
    return list(prefetch(partial(_read_block, store), blocks))


class BlockFilesCache:
    """The lists of files of blocks, each read once."""

    def __init__(self, store: StoredObjects) -> None:
        self._store = store
        self._block_files: dict[str, BlockFiles] = {}

    def read(self, blocks: Sequence[Block]) -> list[BlockFiles]:
        """Read the lists of files of blocks, in their order."""
        new = [block for block in blocks if block.id not in self._block_files]
        for indexed in read_block_files(self._store, new):
            self._block_files[indexed.block.id] = indexed
        return [self._block_files[block.id] for block in blocks]


def _read_block(store: StoredObjects, block: Block) -> BlockFiles:
    with attribute_damage(block.id):
        files = store.get(block.files)
        absent = _find_absent_columns(store, block)
    return BlockFiles(block, files, read_ordinals(files), absent)


def list_block_objects(indexed: BlockFiles) -> dict[str, int]:
    """Name all objects of a block, with their lengths."""
    refs = [indexed.block.files, *(ref.object for ref in indexed.block.summary)]
    objects = [*refs, *list_detail_references(indexed.files)]
    return {stored.name: stored.length for stored in objects}


def column_keys(columns: Sequence[Column]) -> frozenset[ColumnKey]:
    """Return key and type of each column."""
    return frozenset((column.key, column.type) for column in columns)


def _find_absent_columns(store: StoredObjects, block: Block) -> dict[int, frozenset[ColumnKey]]:
    """Find the columns without a row, by data file; nothing is read if there are as many rows as can be."""
    expected = block.files.rows * len(block.columns)
    if sum(ref.object.rows for ref in block.summary) == expected:
        return {}
    present = np.zeros((len(block.columns), block.files.rows), np.bool_)
    for ref in block.summary:
        rows = store.get(ref.object, ["column", "file"])
        present[rows.column("column").to_numpy(), rows.column("file").to_numpy()] = True
    keys = [(column.key, column.type) for column in block.columns]

    @cache  # mostly there are few sets of columns that files lack
    def name_columns(bits: bytes) -> frozenset[ColumnKey]:
        is_missing = np.unpackbits(np.frombuffer(bits, np.uint8), count=len(keys)).astype(bool)
        missing_keys = [keys[column] for column in np.flatnonzero(is_missing).tolist()]
        # A column has two ordinals if the block has data files with field ids and others without.
        present_keys = [keys[column] for column in np.flatnonzero(~is_missing).tolist()]
        return frozenset(missing_keys).difference(present_keys)

    bits_by_file = np.ascontiguousarray(np.packbits(~present, axis=0).T)
    absent = {}
    for file in np.flatnonzero(bits_by_file.any(axis=1)).tolist():
        absent[file] = name_columns(bits_by_file[file].tobytes())
    return absent


def number_cells(rows: pa.Table) -> NDArray[np.int64]:
    """Give each pair of a column and a data file a number, in the order of columns and then of data files."""
    columns = rows["column"].to_numpy().astype(np.int64)
    files = rows["file"].to_numpy()
    cells: NDArray[np.int64] = (columns << 32) | files
    return cells


def read_ordinals(files: pa.Table) -> dict[FileKey, int]:
    """Read the ordinal of each data file that a block lists."""
    return dict(zip(read_file_keys(files), files.column("file").to_pylist(), strict=True))
