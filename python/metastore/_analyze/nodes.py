"""Partial merges: the statistics of groups of data files, found again by what they merge.

The data files of a column are grouped as they follow each other by path, about `FAN_OUT` to a group, groups to larger
ones, and so on. A hash of each file alone decides whether a group ends with it. So the groups follow from the set of
files, in whatever order these came: a file that comes or goes changes the groups that it is in, one a level, and
merging what changed gives the same numbers as merging from scratch.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from metastore._analyze.kernel import distinct_of, merged_column, reduce_columns, row_of
from metastore._analyze.kernel.theta import Theta
from metastore._format.schemas import TABLE_NODES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore._analyze.kernel import ColumnStatistics
    from metastore._format.columns import Column

    Longs = NDArray[np.int64]
    Words = NDArray[np.uint64]

FAN_OUT = 64
"""So many files, or groups of them, make a group on average."""

_BYTES = 16
_MERGING = 1
"""Raised whenever groups would be merged to other numbers than before: what is stored is of no use then."""

_ENCODINGS = ("long", "double", "binary")
_MERGED = [field for field in TABLE_NODES if field.name not in ("node", "theta")]


@dataclass(frozen=True)
class Inputs:
    """What a column's statistics are merged from.

    Attributes:
        every: A row of the schema `summary` for each file, in order or not; percentiles may be missing.
        rows: The rows of the files that `Merge.wanted` names, in their order, with percentiles.
        thetas: The sketch of each of these.
    """

    every: pa.Table
    rows: pa.Table
    thetas: Sequence[Theta | None]


@dataclass(frozen=True)
class Node:
    """What a group of data files was merged to.

    Attributes:
        row: A row with the fields of `fields_of` its column, and perhaps those of others.
        theta: The sketch.
    """

    row: pa.Table
    theta: Theta | None


def fields_of(column: Column) -> pa.Schema:
    """The fields of `summary` that are merged for a column.

    Example:
        >>> from metastore._format.columns import Column
        >>> "lo_double" in fields_of(Column("1", ("x",), "int", "long")).names
        False
    """
    return _fields_of(column.encoding)


@cache
def _fields_of(kept: str | None) -> pa.Schema:
    others = tuple(f"_{encoding}" for encoding in _ENCODINGS if encoding != kept)
    return pa.schema([field for field in _MERGED if not field.name.endswith(others)])


def identity(*facts: object) -> bytes:
    """Sixteen bytes that tell a data file and what is known of it from all others.

    Example:
        >>> len(identity("/w/t/a.parquet", 1234, "full"))
        16
    """
    return hashlib.blake2b(repr(facts).encode(), digest_size=_BYTES).digest()


def levels_of(words: Words) -> list[Longs]:
    """Group files, groups of files, and so on, until few are left.

    Args:
        words: A hash of each file, in order.

    Returns:
        From the lowest level up, where each group ends among what is below.

    Example:
        >>> [len(ends) for ends in levels_of(np.arange(1, 4097, dtype=np.uint64))]
        [64]
    """
    found = []
    while len(words) > FAN_OUT:
        last = words % np.uint64(FAN_OUT) == 0
        last[-1] = True
        ends = np.flatnonzero(last) + 1
        if len(ends) == len(words):
            break
        found.append(ends)
        words = words[ends - 1] // np.uint64(FAN_OUT)
    return found


class Groups:
    """The groups of data files, each with a key that says what it merges."""

    def __init__(self, identities: Words) -> None:
        """Group files.

        Args:
            identities: Of each file, in order, its `identity` as two numbers.
        """
        self._ends = levels_of(identities[:, 0])
        sums, self._sums = identities, [identities.tobytes()]
        for ends in self._ends:
            sums = np.add.reduceat(sums, np.concatenate([[0], ends[:-1]]), axis=0)
            self._sums.append(sums.tobytes())

    @property
    def top(self) -> int:
        """The uppermost level; 0 is that of files."""
        return len(self._ends)

    def number(self, level: int) -> int:
        """How many groups a level has."""
        return len(self._sums[level]) // _BYTES

    def members(self, level: int, group: int) -> range:
        """What a group has of the level below."""
        ends = self._ends[level - 1]
        return range(int(ends[group - 1]) if group else 0, int(ends[group]))

    def key(self, level: int, group: int) -> bytes:
        """What says which files a group merges, and how."""
        return self._sums[level][group * _BYTES : (group + 1) * _BYTES] + bytes([level])


class Merge:
    """The reduction of a column: which groups are known, which files have to be merged again.

    Example:
        >>> from metastore._analyze.kernel import constant, summary_table
        >>> from metastore._format.columns import Column
        >>> column = Column("1", ("x",), "int", "long")
        >>> files = [constant(column, i, 10) for i in range(200)]
        >>> rows = summary_table((0, i, one) for i, one in enumerate(files))
        >>> thetas = [Theta.from_bytes(one.theta) for one in files]
        >>> words = np.random.default_rng(1).integers(0, 1 << 63, (200, 2), dtype=np.uint64)
        >>> merge = Merge(column, Groups(words), {})
        >>> found = merge.reduced(Inputs(rows, rows, thetas))
        >>> (found.rows, found.lo, found.hi), len(Merge(column, Groups(words), merge.made).wanted)
        ((2000, 0, 199), 0)
    """

    def __init__(self, column: Column, groups: Groups, known: Mapping[bytes, Node]) -> None:
        """Look for what is known.

        Args:
            column: The column.
            groups: Of its data files.
            known: Groups that were merged before, by key.
        """
        self.column = column
        self.groups = groups
        self._identity = identity(_MERGING, column.key, column.type)
        self._fields = fields_of(column)
        self.made: dict[bytes, Node] = {}
        self._known = known
        self._wanted = sorted(self._missing(self.groups.top, range(self.groups.number(self.groups.top))))

    @property
    def wanted(self) -> Longs:
        """The places of the files of which rows and sketches are needed, ascending."""
        return np.array(self._wanted, np.int64)

    def keys(self) -> Iterator[bytes]:
        """The keys of the column in all groups, the uppermost first."""
        for level in range(self.groups.top, 0, -1):
            yield from (self._key(level, group) for group in range(self.groups.number(level)))

    @property
    def is_flat(self) -> bool:
        """Whether files are so few that there are no groups of them."""
        return not self.groups.top

    def reduced(self, given: Inputs) -> ColumnStatistics:
        """Merge what is not known, and all of it to the statistics of the table."""
        place = {file: at for at, file in enumerate(self._wanted)}
        found = self._merged(
            self.groups.top, range(self.groups.number(self.groups.top)), (place, given.rows, given.thetas)
        )
        # Whether files lie apart shows between files alone.
        return replace(found, **distinct_of(self.column, given.every, found.theta))

    def _key(self, level: int, group: int) -> bytes:
        return self.groups.key(level, group) + self._identity

    def _missing(self, level: int, groups: range) -> Iterator[int]:
        if not level:
            yield from groups
            return
        for group in groups:
            if self._key(level, group) not in self._known:
                yield from self._missing(level - 1, self.groups.members(level, group))

    def _merged(
        self, level: int, groups: range, files: tuple[Mapping[int, int], pa.Table, Sequence[Theta | None]]
    ) -> ColumnStatistics:
        place, rows, thetas = files
        if not level:
            at = place[groups.start] if groups else 0
            return merged_column(self.column, rows.slice(at, len(groups)), thetas[at : at + len(groups)])
        nodes = [self._node(level, group, files) for group in groups]
        return merged_column(
            self.column, pa.concat_tables([one.row for one in nodes]).combine_chunks(), [one.theta for one in nodes]
        )

    def _node(self, level: int, group: int, files: tuple[Mapping[int, int], pa.Table, Sequence[Theta | None]]) -> Node:
        key = self._key(level, group)
        known = self._known.get(key)
        if known is not None:
            stored = known.row.num_columns > len(self._fields)
            return replace(known, row=known.row.select(self._fields.names)) if stored else known
        found = self._merged(level - 1, self.groups.members(level, group), files)
        theta = None if found.theta is None else Theta.from_bytes(found.theta)
        self.made[key] = Node(row_of(found, self._fields), theta)
        return self.made[key]


def reduce_all(merges: Sequence[Merge], given: Sequence[Inputs]) -> list[ColumnStatistics]:
    """Merge columns to the statistics of the table; those with few files at once.

    Args:
        merges: How each column is merged.
        given: Of what.

    Example:
        >>> reduce_all([], [])
        []
    """
    flat = [place for place, merge in enumerate(merges) if merge.is_flat]
    together = reduce_columns(
        [merges[place].column for place in flat],
        [given[place].rows for place in flat],
        [given[place].thetas for place in flat],
    )
    found = dict(zip(flat, together, strict=True))
    return [
        found.get(place) or merge.reduced(of_column)
        for place, (merge, of_column) in enumerate(zip(merges, given, strict=True))
    ]
