"""Selects the detail objects, and the rows in them, that the columns of a table need."""

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
    from metastore.table_level.block_summaries import RowSource


@dataclass(frozen=True, kw_only=True)
class DetailSlice:
    """The selected rows of one detail object.

    Attributes:
        block: Id of the block that names it.
        ordinals: For each column of the block its ordinal in the snapshot's schema, or -1 to leave it out.
        numbers: A row for each selected column in the order of the block's columns, a column for each file of the
            object: the caller's number for the file's rows, or -1 to leave them out.
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
        """Select rows; return them with the ordinals of their columns in the snapshot's schema and their numbers."""
        columns = rows["column"].to_numpy()
        files = rows["file"].to_numpy()
        is_selected = self.ordinals >= 0
        lines = np.where(is_selected, np.cumsum(is_selected) - 1, -1)
        is_inside = (columns < len(lines)) & (files < self.numbers.shape[1])
        line = np.where(is_inside, lines[np.where(is_inside, columns, 0)], -1)
        numbers = np.where(line >= 0, self.numbers[line, np.where(is_inside, files, 0)], -1)
        has_number = numbers >= 0
        if has_number.all():
            return rows, self.ordinals[columns], numbers
        return rows.filter(pa.array(has_number)), self.ordinals[columns[has_number]], numbers[has_number]


def read_listed_values(part: DetailSlice, rows: pa.Table) -> pa.Table:
    """Return the selected value lists of a `frequencies` object, as `VALUE_ROWS`."""
    selected, ordinals, floors = part.select_rows(rows)
    columns = {name: selected[name] for name in selected.column_names}
    columns["column"] = pa.array(ordinals, pa.int32())
    columns["listed"] = pa.array(floors, pa.int64())
    return pa.table([columns[name] for name in VALUE_ROWS.names], schema=VALUE_ROWS)


def read_detail_object(part: DetailSlice, content: ReadContent, names: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of a detail object, with all fields or the named ones."""
    return decode_detail(part.name, part.sha256, content(), names)


class DetailSelection:
    """The rows of one kind of detail object that a table needs, collected column by column."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._lines: dict[str, dict[int, tuple[int, Longs, Longs]]] = defaultdict(dict)
        self._blocks: dict[str, BlockFiles] = {}

    def add(self, ordinal: int, sources: Sequence[RowSource], numbers: Longs) -> None:
        """Select a column's rows, with a number for each row."""
        start = 0
        for source in sources:
            of_files = numbers[start : start + len(source.files)]
            start += len(source.files)
            block_id = source.block_files.block.id
            self._blocks[block_id] = source.block_files
            self._lines[block_id][source.ordinal] = (ordinal, source.files, of_files)

    def make_slices(self) -> Iterator[DetailSlice]:
        """Yield the objects to read."""
        for block_id, lines in self._lines.items():
            yield from self._slice_block(self._blocks[block_id], lines)

    def _slice_block(
        self, block_files: BlockFiles, lines: dict[int, tuple[int, Longs, Longs]]
    ) -> Iterator[DetailSlice]:
        ordinals = np.full(len(block_files.block.columns), -1, np.int64)
        numbers = np.full((len(lines), block_files.files.num_rows), -1, np.int64)
        for line, (column, (ordinal, files, of_files)) in enumerate(sorted(lines.items())):
            ordinals[column] = ordinal
            numbers[line, files] = of_files
        for ref, files, positions in find_detail_files(block_files.files, self._kind):
            of_object = np.full((len(lines), int(positions.max()) + 1), -1, np.int64)
            of_object[:, positions] = numbers[:, files]
            if (of_object >= 0).any():
                yield DetailSlice(
                    block=block_files.block.id,
                    name=ref.name,
                    length=ref.length,
                    sha256=ref.sha256,
                    ordinals=ordinals,
                    numbers=of_object,
                )
