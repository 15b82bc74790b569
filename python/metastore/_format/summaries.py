"""Writing the summaries of a block, and what a block of very many data files has beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from metastore._format import layout
from metastore._format.pages import PAGE_ROWS_KEY
from metastore._format.references import SummaryRef
from metastore._format.zones import IDENTITIES_KEY, identities_of, rows_of_files, zones_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore._format.columns import Column
    from metastore._format.objects import ObjectRef


class Put(Protocol):
    """Writes one object, in the driver or in an executor."""

    def __call__(self, kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str]) -> ObjectRef:
        """Write a table as an object of a kind; return its reference."""


class Summaries:
    """Writes the summaries of one block, some columns at a time.

    Example:
        >>> summaries = Summaries(put, columns, files)  # doctest: +SKIP
        >>> summaries.add(rows, range(4))  # doctest: +SKIP
        >>> summaries.written, summaries.zones()  # doctest: +SKIP
    """

    def __init__(self, put: Put, columns: Sequence[Column], files: pa.Table, zoned: int = layout.ZONED_FILES) -> None:
        """Write nothing yet.

        Args:
            put: Where to.
            columns: The block's columns.
            files: The rows of its `files` object, ordinals 0, 1, 2, …
            zoned: Blocks of more data files have zones.
        """
        self.width = layout.columns_per_object(files.num_rows, zoned)
        """So many columns belong into one object."""
        self.written: list[SummaryRef] = []
        self._put, self._columns = put, columns
        self._per_group = layout.columns_per_row_group(files.num_rows, zoned)
        self._page_rows = layout.page_rows(files.num_rows, zoned)
        self._rows_of_files = rows_of_files(files)
        self._zones: list[tuple[pa.Table, tuple[int, ...]]] = []

    def add(self, rows: pa.Table, ordinals: Sequence[int]) -> None:
        """Write the rows of some columns, of which there are some.

        Args:
            rows: Rows of the schema `summary`, ordered by column, then file.
            ordinals: The columns that they are of.
        """
        extra = {PAGE_ROWS_KEY: str(self._page_rows)} if self._page_rows else {}
        ref = self._put("summary", rows, layout.row_groups(rows["column"], self._per_group), extra)
        self.written.append(SummaryRef(ref, tuple(ordinals)))
        if self._page_rows:
            self._zones.append((zones_of(rows, self._columns, self._rows_of_files), tuple(ordinals)))

    def zones(self) -> tuple[SummaryRef, ...]:
        """Write the zones of all columns that were added; none where the block is small."""
        parts = [(rows, ordinals) for rows, ordinals in self._zones if rows.num_rows]
        step = max(1, layout.ZONED_COLUMNS // self.width)
        return tuple(self._of_zones(parts[start : start + step]) for start in range(0, len(parts), step))

    def _of_zones(self, parts: Sequence[tuple[pa.Table, tuple[int, ...]]]) -> SummaryRef:
        rows = pa.concat_tables(rows for rows, _ in parts)
        ref = self._put("zones", rows, layout.row_groups(rows["column"], 1), {})
        return SummaryRef(ref, tuple(ordinal for _, ordinals in parts for ordinal in ordinals))


def identities(files: pa.Table, zoned: int = layout.ZONED_FILES) -> dict[str, str]:
    """The key-values of a `files` object that a block with zones has beside the others.

    Args:
        files: Its rows.
        zoned: Blocks of more data files have zones.

    Example:
        >>> identities(pa.table({"file": [0]}))
        {}
    """
    return {IDENTITIES_KEY: identities_of(files)} if files.num_rows > zoned else {}
