"""Partial merges in the store: what one ANALYZE merged, the next one takes from there."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa

from metastore.errors import DamagedObject, StoreNotReadable
from metastore.format.object_layout import split_evenly
from metastore.format.object_schemas import SCHEMAS
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
_FLUSH_BYTES, _GROUP_BYTES, _SMALL_BYTES = 64 << 20, 16 << 20, 8 << 20
_MOST_SMALL = 8
ROW_GROUP_BYTES = 4 << 20
"""Of rows that are read a few at a time."""

T = TypeVar("T")


def group_cache_key(kind: str, version: int, column: Column, *more: object) -> bytes:
    """Says what is kept of a group of a column's data files.

    The version is raised whenever groups would be merged otherwise than before though they have the same fields.
    """
    fields = [(field.name, str(field.type)) for field in SCHEMAS[kind]]
    return digest_of_facts(kind, version, fields, column.key, column.type, *more)


@dataclass(frozen=True)
class GroupCodec(Generic[T]):
    """How what is kept of a group of data files becomes a row without its key, and comes back.

    Attributes:
        encode: Makes a row, whose columns may be some of the object's; None: it is not kept.
        decode: Reads a row.
    """

    encode: Callable[[T], pa.Table | None]
    decode: Callable[[pa.Table], T]


class GroupCache(Mapping[bytes, pa.Table]):
    """What groups of data files were merged to: rows of one kind of object by their `node`, and those made anew.

    An object that is not what was written counts as absent.
    """

    def __init__(
        self,
        store: Store,
        kind: str,
        refs: Sequence[ObjectRef],
        *,
        number: str | None = None,
        group_bytes: int | None = None,
    ) -> None:
        """Read the keys, and the numbers that go with them."""
        self.numbers: dict[bytes, int] = {}
        self.refs: list[ObjectRef] = []
        self._store, self._kind, self._group_bytes = store, kind, group_bytes
        self._with_keys = ["node", *([number] if number else [])]
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
        at, group, row = self._keys[key]
        return self._rows(at, group).slice(row, 1)

    def __contains__(self, key: object) -> bool:
        """Whether there is such a row; nothing is read."""
        return key in self._keys

    def __iter__(self) -> Iterator[bytes]:
        """The keys."""
        return iter(self._keys)

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._keys)

    def read_rows_of(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, pa.Table]]:
        """Read rows with their keys, in an order in which nothing is read twice."""
        for key in sorted(keys, key=self._keys.__getitem__):
            yield key, self[key]

    def locate_row(self, key: bytes) -> tuple[ObjectRef, int]:
        """The object that has a row, and the row's place in it."""
        at, group, row = self._keys[key]
        return self.refs[at], sum(self._sizes[at][:group]) + row

    def make_tree(
        self, groups: FileGroups, order: Longs, what: bytes, known: Container[bytes] | None = None
    ) -> GroupTree:
        """The groups of a column's data files; what is there of them is kept."""
        tree = GroupTree(groups, order, what, self if known is None else known)
        self._live.update(tree.keys())
        return tree

    def merge(
        self,
        tree: GroupTree,
        files: Callable[[Longs], Sequence[T]],
        merge: Callable[[Sequence[T]], T],
        codec: GroupCodec[T],
    ) -> Sequence[T]:
        """Merge the data files of a column by groups, of which those that were not known are put."""
        known = {key: codec.decode(row) for key, row in self.read_rows_of(tree.known_groups)}
        parts, made = tree.merge(files, known, merge)
        for key, one in made.items():
            if key not in self and (row := codec.encode(one)) is not None:
                self._put(key, row)
        return parts

    def finish(self) -> tuple[ObjectRef, ...]:
        """Write the rest, and choose which objects are kept: those of which more than half is, if not too small."""
        used: dict[ObjectRef, set[bytes]] = {ref: set() for ref in self.refs}
        for key in self._live & self._keys.keys():
            used[self.refs[self._keys[key][0]]].add(key)
        kept = [ref for ref in used if 2 * len(used[ref]) > ref.rows]
        large = [ref for ref in kept if ref.length >= _SMALL_BYTES]
        kept = large if len(kept) - len(large) > _MOST_SMALL else kept
        for ref in used.keys() - set(kept):
            for key, row in self.read_rows_of(used[ref]):
                self._put(key, row.take(pa.array([0])))  # a slice would keep its whole row group in memory
        self._flush()
        return (*kept, *self._written)

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
            self.numbers |= dict(zip(keys, *numbers, strict=True)) if numbers else {}
        self._sizes.append([rows.num_rows for rows in groups])
        self.refs.append(ref)
        self._parts.append(part)

    def _read(self, at: int, group: int) -> pa.Table:
        return self._parts[at].read_rows([group], self._names).combine_chunks()

    def _flush(self) -> None:
        if not self._pending:
            return
        schema = SCHEMAS[self._kind]
        rows = pa.concat_tables(self._pending.values(), promote_options="default")
        columns = dict(zip(rows.column_names, rows.columns, strict=True))
        columns["node"] = pa.array(list(self._pending), pa.binary())
        arrays = [columns.get(field.name, pa.nulls(rows.num_rows, field.type)) for field in schema]
        table = pa.table(arrays, schema=schema)
        groups = split_evenly(table.num_rows, -(-self._bytes // (self._group_bytes or _GROUP_BYTES)))
        self._written.append(self._store.put(self._kind, table, groups))
        self._pending, self._bytes = {}, 0
