"""Partial merges: the statistics of groups of data files, each stored under a key that follows from its files.

The data files of a column are grouped as they follow each other by path, about `FAN_OUT` to a group, groups to larger
ones, and so on. A group ends with the file whose hash is the largest among its neighbours'. So the groups follow from
the set of files, in whatever order these came: a file that comes or goes changes the group that it is in, seldom those
beside it, on each level, and merging what changed gives the same numbers as merging from scratch. Ends at local maxima
give groups of much the same size, where a rule that looks at one file alone would make every second file's group twice
as large (N. Bjorner, A. Blass, Y. Gurevich: Content-dependent chunking for differential compression, the local maximum
approach, 2010).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from metastore.format.object_schemas import TABLE_NODES
from metastore.kernel.built_in_statistics import identify_merged_statistics
from metastore.kernel.column_statistics import ColumnStatistics, sketch_fields
from metastore.kernel.distinct_sketch import DistinctSketch, parse_sketches
from metastore.kernel.reducer import count_distinct, merge_column, reduce_columns
from metastore.kernel.statistic_rows import partial_aggregate_row
from metastore.table_level.group_cache import GroupCache, GroupCodec, group_cache_key
from metastore.table_level.value_rows import ENCODINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.table_level.group_tree import FileGroups

    Longs = NDArray[np.int64]
    Words = NDArray[np.uint64]

_MERGING = 2

_MERGED = [field for field in TABLE_NODES if field.name not in ("node", "theta", "registers")]


@dataclass(frozen=True)
class ReductionInput:
    """The rows and sketches that a column's statistics are merged from.

    Attributes:
        every: A row of the schema `summary` for each file, in any order; percentiles may be missing.
        rows: The rows of the files that `ColumnGroups.files_to_read` names, in their order, with percentiles.
        sketches: The sketch of each of these rows.
    """

    every: pa.Table
    rows: pa.Table
    sketches: Sequence[DistinctSketch | None]


@dataclass(frozen=True)
class GroupAggregate:
    """The merged statistics of a group of data files, or the statistics of consecutive data files.

    Attributes:
        rows: A row with the fields of `aggregate_schema`, and perhaps those of other columns; or a row for each file.
        sketches: The sketch of each row.
    """

    rows: pa.Table
    sketches: Sequence[DistinctSketch | None]


AGGREGATE_KIND = "table-nodes"
_SKETCHES = ["theta", "registers"]


def encode_group_aggregate(group: GroupAggregate) -> pa.Table:
    """Return the row of `table-nodes` of a group, without its key."""
    rows = group.rows
    stored = [sketch_fields(sketch) for sketch in group.sketches]
    for name in _SKETCHES:
        sketches = pa.array([fields.get(name) for fields in stored], pa.binary())
        rows = rows.append_column(name, sketches)
    return rows


def decode_group_aggregate(row: pa.Table) -> GroupAggregate:
    """Read a row of `encode_group_aggregate`."""
    sketches = parse_sketches(row["theta"].to_pylist(), row["registers"].to_pylist())
    return GroupAggregate(row.drop_columns(_SKETCHES), sketches)


_CODEC = GroupCodec(encode_group_aggregate, decode_group_aggregate)


def aggregate_schema(column: Column) -> pa.Schema:
    """Return the fields of `summary` that are merged for a column."""
    return _fields_of(column.encoding)


@cache
def _fields_of(encoding: str | None) -> pa.Schema:
    other_endings = tuple(f"_{other}" for other in ENCODINGS if other != encoding)
    return pa.schema([field for field in _MERGED if not field.name.endswith(other_endings)])


class ColumnGroups:
    """The reduction of a column by groups of files: stored groups are reused, other files are merged again."""

    def __init__(self, column: Column, groups: FileGroups, cache: GroupCache) -> None:
        self.column = column
        self.groups = groups
        self._fields = aggregate_schema(column)
        self._cache = cache
        content_key = group_cache_key(AGGREGATE_KIND, _MERGING, column, identify_merged_statistics())
        self._tree = cache.make_tree(groups, np.arange(groups.count(0)), content_key)

    @property
    def files_to_read(self) -> Longs:
        """The positions of the files whose rows and sketches are needed, ascending."""
        return self._tree.files_to_read

    @property
    def is_flat(self) -> bool:
        """Return whether the files are too few for groups."""
        return self._tree.is_flat

    def reduce(self, column_input: ReductionInput) -> ColumnStatistics:
        """Merge groups that are not stored, and all groups to the statistics of the table."""

        def take_files(files: Longs) -> Sequence[GroupAggregate]:
            start = 0
            if len(files):
                start = int(np.searchsorted(self.files_to_read, files[0]))
            rows = column_input.rows.slice(start, len(files))
            return [GroupAggregate(rows, column_input.sketches[start : start + len(files)])]

        def merge(parts: Sequence[GroupAggregate]) -> GroupAggregate:
            statistics = self._merge(parts)
            row = partial_aggregate_row(statistics, self._fields)
            return GroupAggregate(row, [statistics.sketch])

        statistics = self._merge(self._cache.merge(self._tree, take_files, merge, _CODEC))
        # Only the rows of single files show whether files lie apart.
        return replace(statistics, **count_distinct(self.column, column_input.every, statistics.sketch))

    def _merge(self, parts: Sequence[GroupAggregate]) -> ColumnStatistics:
        rows = parts[0].rows
        if len(parts) > 1:
            rows = pa.concat_tables(self._select_fields(part.rows) for part in parts).combine_chunks()
        sketches = list(chain.from_iterable(part.sketches for part in parts))
        return merge_column(self.column, rows, sketches)

    def _select_fields(self, rows: pa.Table) -> pa.Table:
        """Select the fields of the column: stored rows have the fields of every type."""
        if rows.num_columns == len(self._fields):
            return rows
        return rows.select(self._fields.names)


def reduce_groups(merges: Sequence[ColumnGroups], inputs: Sequence[ReductionInput]) -> list[ColumnStatistics]:
    """Merge columns to the statistics of the table; columns without groups are merged together."""
    columns = []
    rows = []
    sketches = []
    for merge, column_input in zip(merges, inputs, strict=True):
        if merge.is_flat:
            columns.append(merge.column)
            rows.append(column_input.rows)
            sketches.append(column_input.sketches)
    flat_statistics = iter(reduce_columns(columns, rows, sketches))
    statistics = []
    for merge, column_input in zip(merges, inputs, strict=True):
        statistics.append(next(flat_statistics) if merge.is_flat else merge.reduce(column_input))
    return statistics
