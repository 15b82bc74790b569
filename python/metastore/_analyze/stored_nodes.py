"""Partial merges in the store: what one ANALYZE merged, the next one takes from there."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore._analyze.details import even_groups
from metastore._analyze.kernel.theta import Theta
from metastore._analyze.nodes import Node
from metastore._format.schemas import TABLE_NODES
from metastore.errors import DamagedObject, StoreNotReadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from metastore._analyze.nodes import Merge
    from metastore._format.objects import ObjectRef
    from metastore._format.partial import Partial
    from metastore._store import Store

_LOG = logging.getLogger(__name__)
_GROUPS_AT_HAND = 8
_FLUSH_BYTES, _GROUP_BYTES, _SMALL_BYTES = 64 << 20, 16 << 20, 8 << 20
_MOST_SMALL = 8


class StoredNodes(Mapping[bytes, Node]):
    """The nodes of some objects, by key; an object that is not what was written counts as absent."""

    def __init__(self, store: Store, refs: Sequence[ObjectRef]) -> None:
        """Read the keys.

        Args:
            store: Where the objects are.
            refs: The objects, as a manifest names them.
        """
        self.refs: list[ObjectRef] = []
        self._parts: list[Partial] = []
        self._keys: dict[bytes, tuple[int, int, int]] = {}
        for ref in refs:
            self._index(store, ref)
        self._rows = lru_cache(_GROUPS_AT_HAND)(self._read)

    def __getitem__(self, key: bytes) -> Node:
        """Read a node.

        Raises:
            KeyError: There is none.
            DamagedObject: It is not what was written.
        """
        at, group, row = self._keys[key]
        rows = self._rows(at, group).slice(row, 1)
        theta = rows["theta"][0].as_py()
        return Node(rows.drop_columns(["node", "theta"]), None if theta is None else Theta.from_bytes(theta))

    def __contains__(self, key: object) -> bool:
        """Whether there is such a node; nothing is read."""
        return key in self._keys

    def __iter__(self) -> Iterator[bytes]:
        """The keys."""
        return iter(self._keys)

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self._keys)

    def of(self, ref: ObjectRef) -> list[bytes]:
        """The keys of the nodes in one of the objects."""
        at = self.refs.index(ref)
        return [key for key, place in self._keys.items() if place[0] == at]

    def _index(self, store: Store, ref: ObjectRef) -> None:
        try:
            part = store.part(ref)
            groups = [part.rows([group], ["node"])["node"].to_pylist() for group in range(part.groups)]
        except (DamagedObject, StoreNotReadable) as damage:  # a range beyond a torn object is no damage to some stores
            _LOG.warning("partial merges are made again: %s", damage)
            return
        for group, keys in enumerate(groups):
            self._keys |= {key: (len(self.refs), group, row) for row, key in enumerate(keys)}
        self.refs.append(ref)
        self._parts.append(part)

    def _read(self, at: int, group: int) -> pa.Table:
        return self._parts[at].rows([group], TABLE_NODES.names).combine_chunks()


class NodeWriter:
    """Writes what was merged anew, and chooses what is kept of what there was."""

    def __init__(self, store: Store, known: StoredNodes) -> None:
        """Begin.

        Args:
            store: Where objects go.
            known: What is there.
        """
        self._store = store
        self._known = known
        self._pending: dict[bytes, Node] = {}
        self._bytes = 0
        self._live: set[bytes] = set()
        self.written: list[ObjectRef] = []

    def add(self, merge: Merge) -> None:
        """Take the nodes of a column."""
        self._live.update(merge.keys())
        for key, node in merge.made.items():
            self._put(key, node)

    def finish(self) -> tuple[ObjectRef, ...]:
        """Write the rest.

        Returns:
            The objects that hold all nodes of the columns that were taken. Those of which most nodes are of no use any
            more are written anew, and the small ones where there are many.
        """
        used = {ref: self._live.intersection(self._known.of(ref)) for ref in self._known.refs}
        kept = [ref for ref in used if 2 * len(used[ref]) > ref.rows]
        large = [ref for ref in kept if ref.length >= _SMALL_BYTES]
        kept = large if len(kept) - len(large) > _MOST_SMALL else kept
        for ref in used.keys() - set(kept):
            for key in used[ref]:
                self._put(key, self._known[key])
        self._flush()
        return (*kept, *self.written)

    def _put(self, key: bytes, node: Node) -> None:
        self._pending[key] = node
        self._bytes += node.row.nbytes + (0 if node.theta is None else node.theta.hashes.nbytes)
        if self._bytes > _FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._pending:
            return
        thetas = [node.theta and node.theta.to_bytes() for node in self._pending.values()]
        rows = pa.concat_tables([node.row for node in self._pending.values()], promote_options="default")
        columns: dict[str, Any] = {name: rows[name] for name in rows.column_names}
        columns |= {"node": pa.array(list(self._pending), pa.binary()), "theta": pa.array(thetas, pa.binary())}
        absent = {kind.name: pa.nulls(rows.num_rows, kind.type) for kind in TABLE_NODES if kind.name not in columns}
        table = pa.table([{**absent, **columns}[name] for name in TABLE_NODES.names], schema=TABLE_NODES)
        groups = even_groups(table.num_rows, -(-self._bytes // _GROUP_BYTES))
        self.written.append(self._store.put("table-nodes", table, groups))
        self._pending, self._bytes = {}, 0
