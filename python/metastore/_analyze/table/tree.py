"""The groups in which the data files of a column are merged, and what is kept of what they were merged to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore._analyze.nodes import Groups

    Longs = NDArray[np.int64]

T = TypeVar("T")


class Tree:
    """The groups of a column: which are known, which data files have to be read.

    Example:
        >>> groups = Groups(words)  # doctest: +SKIP
        >>> Tree(groups, np.arange(1000), b"sum", {}).files  # doctest: +SKIP
        array([  0,   1,   2, ..., 999])
    """

    def __init__(self, groups: Groups, order: Longs, what: bytes, known: Container[bytes]) -> None:
        """Look for what is known.

        Args:
            groups: Of the column's data files.
            order: The data files in the order of the groups, as places among those of the column.
            what: Says what is kept of a group.
            known: The keys of what is kept.
        """
        self._groups = groups
        self._order = order
        self._what = what
        self.covers: list[bytes] = []
        """The keys of the groups that are known and in no other such group."""
        self.files = np.sort(self._order[list(self._outside(groups.top, self._top, known))])
        """The data files in no such group, ascending."""

    def keys(self) -> Iterator[bytes]:
        """The keys of all groups."""
        for level in range(self._groups.top, 0, -1):
            yield from (self._key(level, group) for group in range(self._groups.number(level)))

    def merged(
        self, file: Callable[[int], T], known: Mapping[bytes, T], merge: Callable[[Sequence[T]], T]
    ) -> Merged[T]:
        """Merge what is not known.

        Args:
            file: What there is of a data file, by its place.
            known: What there is of the groups in `covers`.
            merge: Makes one of what is in a group.
        """
        made: dict[bytes, T] = {}

        def parts(level: int, places: range) -> list[T]:
            if level:
                return [one(level, place) for place in places]
            return [file(place) for place in self._order[places.start : places.stop].tolist()]

        def one(level: int, place: int) -> T:
            key = self._key(level, place)
            if key in known:
                return known[key]
            made[key] = merge(parts(level - 1, self._groups.members(level, place)))
            return made[key]

        return Merged(parts(self._groups.top, self._top), made)

    @property
    def _top(self) -> range:
        return range(self._groups.number(self._groups.top))

    def _key(self, level: int, group: int) -> bytes:
        return self._groups.key(level, group) + self._what

    def _outside(self, level: int, places: range, known: Container[bytes]) -> Iterator[int]:
        if not level:
            yield from places
            return
        for place in places:
            key = self._key(level, place)
            if key in known:
                self.covers.append(key)
            else:
                yield from self._outside(level - 1, self._groups.members(level, place), known)


class Merged(Generic[T]):
    """What a column was merged to.

    Attributes:
        parts: What the uppermost groups, or the data files if there are no groups, were merged to.
        made: What was not known, by key.
    """

    def __init__(self, parts: list[T], made: dict[bytes, T]) -> None:
        self.parts = parts
        self.made = made
