"""The value lists of a table's columns by those of groups of files: what is kept of these, and what is made anew."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import zip_longest
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
    from metastore.table_level.group_tree import GroupTree
    from metastore.table_level.list_reduction import FileValueCounts
    from metastore.table_level.live_statistics import ColumnLevel, RowSource

    Longs = NDArray[np.int64]


LIST_GROUP_KIND = "table-list-nodes"
MOST_GROUP_VALUES, MOST_GROUP_BYTES = 1 << 16, 4 << 20
"""A group of files keeps its list up to so many values and bytes."""
NOT_KEPT = -1

_MERGING = 1


class NoGroupList(Enum):
    """Why a group has no list."""

    ABSENT = "that of a data file was not read"
    TOO_LONG = "it has too many values"


_Group: TypeAlias = "pa.Table | NoGroupList"


def list_cache_key(column: Column) -> bytes:
    """Says what is kept of a group of a column's data files."""
    return group_cache_key(LIST_GROUP_KIND, _MERGING, column)


def encode_group_list(rows: _Group) -> pa.Table | None:
    """The row of `table-list-nodes` of a group, without its key; its list stays away where it is too long."""
    if rows is NoGroupList.ABSENT:
        return None
    if rows is NoGroupList.TOO_LONG or rows.num_rows > MOST_GROUP_VALUES or rows.nbytes > MOST_GROUP_BYTES:
        return pa.table({"number": pa.array([NOT_KEPT], pa.int64())})
    given = {"number": pa.array([rows.num_rows], pa.int64())}
    for name in ENCODINGS:
        if rows.num_rows and not rows[f"value_{name}"].null_count:
            rows = rows.take(pc.sort_indices(rows[f"value_{name}"]))  # neighbours are stored as their difference
            given[f"values_{name}"] = _as_list(rows[f"value_{name}"])
    given["frequencies"] = _as_list(rows["frequency"])
    if pc.any(pc.not_equal(rows["listed"], 0)).as_py():
        given["listed"] = _as_list(rows["listed"])
    return pa.table(given)


def decode_group_list(ordinal: int, row: pa.Table) -> _Group:
    """The list of a group, as `VALUE_ROWS`, of what `encode_group_list` has put."""
    lists = {name: row[name].combine_chunks().flatten() for name in row.column_names if name not in ("node", "number")}
    number = row["number"][0].as_py()
    if number < 0:
        return NoGroupList.TOO_LONG
    values = {f"value_{name}": lists[f"values_{name}"] for name in ENCODINGS if len(lists.get(f"values_{name}", ()))}
    lone = lists["listed"] if len(lists.get("listed", ())) else pa.array(np.zeros(number, np.int64))
    arrays = values | {"frequency": lists["frequencies"], "listed": lone}
    if len(values) != min(number, 1) or any(len(one) != number or one.null_count for one in arrays.values()):
        raise DamagedObject(LIST_GROUP_KIND, "a list that no writer of this format makes")
    arrays["column"] = pa.array(np.full(number, ordinal, np.int32))
    return fill_schema(VALUE_ROWS, arrays, number)


@dataclass(frozen=True)
class GroupListSource:
    """Lists of groups in one object.

    Attributes:
        ordinals: For the wanted rows of the object the place of their column in the snapshot's schema.
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
        lists = (decode_group_list(ordinal, stored.slice(row, 1)) for row, ordinal in self.ordinals.items())
        yield pa.concat_tables([VALUE_ROWS.empty_table(), *(one for one in lists if isinstance(one, pa.Table))])


def find_group_sources(known: GroupCache, wanted: Mapping[int, Sequence[bytes]]) -> Iterator[GroupListSource]:
    """Where lists of groups are."""
    objects: dict[ObjectRef, dict[int, int]] = defaultdict(dict)
    for ordinal, keys in wanted.items():
        for key in keys:
            ref, row = known.locate_row(key)
            objects[ref][row] = ordinal
    for ref, ordinals in objects.items():
        yield GroupListSource(ref.name, ref.length, ref.sha256, ordinals)


def _as_list(values: pa.ChunkedArray) -> pa.Array:
    flat = values.combine_chunks()
    return pa.ListArray.from_arrays(pa.array([0, len(flat)], pa.int32()), flat)


_BYTES_OF_A_VALUE = 8
_VALUES_AT_ONCE = 1 << 21
"""Lists of groups are made of so many values at most: decoded and merged they take some hundred bytes each."""
NOWHERE = -1


@dataclass(frozen=True)
class ColumnLists:
    """The lists of one column's data files.

    Attributes:
        tree: The groups of the files, and which of these have a list.
    """

    lists: FileValueCounts
    sources: tuple[RowSource, ...]
    tree: GroupTree

    @property
    def is_complete(self) -> bool:
        """Whether no list is cut."""
        return not self.lists.is_truncated.any()

    def without_groups(self) -> ColumnLists:
        """The same without groups."""
        return replace(self, tree=self.tree.with_known(()))


class ListGroups:
    """The lists of groups of data files: which are in the store, and which are made."""

    def __init__(self, store: Store, refs: Sequence[ObjectRef], read: Callable[[DetailSlice], pa.Table]) -> None:
        """Read which are kept."""
        self._cache = GroupCache(store, LIST_GROUP_KIND, refs, number="number", group_bytes=ROW_GROUP_BYTES)
        self._short = {key for key, number in self._cache.numbers.items() if number >= 0}
        self._read = read

    def make_tree(self, known: ColumnLevel) -> GroupTree:
        """The groups of a column's data files."""
        return self._cache.make_tree(known.groups.groups, known.order, list_cache_key(known.column), self._short)

    def select_details(self, columns: Iterable[ColumnLists], *, floors: bool = False) -> list[DetailSlice]:
        """The objects with lists of files that are in no list of a group."""
        wanted = DetailSelection("frequencies")
        for one in columns:
            numbers = one.lists.floors if floors or one.tree.is_flat else np.arange(len(one.lists.kinds))
            wanted.add(one.lists.ordinal, one.sources, one.tree.select_files(numbers))
        return list(wanted.make_slices())

    def group_sources(self, columns: Iterable[ColumnLists]) -> list[GroupListSource]:
        """The objects with the lists of groups."""
        return list(find_group_sources(self._cache, {one.lists.ordinal: one.tree.known_groups for one in columns}))

    def estimate_bytes(self, columns: Iterable[ColumnLists]) -> int:
        """About how many bytes the lists of groups take."""
        return _BYTES_OF_A_VALUE * sum(self._cache.numbers[key] for one in columns for key in one.tree.known_groups)

    def merge_lists(self, columns: Sequence[ColumnLists], parts: Sequence[DetailSlice]) -> pa.Table:
        """What the lists of the table are to be made of, as `VALUE_ROWS`; lists of groups are made on the way."""
        if all(one.tree.is_flat for one in columns):
            return pa.concat_tables([VALUE_ROWS.empty_table(), *self._listed(parts)])
        read = self._rows(parts)
        found: list[_Group] = []
        for one in columns:
            rows = read.get(one.lists.ordinal, VALUE_ROWS.empty_table())
            found += [rows] if one.tree.is_flat else self._grouped(one, rows, frozenset())
        return pa.concat_tables([VALUE_ROWS.empty_table(), *(group for group in found if isinstance(group, pa.Table))])

    def make_groups(self, columns: Iterable[ColumnLists], budget: int) -> None:
        """Make lists of groups that are neither kept nor known to be too long."""
        tried = [replace(one, tree=one.tree.with_known(self._cache)) for one in columns if not one.tree.is_flat]
        parts = self.select_details(tried)
        of_files = _parts_of_files(tried, parts)
        taken = _affordable(tried, parts, of_files, budget)
        read = self._rows([part for at, part in enumerate(parts) if at in taken])
        for one in tried if taken else ():
            absent = np.flatnonzero(~np.isin(of_files[one.lists.ordinal], [NOWHERE, *taken]))
            rows = read.get(one.lists.ordinal, VALUE_ROWS.empty_table())
            self._grouped(one, rows, frozenset(absent.tolist()))

    def finish(self) -> tuple[ObjectRef, ...]:
        """Write what was made."""
        return self._cache.finish()

    def _listed(self, parts: Sequence[DetailSlice]) -> Iterator[pa.Table]:
        return prefetch(lambda part: read_listed_values(part, self._read(part)), parts)

    def _rows(self, parts: Sequence[DetailSlice]) -> dict[int, pa.Table]:
        """The rows of each column, as `VALUE_ROWS` but with the numbers of the data files in `listed`."""
        batches: dict[int, list[pa.RecordBatch]] = defaultdict(list)
        for rows in self._listed(parts):
            for ordinal, some in split_by_column(rows).items():
                batches[ordinal] += some
        return {ordinal: pa.Table.from_batches(some) for ordinal, some in batches.items()}

    def _grouped(self, one: ColumnLists, rows: pa.Table, absent: AbstractSet[int]) -> Sequence[_Group]:
        """The lists of the uppermost groups; those of which a file is absent, or a list is too long, are not kept."""
        ordinal, wide = one.lists.ordinal, [one.lists.ordinal] if is_wide_decimal(one.lists.column) else []
        places = rows["listed"].to_numpy()
        rows = rows.set_column(VALUE_ROWS.get_field_index("listed"), "listed", pa.array(one.lists.floors[places]))
        order = np.argsort(one.tree.ranks[places], kind="stable")
        rows, ranks = rows.take(pa.array(order)), one.tree.ranks[places[order]]

        def of_files(some: Longs) -> list[_Group]:
            if not absent.isdisjoint(some.tolist()):
                return [NoGroupList.ABSENT]
            first = one.tree.ranks[some[0]]
            start, end = np.searchsorted(ranks, [first, first + len(some)])
            return [rows.slice(start, end - start)]

        def merge(parts: Sequence[_Group]) -> _Group:
            unmade = {part for part in parts if isinstance(part, NoGroupList)}
            if NoGroupList.TOO_LONG in unmade:  # so is that of the group, whatever else it has
                return NoGroupList.TOO_LONG
            return NoGroupList.ABSENT if unmade else sum_value_rows(pa.concat_tables(parts), wide)

        return self._cache.merge(
            one.tree, of_files, merge, GroupCodec(encode_group_list, partial(decode_group_list, ordinal))
        )


def _parts_of_files(columns: Sequence[ColumnLists], parts: Sequence[DetailSlice]) -> dict[int, Longs]:
    """For each data file of each column the place of the part that holds its list."""
    found = {one.lists.ordinal: np.full(len(one.lists.kinds), NOWHERE) for one in columns}
    for at, part in enumerate(parts):
        for ordinal, places in zip(part.ordinals[part.ordinals >= 0].tolist(), part.numbers, strict=True):
            found[ordinal][places[places >= 0]] = at
    return found


def _affordable(
    columns: Sequence[ColumnLists], parts: Sequence[DetailSlice], of_files: Mapping[int, Longs], budget: int
) -> set[int]:
    """The parts of so many groups of files as may be read; a group that is too much alone is passed over.

    So is a group of which one file has more values than are kept.
    """
    values = _values_of_parts(columns, parts, of_files)
    taken: set[int] = set()
    for together in zip_longest(*(one.tree.leaves for one in columns)):
        for one, files in zip(columns, together, strict=True):
            if files is None or one.lists.estimates[files].max() > MOST_GROUP_VALUES:
                continue
            needed = set(of_files[one.lists.ordinal][files].tolist()) - {NOWHERE}
            if _is_too_much(needed, parts, values, budget):
                continue
            if _is_too_much(taken | needed, parts, values, budget):
                return taken
            taken |= needed
    return taken


def _is_too_much(some: AbstractSet[int], parts: Sequence[DetailSlice], values: Longs, budget: int) -> bool:
    return sum(parts[at].length for at in some) > budget or int(values[list(some)].sum()) > _VALUES_AT_ONCE


def _values_of_parts(
    columns: Sequence[ColumnLists], parts: Sequence[DetailSlice], of_files: Mapping[int, Longs]
) -> Longs:
    """About how many values of these columns each part has."""
    found = np.zeros(len(parts), np.int64)
    for one in columns:
        places = of_files[one.lists.ordinal]
        inside = places != NOWHERE
        np.add.at(found, places[inside], one.lists.estimates[inside])
    return found
