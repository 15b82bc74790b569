"""Sets of a column's values: the values for which a condition on one column is true."""

from __future__ import annotations

import operator
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

Key = Any
"""An integer or a byte string in the order of a column's type: see `metastore.pruning.keys`."""

_INT64 = np.iinfo(np.int64)


def following(key: Key) -> Key:
    r"""Return the least key above a key.

    Example:
        >>> following(7), following(b"a")
        (8, b'a\x00')
    """
    if isinstance(key, int):
        return key + 1
    return key + b"\0"


def add_boundary(boundaries: list[Key], key: Key) -> None:
    """Append a boundary; two equal boundaries cancel each other, because the interval between them is empty."""
    if boundaries[-1:] == [key]:
        boundaries.pop()
    else:
        boundaries.append(key)


@dataclass(frozen=True)
class ValueSet:
    """A set of a column's values, and perhaps NULL.

    Attributes:
        boundaries: Keys in ascending order; membership changes at each.
        begins_inside: Whether the keys before the first boundary are in the set.
        null: Whether NULL is in the set.
        test: A further test of each value within the boundaries.

    Example:
        >>> values = ValueSet.between(3, 8) | ValueSet.of([12])
        >>> [key for key in range(15) if key in values]
        [3, 4, 5, 6, 7, 12]
    """

    boundaries: tuple[Key, ...] = ()
    begins_inside: bool = False
    null: bool = False
    test: Callable[[Key], bool] | None = None

    @classmethod
    def between(cls, start: Key | None, end: Key | None) -> ValueSet:
        """Return the set of the keys from `start` to before `end`; None means no limit."""
        if start is None:
            return ALL_VALUES if end is None else cls((end,), begins_inside=True)
        if end is None:
            return cls((start,))
        if start >= end:
            return NO_VALUE
        return cls((start, end))

    @classmethod
    def of(cls, keys: Sequence[Key]) -> ValueSet:
        """Return the set of these keys."""
        boundaries: list[Key] = []
        for key in sorted(set(keys)):
            add_boundary(boundaries, key)
            boundaries.append(following(key))
        return cls(tuple(boundaries))

    def __contains__(self, key: Key) -> bool:
        is_within = self._is_inside_after(bisect_right(self.boundaries, key))
        if self.test is None or not is_within:
            return is_within
        return self.test(key)

    def _is_inside_after(self, number: int) -> bool:
        """Return whether keys after this number of boundaries are in the set."""
        return self.begins_inside != (number % 2 == 1)

    def __or__(self, other: ValueSet) -> ValueSet:
        return self._merge(other, operator.or_, lambda key: key in self or key in other)

    def __and__(self, other: ValueSet) -> ValueSet:
        return self._merge(other, operator.and_, lambda key: key in self and key in other)

    def with_null(self) -> ValueSet:
        """Return the set with NULL."""
        return ValueSet(self.boundaries, self.begins_inside, null=True, test=self.test)

    def complement(self) -> ValueSet:
        """Return all other values, without NULL."""
        if self.test is not None:
            return ValueSet(begins_inside=True, test=lambda key: key not in self)
        return ValueSet(self.boundaries, not self.begins_inside)

    def meets(self, lo: NDArray[Any], hi: NDArray[Any], has_lo: Mask, has_hi: Mask, exact: Mask) -> Mask:
        """Return whether a key from `lo` to `hi`, both included, may be in the set.

        Equal bounds that are not exact stand for values near them, which may lie between two boundaries.
        """
        boundaries, begins_inside = self._comparable_boundaries(lo.dtype)
        first = np.where(has_lo, np.searchsorted(boundaries, lo, "right"), 0)
        last = np.where(has_hi, np.searchsorted(boundaries, hi, "right"), len(boundaries))
        starts_inside = begins_inside ^ (first % 2 == 1)
        crosses_boundary = last > first
        lies_between = (first > 0) & (first < len(boundaries))
        is_rounded_point = has_lo & has_hi & ~exact & np.asarray(lo == hi, bool)
        return np.asarray(starts_inside | crosses_boundary | (lies_between & is_rounded_point), bool)

    def points(self, lo: Key | None, hi: Key | None, most: int) -> list[Key] | None:
        """List the keys of the set from `lo` to `hi`; None if there are more than `most`, or they cannot be listed."""
        intervals = self._list_intervals(lo, hi)
        if intervals is None:
            return None
        keys: list[Key] = []
        for start, end in intervals:
            interval = _list_interval(start, end, most)
            if interval is None:
                return None
            keys += interval
        if len(keys) > most:
            return None
        return keys

    def _list_intervals(self, lo: Key | None, hi: Key | None) -> list[tuple[Key, Key]] | None:
        """Return the intervals of the set that meet the keys from `lo` to `hi`; None if one has no limit."""
        boundaries = self.boundaries
        first = 0
        last = len(boundaries)
        if lo is not None:
            first = bisect_right(boundaries, lo)
        if hi is not None:
            last = bisect_right(boundaries, hi)
        if self._is_inside_after(first):
            first -= 1  # to the start of the interval that `lo` lies in
        if self._is_inside_after(last):
            last += 1  # to the end of the interval that `hi` lies in
        if first < 0 or last > len(boundaries):
            return None
        return list(zip(boundaries[first:last:2], boundaries[first + 1 : last : 2], strict=True))

    def _merge(
        self, other: ValueSet, join: Callable[[bool, bool], bool], joined_test: Callable[[Key], bool]
    ) -> ValueSet:
        own_boundaries = frozenset(self.boundaries)
        other_boundaries = frozenset(other.boundaries)
        is_in_self = self.begins_inside
        is_in_other = other.begins_inside
        begins_inside = is_inside = join(is_in_self, is_in_other)
        boundaries: list[Key] = []
        for key in sorted(own_boundaries | other_boundaries):
            is_in_self ^= key in own_boundaries
            is_in_other ^= key in other_boundaries
            if join(is_in_self, is_in_other) != is_inside:
                boundaries.append(key)
                is_inside = not is_inside
        has_test = self.test is not None or other.test is not None
        null = join(self.null, other.null)
        values = ValueSet(tuple(boundaries), begins_inside, null)
        if has_test:
            return replace(values, test=joined_test)
        return values

    def _comparable_boundaries(self, dtype: np.dtype[Any]) -> tuple[NDArray[Any], bool]:
        """Return the boundaries as an array of this type, and whether the keys before the first are in the set."""
        if dtype == np.int64:
            # All 64-bit integers lie between the other boundaries.
            below = bisect_right(self.boundaries, int(_INT64.min))
            above = bisect_right(self.boundaries, int(_INT64.max))
            return np.array(self.boundaries[below:above], np.int64), self._is_inside_after(below)
        boundaries = np.empty(len(self.boundaries), object)
        boundaries[:] = self.boundaries
        return boundaries, self.begins_inside


def _list_interval(start: Key, end: Key, most: int) -> Sequence[Key] | None:
    """Return the keys from `start` to before `end`; None if there are too many."""
    if following(start) == end:
        return [start]
    if isinstance(start, int) and end - start <= most:
        return range(start, end)
    return None


def join_sets(sets: list[ValueSet], join: Callable[[ValueSet, ValueSet], ValueSet]) -> ValueSet:
    """Join one or more sets pair by pair; joined one after the other, their tests would be nested too deeply."""
    while len(sets) > 1:
        sets = [reduce(join, sets[first : first + 2]) for first in range(0, len(sets), 2)]
    return sets[0]


NO_VALUE = ValueSet()
ALL_VALUES = ValueSet(begins_inside=True)
ONLY_NULL = ValueSet(null=True)
