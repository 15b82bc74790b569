"""Partial merges in the store: what one ANALYZE merged, the next one takes from there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from metastore.errors import DamagedObject, StoreNotReadable
from metastore.format.object_layout import split_evenly
from metastore.format.object_schemas import SCHEMAS
from metastore.kernel.column_statistics import sketch_fields
from metastore.kernel.distinct_sketch import parse_sketches
from metastore.store.prefetch import prefetch
from metastore.table_level.column_groups import GroupAggregate
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from metastore.format.object_part import ObjectPart
    from metastore.format.objects import ObjectRef
    from metastore.store import Store
    from metastore.table_level.column_groups import ColumnGroups


_LOG = get_logger(__name__)
_GROUPS_AT_HAND = 8
_FLUSH_BYTES, _GROUP_BYTES, _SMALL_BYTES = 64 << 20, 16 << 20, 8 << 20
_MOST_SMALL = 8
AGGREGATE_KIND = "table-nodes"
_SKETCHES = ["theta", "registers"]


class GroupRows(Mapping[bytes, pa.Table]):
    """The rows of some objects, by their `node`; an object that is not what was written counts as absent."""

    def __init__(self, store: Store, kind: str, refs: Sequence[ObjectRef], number: str | None = None) -> None:
        """Read the keys."""
        self.kind = kind
        self.numbers: dict[bytes, int] = {}
        self._with_keys = ["node", *([number] if number else [])]
        self.refs: list[ObjectRef] = []
        self._names = [name for name in SCHEMAS[kind].names if name != "node"]
        self._parts: list[ObjectPart] = []
        self._sizes: list[list[int]] = []
        self._keys: dict[bytes, tuple[int, int, int]] = {}
        for ref in refs:
            if ref.kind == kind:
                self._index(store, ref)
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

    def some(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, pa.Table]]:
        """Read rows with their keys, in an order in which nothing is read twice."""
        for key in sorted(keys, key=self._keys.__getitem__):
            yield key, self[key]

    def place(self, key: bytes) -> tuple[ObjectRef, int]:
        """The object that has a row, and the row's place in it."""
        at, group, row = self._keys[key]
        return self.refs[at], sum(self._sizes[at][:group]) + row

    def of(self, ref: ObjectRef) -> list[bytes]:
        """The keys of the rows of one of the objects."""
        return self._by_object[self.refs.index(ref)]

    @cached_property
    def _by_object(self) -> dict[int, list[bytes]]:
        found: dict[int, list[bytes]] = defaultdict(list)
        for key, place in self._keys.items():
            found[place[0]].append(key)
        return found

    def _index(self, store: Store, ref: ObjectRef) -> None:
        try:
            part = store.open_part(ref)
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


class GroupRowWriter:
    """Writes rows that were made anew, and chooses what is kept of what there was."""

    def __init__(self, store: Store, known: GroupRows, group_bytes: int | None = None) -> None:
        """Begin."""
        self._store = store
        self._known = known
        self._group_bytes = group_bytes
        self._pending: dict[bytes, pa.Table] = {}
        self._bytes = 0
        self._live: set[bytes] = set()
        self._written: list[ObjectRef] = []

    def keep(self, keys: Iterable[bytes]) -> None:
        """Keep what is there of these."""
        self._live.update(keys)

    def put(self, key: bytes, row: pa.Table) -> None:
        """Take a row, without its key; columns may be missing."""
        self._pending[key] = row
        self._bytes += row.nbytes
        if self._bytes > _FLUSH_BYTES:
            self._flush()

    def finish(self) -> tuple[ObjectRef, ...]:
        """Write the rest."""
        used = {ref: self._live.intersection(self._known.of(ref)) for ref in self._known.refs}
        kept = [ref for ref in used if 2 * len(used[ref]) > ref.rows]
        large = [ref for ref in kept if ref.length >= _SMALL_BYTES]
        kept = large if len(kept) - len(large) > _MOST_SMALL else kept
        for ref in used.keys() - set(kept):
            for key, row in self._known.some(used[ref]):
                self.put(key, row.take(pa.array([0])))  # a slice would keep its whole row group in memory
        self._flush()
        return (*kept, *self._written)

    def _flush(self) -> None:
        if not self._pending:
            return
        schema = SCHEMAS[self._known.kind]
        rows = pa.concat_tables(self._pending.values(), promote_options="default")
        columns = dict(zip(rows.column_names, rows.columns, strict=True))
        columns["node"] = pa.array(list(self._pending), pa.binary())
        arrays = [columns.get(field.name, pa.nulls(rows.num_rows, field.type)) for field in schema]
        table = pa.table(arrays, schema=schema)
        groups = split_evenly(table.num_rows, -(-self._bytes // (self._group_bytes or _GROUP_BYTES)))
        self._written.append(self._store.put(self._known.kind, table, groups))
        self._pending, self._bytes = {}, 0


class GroupAggregates(Mapping[bytes, GroupAggregate]):
    """The nodes of some objects, by key."""

    def __init__(self, store: Store, refs: Sequence[ObjectRef]) -> None:
        """Read the keys."""
        self.rows = GroupRows(store, AGGREGATE_KIND, refs)

    def __getitem__(self, key: bytes) -> GroupAggregate:
        """Read a node."""
        row = self.rows[key]
        return GroupAggregate(
            row.drop_columns(_SKETCHES), parse_sketches(*(row[name].to_pylist() for name in _SKETCHES))
        )

    def __contains__(self, key: object) -> bool:
        """Whether there is such a node; nothing is read."""
        return key in self.rows

    def __iter__(self) -> Iterator[bytes]:
        """The keys."""
        return iter(self.rows)

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self.rows)


class GroupAggregateWriter:
    """Writes what was merged anew, and chooses what is kept of what there was."""

    def __init__(self, store: Store, known: GroupAggregates) -> None:
        """Begin."""
        self._rows = GroupRowWriter(store, known.rows)

    def add(self, merge: ColumnGroups) -> None:
        """Take the nodes of a column."""
        self._rows.keep(merge.keys())
        for key, node in merge.made.items():
            rows, stored = node.rows, [sketch_fields(one) for one in node.sketches]
            for name in _SKETCHES:
                rows = rows.append_column(name, pa.array([one.get(name) for one in stored], pa.binary()))
            self._rows.put(key, rows)

    def finish(self) -> tuple[ObjectRef, ...]:
        """Write the rest."""
        return self._rows.finish()
