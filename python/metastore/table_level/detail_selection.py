"""From which detail objects the rows of a table's columns come."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from metastore.format.data_files import find_detail_files
from metastore.format.objects import decode_detail
from metastore.store.block_files import attribute_damage
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
        return frozenset(self.ordinals[self.ordinals >= 0].tolist())

    def read_values(self, content: ReadContent) -> Iterator[pa.Table]:
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


def read_detail_object(part: DetailSlice, content: ReadContent, names: Sequence[str] | None = None) -> pa.Table:
    """The rows of a detail object, with all of their fields or some."""
    return decode_detail(part.name, part.sha256, content(), names)


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
        for ref, files, inside in find_detail_files(indexed.files, self._kind):
            of_object = np.full((len(lines), int(inside.max()) + 1), -1, np.int64)
            of_object[:, inside] = numbers[:, files]
            if (of_object >= 0).any():
                yield DetailSlice(indexed.block.id, ref.name, ref.length, ref.sha256, ordinals, of_object)
