"""Partial merges in the store: the merged groups of one ANALYZE serve the next one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa

from metastore.errors import DamagedObject, StoreNotReadable
from metastore.format.object_layout import split_evenly
from metastore.format.object_schemas import SCHEMAS, fill_schema
from metastore.store.prefetch import prefetch
from metastore.table_level.group_tree import GroupTree, digest_of_facts
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from metastore.format.object_part import ObjectPart
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.store import Store
    from metastore.table_level.group_tree import FileGroups, Longs


_LOG = get_logger(__name__)
_GROUPS_AT_HAND = 8
_FLUSH_BYTES = 64 << 20
_GROUP_BYTES = 16 << 20
_SMALL_BYTES = 8 << 20
_MOST_SMALL = 8
ROW_GROUP_BYTES = 4 << 20
"""The size of row groups of rows that are read a few at a time."""

T = TypeVar("T")


def group_cache_key(kind: str, version: int, column: Column, *more: object) -> bytes:
    """Return the part of a group's key that identifies its column, its fields and the way in which it is merged.

    The version is raised whenever groups are merged in another way but have the same fields as before.
    """
    fields = [(field.name, str(field.type)) for field in SCHEMAS[kind]]
    facts = (kind, version, fields, column.key, column.type, *more)
    return digest_of_facts(*facts)


@dataclass(frozen=True)
class GroupCodec(Generic[T]):
    """The conversion of a merged group to a row of the store and back.

    Attributes:
        encode: Makes a row without the key; it may lack columns. None if the group is not to be stored.
        decode: Reads a row.
    """

    encode: Callable[[T], pa.Table | None]
    decode: Callable[[pa.Table], T]


class GroupCache(Mapping[bytes, pa.Table]):
    """Merged groups of data files: the stored rows of one kind of object by their `node`, and new rows.

    A damaged object counts as absent. The keys of the stored rows are read at once, the rows when they are needed.

    Args:
        store: The store.
        kind: The kind of object.
        refs: The stored objects; those of other kinds are ignored.
        number: The name of a field to read into `numbers` together with the keys.
        group_bytes: The size of row groups to write.
    """

    def __init__(
        self,
        store: Store,
        kind: str,
        refs: Sequence[ObjectRef],
        *,
        number: str | None = None,
        group_bytes: int = _GROUP_BYTES,
    ) -> None:
        self.numbers: dict[bytes, int] = {}
        self.refs: list[ObjectRef] = []
        self._store = store
        self._kind = kind
        self._group_bytes = group_bytes
        self._with_keys = list(filter(None, ["node", number]))
        self._names = [name for name in SCHEMAS[kind].names if name != "node"]
        self._parts: list[ObjectPart] = []
        self._sizes: list[list[int]] = []
        self._keys: dict[bytes, tuple[int, int, int]] = {}
        self._pending: dict[bytes, pa.Table] = {}
        self._bytes = 0
        self._live: set[bytes] = set()
        self._written: list[ObjectRef] = []
        for ref in refs:
            if ref.kind == kind:
                self._index(ref)
        self._rows = lru_cache(_GROUPS_AT_HAND)(self._read)

    def __getitem__(self, key: bytes) -> pa.Table:
        """Read a row, without its key."""
        part, group, row = self._keys[key]
        return self._rows(part, group).slice(row, 1)

    def __contains__(self, key: object) -> bool:
        """Return whether there is such a row; nothing is read."""
        return key in self._keys

    def __iter__(self) -> Iterator[bytes]:
        """Return the keys."""
        return iter(self._keys)

    def __len__(self) -> int:
        """Return the number of stored rows."""
        return len(self._keys)

    def read_rows_of(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, pa.Table]]:
        """Read rows with their keys, ordered so that nothing is read twice."""
        for key in sorted(keys, key=self._keys.__getitem__):
            yield key, self[key]

    def locate_row(self, key: bytes) -> tuple[ObjectRef, int]:
        """Return the object that has a row, and the row's position in it."""
        part, group, row = self._keys[key]
        return self.refs[part], sum(self._sizes[part][:group]) + row

    def make_tree(
        self, groups: FileGroups, order: Longs, content_key: bytes, stored: Container[bytes] | None = None
    ) -> GroupTree:
        """Make the tree of a column's groups, and keep the stored rows of these groups.

        Args:
            groups: The groups of the data files.
            order: The data files in the order of the groups.
            content_key: The result of `group_cache_key`.
            stored: The keys of the stored groups to use; None means all.
        """
        if stored is None:
            stored = self
        tree = GroupTree(groups, order, content_key, stored)
        self._live.update(tree.keys())
        return tree

    def merge(
        self,
        tree: GroupTree,
        take_files: Callable[[Longs], Sequence[T]],
        merge: Callable[[Sequence[T]], T],
        codec: GroupCodec[T],
    ) -> Sequence[T]:
        """Merge the data files of a column by groups, and store the new groups."""
        stored = {key: codec.decode(row) for key, row in self.read_rows_of(tree.stored_groups)}
        parts, merged = tree.merge(take_files, stored, merge)
        for key, group in merged.items():
            if key in self:
                continue
            row = codec.encode(group)
            if row is not None:
                self._put(key, row)
        return parts

    def finish(self) -> tuple[ObjectRef, ...]:
        """Write the remaining rows; return the objects to refer to, old and new."""
        live_keys: dict[ObjectRef, set[bytes]] = {ref: set() for ref in self.refs}
        for key in self._live & self._keys.keys():
            part, _, _ = self._keys[key]
            live_keys[self.refs[part]].add(key)
        reused = _select_objects(live_keys)
        for ref in live_keys.keys() - set(reused):
            for key, row in self.read_rows_of(live_keys[ref]):
                self._put(key, row.take(pa.array([0])))  # a slice would keep its row group in memory
        self._flush()
        return (*reused, *self._written)

    def _put(self, key: bytes, row: pa.Table) -> None:
        self._pending[key] = row
        self._bytes += row.nbytes
        if self._bytes > _FLUSH_BYTES:
            self._flush()

    def _index(self, ref: ObjectRef) -> None:
        try:
            part = self._store.open_part(ref)
            groups = list(prefetch(lambda group: part.read_rows([group], self._with_keys), range(part.groups)))
        except (DamagedObject, StoreNotReadable) as damage:  # a range beyond a torn object is no damage to some stores
            _LOG.warning("partial merges are made again: %s", damage)
            return
        for group, rows in enumerate(groups):
            keys, *numbers = (column.to_pylist() for column in rows.columns)
            self._keys |= {key: (len(self.refs), group, row) for row, key in enumerate(keys)}
            if numbers:
                self.numbers |= dict(zip(keys, *numbers, strict=True))
        self._sizes.append([rows.num_rows for rows in groups])
        self.refs.append(ref)
        self._parts.append(part)

    def _read(self, part: int, group: int) -> pa.Table:
        return self._parts[part].read_rows([group], self._names).combine_chunks()

    def _flush(self) -> None:
        if not self._pending:
            return
        rows = pa.concat_tables(self._pending.values(), promote_options="default")
        columns = dict(zip(rows.column_names, rows.columns, strict=True))
        columns["node"] = pa.array(list(self._pending), pa.binary())
        table = fill_schema(SCHEMAS[self._kind], columns, rows.num_rows)
        groups = split_evenly(table.num_rows, -(-self._bytes // self._group_bytes))
        self._written.append(self._store.put(self._kind, table, groups))
        self._pending = {}
        self._bytes = 0


def _select_objects(live_keys: Mapping[ObjectRef, Collection[bytes]]) -> list[ObjectRef]:
    """Select the objects of which more than half is live; small ones only if they are few."""
    mostly_live = [ref for ref, keys in live_keys.items() if 2 * len(keys) > ref.rows]
    large = [ref for ref in mostly_live if ref.length >= _SMALL_BYTES]
    if len(mostly_live) - len(large) > _MOST_SMALL:
        return large
    return mostly_live
