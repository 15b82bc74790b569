"""Merges the value lists of data files to those of groups of files, which are stored for the next ANALYZE."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject
from metastore.format.object_schemas import fill_schema
from metastore.format.objects import ObjectRef, decode_detail
from metastore.format.sortable_values import is_wide_decimal
from metastore.store.prefetch import prefetch
from metastore.table_level.detail_selection import DetailSelection, DetailSlice, read_listed_values
from metastore.table_level.group_cache import ROW_GROUP_BYTES, GroupCache, GroupCodec, group_cache_key
from metastore.table_level.value_rows import ENCODINGS, VALUE_ROWS, split_by_column, sum_value_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.spark_jobs.task_store import ReadContent
    from metastore.store import Store
    from metastore.table_level.block_summaries import RowSource
    from metastore.table_level.column_merge import ColumnLevel
    from metastore.table_level.group_tree import GroupTree
    from metastore.table_level.list_reduction import FileValueCounts

    Longs = NDArray[np.int64]


LIST_GROUP_KIND = "table-list-nodes"
MOST_GROUP_VALUES, MOST_GROUP_BYTES = 1 << 16, 4 << 20
"""The values and bytes of the longest list that is stored for a group of files."""
NOT_KEPT = -1
"""The number of values in the row of a group whose list is too long."""

_MERGING = 1


class NoGroupList(Enum):
    """The reason that a group has no list."""

    ABSENT = "the list of a data file was not read"
    TOO_LONG = "it has too many values"


_Group: TypeAlias = "pa.Table | NoGroupList"


def list_cache_key(column: Column) -> bytes:
    """Return the part of a group's key that identifies its list."""
    return group_cache_key(LIST_GROUP_KIND, _MERGING, column)


def encode_group_list(rows: _Group) -> pa.Table | None:
    """Return the row of `table-list-nodes` of a group, without its key; it has no list if that is too long."""
    if rows is NoGroupList.ABSENT:
        return None
    if rows is NoGroupList.TOO_LONG or _is_too_long(rows):
        return pa.table({"number": pa.array([NOT_KEPT], pa.int64())})
    fields = {"number": pa.array([rows.num_rows], pa.int64())}
    encoding = _find_encoding(rows)
    if encoding is not None:
        rows = rows.sort_by(f"value_{encoding}")  # neighbours are stored as their difference
        fields[f"values_{encoding}"] = _as_list(rows[f"value_{encoding}"])
    fields["frequencies"] = _as_list(rows["frequency"])
    if pc.any(pc.not_equal(rows["listed"], 0)).as_py():
        fields["listed"] = _as_list(rows["listed"])
    return pa.table(fields)


def _is_too_long(rows: pa.Table) -> bool:
    return bool(rows.num_rows > MOST_GROUP_VALUES or rows.nbytes > MOST_GROUP_BYTES)


def _find_encoding(rows: pa.Table) -> str | None:
    """Find the encoding of the values of a column; None without values."""
    for name in ENCODINGS:
        if rows[f"value_{name}"].null_count < rows.num_rows:
            return name
    return None


def decode_group_list(ordinal: int, row: pa.Table) -> _Group:
    """Read a row of `encode_group_list` as `VALUE_ROWS`."""
    number = row["number"][0].as_py()
    if number < 0:
        return NoGroupList.TOO_LONG
    arrays = {}
    for name in ENCODINGS:
        values = _flatten_list(row, f"values_{name}")
        if len(values):
            arrays[f"value_{name}"] = values
    has_values = len(arrays) == min(number, 1)
    arrays["frequency"] = _flatten_list(row, "frequencies")
    arrays["listed"] = _flatten_list(row, "listed")
    if not len(arrays["listed"]):
        arrays["listed"] = pa.array(np.zeros(number, np.int64))
    if not has_values or not _are_complete(arrays.values(), number):
        raise DamagedObject(LIST_GROUP_KIND, "a list that no writer of this format makes")
    arrays["column"] = pa.array(np.full(number, ordinal, np.int32))
    return fill_schema(VALUE_ROWS, arrays, number)


def _are_complete(arrays: Iterable[pa.Array], number: int) -> bool:
    return all(len(array) == number and not array.null_count for array in arrays)


def _flatten_list(row: pa.Table, name: str) -> pa.Array:
    return row[name].combine_chunks().flatten()


@dataclass(frozen=True)
class GroupListSource:
    """The lists of groups in one object.

    Attributes:
        ordinals: The rows to read, each with the ordinal of its column in the snapshot's schema.
    """

    name: str
    length: int
    sha256: str
    ordinals: Mapping[int, int]

    is_summed: ClassVar[bool] = False

    @property
    def columns(self) -> frozenset[int]:
        return frozenset(self.ordinals.values())

    def read_values(self, content: ReadContent) -> Iterator[pa.Table]:
        stored = decode_detail(self.name, self.sha256, content())
        yield _concatenate(decode_group_list(ordinal, stored.slice(row, 1)) for row, ordinal in self.ordinals.items())


def find_group_sources(cache: GroupCache, keys_by_ordinal: Mapping[int, Sequence[bytes]]) -> Iterator[GroupListSource]:
    """Find the objects that hold the lists of groups."""
    objects: dict[ObjectRef, dict[int, int]] = defaultdict(dict)
    for ordinal, keys in keys_by_ordinal.items():
        for key in keys:
            ref, row = cache.locate_row(key)
            objects[ref][row] = ordinal
    for ref, ordinals in objects.items():
        yield GroupListSource(ref.name, ref.length, ref.sha256, ordinals)


def _concatenate(groups: Iterable[_Group]) -> pa.Table:
    """Return the rows of the groups that have a list."""
    tables = [group for group in groups if isinstance(group, pa.Table)]
    return pa.concat_tables([VALUE_ROWS.empty_table(), *tables])


def _as_list(values: pa.ChunkedArray) -> pa.Array:
    flat = values.combine_chunks()
    return pa.ListArray.from_arrays(pa.array([0, len(flat)], pa.int32()), flat)


_BYTES_OF_A_VALUE = 8
_VALUES_AT_ONCE = 1 << 21
"""The values of which lists of groups are made at once: decoded and merged a value takes some hundred bytes."""
NOWHERE = -1
"""The part of a data file whose list is not read."""


@dataclass(frozen=True)
class ColumnLists:
    """The lists of one column's data files.

    Attributes:
        sources: The blocks that have the files' statistics.
        tree: The groups of the files, with those that have a stored list.
    """

    lists: FileValueCounts
    sources: tuple[RowSource, ...]
    tree: GroupTree

    @property
    def is_complete(self) -> bool:
        """Return whether no list is cut."""
        return not self.lists.is_truncated.any()

    def without_groups(self) -> ColumnLists:
        """Return the lists without stored groups."""
        return replace(self, tree=self.tree.with_stored(()))


class ListGroups:
    """The lists of groups of data files: stored ones are reused, others are made and stored."""

    def __init__(self, store: Store, refs: Sequence[ObjectRef], read: Callable[[DetailSlice], pa.Table]) -> None:
        self._cache = GroupCache(store, LIST_GROUP_KIND, refs, number="number", group_bytes=ROW_GROUP_BYTES)
        self._short = {key for key, number in self._cache.numbers.items() if number >= 0}
        self._read = read

    def make_tree(self, level: ColumnLevel) -> GroupTree:
        """Return the groups of a column's data files."""
        return self._cache.make_tree(level.groups.groups, level.order, list_cache_key(level.column), self._short)

    def select_details(self, columns: Iterable[ColumnLists], *, floors: bool = False) -> list[DetailSlice]:
        """Select the lists of files that are in no list of a group.

        Their number is the file's floor, or its position where groups are to be made.
        """
        selection = DetailSelection("frequencies")
        for column in columns:
            numbers = np.arange(len(column.lists.kinds))
            if floors or column.tree.is_flat:
                numbers = column.lists.floors
            selection.add(column.lists.ordinal, column.sources, column.tree.select_files(numbers))
        return list(selection.make_slices())

    def group_sources(self, columns: Iterable[ColumnLists]) -> list[GroupListSource]:
        """Return the objects with the stored lists of groups."""
        keys = {column.lists.ordinal: column.tree.stored_groups for column in columns}
        return list(find_group_sources(self._cache, keys))

    def estimate_bytes(self, columns: Iterable[ColumnLists]) -> int:
        """Estimate the bytes of the stored lists of groups."""
        values = 0
        for column in columns:
            values += sum(map(self._cache.numbers.__getitem__, column.tree.stored_groups))
        return _BYTES_OF_A_VALUE * values

    def merge_lists(self, columns: Sequence[ColumnLists], parts: Sequence[DetailSlice]) -> pa.Table:
        """Merge the lists of files to those of groups, and return the lists to merge for the table as `VALUE_ROWS`."""
        if all(column.tree.is_flat for column in columns):
            return _concatenate(self._read_lists(parts))
        rows_by_column = self._read_columns(parts)
        lists: list[_Group] = []
        for column in columns:
            rows = rows_by_column.get(column.lists.ordinal, VALUE_ROWS.empty_table())
            if column.tree.is_flat:
                lists.append(rows)
            else:
                lists += self._merge_groups(column, rows, frozenset())
        return _concatenate(lists)

    def make_groups(self, columns: Iterable[ColumnLists], budget: int) -> None:
        """Make the lists of groups that are not stored, except those that were too long before."""
        with_groups = [column for column in columns if not column.tree.is_flat]
        missing = [replace(column, tree=column.tree.with_stored(self._cache)) for column in with_groups]
        selection = _PartSelection.of(missing, self.select_details(missing))
        selected = selection.select_parts(missing, budget)
        if not selected:
            return
        rows_by_column = self._read_columns([selection.parts[part] for part in sorted(selected)])
        for column in missing:
            ordinal = column.lists.ordinal
            is_read = np.isin(selection.parts_of_files[ordinal], [NOWHERE, *selected])
            rows = rows_by_column.get(ordinal, VALUE_ROWS.empty_table())
            self._merge_groups(column, rows, frozenset(np.flatnonzero(~is_read).tolist()))

    def finish(self) -> tuple[ObjectRef, ...]:
        """Write the new lists of groups."""
        return self._cache.finish()

    def _read_lists(self, parts: Sequence[DetailSlice]) -> Iterator[pa.Table]:
        return prefetch(lambda part: read_listed_values(part, self._read(part)), parts)

    def _read_columns(self, parts: Sequence[DetailSlice]) -> dict[int, pa.Table]:
        """Return the rows of each column, as `VALUE_ROWS` but with the positions of the data files in `listed`."""
        batches: dict[int, list[pa.RecordBatch]] = defaultdict(list)
        for rows in self._read_lists(parts):
            for ordinal, column_batches in split_by_column(rows).items():
                batches[ordinal] += column_batches
        return {ordinal: pa.Table.from_batches(column_batches) for ordinal, column_batches in batches.items()}

    def _merge_groups(self, column: ColumnLists, rows: pa.Table, absent: AbstractSet[int]) -> Sequence[_Group]:
        """Merge the lists of the uppermost groups; none for a group with an absent file, or with a too long list."""
        lists = column.lists
        tree = column.tree
        wide = []
        if is_wide_decimal(lists.column):
            wide.append(lists.ordinal)
        files = rows["listed"].to_numpy()
        floors = pa.array(lists.floors[files])
        order = np.argsort(tree.ranks[files], kind="stable")
        rows = rows.set_column(VALUE_ROWS.get_field_index("listed"), "listed", floors).take(pa.array(order))
        ranks = tree.ranks[files[order]]

        def take_files(members: Longs) -> list[_Group]:
            if not absent.isdisjoint(members.tolist()):
                return [NoGroupList.ABSENT]
            first = tree.ranks[members[0]]
            start, end = np.searchsorted(ranks, [first, first + len(members)])
            return [rows.slice(start, end - start)]

        def merge(parts: Sequence[_Group]) -> _Group:
            # If one list is too long, that of the group is, whatever else is in it.
            for reason in (NoGroupList.TOO_LONG, NoGroupList.ABSENT):
                if any(part is reason for part in parts):
                    return reason
            return sum_value_rows(pa.concat_tables(parts), wide)

        codec = GroupCodec(encode_group_list, partial(decode_group_list, lists.ordinal))
        return self._cache.merge(tree, take_files, merge, codec)


@dataclass(frozen=True)
class _PartSelection:
    """The objects with lists of files, of which some are selected to be read.

    Attributes:
        parts_of_files: For each data file of each column the number of the part with its list.
        values: An estimate of the values that each part has of these columns.
    """

    parts: Sequence[DetailSlice]
    parts_of_files: Mapping[int, Longs]
    values: Longs

    @classmethod
    def of(cls, columns: Sequence[ColumnLists], parts: Sequence[DetailSlice]) -> _PartSelection:
        parts_of_files = {column.lists.ordinal: np.full(len(column.lists.kinds), NOWHERE) for column in columns}
        for number, part in enumerate(parts):
            ordinals = part.ordinals[part.ordinals >= 0].tolist()
            for ordinal, files in zip(ordinals, part.numbers, strict=True):
                parts_of_files[ordinal][files[files >= 0]] = number
        values = np.zeros(len(parts), np.int64)
        for column in columns:
            numbers = parts_of_files[column.lists.ordinal]
            has_part = numbers != NOWHERE
            np.add.at(values, numbers[has_part], column.lists.estimates[has_part])
        return cls(parts, parts_of_files, values)

    def select_parts(self, columns: Sequence[ColumnLists], budget: int) -> set[int]:
        """Select the parts of as many groups as the budget allows, in turn for each column.

        Groups are passed over that exceed the budget alone, or of which a file has more values than a list may have.
        """
        selected: set[int] = set()
        for column, files in _alternate_leaves(columns):
            if column.lists.estimates[files].max() > MOST_GROUP_VALUES:
                continue
            needed = set(self.parts_of_files[column.lists.ordinal][files].tolist()) - {NOWHERE}
            if self._is_too_much(needed, budget):
                continue
            if self._is_too_much(selected | needed, budget):
                break
            selected |= needed
        return selected

    def _is_too_much(self, numbers: AbstractSet[int], budget: int) -> bool:
        if sum(self.parts[number].length for number in numbers) > budget:
            return True
        return int(self.values[list(numbers)].sum()) > _VALUES_AT_ONCE


def _alternate_leaves(columns: Sequence[ColumnLists]) -> Iterator[tuple[ColumnLists, Longs]]:
    """Yield the lowest groups of files: the first one of each column, the second one of each, and so on."""
    most = max((len(column.tree.leaves) for column in columns), default=0)
    for number in range(most):
        for column in columns:
            if number < len(column.tree.leaves):
                yield column, column.tree.leaves[number]
