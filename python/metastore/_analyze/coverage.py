"""Which statistics of which data files exist already, and what is left to do."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from metastore._analyze.request import FILES, FULL
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from metastore._analyze.request import Request
    from metastore._format.columns import Column
    from metastore._format.manifest import Block
    from metastore._store import Store
    from metastore._tables.model import DataFile

DEPTHS = {"full": 2, "footer": 1, "files": 0}


@dataclass(frozen=True)
class IndexedBlock:
    """A block and its list of files.

    Attributes:
        block: The manifest's entry.
        files: The rows of its `files` object.
        ordinals: Key of a data file (path, size) to its ordinal in the block.
    """

    block: Block
    files: pa.Table
    ordinals: Mapping[tuple[str, int], int]


@dataclass(frozen=True)
class Work:
    """Files that miss the same columns.

    Attributes:
        columns: What to compute.
        files: Of which files.
        listed: Whether some block lists the files already.
    """

    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    listed: bool


class DamagedBlock(Exception):  # noqa: N818 - caught by the pipeline, never shown
    """A block whose objects are not what was written.

    Attributes:
        block: Its id.
        reason: What is wrong.
    """

    def __init__(self, block: str, reason: str) -> None:
        super().__init__(block, reason)
        self.block = block
        self.reason = reason


def index(store: Store, blocks: Iterable[Block]) -> list[IndexedBlock]:
    """Read the lists of files of blocks.

    Args:
        store: Where they are.
        blocks: The blocks.

    Returns:
        One entry a block, in order.

    Raises:
        DamagedBlock: A list of files is not what was written.

    Example:
        >>> index(store, store.read().blocks)[0].ordinals  # doctest: +SKIP
        {('/warehouse/t/data/a.parquet', 1234): 0}
    """
    return [_indexed(store, block) for block in blocks]


def _indexed(store: Store, block: Block) -> IndexedBlock:
    try:
        files = store.get(block.files)
    except DamagedObject as damage:
        raise DamagedBlock(block.id, str(damage)) from damage
    return IndexedBlock(block, files, _ordinals(files))


def _ordinals(files: pa.Table) -> dict[tuple[str, int], int]:
    names = (files.column(name).to_pylist() for name in ("path", "size", "file"))
    return {(path, size): file for path, size, file in zip(*names, strict=True)}


class Coverage:
    """What a set of blocks knows about the files of a snapshot."""

    def __init__(self, blocks: Sequence[IndexedBlock], files: Sequence[DataFile]) -> None:
        self.blocks = blocks
        self._holders: dict[tuple[str, int], list[int]] = defaultdict(list)
        self._live = {(file.path, file.size) for file in files}
        for place, indexed in enumerate(blocks):
            for key in indexed.ordinals.keys() & self._live:
                self._holders[key].append(place)

    def holders(self, file: DataFile) -> tuple[int, ...]:
        """Return the places of the blocks that hold a file, ascending.

        Example:
            >>> Coverage([], []).holders(DataFile("a", 1, 1, "parquet"))  # doctest: +SKIP
            ()
        """
        return tuple(self._holders.get((file.path, file.size), ()))

    def best(self, file: DataFile) -> IndexedBlock | None:
        """Return the deepest, then latest block that holds a file.

        Example:
            >>> Coverage([], []).best(DataFile("a", 1, 1, "parquet")) is None  # doctest: +SKIP
            True
        """
        places = self.holders(file)
        if not places:
            return None
        return self.blocks[max(places, key=lambda place: (DEPTHS[self.blocks[place].block.computed], place))]

    def gains(self, block: Block, files: pa.Table) -> bool:
        """Tell whether a block knows something of a live file that the others do not.

        Args:
            block: The block.
            files: Its list of files.

        Example:
            >>> Coverage([], files).gains(block, rows)  # doctest: +SKIP
            True
        """
        offered = {(column.key, column.type) for column in block.columns}
        for key in _ordinals(files):
            if key in self._live:
                places = self._holders.get(key, [])
                if not places or offered - self._known(places, DEPTHS[block.computed]):
                    return True
        return False

    def columns(self, columns: Sequence[Column]) -> int:
        """Count the columns with statistics of some live file.

        Example:
            >>> Coverage([], []).columns([])
            0
        """
        known = self._known({place for places in self._holders.values() for place in places}, 0)
        return sum(1 for column in columns if (column.key, column.type) in known)

    def _known(self, places: Iterable[int], least: int) -> set[tuple[str, str]]:
        return {
            (column.key, column.type)
            for place in places
            if DEPTHS[self.blocks[place].block.computed] >= least
            for column in self.blocks[place].block.columns
        }

    def missing(self, request: Request) -> list[Work]:
        """Find what a request asks for and no block holds.

        Args:
            request: The resolved statement.

        Returns:
            Files grouped by the columns they miss; columns are empty where only the file itself is to be listed.

        Example:
            >>> Coverage([], files).missing(request)[0].columns  # doctest: +SKIP
        """
        groups: dict[tuple[int, ...], list[DataFile]] = defaultdict(list)
        for file in request.files:
            groups[self.holders(file)].append(file)
        work = []
        for places, files in groups.items():
            columns = self._uncovered(places, request)
            if columns or not places:
                work.append(Work(columns, tuple(files), bool(places)))
        return work

    def _uncovered(self, places: Iterable[int], request: Request) -> tuple[Column, ...]:
        if request.depth == FILES:
            return ()
        known = self._known(places, DEPTHS[request.depth])
        return tuple(column for column in request.columns if (column.key, column.type) not in known)

    def redundant(self) -> set[str]:
        """Name the shallow blocks of which every file and column stands in a deeper one.

        Returns:
            Ids of blocks that a commit may leave out.

        Example:
            >>> Coverage([], []).redundant()
            set()
        """
        deep = [indexed for indexed in self.blocks if indexed.block.computed == FULL]
        known: dict[tuple[str, int], set[tuple[str, str]]] = defaultdict(set)
        for indexed in deep:
            columns = {(column.key, column.type) for column in indexed.block.columns}
            for key in indexed.ordinals:
                known[key] |= columns
        found = set()
        for indexed in self.blocks:
            if indexed.block.computed == FULL:
                continue
            columns = {(column.key, column.type) for column in indexed.block.columns}
            if all(key in known and columns <= known[key] for key in indexed.ordinals):
                found.add(indexed.block.id)
        return found
