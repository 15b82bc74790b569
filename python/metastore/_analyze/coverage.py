"""Which statistics of which data files exist already, and what is left to do."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from metastore._analyze.ahead import prefetch
from metastore._analyze.request import FILES, FOOTER, FULL
from metastore._format.files import read_file_keys
from metastore._format.manifest import COMPUTED
from metastore._format.schemas import DETAILS
from metastore._store.damaged import attribute_damage
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from metastore._analyze.request import AnalyzeRequest
    from metastore._format.columns import Column
    from metastore._format.files import FileKey
    from metastore._format.manifest import Block
    from metastore._store import Store
    from metastore._tables.model import DataFile

DEPTHS = {name: rank for rank, name in enumerate(COMPUTED)}


ColumnKey = tuple[str, str]
"""Key and type of a column: statistics under another type are another thing."""
FileKnowledge = tuple[int, frozenset[ColumnKey], frozenset[tuple[str, int]]]
"""Depth of a block, the columns that it knows of one data file, and its user-defined statistics with versions."""


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
    def uncounted(self) -> frozenset[int]:
        """The data files of which all was computed but value lists: earlier versions kept none."""
        if self.block.computed != FULL:
            return frozenset()
        names = zip(*(self.files.column(name).to_pylist() for name in ("file", "frequencies_name")), strict=True)
        return frozenset(file for file, name in names if name is None)

    def depth_of(self, file: int) -> int:
        """How deep the statistics of one of its files are; those without value lists are no deeper than footers."""
        return DEPTHS[FOOTER] if file in self.uncounted else self.depth

    def known(self, file: int) -> frozenset[ColumnKey]:
        """The columns that the block has a row of for one of its data files."""
        absent = self.absent.get(file)
        return self._columns - absent if absent else self._columns

    @cached_property
    def _columns(self) -> frozenset[ColumnKey]:
        # Made once: of a block with many files it is asked for each.
        return _keys(self.block.columns)


@dataclass(frozen=True)
class MissingStatistics:
    """Files that miss the same columns.

    Attributes:
        columns: What to compute.
        files: Of which files.
        listed: Whether some block lists the files already.
    """

    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    listed: bool


def read_block_files(store: Store, blocks: Iterable[Block]) -> list[BlockFiles]:
    """Read the lists of files of blocks."""
    return list(prefetch(partial(_indexed, store), blocks))


class BlockFilesCache:
    """The lists of files of blocks, read once however often they are asked for."""

    def __init__(self, store: Store) -> None:
        """Begin with none."""
        self._store = store
        self._known: dict[str, BlockFiles] = {}

    def of(self, blocks: Sequence[Block]) -> list[BlockFiles]:
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


def _keys(columns: Sequence[Column]) -> frozenset[ColumnKey]:
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
        limits = zip(places, present.shape, strict=True)
        if any(len(some) and not 0 <= some.min() <= some.max() < most for some, most in limits):
            raise DamagedObject(ref.object.name, "it has rows of columns or data files that its block does not have")
        present[tuple(places)] = True
    keys = [(column.key, column.type) for column in block.columns]
    found: dict[int, list[ColumnKey]] = defaultdict(list)
    for column, file in np.argwhere(~present).tolist():
        found[file].append(keys[column])
    return {file: frozenset(columns) for file, columns in found.items()}


def _ordinals(files: pa.Table) -> dict[FileKey, int]:
    return dict(zip(read_file_keys(files), files.column("file").to_pylist(), strict=True))


class Coverage:
    """What a set of blocks knows about the files of a snapshot."""

    def __init__(self, blocks: Sequence[BlockFiles], files: Sequence[DataFile]) -> None:
        self.blocks = blocks
        self._holders: dict[FileKey, list[FileKnowledge]] = {file.key: [] for file in files}
        for indexed in blocks:
            own = frozenset(indexed.block.statistics.items())
            for key in indexed.ordinals.keys() & self._holders.keys():
                file = indexed.ordinals[key]
                self._holders[key].append((indexed.depth_of(file), indexed.known(file), own))

    @property
    def used(self) -> list[BlockFiles]:
        """The blocks that list a file of the snapshot."""
        return [indexed for indexed in self.blocks if not indexed.ordinals.keys().isdisjoint(self._holders)]

    def holds(self, file: DataFile) -> bool:
        """Tell whether any block lists a file."""
        return bool(self._holders[file.key])

    def best(self, file: DataFile) -> BlockFiles | None:
        """Return the deepest, then latest block that lists a file."""
        return self._best.get(file.key)

    @cached_property
    def _best(self) -> dict[FileKey, BlockFiles]:
        found: dict[FileKey, BlockFiles] = {}
        for indexed in sorted(self.blocks, key=lambda one: one.depth):
            found |= dict.fromkeys(indexed.ordinals.keys() & self._holders.keys(), indexed)
        return found

    def gains(
        self,
        block: Block,
        files: pa.Table,
        columns: Sequence[Column],
        statistics: frozenset[tuple[str, int]] = frozenset(),
    ) -> bool:
        """Tell whether a block knows something of a live file that the others do not."""
        offered = _keys(block.columns) & _keys(columns)
        own = statistics & frozenset(block.statistics.items())
        for key in _ordinals(files).keys() & self._holders.keys():
            holders = self._holders[key]
            if not holders or offered - _known(holders, DEPTHS[block.computed]):
                return True
            if any(offered - _known((h for h in holders if one in h[2]), DEPTHS[FULL]) for one in own):
                return True
        return False

    def told(self, block: Block) -> Callable[[FileKey], frozenset[ColumnKey] | None]:
        """What is known of the live files as deep as in a block, with all of its user-defined statistics."""
        own, least = frozenset(block.statistics.items()), DEPTHS[block.computed]

        @cache
        def known(holders: tuple[FileKnowledge, ...]) -> frozenset[ColumnKey]:
            return _known((holder for holder in holders if own <= holder[2]), least)

        def told(key: FileKey) -> frozenset[ColumnKey] | None:
            holders = self._holders.get(key)
            return known(tuple(holders)) if holders else None

        return told

    def columns(self, columns: Sequence[Column]) -> int:
        """Count the columns with statistics of some live file."""
        sets = {known for holders in self._holders.values() for _, known, _ in holders}
        return len(_keys(columns) & frozenset[ColumnKey]().union(*sets))

    def missing(self, request: AnalyzeRequest) -> list[MissingStatistics]:
        """Find what a request asks for and no block holds."""
        groups: dict[tuple[FileKnowledge, ...], list[DataFile]] = defaultdict(list)
        for file in request.files:
            groups[tuple(self._holders[file.key])].append(file)
        work: dict[tuple[tuple[Column, ...], bool], list[DataFile]] = defaultdict(list)
        for holders, files in groups.items():
            columns = _uncovered(holders, request)
            if columns or not holders:
                work[columns, bool(holders)] += files
        return [MissingStatistics(columns, tuple(files), listed) for (columns, listed), files in work.items()]

    def redundant(self) -> set[str]:
        """Name the blocks of which every file and column stands in deeper ones, or in a later one as deep.

        A later one as deep comes of user-defined statistics: it has to have them all.
        """
        shallow = [indexed for indexed in self.blocks if indexed.block.computed != FULL]
        if not shallow:
            return self._outdone()
        deep: dict[FileKey, frozenset[ColumnKey]] = defaultdict(frozenset)
        for indexed in self.blocks:
            if indexed.block.computed == FULL:
                for key, file in indexed.ordinals.items():
                    deep[key] |= indexed.known(file)
        return self._outdone() | {
            indexed.block.id
            for indexed in shallow
            if all(key in deep and indexed.known(file) <= deep[key] for key, file in indexed.ordinals.items())
        }

    def _outdone(self) -> set[str]:
        full = [indexed for indexed in self.blocks if indexed.block.computed == FULL]
        if not any(indexed.block.statistics or indexed.uncounted for indexed in full):
            return set()
        return {
            old.block.id
            for place, old in enumerate(full)
            if all(_stands_in(full[place + 1 :], old, key, file) for key, file in old.ordinals.items())
        }


def _stands_in(later: Sequence[BlockFiles], old: BlockFiles, key: FileKey, file: int) -> bool:
    return any(
        key in new.ordinals
        and old.block.statistics.keys() <= new.block.statistics.keys()
        and new.depth_of(new.ordinals[key]) >= old.depth_of(file)
        and old.known(file) <= new.known(new.ordinals[key])
        for new in later
    )


def _uncovered(holders: Iterable[FileKnowledge], request: AnalyzeRequest) -> tuple[Column, ...]:
    if request.depth == FILES:
        return ()
    known = _known(holders, DEPTHS[request.depth])
    if request.depth == FULL:
        for one in request.statistics:
            known &= _known((holder for holder in holders if one in holder[2]), DEPTHS[FULL])
    return tuple(column for column in request.columns if (column.key, column.type) not in known)


def _known(holders: Iterable[FileKnowledge], least: int) -> frozenset[ColumnKey]:
    return frozenset[ColumnKey]().union(*(known for depth, known, _ in holders if depth >= least))
