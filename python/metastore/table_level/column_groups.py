"""Partial merges: the statistics of groups of data files, found again by what they merge.

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
    """What a column's statistics are merged from.

    Attributes:
        every: A row of the schema `summary` for each file, in order or not; percentiles may be missing.
        rows: The rows of the files that `ColumnGroups.files_to_read` names, in their order, with percentiles.
        sketches: That of each of these.
    """

    every: pa.Table
    rows: pa.Table
    sketches: Sequence[DistinctSketch | None]


@dataclass(frozen=True)
class GroupAggregate:
    """What a group of data files was merged to; or some data files that follow each other.

    Attributes:
        rows: A row with the fields of `aggregate_schema`, and perhaps those of other columns; or a row for each file.
        sketches: That of each row.
    """

    rows: pa.Table
    sketches: Sequence[DistinctSketch | None]


AGGREGATE_KIND = "table-nodes"
_SKETCHES = ["theta", "registers"]


def encode_group_aggregate(group: GroupAggregate) -> pa.Table:
    """The row of `table-nodes` of a group, without its key."""
    rows, stored = group.rows, [sketch_fields(one) for one in group.sketches]
    for name in _SKETCHES:
        rows = rows.append_column(name, pa.array([one.get(name) for one in stored], pa.binary()))
    return rows


def decode_group_aggregate(row: pa.Table) -> GroupAggregate:
    """What a group was merged to, as `encode_group_aggregate` has put it."""
    return GroupAggregate(row.drop_columns(_SKETCHES), parse_sketches(*(row[name].to_pylist() for name in _SKETCHES)))


_CODEC = GroupCodec(encode_group_aggregate, decode_group_aggregate)


def aggregate_schema(column: Column) -> pa.Schema:
    """The fields of `summary` that are merged for a column."""
    return _fields_of(column.encoding)


@cache
def _fields_of(kept: str | None) -> pa.Schema:
    others = tuple(f"_{encoding}" for encoding in ENCODINGS if encoding != kept)
    return pa.schema([field for field in _MERGED if not field.name.endswith(others)])


class ColumnGroups:
    """The reduction of a column: which groups are known, which files have to be merged again."""

    def __init__(self, column: Column, groups: FileGroups, cache: GroupCache) -> None:
        """Look for what is known."""
        self.column = column
        self.groups = groups
        self._fields = aggregate_schema(column)
        self._cache = cache
        what = group_cache_key(AGGREGATE_KIND, _MERGING, column, identify_merged_statistics())
        self._tree = cache.make_tree(groups, np.arange(groups.count(0)), what)

    @property
    def files_to_read(self) -> Longs:
        """The places of the files of which rows and sketches are needed, ascending."""
        return self._tree.files_to_read

    @property
    def is_flat(self) -> bool:
        """Whether files are so few that there are no groups of them."""
        return self._tree.is_flat

    def reduce(self, given: ReductionInput) -> ColumnStatistics:
        """Merge what is not known, and all of it to the statistics of the table."""

        def files(some: Longs) -> Sequence[GroupAggregate]:
            start = int(np.searchsorted(self.files_to_read, some[0])) if len(some) else 0
            return [GroupAggregate(given.rows.slice(start, len(some)), given.sketches[start : start + len(some)])]

        def merge(parts: Sequence[GroupAggregate]) -> GroupAggregate:
            found = self._merged(parts)
            return GroupAggregate(partial_aggregate_row(found, self._fields), [found.sketch])

        found = self._merged(self._cache.merge(self._tree, files, merge, _CODEC))
        # Whether files lie apart shows between files alone.
        return replace(found, **count_distinct(self.column, given.every, found.sketch))

    def _merged(self, parts: Sequence[GroupAggregate]) -> ColumnStatistics:
        rows = parts[0].rows
        if len(parts) > 1:
            rows = pa.concat_tables(self._own(part.rows) for part in parts).combine_chunks()
        return merge_column(self.column, rows, [sketch for part in parts for sketch in part.sketches])

    def _own(self, rows: pa.Table) -> pa.Table:
        """Rows with the fields of the column alone: stored ones have those of all."""
        return rows if rows.num_columns == len(self._fields) else rows.select(self._fields.names)


def reduce_groups(merges: Sequence[ColumnGroups], given: Sequence[ReductionInput]) -> list[ColumnStatistics]:
    """Merge columns to the statistics of the table; those with few files at once."""
    flat = [place for place, merge in enumerate(merges) if merge.is_flat]
    together = reduce_columns(
        [merges[place].column for place in flat],
        [given[place].rows for place in flat],
        [given[place].sketches for place in flat],
    )
    found = dict(zip(flat, together, strict=True))
    return [
        found.get(place) or merge.reduce(of_column)
        for place, (merge, of_column) in enumerate(zip(merges, given, strict=True))
    ]
