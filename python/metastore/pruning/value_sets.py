"""Sets of a column's values: what a condition on one column is true of."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
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
    r"""The least key above another one.

    Example:
        >>> following(7), following(b"a")
        (8, b'a\x00')
    """
    return key + 1 if isinstance(key, int) else key + b"\0"


@dataclass(frozen=True)
class ValueSet:
    """Values of a column, NULL perhaps among them.

    Attributes:
        boundaries: Keys, ascending: from each on to the next, membership changes.
        begins_inside: Whether the keys before the first boundary are in the set.
        null: Whether NULL is.
        test: What else a value has to fulfil, where the boundaries alone take too many.

    Example:
        >>> some = ValueSet.between(3, 8) | ValueSet.of([12])
        >>> [key for key in range(15) if key in some]
        [3, 4, 5, 6, 7, 12]
    """

    boundaries: tuple[Key, ...] = ()
    begins_inside: bool = False
    null: bool = False
    test: Callable[[Key], bool] | None = None

    @classmethod
    def between(cls, start: Key | None, end: Key | None) -> ValueSet:
        """The keys from `start` to `end`, which is not among them; None has no limit."""
        if start is not None and end is not None and start >= end:
            return NO_VALUE
        return cls(tuple(key for key in (start, end) if key is not None), start is None)

    @classmethod
    def of(cls, keys: Sequence[Key]) -> ValueSet:
        """Single keys."""
        found: list[Key] = []
        for key in sorted(set(keys)):
            if found and found[-1] == key:
                found.pop()
            else:
                found.append(key)
            found.append(following(key))
        return cls(tuple(found))

    def __contains__(self, key: Key) -> bool:
        inside = self.begins_inside ^ bool(bisect_right(self.boundaries, key) & 1)
        return inside and (self.test is None or self.test(key))

    def __or__(self, other: ValueSet) -> ValueSet:
        test = None if self.test is None and other.test is None else lambda key: key in self or key in other
        return self._merge(other, lambda one, two: one or two, null=self.null or other.null, test=test)

    def __and__(self, other: ValueSet) -> ValueSet:
        test = None if self.test is None and other.test is None else lambda key: key in self and key in other
        return self._merge(other, lambda one, two: one and two, null=self.null and other.null, test=test)

    def with_null(self) -> ValueSet:
        """The same and NULL."""
        return ValueSet(self.boundaries, self.begins_inside, null=True, test=self.test)

    def complement(self) -> ValueSet:
        """All other values, without NULL."""
        test = self.test
        if test is not None:
            return ValueSet(begins_inside=True, test=lambda key: key not in self)
        return ValueSet(self.boundaries, not self.begins_inside)

    def meets(self, lo: NDArray[Any], hi: NDArray[Any], has_lo: Mask, has_hi: Mask, exact: Mask) -> Mask:
        """Whether any key from `lo` to `hi`, both included, may be in the set.

        Where both are one key, and one of them was rounded, that key is not proven to be the only value.
        """
        ends, inside = self._comparable_boundaries(lo.dtype)
        first = np.where(has_lo, np.searchsorted(ends, lo, "right"), 0)
        last = np.where(has_hi, np.searchsorted(ends, hi, "right"), len(ends))
        met = (inside ^ (first & 1).astype(bool)) | (last > first)
        in_hole = (first > 0) & (first < len(ends)) if len(ends) else np.zeros(len(lo), bool)
        met |= in_hole & has_lo & has_hi & ~exact & np.asarray(lo == hi, bool)
        return np.asarray(met, bool)

    def points(self, lo: Key | None, hi: Key | None, most: int) -> list[Key] | None:
        """The keys from `lo` to `hi` that are in the set, where they are single ones and no more than `most`."""
        ends = self.boundaries
        first = 0 if lo is None else bisect_right(ends, lo)
        last = len(ends) if hi is None else bisect_right(ends, hi)
        if self.begins_inside ^ bool(first & 1):
            first -= 1
        if first < 0 or (last == len(ends) and self.begins_inside ^ bool(last & 1)):
            return None
        found: list[Key] = []
        for start, end in zip(ends[first:last:2], ends[first + 1 : last + 2 : 2], strict=False):
            if isinstance(start, int) and isinstance(end, int):
                if end - start > most:
                    return None
                found += range(start, end)
            elif following(start) == end:
                found.append(start)
            else:
                return None
        return None if len(found) > most else found

    def _merge(
        self,
        other: ValueSet,
        join: Callable[[bool, bool], bool],
        *,
        null: bool,
        test: Callable[[Key], bool] | None,
    ) -> ValueSet:
        begins = before = join(self.begins_inside, other.begins_inside)
        found: list[Key] = []
        places = [0, 0]
        both = (self.boundaries, other.boundaries)
        for key in sorted({*self.boundaries, *other.boundaries}):
            places = [
                place + (place < len(ends) and ends[place] == key) for place, ends in zip(places, both, strict=True)
            ]
            inside = join(self.begins_inside ^ bool(places[0] & 1), other.begins_inside ^ bool(places[1] & 1))
            if inside != before:
                found.append(key)
                before = inside
        return ValueSet(tuple(found), begins, null, test)

    def _comparable_boundaries(self, kind: np.dtype[Any]) -> tuple[NDArray[Any], bool]:
        """The boundaries as an array of that kind: those that no 64-bit integer reaches are left out."""
        if kind == np.int64:
            below = sum(1 for key in self.boundaries if key <= _INT64.min)
            held = [key for key in self.boundaries[below:] if key <= _INT64.max]
            return np.array(held, np.int64), self.begins_inside ^ bool(below & 1)
        ends = np.empty(len(self.boundaries), object)
        ends[:] = self.boundaries
        return ends, self.begins_inside


def join_sets(sets: list[ValueSet], join: Callable[[ValueSet, ValueSet], ValueSet]) -> ValueSet:
    """One of one or more; pairs first, then pairs of pairs: a thousand one after the other are a thousand deep."""
    while len(sets) > 1:
        sets = [reduce(join, sets[place : place + 2]) for place in range(0, len(sets), 2)]
    return sets[0]


NO_VALUE = ValueSet()
ALL_VALUES = ValueSet(begins_inside=True)
ONLY_NULL = ValueSet(null=True)
