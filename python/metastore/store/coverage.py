"""Coverage: the statistics of data files that blocks have already."""

from __future__ import annotations

from functools import cache, cached_property, partial
from itertools import chain
from operator import attrgetter
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
        self._keys = [file.key for file in files]
        self.knowledge: dict[FileKey, tuple[FileKnowledge, ...]] = dict.fromkeys(self._keys, ())
        for indexed in blocks:
            self._add_block(indexed)

    def _add_block(self, indexed: BlockFiles) -> None:
        statistics = frozenset(indexed.block.statistics.items())

        @cache  # most files have the same knowledge: one tuple serves them all
        def extend(knowledge: tuple[FileKnowledge, ...], columns: frozenset[ColumnKey]) -> tuple[FileKnowledge, ...]:
            return (*knowledge, FileKnowledge(indexed.depth, columns, statistics))

        for key, file in indexed.ordinals.items():
            knowledge = self.knowledge.get(key)
            if knowledge is not None:
                self.knowledge[key] = extend(knowledge, indexed.known_columns(file))

    @property
    def live_blocks(self) -> list[BlockFiles]:
        """The blocks that list a file of the snapshot."""
        return [indexed for indexed in self.blocks if not indexed.ordinals.keys().isdisjoint(self.knowledge)]

    def holds(self, key: FileKey) -> bool:
        """Return whether any block lists a file of the snapshot."""
        return bool(self.knowledge.get(key))

    def deepest_block(self, key: FileKey) -> BlockFiles | None:
        """Return the deepest, then latest block that lists a file."""
        return self._deepest_blocks.get(key)

    @cached_property
    def _deepest_blocks(self) -> dict[FileKey, BlockFiles]:
        deepest: dict[FileKey, BlockFiles] = {}
        for indexed in sorted(self.blocks, key=attrgetter("depth")):
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
        """Return whether a block has statistics of a live file that the others have not."""
        new_columns = column_keys(block.columns) & column_keys(columns)
        new_statistics = statistics & frozenset(block.statistics.items())
        needed = [(DEPTHS[block.computed], frozenset[tuple[str, int]]())]
        needed += [(DEPTHS[FULL], frozenset({statistic})) for statistic in new_statistics]
        live_keys = read_ordinals(files).keys() & self.knowledge.keys()
        for knowledge in {self.knowledge[key] for key in live_keys}:
            if not knowledge:
                return True
            if _lacks_columns(knowledge, new_columns, needed):
                return True
        return False

    def columns_known(
        self, least: int, statistics: frozenset[tuple[str, int]] = frozenset()
    ) -> Callable[[FileKey], frozenset[ColumnKey]]:
        """Make a function of a file's key that returns its columns with statistics.

        Args:
            least: The least depth of the statistics.
            statistics: User-defined statistics that come with them.
        """
        unite = cache(partial(union_columns, least=least, statistics=statistics))  # most files have the same knowledge

        def find_columns(key: FileKey) -> frozenset[ColumnKey]:
            return unite(self.knowledge.get(key, ()))

        return find_columns

    def count_files(self) -> int:
        """Count the files of the snapshot that some block lists."""
        return sum(map(self.holds, self._keys))

    def count_columns(self, columns: Sequence[Column]) -> int:
        """Count the columns with statistics of some live file."""
        entries = chain.from_iterable(set(self.knowledge.values()))
        column_sets = {entry.columns for entry in entries}
        covered = frozenset[ColumnKey]().union(*column_sets)
        return len(column_keys(columns) & covered)

    def find_redundant_blocks(self) -> set[str]:
        """Name the blocks of which every file and column stands in deeper ones, or in a later one as deep.

        A later one as deep comes of user-defined statistics: it has to have them all.
        """
        full_blocks = [indexed for indexed in self.blocks if indexed.block.computed == FULL]
        shallow_blocks = [indexed for indexed in self.blocks if indexed.block.computed != FULL]
        return {*_find_superseded(full_blocks), *_find_covered(shallow_blocks, full_blocks)}


def _lacks_columns(
    knowledge: Iterable[FileKnowledge],
    columns: frozenset[ColumnKey],
    needed: Iterable[tuple[int, frozenset[tuple[str, int]]]],
) -> bool:
    """Return whether a column lacks statistics of a needed depth, or the user-defined ones that go with it."""
    for least, statistics in needed:
        computed = union_columns(knowledge, least, statistics)
        if not columns <= computed:
            return True
    return False


def _find_superseded(blocks: Sequence[BlockFiles]) -> list[str]:
    """Name the blocks of which every file stands in a later one."""
    if not any(indexed.block.statistics for indexed in blocks):
        return []
    superseded = []
    for number, indexed in enumerate(blocks, 1):
        if _is_superseded(indexed, blocks[number:]):
            superseded.append(indexed.block.id)
    return superseded


def _find_covered(shallow_blocks: Sequence[BlockFiles], deep_blocks: Sequence[BlockFiles]) -> list[str]:
    """Name the blocks of which deeper ones have every file and column."""
    if not shallow_blocks:
        return []
    deep_columns = _unite_columns(deep_blocks)
    return [indexed.block.id for indexed in shallow_blocks if _is_covered(indexed, deep_columns)]


def _unite_columns(blocks: Iterable[BlockFiles]) -> dict[FileKey, frozenset[ColumnKey]]:
    """Unite the columns that blocks know of each data file."""
    united: dict[FileKey, frozenset[ColumnKey]] = {}
    unite = cache(frozenset.union)  # many files have the same columns: one set serves them all
    for indexed in blocks:
        for key, file in indexed.ordinals.items():
            known = united.get(key, frozenset())
            united[key] = unite(known, indexed.known_columns(file))
    return united


def _is_covered(shallow: BlockFiles, deep_columns: Mapping[FileKey, frozenset[ColumnKey]]) -> bool:
    """Return whether deeper blocks know all columns of each of a block's data files."""
    if not shallow.ordinals.keys() <= deep_columns.keys():
        return False
    pairs = set()
    for key, file in shallow.ordinals.items():
        pairs.add((shallow.known_columns(file), deep_columns[key]))
    return all(columns <= deep for columns, deep in pairs)


def _is_superseded(old: BlockFiles, later: Sequence[BlockFiles]) -> bool:
    """Return whether later blocks supersede a block at each of its data files."""
    for key, file in old.ordinals.items():
        superseding = (_supersedes(new, old, key, file) for new in later)
        if not any(superseding):
            return False
    return True


def _supersedes(new: BlockFiles, old: BlockFiles, key: FileKey, file: int) -> bool:
    """Return whether a block has all that an older one has of a data file, `file` there."""
    if key not in new.ordinals:
        return False
    if not old.block.statistics.keys() <= new.block.statistics.keys():
        return False
    return old.known_columns(file) <= new.known_columns(new.ordinals[key])


def union_columns(
    knowledge: Iterable[FileKnowledge], least: int, statistics: frozenset[tuple[str, int]] = frozenset()
) -> frozenset[ColumnKey]:
    """Unite the columns with statistics of at least this depth, and with these user-defined ones."""
    columns = [entry.columns for entry in knowledge if entry.depth >= least and statistics <= entry.statistics]
    return frozenset[ColumnKey]().union(*columns)
