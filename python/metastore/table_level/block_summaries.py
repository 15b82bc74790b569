"""Reads rows of the summary objects of blocks, split by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from metastore.store.block_files import attribute_damage
from metastore.store.prefetch import prefetch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from metastore.format.manifest import SummaryRef
    from metastore.store import Store
    from metastore.store.block_files import BlockFiles

    Longs = NDArray[np.int64]


T = TypeVar("T")


@dataclass(frozen=True)
class RowSource:
    """The data files of one block that rows of a column describe.

    Attributes:
        ordinal: The column's ordinal in the block.
        files: The ordinals of the rows' data files in the block.
    """

    block_files: BlockFiles
    ordinal: int
    files: Longs


@dataclass(frozen=True)
class SummaryRows(Generic[T]):
    """Rows of one column of one block.

    Attributes:
        target: The caller's value for the column.
        ordinal: The column's ordinal in the block.
        files: The ordinals of the rows' data files in the block.
    """

    block_files: BlockFiles
    target: T
    ordinal: int
    files: Longs
    rows: pa.Table


@dataclass(frozen=True)
class _SummaryPart(Generic[T]):
    """A summary object of a block.

    Attributes:
        targets: The caller's values for columns, by their ordinals in the block.
    """

    block_files: BlockFiles
    targets: Mapping[int, T]
    ref: SummaryRef

    def split(self, rows: pa.Table) -> Iterator[SummaryRows[T]]:
        """Split the rows of the object by column."""
        columns = rows.column("column").to_numpy().astype(np.int64)
        files = rows.column("file").to_numpy().astype(np.int64)
        ordinals = sorted(self.targets.keys() & set(self.ref.columns))
        starts = columns.searchsorted(ordinals, "left").tolist()
        ends = columns.searchsorted(ordinals, "right").tolist()
        for ordinal, start, end in zip(ordinals, starts, ends, strict=True):
            yield SummaryRows(
                block_files=self.block_files,
                target=self.targets[ordinal],
                ordinal=ordinal,
                files=files[start:end],
                rows=rows.slice(start, end - start),
            )


def read_summaries(
    store: Store,
    selection: Iterable[tuple[BlockFiles, Mapping[int, T]]],
    names: Sequence[str],
) -> Iterator[SummaryRows[T]]:
    """Read fields of the summaries of selected columns, block by block; the caller names a value for each column."""
    parts: list[_SummaryPart[T]] = []
    for block_files, targets in selection:
        refs = [ref for ref in block_files.block.summary if not targets.keys().isdisjoint(ref.columns)]
        parts += [_SummaryPart(block_files, targets, ref) for ref in refs]

    def read(part: _SummaryPart[T]) -> pa.Table:
        with attribute_damage(part.block_files.block.id):
            return store.get(part.ref.object, names)

    for part, rows in zip(parts, prefetch(read, parts), strict=True):
        yield from part.split(rows)
