"""From which detail objects the rows of a table's columns come."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.objects import decode_detail
from metastore.store.block_damage import attribute_damage
from metastore.table_level.value_rows import VALUE_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Longs = NDArray[np.int64]
    from collections.abc import Iterator, Sequence

    from metastore.spark_jobs.task_store import ReadContent
    from metastore.store.block_files import BlockFiles
    from metastore.table_level.live_statistics import RowSource


@dataclass(frozen=True)
class DetailSlice:
    """The wanted rows of one detail object.

    Attributes:
        block: Id of the block that names it.
        name: Its name.
        length: Its length.
        sha256: Its digest.
        ordinals: For each column of the block its place in the snapshot's schema; -1: not wanted.
        numbers: A row for each wanted column in the order of the block's, a column for each file of the object: a
            number that goes with the file's rows; -1: not wanted.
    """

    block: str
    name: str
    length: int
    sha256: str
    ordinals: Longs
    numbers: Longs

    is_summed: ClassVar[bool] = False

    @property
    def columns(self) -> frozenset[int]:
        """See `ValueSource`."""
        return frozenset(self.ordinals[self.ordinals >= 0].tolist())

    def read_values(self, content: ReadContent) -> Iterator[pa.Table]:
        """See `ValueSource`."""
        with attribute_damage(self.block):
            yield read_listed_values(self, read_detail_object(self, content))

    def select_rows(self, rows: pa.Table) -> tuple[pa.Table, Longs, Longs]:
        """Choose the wanted rows."""
        columns, files = rows["column"].to_numpy(), rows["file"].to_numpy()
        lines = np.where(self.ordinals >= 0, np.cumsum(self.ordinals >= 0) - 1, -1)
        known = (columns < len(lines)) & (files < self.numbers.shape[1])
        line = np.where(known, lines[np.where(known, columns, 0)], -1)
        numbers = np.where(line >= 0, self.numbers[line, np.where(known, files, 0)], -1)
        keep = numbers >= 0
        if keep.all():
            return rows, self.ordinals[columns], numbers
        return rows.filter(pa.array(keep)), self.ordinals[columns[keep]], numbers[keep]


def read_listed_values(part: DetailSlice, rows: pa.Table) -> pa.Table:
    """The wanted value lists of a `frequencies` object, as `VALUE_ROWS`."""
    chosen, ordinals, floors = part.select_rows(rows)
    made = {"column": pa.array(ordinals, pa.int32()), "listed": pa.array(floors, pa.int64())}
    return pa.table([made[name] if name in made else chosen[name] for name in VALUE_ROWS.names], schema=VALUE_ROWS)


def read_detail_object(part: DetailSlice, content: ReadContent) -> pa.Table:
    """The rows of a detail object."""
    return decode_detail(part.name, part.sha256, content())


class DetailSelection:
    """The rows of one kind of detail object that a table takes, collected column by column."""

    def __init__(self, kind: str) -> None:
        """Begin with none."""
        self._kind = kind
        self._lines: dict[str, dict[int, tuple[int, Longs, Longs]]] = defaultdict(dict)
        self._blocks: dict[str, BlockFiles] = {}

    def add(self, ordinal: int, sources: Sequence[RowSource], numbers: Longs) -> None:
        """Take a column's rows."""
        at = 0
        for source in sources:
            of_files = numbers[at : at + len(source.files)]
            at += len(source.files)
            self._blocks[source.indexed.block.id] = source.indexed
            self._lines[source.indexed.block.id][source.ordinal] = (ordinal, source.files, of_files)

    def make_slices(self) -> Iterator[DetailSlice]:
        """The objects to read."""
        for block, lines in self._lines.items():
            yield from self._of_block(self._blocks[block], lines)

    def _of_block(self, indexed: BlockFiles, lines: dict[int, tuple[int, Longs, Longs]]) -> Iterator[DetailSlice]:
        ordinals = np.full(len(indexed.block.columns), -1, np.int64)
        numbers = np.full((len(lines), indexed.files.num_rows), -1, np.int64)
        for line, (column, (ordinal, files, of_files)) in enumerate(sorted(lines.items())):
            ordinals[column] = ordinal
            numbers[line, files] = of_files
        for name, length, digest, files, inside in _objects(indexed.files, self._kind):
            of_object = np.full((len(lines), int(inside.max()) + 1), -1, np.int64)
            of_object[:, inside] = numbers[:, files]
            if (of_object >= 0).any():
                yield DetailSlice(indexed.block.id, name, length, digest, ordinals, of_object)


def _objects(files: pa.Table, kind: str) -> Iterator[tuple[str, int, str, Longs, Longs]]:
    """Each object's name, length and digest, its files by their ordinals in the block, and those in the object."""
    files = files.filter(pc.is_valid(files[f"{kind}_name"])).combine_chunks()
    if not files.num_rows:
        return
    codes = files[f"{kind}_name"].combine_chunks().dictionary_encode().indices.to_numpy()
    ordinals, inside = files["file"].to_numpy(), files[f"{kind}_file"].to_numpy().astype(np.int64)
    for code in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == code)
        first = files.slice(int(rows[0]), 1).to_pylist()[0]
        named = (first[f"{kind}_name"], first[f"{kind}_length"], first[f"{kind}_sha256"])
        yield (*named, ordinals[rows], inside[rows])
