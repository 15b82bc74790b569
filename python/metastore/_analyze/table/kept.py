"""The value lists of a table's columns by those of groups of files: what is kept of these, and what is made anew."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from enum import Enum
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from metastore._analyze.ahead import prefetch
from metastore._analyze.kernel.stored import is_wide_decimal
from metastore._analyze.stored_nodes import GroupRows, GroupRowWriter
from metastore._analyze.table import list_nodes
from metastore._analyze.table.details import read_listed_values
from metastore._analyze.table.lists import VALUE_ROWS, split_by_column, sum_value_rows
from metastore._analyze.table.tree import GroupTree
from metastore._analyze.table.wanted import DetailSelection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from metastore._analyze.level import ColumnLevel, RowSource
    from metastore._analyze.table.cuts import FileValueCounts
    from metastore._analyze.table.details import DetailSlice
    from metastore._analyze.table.list_nodes import GroupListSource
    from metastore._format.objects import ObjectRef
    from metastore._store import Store

    Longs = NDArray[np.int64]

_BYTES_OF_A_VALUE = 8
_VALUES_AT_ONCE = 1 << 21
"""Lists of groups are made of so many values at most: decoded and merged they take some hundred bytes each."""
_ROW_GROUP_BYTES = 4 << 20
NOWHERE = -1


class NoGroupList(Enum):
    """Why a group has no list."""

    ABSENT = "that of a data file was not read"
    TOO_LONG = "it has too many values"


_Group: TypeAlias = "pa.Table | NoGroupList"


@dataclass(frozen=True)
class ColumnLists:
    """The lists of one column's data files.

    Attributes:
        lists: What they are.
        sources: Where they are.
        tree: The groups of the files, and which of these have a list.
    """

    lists: FileValueCounts
    sources: tuple[RowSource, ...]
    tree: GroupTree

    @property
    def is_whole(self) -> bool:
        """Whether no list is cut."""
        return not self.lists.cut.any()

    def by_files(self) -> ColumnLists:
        """The same without groups."""
        return replace(self, tree=self.tree.knowing(()))


class ListGroups:
    """The lists of groups of data files: which are in the store, and which are made."""

    def __init__(self, store: Store, refs: Sequence[ObjectRef], read: Callable[[DetailSlice], pa.Table]) -> None:
        """Read which are kept."""
        self._known = GroupRows(store, list_nodes.LIST_GROUP_KIND, refs, "number")
        self._short = {key for key, number in self._known.numbers.items() if number >= 0}
        self._writer = GroupRowWriter(store, self._known, _ROW_GROUP_BYTES)
        self._read = read

    def tree(self, known: ColumnLevel) -> GroupTree:
        """The groups of a column's data files."""
        tree = GroupTree(known.merge.groups, known.order, list_nodes.list_cache_key(known.column), self._short)
        self._writer.keep(tree.keys())
        return tree

    def parts(self, columns: Iterable[ColumnLists], *, floors: bool = False) -> list[DetailSlice]:
        """The objects with lists of files that are in no list of a group."""
        wanted = DetailSelection("frequencies")
        for one in columns:
            numbers = one.lists.floors if floors or one.tree.is_flat else np.arange(len(one.lists.kinds))
            wanted.add(one.lists.ordinal, one.sources, one.tree.among(numbers))
        return list(wanted.parts())

    def groups(self, columns: Iterable[ColumnLists]) -> list[GroupListSource]:
        """The objects with the lists of groups."""
        return list(list_nodes.find_group_sources(self._known, {one.lists.ordinal: one.tree.covers for one in columns}))

    def bytes_of(self, columns: Iterable[ColumnLists]) -> int:
        """About how many bytes the lists of groups take."""
        return _BYTES_OF_A_VALUE * sum(self._known.numbers[key] for one in columns for key in one.tree.covers)

    def merged(self, columns: Sequence[ColumnLists], parts: Sequence[DetailSlice]) -> pa.Table:
        """What the lists of the table are to be made of, as `LISTED`; lists of groups are made on the way."""
        if all(one.tree.is_flat for one in columns):
            return pa.concat_tables([VALUE_ROWS.empty_table(), *self._listed(parts)])
        read = self._rows(parts)
        found: list[_Group] = []
        for one in columns:
            rows = read.get(one.lists.ordinal, VALUE_ROWS.empty_table())
            found += [rows] if one.tree.is_flat else self._grouped(one, rows, frozenset())
        return pa.concat_tables([VALUE_ROWS.empty_table(), *(group for group in found if isinstance(group, pa.Table))])

    def make(self, columns: Iterable[ColumnLists], budget: int) -> None:
        """Make lists of groups that are neither kept nor known to be too long."""
        tried = [replace(one, tree=one.tree.knowing(self._known)) for one in columns if not one.tree.is_flat]
        parts = self.parts(tried)
        of_files = _parts_of_files(tried, parts)
        taken = _affordable(tried, parts, of_files, budget)
        read = self._rows([part for at, part in enumerate(parts) if at in taken])
        for one in tried if taken else ():
            absent = np.flatnonzero(~np.isin(of_files[one.lists.ordinal], [NOWHERE, *taken]))
            rows = read.get(one.lists.ordinal, VALUE_ROWS.empty_table())
            self._grouped(one, rows, frozenset(absent.tolist()))

    def finish(self) -> tuple[ObjectRef, ...]:
        """Write what was made."""
        return self._writer.finish()

    def _listed(self, parts: Sequence[DetailSlice]) -> Iterator[pa.Table]:
        return prefetch(lambda part: read_listed_values(part, self._read(part)), parts)

    def _rows(self, parts: Sequence[DetailSlice]) -> dict[int, pa.Table]:
        """The rows of each column, as `LISTED` but with the numbers of the data files in `listed`."""
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

        rows_of = self._known.some(one.tree.covers)
        lists = {key: list_nodes.decode_group_list(ordinal, row) for key, row in rows_of}
        stored: dict[bytes, _Group] = {key: NoGroupList.TOO_LONG if of is None else of for key, of in lists.items()}
        found = one.tree.merged(of_files, stored, merge)
        for key, group in found.made.items():
            if group is not NoGroupList.ABSENT and key not in self._known:
                self._writer.put(key, list_nodes.encode_group_list(group if isinstance(group, pa.Table) else None))
        return found.parts


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
            if files is None or one.lists.estimates[files].max() > list_nodes.MOST_GROUP_VALUES:
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
