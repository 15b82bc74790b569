"""The groups in which the data files of a column are merged, and what is kept of what they were merged to."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Longs = NDArray[np.int64]
    Words = NDArray[np.uint64]


T = TypeVar("T")


class GroupTree:
    """The groups of a column: which are known, which data files have to be read."""

    def __init__(self, groups: FileGroups, order: Longs, what: bytes, known: Container[bytes]) -> None:
        """Look for what is known."""
        self._groups = groups
        self._order = order
        self._what = what
        self.known_groups: list[bytes] = []
        """The keys of the groups that are known and in no other such group."""
        self.leaves: list[Longs] = []
        """The data files in no such group, in the order of the groups, those of one group together."""
        self._look(groups.top, self._top, known)

    def keys(self) -> Iterator[bytes]:
        """The keys of all groups."""
        for level in range(self._groups.top, 0, -1):
            yield from (self._key(level, group) for group in range(self._groups.count(level)))

    def merge(
        self, files: Callable[[Longs], Sequence[T]], known: Mapping[bytes, T], merge: Callable[[Sequence[T]], T]
    ) -> tuple[Sequence[T], dict[bytes, T]]:
        """Merge what is not known: what the uppermost groups, or files without any, became; what was made, by key."""
        made: dict[bytes, T] = {}

        def parts(level: int, places: range) -> Sequence[T]:
            return [one(level, place) for place in places] if level else files(self._order[places.start : places.stop])

        def one(level: int, place: int) -> T:
            key = self._key(level, place)
            if key in known:
                return known[key]
            made[key] = merge(parts(level - 1, self._groups.members(level, place)))
            return made[key]

        return parts(self._groups.top, self._top), made

    @cached_property
    def files_to_read(self) -> Longs:
        """The data files in no group that is known, in the order of the groups."""
        return np.concatenate([self._order[:0], *self.leaves])

    @property
    def is_flat(self) -> bool:
        """Whether there are no groups."""
        return not self._groups.top

    def select_files(self, wanted: Longs) -> Longs:
        """For each data file of the column what is given, -1 for those in known groups."""
        found = np.full(len(wanted), -1)
        found[self.files_to_read] = wanted[self.files_to_read]
        return found

    @cached_property
    def ranks(self) -> Longs:
        """The place of each data file in the order of the groups."""
        found = np.empty(len(self._order), np.int64)
        found[self._order] = np.arange(len(self._order))
        return found

    def with_known(self, known: Container[bytes]) -> GroupTree:
        """The same groups where others are known."""
        return GroupTree(self._groups, self._order, self._what, known)

    @property
    def _top(self) -> range:
        return range(self._groups.count(self._groups.top))

    def _key(self, level: int, group: int) -> bytes:
        return self._groups.key(level, group) + self._what

    def _look(self, level: int, places: range, known: Container[bytes]) -> None:
        if not level:
            self.leaves.append(self._order[places.start : places.stop])
            return
        for place in places:
            key = self._key(level, place)
            if key in known:
                self.known_groups.append(key)
            else:
                self._look(level - 1, self._groups.members(level, place), known)


FAN_OUT = 64
"""So many files, or groups of them, make a group on average."""

_BYTES = 16


def digest_of_facts(*facts: object) -> bytes:
    """Sixteen bytes that tell a data file and what is known of it from all others."""
    return hashlib.blake2b(repr(facts).encode(), digest_size=_BYTES).digest()


def find_group_ends(words: Words) -> list[Longs]:
    """Group files, groups of files, and so on, until few are left."""
    found = []
    while len(words) > FAN_OUT:
        last = words == _largest_near(words, FAN_OUT // 2)
        last[-1] = True
        ends = np.flatnonzero(last) + 1
        if len(ends) == len(words):  # of one hash
            break
        found.append(ends)
        words = words[ends - 1]
    return found


def _largest_near(words: Words, reach: int) -> Words:
    """The largest of each word and of so many before and after it, in a few passes whatever the reach."""
    width, span = 2 * reach + 1, 1
    found = np.pad(words, reach)
    while 2 * span <= width:
        found = np.maximum(found[:-span], found[span:])
        span *= 2
    rest = width - span
    return np.maximum(found[: len(words)], found[rest : rest + len(words)])


class FileGroups:
    """The groups of data files, each with a key that says what it merges."""

    def __init__(self, identities: Words) -> None:
        """Group files."""
        self._ends = find_group_ends(identities[:, 0])
        sums, self._sums = identities, [identities.tobytes()]
        for ends in self._ends:
            sums = np.add.reduceat(sums, np.concatenate([[0], ends[:-1]]), axis=0)
            self._sums.append(sums.tobytes())

    @property
    def top(self) -> int:
        """The uppermost level; 0 is that of files."""
        return len(self._ends)

    def count(self, level: int) -> int:
        """How many groups a level has."""
        return len(self._sums[level]) // _BYTES

    def members(self, level: int, group: int) -> range:
        """What a group has of the level below."""
        ends = self._ends[level - 1]
        return range(int(ends[group - 1]) if group else 0, int(ends[group]))

    def key(self, level: int, group: int) -> bytes:
        """What says which files a group merges, and how."""
        return self._sums[level][group * _BYTES : (group + 1) * _BYTES] + bytes([level])
