"""Which statistics of which data files exist already."""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

from metastore.format.manifest import FULL
from metastore.store.block_files import DEPTHS, BlockFiles, ColumnKey, _ordinals, column_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from metastore.adapters.table_facts import DataFile
    from metastore.format.data_files import FileKey
    from metastore.format.manifest import Block
    from metastore.format.table_column import Column


class FileKnowledge(NamedTuple):
    """How deep a block is, which columns it knows of one data file, and its user-defined statistics with versions."""

    depth: int
    columns: frozenset[ColumnKey]
    statistics: frozenset[tuple[str, int]] = frozenset()


class Coverage:
    """What a set of blocks knows about the files of a snapshot."""

    def __init__(self, blocks: Sequence[BlockFiles], files: Sequence[DataFile]) -> None:
        self.blocks = blocks
        self.knowledge: dict[FileKey, list[FileKnowledge]] = {file.key: [] for file in files}
        for indexed in blocks:
            own = frozenset(indexed.block.statistics.items())
            for key in indexed.ordinals.keys() & self.knowledge.keys():
                file = indexed.ordinals[key]
                self.knowledge[key].append(FileKnowledge(indexed.depth_of(file), indexed.known_columns(file), own))

    @property
    def live_blocks(self) -> list[BlockFiles]:
        """The blocks that list a file of the snapshot."""
        return [indexed for indexed in self.blocks if not indexed.ordinals.keys().isdisjoint(self.knowledge)]

    def holds(self, file: DataFile) -> bool:
        """Tell whether any block lists a file."""
        return bool(self.knowledge[file.key])

    def deepest_block(self, file: DataFile) -> BlockFiles | None:
        """Return the deepest, then latest block that lists a file."""
        return self._deepest_blocks.get(file.key)

    @cached_property
    def _deepest_blocks(self) -> dict[FileKey, BlockFiles]:
        found: dict[FileKey, BlockFiles] = {}
        for indexed in sorted(self.blocks, key=lambda one: one.depth):
            found |= dict.fromkeys(indexed.ordinals.keys() & self.knowledge.keys(), indexed)
        return found

    def adds_knowledge(
        self,
        block: Block,
        files: pa.Table,
        columns: Sequence[Column],
        statistics: frozenset[tuple[str, int]] = frozenset(),
    ) -> bool:
        """Tell whether a block knows something of a live file that the others do not."""
        offered = column_keys(block.columns) & column_keys(columns)
        own = statistics & frozenset(block.statistics.items())
        for known in {tuple(self.knowledge[key]) for key in _ordinals(files).keys() & self.knowledge.keys()}:
            if not known or offered - union_columns(known, DEPTHS[block.computed]):
                return True
            if any(offered - union_columns((k for k in known if one in k.statistics), DEPTHS[FULL]) for one in own):
                return True
        return False

    def columns_known(
        self, least: int, statistics: frozenset[tuple[str, int]] = frozenset()
    ) -> Callable[[FileKey], frozenset[ColumnKey] | None]:
        """What is known of the live files at least so deep, with all of some user-defined statistics."""

        @cache  # of most files the same is known
        def union(knowledge: tuple[FileKnowledge, ...]) -> frozenset[ColumnKey]:
            return union_columns((one for one in knowledge if statistics <= one.statistics), least)

        def find_columns(key: FileKey) -> frozenset[ColumnKey] | None:
            knowledge = self.knowledge.get(key)
            return union(tuple(knowledge)) if knowledge else None

        return find_columns

    def count_columns(self, columns: Sequence[Column]) -> int:
        """Count the columns with statistics of some live file."""
        sets = {one.columns for knowledge in self.knowledge.values() for one in knowledge}
        return len(column_keys(columns) & frozenset[ColumnKey]().union(*sets))

    def find_redundant_blocks(self) -> set[str]:
        """Name the blocks of which every file and column stands in deeper ones, or in a later one as deep.

        A later one as deep comes of user-defined statistics: it has to have them all.
        """
        shallow = [indexed for indexed in self.blocks if indexed.block.computed != FULL]
        if not shallow:
            return self._superseded()
        deep: dict[FileKey, frozenset[ColumnKey]] = {}
        join = cache(frozenset.union)  # many files have the same columns: one set serves them all
        for indexed in self.blocks:
            if indexed.block.computed == FULL:
                for key, file in indexed.ordinals.items():
                    known = indexed.known_columns(file)
                    deep[key] = join(deep[key], known) if key in deep else known
        return self._superseded() | {indexed.block.id for indexed in shallow if _stands_deeper(indexed, deep)}

    def _superseded(self) -> set[str]:
        full = [indexed for indexed in self.blocks if indexed.block.computed == FULL]
        if not any(indexed.block.statistics or indexed.files_without_value_counts for indexed in full):
            return set()
        return {
            old.block.id
            for place, old in enumerate(full)
            if all(_stands_in(full[place + 1 :], old, key, file) for key, file in old.ordinals.items())
        }


def _stands_deeper(shallow: BlockFiles, deep: Mapping[FileKey, frozenset[ColumnKey]]) -> bool:
    pairs = {(shallow.known_columns(file), deep.get(key)) for key, file in shallow.ordinals.items()}
    return all(other is not None and known <= other for known, other in pairs)


def _stands_in(later: Sequence[BlockFiles], old: BlockFiles, key: FileKey, file: int) -> bool:
    return any(
        key in new.ordinals
        and old.block.statistics.keys() <= new.block.statistics.keys()
        and new.depth_of(new.ordinals[key]) >= old.depth_of(file)
        and old.known_columns(file) <= new.known_columns(new.ordinals[key])
        for new in later
    )


def union_columns(knowledge: Iterable[FileKnowledge], least: int) -> frozenset[ColumnKey]:
    """The columns that are known at least so deep."""
    return frozenset[ColumnKey]().union(*(one.columns for one in knowledge if one.depth >= least))
