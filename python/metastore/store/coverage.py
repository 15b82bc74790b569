"""Coverage: the statistics of data files that blocks have already."""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

from metastore.format.manifest import FULL
from metastore.store.block_files import DEPTHS, BlockFiles, ColumnKey, column_keys, read_ordinals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from metastore.format.data_files import DataFile, FileKey
    from metastore.format.manifest import Block
    from metastore.format.table_column import Column


class FileKnowledge(NamedTuple):
    """The statistics that a block has of one data file.

    Attributes:
        depth: Their depth.
        columns: The columns that have them.
        statistics: The block's user-defined statistics with their versions.
    """

    depth: int
    columns: frozenset[ColumnKey]
    statistics: frozenset[tuple[str, int]] = frozenset()


class Coverage:
    """The statistics that blocks have of the files of a snapshot."""

    def __init__(self, blocks: Sequence[BlockFiles], files: Sequence[DataFile]) -> None:
        self.blocks = blocks
        self.knowledge: dict[FileKey, list[FileKnowledge]] = {file.key: [] for file in files}
        for indexed in blocks:
            self._add_block(indexed)

    def _add_block(self, indexed: BlockFiles) -> None:
        statistics = frozenset(indexed.block.statistics.items())
        for key in indexed.ordinals.keys() & self.knowledge.keys():
            file = indexed.ordinals[key]
            knowledge = FileKnowledge(indexed.depth, indexed.known_columns(file), statistics)
            self.knowledge[key].append(knowledge)

    @property
    def live_blocks(self) -> list[BlockFiles]:
        """The blocks that list a file of the snapshot."""
        return [indexed for indexed in self.blocks if not indexed.ordinals.keys().isdisjoint(self.knowledge)]

    def holds(self, file: DataFile) -> bool:
        """Whether any block lists a file."""
        return bool(self.knowledge[file.key])

    def deepest_block(self, file: DataFile) -> BlockFiles | None:
        """Return the deepest, then latest block that lists a file."""
        return self._deepest_blocks.get(file.key)

    @cached_property
    def _deepest_blocks(self) -> dict[FileKey, BlockFiles]:
        deepest: dict[FileKey, BlockFiles] = {}
        for indexed in sorted(self.blocks, key=lambda block_files: block_files.depth):
            live_keys = indexed.ordinals.keys() & self.knowledge.keys()
            deepest |= dict.fromkeys(live_keys, indexed)
        return deepest

    def adds_knowledge(
        self,
        block: Block,
        files: pa.Table,
        columns: Sequence[Column],
        statistics: frozenset[tuple[str, int]] = frozenset(),
    ) -> bool:
        """Whether a block has statistics of a live file that the others have not."""
        new_columns = column_keys(block.columns) & column_keys(columns)
        new_statistics = statistics & frozenset(block.statistics.items())
        live_keys = read_ordinals(files).keys() & self.knowledge.keys()
        for knowledge in {tuple(self.knowledge[key]) for key in live_keys}:
            if not knowledge or new_columns - union_columns(knowledge, DEPTHS[block.computed]):
                return True
            if any(new_columns - _columns_with_statistic(knowledge, statistic) for statistic in new_statistics):
                return True
        return False

    def columns_known(
        self, least: int, statistics: frozenset[tuple[str, int]] = frozenset()
    ) -> Callable[[FileKey], frozenset[ColumnKey] | None]:
        """Make a function of a file's key that returns its columns with statistics; None for a file without any.

        Args:
            least: The least depth of the statistics.
            statistics: User-defined statistics that come with them.
        """

        @cache  # most files have the same knowledge
        def unite(knowledge: tuple[FileKnowledge, ...]) -> frozenset[ColumnKey]:
            with_statistics = [entry for entry in knowledge if statistics <= entry.statistics]
            return union_columns(with_statistics, least)

        def find_columns(key: FileKey) -> frozenset[ColumnKey] | None:
            knowledge = self.knowledge.get(key)
            return unite(tuple(knowledge)) if knowledge else None

        return find_columns

    def count_files(self, files: Iterable[DataFile]) -> int:
        """Count the files that some block lists."""
        return sum(map(self.holds, files))

    def count_columns(self, columns: Sequence[Column]) -> int:
        """Count the columns with statistics of some live file."""
        column_sets: set[frozenset[ColumnKey]] = set()
        for knowledge in self.knowledge.values():
            column_sets.update(entry.columns for entry in knowledge)
        covered = frozenset[ColumnKey]().union(*column_sets)
        return len(column_keys(columns) & covered)

    def find_redundant_blocks(self) -> set[str]:
        """Name the blocks of which every file and column stands in deeper ones, or in a later one as deep.

        A later one as deep comes of user-defined statistics: it has to have them all.
        """
        redundant = self._find_superseded()
        shallow = [indexed for indexed in self.blocks if indexed.block.computed != FULL]
        if shallow:
            deep_columns = _unite_columns(self._full_blocks)
            redundant.update(indexed.block.id for indexed in shallow if _is_covered(indexed, deep_columns))
        return redundant

    @property
    def _full_blocks(self) -> list[BlockFiles]:
        return [indexed for indexed in self.blocks if indexed.block.computed == FULL]

    def _find_superseded(self) -> set[str]:
        """Name the full blocks of which every file stands in a later one."""
        full = self._full_blocks
        if not any(indexed.block.statistics for indexed in full):
            return set()
        superseded = set()
        for number, indexed in enumerate(full):
            if _is_superseded(indexed, full[number + 1 :]):
                superseded.add(indexed.block.id)
        return superseded


def _unite_columns(blocks: Iterable[BlockFiles]) -> dict[FileKey, frozenset[ColumnKey]]:
    """Unite the columns that blocks know of each data file."""
    united: dict[FileKey, frozenset[ColumnKey]] = {}
    unite = cache(frozenset.union)  # many files have the same columns: one set serves them all
    for indexed in blocks:
        for key, file in indexed.ordinals.items():
            columns = indexed.known_columns(file)
            united[key] = unite(united[key], columns) if key in united else columns
    return united


def _is_covered(shallow: BlockFiles, deep_columns: Mapping[FileKey, frozenset[ColumnKey]]) -> bool:
    """Whether deeper blocks know all columns of each of a block's data files."""
    pairs = {(shallow.known_columns(file), deep_columns.get(key)) for key, file in shallow.ordinals.items()}
    return all(deep is not None and columns <= deep for columns, deep in pairs)


def _is_superseded(old: BlockFiles, later: Sequence[BlockFiles]) -> bool:
    """Whether later blocks supersede a block at each of its data files."""
    return all(any(_supersedes(new, old, key, file) for new in later) for key, file in old.ordinals.items())


def _supersedes(new: BlockFiles, old: BlockFiles, key: FileKey, file: int) -> bool:
    """Whether a block has all that an older one has of a data file, `file` there."""
    if key not in new.ordinals or not old.block.statistics.keys() <= new.block.statistics.keys():
        return False
    return old.known_columns(file) <= new.known_columns(new.ordinals[key])


def _columns_with_statistic(knowledge: Iterable[FileKnowledge], statistic: tuple[str, int]) -> frozenset[ColumnKey]:
    with_statistic = [entry for entry in knowledge if statistic in entry.statistics]
    return union_columns(with_statistic, DEPTHS[FULL])


def union_columns(knowledge: Iterable[FileKnowledge], least: int) -> frozenset[ColumnKey]:
    """Unite the columns with statistics of at least this depth."""
    columns = [entry.columns for entry in knowledge if entry.depth >= least]
    return frozenset[ColumnKey]().union(*columns)
