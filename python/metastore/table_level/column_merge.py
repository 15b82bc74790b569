"""The rows of one column of a snapshot's live files, and the groups of files in which they are merged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.sortable_values import value_width
from metastore.format.table_column import Column, decimal_type
from metastore.kernel.value_counts import COMPLETE
from metastore.table_level.column_groups import ColumnGroups, ReductionInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.kernel.distinct_sketch import DistinctSketch
    from metastore.table_level.block_summaries import RowSource

    Longs = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ColumnLevel:
    """The merged statistics of one column, and the rows that they were merged from.

    Attributes:
        rows: Rows of the `summary` schema, one for each file with statistics; percentiles may be missing.
        computed: `full` or `footer`: the deepest among the rows.
        sources: The blocks and files that the rows come from, in the order of the rows.
        statistics: The merged statistics.
        groups: The groups of files that they were merged in.
        order: The positions of the rows in the order of the groups, which is by the path of their files.
    """

    column: Column
    rows: pa.Table
    computed: str
    sources: tuple[RowSource, ...]
    statistics: ColumnStatistics
    groups: ColumnGroups
    order: Longs


@dataclass
class ColumnRows:
    """The rows of one column, collected block by block.

    Attributes:
        computed: The deepest among the rows.
        rows: The rows of each source.
    """

    column: Column
    computed: str
    rows: list[pa.Table] = field(default_factory=list)
    sources: list[RowSource] = field(default_factory=list)

    def add(self, rows: pa.Table, source: RowSource) -> None:
        if self.is_narrow(source):
            rows = _widen(rows, self.column)
        self.rows.append(rows)
        self.sources.append(source)

    def is_narrow(self, source: RowSource) -> bool:
        """Return whether the rows were written under a narrower type."""
        return source.block_files.block.columns[source.ordinal].type != self.column.type

    def select_sources(self, positions: Longs) -> list[RowSource]:
        """Return the sources, each with the files of the rows at these ascending positions only."""
        firsts = np.cumsum([0, *(len(source.files) for source in self.sources)])
        cuts = np.searchsorted(positions, firsts).tolist()
        selected = []
        for number, source in enumerate(self.sources):
            in_source = positions[cuts[number] : cuts[number + 1]] - firsts[number]
            selected.append(replace(source, files=source.files[in_source]))
        return selected


@dataclass(frozen=True)
class ColumnMerge:
    """The rows of one column, and the groups of files in which they are merged.

    Attributes:
        order: The positions of the rows in the order of the groups.
        to_merge: The positions of the rows that no stored group covers, ascending.
        sources: The sources with the files of these rows only.
    """

    collected: ColumnRows
    order: Longs
    groups: ColumnGroups
    to_merge: Longs
    sources: list[RowSource]

    def number_rows(self) -> Longs:
        """Number the rows to merge; -1 for a row that was written under a narrower type."""
        lengths = [len(source.files) for source in self.sources]
        narrow = np.repeat([self.collected.is_narrow(source) for source in self.sources], lengths)
        return np.where(narrow, -1, np.arange(len(narrow)))

    def number_rows_without_sketch(self, sketches: Sequence[DistinctSketch | None]) -> Longs:
        """Number the rows with a complete list of values instead of a sketch; -1 for other rows."""
        kinds = pa.concat_tables([rows.select(["frequencies"]) for rows in self.collected.rows])
        is_complete = np.asarray(pc.equal(kinds["frequencies"], COMPLETE))[self.to_merge]
        is_missing = np.array([sketch is None for sketch in sketches], np.bool_)
        return np.where(is_complete & is_missing, self.number_rows(), -1)

    def make_input(self, rows: pa.Table | None, sketches: Sequence[DistinctSketch | None]) -> ReductionInput:
        """Put the rows to merge and their sketches in the order of the groups; None stands for every row."""
        every_row = pa.concat_tables(self.collected.rows)
        if rows is None:
            rows = every_row
        in_order = np.searchsorted(self.to_merge, self.order[self.groups.files_to_read])
        is_ascending = (in_order[1:] > in_order[:-1]).all()
        if not is_ascending:
            rows = rows.take(pa.array(in_order))
        return ReductionInput(every_row, rows, [sketches[row] for row in in_order.tolist()])

    def make_level(self, rows: pa.Table, statistics: ColumnStatistics) -> ColumnLevel:
        return ColumnLevel(
            column=self.collected.column,
            rows=rows,
            computed=self.collected.computed,
            sources=tuple(self.collected.sources),
            statistics=statistics,
            groups=self.groups,
            order=self.order,
        )


def _widen(rows: pa.Table, column: Column) -> pa.Table:
    """Adapt rows that were written under a narrower type: stored values are the same, only their lengths differ."""
    if decimal_type(column.type) is not None:
        return rows
    for name in ("avg_len", "max_len"):
        index = rows.schema.get_field_index(name)
        length_field = rows.schema.field(index)
        width = pa.scalar(value_width(column), length_field.type)
        lengths = pc.if_else(rows.column(name).is_valid(), width, None)
        rows = rows.set_column(index, length_field, lengths.cast(length_field.type))
    return rows
