"""Which statistics of which data files exist already, and what is left to do."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from metastore.format.manifest import FILES, FULL
from metastore.store.block_files import DEPTHS, BlockFiles, ColumnKey, _keys, _ordinals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from metastore.adapters.table_facts import DataFile
    from metastore.format.data_files import FileKey
    from metastore.format.manifest import Block
    from metastore.format.table_column import Column
    from metastore.pipeline.request import AnalyzeRequest

FileKnowledge = tuple[int, frozenset[ColumnKey], frozenset[tuple[str, int]]]
"""Depth of a block, the columns that it knows of one data file, and its user-defined statistics with versions."""


@dataclass(frozen=True)
class MissingStatistics:
    """Files that miss the same columns.

    Attributes:
        columns: What to compute.
        files: Of which files.
        is_listed: Whether some block lists the files already.
    """

    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    is_listed: bool


class Coverage:
    """What a set of blocks knows about the files of a snapshot."""

    def __init__(self, blocks: Sequence[BlockFiles], files: Sequence[DataFile]) -> None:
        self.blocks = blocks
        self._holders: dict[FileKey, list[FileKnowledge]] = {file.key: [] for file in files}
        for indexed in blocks:
            own = frozenset(indexed.block.statistics.items())
            for key in indexed.ordinals.keys() & self._holders.keys():
                file = indexed.ordinals[key]
                self._holders[key].append((indexed.depth_of(file), indexed.known_columns(file), own))

    @property
    def live_blocks(self) -> list[BlockFiles]:
        """The blocks that list a file of the snapshot."""
        return [indexed for indexed in self.blocks if not indexed.ordinals.keys().isdisjoint(self._holders)]

    def holds(self, file: DataFile) -> bool:
        """Tell whether any block lists a file."""
        return bool(self._holders[file.key])

    def deepest_block(self, file: DataFile) -> BlockFiles | None:
        """Return the deepest, then latest block that lists a file."""
        return self._deepest_blocks.get(file.key)

    @cached_property
    def _deepest_blocks(self) -> dict[FileKey, BlockFiles]:
        found: dict[FileKey, BlockFiles] = {}
        for indexed in sorted(self.blocks, key=lambda one: one.depth):
            found |= dict.fromkeys(indexed.ordinals.keys() & self._holders.keys(), indexed)
        return found

    def adds_knowledge(
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

    def columns_known_elsewhere(self, block: Block) -> Callable[[FileKey], frozenset[ColumnKey] | None]:
        """What is known of the live files as deep as in a block, with all of its user-defined statistics."""
        own, least = frozenset(block.statistics.items()), DEPTHS[block.computed]

        @cache
        def known(holders: tuple[FileKnowledge, ...]) -> frozenset[ColumnKey]:
            return _known((holder for holder in holders if own <= holder[2]), least)

        def told(key: FileKey) -> frozenset[ColumnKey] | None:
            holders = self._holders.get(key)
            return known(tuple(holders)) if holders else None

        return told

    def count_columns(self, columns: Sequence[Column]) -> int:
        """Count the columns with statistics of some live file."""
        sets = {known for holders in self._holders.values() for _, known, _ in holders}
        return len(_keys(columns) & frozenset[ColumnKey]().union(*sets))

    def find_missing(self, request: AnalyzeRequest) -> list[MissingStatistics]:
        """Find what a request asks for and no block holds."""
        groups: dict[tuple[FileKnowledge, ...], list[DataFile]] = defaultdict(list)
        for file in request.files:
            groups[tuple(self._holders[file.key])].append(file)
        work: dict[tuple[tuple[Column, ...], bool], list[DataFile]] = defaultdict(list)
        for holders, files in groups.items():
            columns = _uncovered(holders, request)
            if columns or not holders:
                work[columns, bool(holders)] += files
        return [MissingStatistics(columns, tuple(files), is_listed) for (columns, is_listed), files in work.items()]

    def find_redundant_blocks(self) -> set[str]:
        """Name the blocks of which every file and column stands in deeper ones, or in a later one as deep.

        A later one as deep comes of user-defined statistics: it has to have them all.
        """
        shallow = [indexed for indexed in self.blocks if indexed.block.computed != FULL]
        if not shallow:
            return self._superseded()
        deep: dict[FileKey, frozenset[ColumnKey]] = defaultdict(frozenset)
        for indexed in self.blocks:
            if indexed.block.computed == FULL:
                for key, file in indexed.ordinals.items():
                    deep[key] |= indexed.known_columns(file)
        return self._superseded() | {
            indexed.block.id
            for indexed in shallow
            if all(key in deep and indexed.known_columns(file) <= deep[key] for key, file in indexed.ordinals.items())
        }

    def _superseded(self) -> set[str]:
        full = [indexed for indexed in self.blocks if indexed.block.computed == FULL]
        if not any(indexed.block.statistics or indexed.files_without_value_counts for indexed in full):
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
        and old.known_columns(file) <= new.known_columns(new.ordinals[key])
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
