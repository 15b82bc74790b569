"""What is wanted of a detail object: the columns and data files for which a table takes its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from metastore._analyze.table.lists import VALUE_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Longs = NDArray[np.int64]


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

    def chosen(self, rows: pa.Table) -> tuple[pa.Table, Longs, Longs]:
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
    """The wanted value lists of a `frequencies` object, as `LISTED`."""
    chosen, ordinals, floors = part.chosen(rows)
    made = {"column": pa.array(ordinals, pa.int32()), "listed": pa.array(floors, pa.int64())}
    return pa.table([made[name] if name in made else chosen[name] for name in VALUE_ROWS.names], schema=VALUE_ROWS)
