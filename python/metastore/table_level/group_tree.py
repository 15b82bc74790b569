"""The groups in which the data files of a column are merged."""

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
    """The groups of a column, and the data files that no stored group covers.

    Args:
        groups: The groups of the data files.
        order: The data files in the order of the groups.
        content_key: Identifies the values that are stored of a group; see `group_cache_key`.
        stored: The keys of stored groups.
    """

    def __init__(self, groups: FileGroups, order: Longs, content_key: bytes, stored: Container[bytes]) -> None:
        self._groups = groups
        self._order = order
        self._content_key = content_key
        self.stored_groups: list[bytes] = []
        """The keys of the stored groups that are in no other stored group."""
        self.leaves: list[Longs] = []
        """The data files in no stored group, in the order of the groups, those of one group together."""
        self._look_up(groups.top, self._top, stored)

    def keys(self) -> Iterator[bytes]:
        """Yield the keys of all groups."""
        for level in range(self._groups.top, 0, -1):
            for group in range(self._groups.count(level)):
                yield self._key(level, group)

    def merge(
        self, take_files: Callable[[Longs], Sequence[T]], stored: Mapping[bytes, T], merge: Callable[[Sequence[T]], T]
    ) -> tuple[Sequence[T], dict[bytes, T]]:
        """Merge the groups that are not stored.

        Returns:
            The parts of the uppermost level, or of the files if there are no groups, and the merged groups by key.
        """
        merged: dict[bytes, T] = {}

        def take_parts(level: int, members: range) -> Sequence[T]:
            if level == 0:
                return take_files(self._order[members.start : members.stop])
            return [take_group(level, group) for group in members]

        def take_group(level: int, group: int) -> T:
            key = self._key(level, group)
            if key in stored:
                return stored[key]
            merged[key] = merge(take_parts(level - 1, self._groups.members(level, group)))
            return merged[key]

        return take_parts(self._groups.top, self._top), merged

    @cached_property
    def files_to_read(self) -> Longs:
        """The data files in no stored group, in the order of the groups."""
        return np.concatenate([self._order[:0], *self.leaves])

    @property
    def is_flat(self) -> bool:
        """Return whether there are no groups."""
        return not self._groups.top

    def select_files(self, numbers: Longs) -> Longs:
        """Replace the numbers of the data files in stored groups by -1."""
        selected = np.full(len(numbers), -1)
        selected[self.files_to_read] = numbers[self.files_to_read]
        return selected

    @cached_property
    def ranks(self) -> Longs:
        """The position of each data file in the order of the groups."""
        ranks = np.empty(len(self._order), np.int64)
        ranks[self._order] = np.arange(len(self._order))
        return ranks

    def with_stored(self, stored: Container[bytes]) -> GroupTree:
        """Return the same groups with another set of stored ones."""
        return GroupTree(self._groups, self._order, self._content_key, stored)

    @property
    def _top(self) -> range:
        return range(self._groups.count(self._groups.top))

    def _key(self, level: int, group: int) -> bytes:
        return self._groups.key(level, group) + self._content_key

    def _look_up(self, level: int, members: range, stored: Container[bytes]) -> None:
        if level == 0:
            self.leaves.append(self._order[members.start : members.stop])
            return
        for group in members:
            key = self._key(level, group)
            if key in stored:
                self.stored_groups.append(key)
            else:
                self._look_up(level - 1, self._groups.members(level, group), stored)


FAN_OUT = 64
"""The average number of files, or of groups, in a group."""

_BYTES = 16


def digest_of_facts(*facts: object) -> bytes:
    """Return a digest of sixteen bytes, such as that of a data file and the digests of its details."""
    return hashlib.blake2b(repr(facts).encode(), digest_size=_BYTES).digest()


def find_group_ends(words: Words) -> list[Longs]:
    """Group files, groups of files, and so on, until few remain; return the ends of the groups of each level."""
    levels = []
    while len(words) > FAN_OUT:
        last = words == _largest_near(words, FAN_OUT // 2)
        last[-1] = True
        ends = np.flatnonzero(last) + 1
        if len(ends) == len(words):  # all have the same hash
            break
        levels.append(ends)
        words = words[ends - 1]
    return levels


def _largest_near(words: Words, reach: int) -> Words:
    """Return the maximum of each word and the words up to `reach` before and after it, in log(reach) passes."""
    width = 2 * reach + 1
    span = 1
    maxima = np.pad(words, reach)
    while 2 * span <= width:
        maxima = np.maximum(maxima[:-span], maxima[span:])
        span *= 2
    shift = width - span
    return np.maximum(maxima[: len(words)], maxima[shift : shift + len(words)])


class FileGroups:
    """The groups of data files, each with a key that follows from its files."""

    def __init__(self, identities: Words) -> None:
        self._ends = find_group_ends(identities[:, 0])
        sums = identities
        self._sums = [identities.tobytes()]
        for ends in self._ends:
            sums = np.add.reduceat(sums, np.concatenate([[0], ends[:-1]]), axis=0)
            self._sums.append(sums.tobytes())

    @property
    def top(self) -> int:
        """The uppermost level; level 0 is the files."""
        return len(self._ends)

    def count(self, level: int) -> int:
        """Return the number of groups of a level."""
        return len(self._sums[level]) // _BYTES

    def members(self, level: int, group: int) -> range:
        """Return the members of a group on the level below."""
        ends = self._ends[level - 1]
        start = int(ends[group - 1]) if group else 0
        return range(start, int(ends[group]))

    def key(self, level: int, group: int) -> bytes:
        """Return the sum of the identities of a group's files, with the level."""
        return self._sums[level][group * _BYTES : (group + 1) * _BYTES] + bytes([level])
