"""The data files that a block has statistics of, by the list that it keeps of them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from metastore.errors import DamagedObject
from metastore.format.data_files import read_file_keys
from metastore.format.manifest import COMPUTED, FOOTER, FULL
from metastore.format.object_schemas import DETAILS
from metastore.store.prefetch import prefetch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from metastore.format.data_files import FileKey
    from metastore.format.manifest import Block
    from metastore.format.table_column import Column
    from metastore.store import Store


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
    """Says of which block a damaged object is."""
    try:
        yield
    except DamagedObject as damage:
        raise BlockDamageError(block, str(damage)) from damage


DEPTHS = {name: rank for rank, name in enumerate(COMPUTED)}


ColumnKey = tuple[str, str]
"""Key and type of a column: statistics under another type are another thing."""


@dataclass(frozen=True)
class BlockFiles:
    """A block and its list of files.

    Attributes:
        block: The manifest's entry.
        files: The rows of its `files` object.
        ordinals: Key of a data file to its ordinal in the block.
        absent: Ordinal of a data file to the columns that the block has no row of: merged blocks may have gaps.
    """

    block: Block
    files: pa.Table
    ordinals: Mapping[FileKey, int]
    absent: Mapping[int, frozenset[ColumnKey]]

    @property
    def depth(self) -> int:
        """How deep its statistics are."""
        return DEPTHS[self.block.computed]

    @cached_property
    def files_without_value_counts(self) -> frozenset[int]:
        """The data files of which all was computed but value lists: earlier versions kept none."""
        if self.block.computed != FULL:
            return frozenset()
        names = zip(*(self.files.column(name).to_pylist() for name in ("file", "frequencies_name")), strict=True)
        return frozenset(file for file, name in names if name is None)

    def depth_of(self, file: int) -> int:
        """How deep the statistics of one of its files are; those without value lists are no deeper than footers."""
        return DEPTHS[FOOTER] if file in self.files_without_value_counts else self.depth

    def known_columns(self, file: int) -> frozenset[ColumnKey]:
        """The columns that the block has a row of for one of its data files."""
        return self._known[self.absent.get(file, frozenset())]

    @cached_property
    def _known(self) -> Mapping[frozenset[ColumnKey], frozenset[ColumnKey]]:
        # Made once for all files that miss the same: of a block with many files it is asked for each.
        columns = column_keys(self.block.columns)
        return {absent: columns - absent if absent else columns for absent in {frozenset(), *self.absent.values()}}


def read_block_files(store: Store, blocks: Iterable[Block]) -> list[BlockFiles]:
    """Read the lists of files of blocks."""
    return list(prefetch(partial(_indexed, store), blocks))


class BlockFilesCache:
    """The lists of files of blocks, read once however often they are asked for."""

    def __init__(self, store: Store) -> None:
        """Begin with none."""
        self._store = store
        self._known: dict[str, BlockFiles] = {}

    def read(self, blocks: Sequence[Block]) -> list[BlockFiles]:
        """One entry a block, in order."""
        fresh = [block for block in blocks if block.id not in self._known]
        self._known |= {one.block.id: one for one in read_block_files(self._store, fresh)}
        return [self._known[block.id] for block in blocks]


def _indexed(store: Store, block: Block) -> BlockFiles:
    with attribute_damage(block.id):
        files = store.get(block.files)
        absent = _gaps(store, block)
    return BlockFiles(block, files, _ordinals(files), absent)


def list_block_objects(indexed: BlockFiles) -> dict[str, int]:
    """Name all objects of a block, with their lengths."""
    refs = [indexed.block.files, *(ref.object for ref in indexed.block.summary)]
    named = {ref.name: ref.length for ref in refs}
    for kind in DETAILS:
        details = (indexed.files.column(f"{kind}_{what}").to_pylist() for what in ("name", "length"))
        named |= {name: length for name, length in zip(*details, strict=True) if name is not None}
    return named


def column_keys(columns: Sequence[Column]) -> frozenset[ColumnKey]:
    """Key and type of each column."""
    return frozenset((column.key, column.type) for column in columns)


def _gaps(store: Store, block: Block) -> dict[int, frozenset[ColumnKey]]:
    """The columns without a row, by data file; nothing is read where the rows are as many as can be."""
    expected = block.files.rows * len(block.columns)
    if sum(ref.object.rows for ref in block.summary) == expected:
        return {}
    present = np.zeros((len(block.columns), block.files.rows), np.bool_)
    for ref in block.summary:
        rows = store.get(ref.object, ["column", "file"])
        places = [rows.column(name).to_numpy() for name in ("column", "file")]
        present[tuple(places)] = True
    keys = [(column.key, column.type) for column in block.columns]

    @cache  # mostly there are few sets of columns that files miss
    def name_columns(bits: bytes) -> frozenset[ColumnKey]:
        missing = np.unpackbits(np.frombuffer(bits, np.uint8), count=len(keys)).astype(bool)
        # A column has two places where the block tells of data files with field ids and of others without.
        present_keys = {keys[column] for column in np.flatnonzero(~missing).tolist()}
        return frozenset(keys[column] for column in np.flatnonzero(missing).tolist()) - present_keys

    by_file = np.ascontiguousarray(np.packbits(~present, axis=0).T)
    return {file: name_columns(by_file[file].tobytes()) for file in np.flatnonzero(by_file.any(axis=1)).tolist()}


def _ordinals(files: pa.Table) -> dict[FileKey, int]:
    return dict(zip(read_file_keys(files), files.column("file").to_pylist(), strict=True))
