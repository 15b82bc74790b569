"""Table level as a tree of partial merges: a file that comes or goes costs as many merges as the tree is high.

Files hang in leaves chosen by a hash of their key, so that a tree does not depend on the order in which files came.
Every node holds the merged statistics of at most about `FAN_OUT` children; a change merges the nodes on its path again.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from metastore._analyze.kernel import reduce_column, summary_table
from metastore._format.schemas import SUMMARY

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from metastore._analyze.kernel import ColumnStatistics
    from metastore._format.columns import Column

    Key = tuple[str, int]

FAN_OUT = 64


@dataclass
class _Node:
    """Rows of the `summary` schema and their sketches, one for each child."""

    rows: pa.Table = field(default_factory=SUMMARY.empty_table)
    thetas: list[bytes | None] = field(default_factory=list)
    children: list[Hashable] = field(default_factory=list)

    def put(self, child: Hashable, statistics: ColumnStatistics | None) -> None:
        """Set, replace or (with None) remove a child."""
        if child in self.children:
            place = self.children.index(child)
            del self.children[place], self.thetas[place]
            self.rows = pa.concat_tables([self.rows.slice(0, place), self.rows.slice(place + 1)])
        if statistics is not None:
            self.children.append(child)
            self.thetas.append(statistics.theta)
            self.rows = pa.concat_tables([self.rows, summary_table([(0, 0, statistics)])])
        self.rows = self.rows.combine_chunks()

    def reduced(self, column: Column) -> ColumnStatistics | None:
        """The merged statistics of the children; None without any."""
        return reduce_column(column, self.rows, self.thetas) if self.children else None


class Tree:
    """The partial merges of some columns of a table.

    Example:
        >>> from metastore._analyze.kernel import constant
        >>> from metastore._format.columns import Column
        >>> column = Column("1", ("x",), "int", "long")
        >>> tree = Tree([column], {(str(i), 1): [constant(column, i, 10)] for i in range(200)})
        >>> tree.remove(("199", 1))
        >>> tree.add(("200", 1), [constant(column, 500, 10)])
        >>> [(one.rows, one.lo, one.hi) for one in tree.root()]
        [(2000, 0, 500)]
    """

    def __init__(self, columns: Sequence[Column], files: Mapping[Key, Sequence[ColumnStatistics]]) -> None:
        """Merge the statistics of all files.

        Args:
            columns: The columns.
            files: By path and size the statistics of each column, in their order.
        """
        self._columns = columns
        self._levels = [max(1, -(-len(files) // FAN_OUT))]
        while self._levels[-1] > 1:
            self._levels.append(-(-self._levels[-1] // FAN_OUT))
        self._nodes = [[[_Node() for _ in range(count)] for count in self._levels] for _ in columns]
        leaves: list[dict[Key, Sequence[ColumnStatistics]]] = [{} for _ in range(self._levels[0])]
        for key, statistics in files.items():
            leaves[self._leaf(key)][key] = statistics
        for place in range(len(columns)):
            self._fill(place, leaves)

    def add(self, key: Key, statistics: Sequence[ColumnStatistics]) -> None:
        """Add a file, or replace what is known of it.

        Args:
            key: Its path and size.
            statistics: Of each column, in their order.
        """
        for place, one in enumerate(statistics):
            self._change(place, key, one)

    def remove(self, key: Key) -> None:
        """Take a file out.

        Raises:
            KeyError: It is not in the tree.
        """
        if key not in self._nodes[0][0][self._leaf(key)].children:
            raise KeyError(key)
        for place in range(len(self._columns)):
            self._change(place, key, None)

    def root(self) -> list[ColumnStatistics]:
        """The statistics of the table, column by column; none of a tree without files."""
        found = [levels[-1][0].reduced(column) for levels, column in zip(self._nodes, self._columns, strict=True)]
        return [one for one in found if one is not None]

    def _change(self, place: int, key: Key, statistics: ColumnStatistics | None) -> None:
        child: Hashable = key
        at, found = self._leaf(key), statistics
        for level in self._nodes[place][:-1]:
            level[at].put(child, found)
            found = level[at].reduced(self._columns[place])
            child, at = at, at // FAN_OUT
        self._nodes[place][-1][0].put(child, found)

    def _fill(self, place: int, leaves: Sequence[Mapping[Key, Sequence[ColumnStatistics]]]) -> None:
        level, column = self._nodes[place], self._columns[place]
        for node, files in zip(level[0], leaves, strict=True):
            known = [statistics[place] for statistics in files.values()]
            node.rows = summary_table((0, i, one) for i, one in enumerate(known))
            node.thetas = [one.theta for one in known]
            node.children = list(files)
        for lower, upper in itertools.pairwise(level):
            merged = [(i, found) for i, node in enumerate(lower) if (found := node.reduced(column)) is not None]
            for parent, node in enumerate(upper):
                own = [(i, one) for i, one in merged if i // FAN_OUT == parent]
                node.rows = summary_table((0, i, one) for i, one in own)
                node.thetas = [one.theta for _, one in own]
                node.children = [i for i, _ in own]

    def _leaf(self, key: Key) -> int:
        digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self._levels[0]
