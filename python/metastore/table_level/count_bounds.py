"""What the lists of a column's data files leave out, and what that means for the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.format.sortable_values import identity_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column

    Longs = NDArray[np.int64]


COMPLETE, DUPLICATES, TOP, NONE = "complete", "duplicates", "top", "none"


@dataclass(frozen=True)
class OmittedCountBounds:
    """The data files whose list of a column is cut: between which bounds they may hold how much more of a value.

    Attributes:
        floors: No value that the file's list leaves out is more frequent.
        los: Lower bound of each file's values; None where it is not known.
        his: Upper bound, likewise.
        key: Maps a stored value to what compares as it does.
    """

    floors: Longs
    los: Sequence[Any]
    his: Sequence[Any]
    key: Callable[[Any], Any]

    @cached_property
    def most_of_unlisted(self) -> int:
        """No value that every list leaves out is more frequent in the table."""
        if len(self.floors) < 2 or not self._bounded:
            return int(self.floors.sum())
        los, his = self._reached
        # A value in no list lies inside of some files' ranges: the deepest overlap begins at a lower bound.
        return int((los.at(los.ends, "right") - his.at(los.ends, "left")).max())

    def bound_beside_lists(self, values: Sequence[Any] | NDArray[Any]) -> Longs:
        """How often values may occur in these files all told, listed or not; NaN may be in any of them."""
        total = int(self.floors.sum())
        if not len(self.floors) or not len(values) or not self._bounded:
            return np.full(len(values), total)
        los, his = self._reached
        keys = values if isinstance(values, np.ndarray) else self._keys(values)
        found: Longs = los.at(keys, "right") - his.at(keys, "left")
        return np.where(np.isnan(keys), total, found) if keys.dtype.kind == "f" else found

    @property
    def _bounded(self) -> bool:
        return all(bound is not None for bound in (*self.los, *self.his))

    @cached_property
    def _reached(self) -> tuple[_Sums, _Sums]:
        """The floors of the files by where their values begin, and by where they end."""
        return _Sums.of(self._keys(self.los), self.floors), _Sums.of(self._keys(self.his), self.floors)

    def _keys(self, values: Sequence[Any]) -> NDArray[Any]:
        return _array(list(values) if self.key is identity_key else [self.key(value) for value in values])


@dataclass(frozen=True)
class _Sums:
    """Floors added up in the order of their files' bounds."""

    ends: NDArray[Any]
    sums: Longs

    @classmethod
    def of(cls, ends: NDArray[Any], floors: Longs) -> _Sums:
        order = np.argsort(ends, kind="stable")
        return cls(ends[order], np.concatenate([[0], np.cumsum(floors[order])]))

    def at(self, keys: NDArray[Any], side: Any) -> Longs:
        """The floors of the files whose bound is passed at each key."""
        found: Longs = self.sums[np.searchsorted(self.ends, keys, side=side)]
        return found


def _array(values: list[Any]) -> NDArray[Any]:
    if values and isinstance(values[0], float):
        return np.array(values, np.float64)
    if values and all(isinstance(value, int) and -(1 << 63) <= value < 1 << 63 for value in values):
        return np.array(values, np.int64)
    found = np.empty(len(values), object)
    found[:] = values
    return found


@dataclass(frozen=True)
class FileValueCounts:
    """What is known of the lists of one column's data files.

    Attributes:
        ordinal: Its place in the snapshot's schema.
        kinds: What each file's list is.
        floors: The floor of each; 0 where the list is complete.
        values: How many values each file has, null excluded; -1 where that is not known.
        distincts: How many distinct ones; -1 where that is not known exactly.
        singles: How many of them occur once; -1 where not known.
        estimates: As `distincts`, or else what sketches estimate.
        width: Bytes of a value, on average.
    """

    column: Column
    ordinal: int
    kinds: tuple[str, ...]
    floors: Longs
    values: Longs
    distincts: Longs
    singles: Longs
    estimates: Longs
    los: tuple[Any, ...]
    his: tuple[Any, ...]
    width: float

    @cached_property
    def is_truncated(self) -> NDArray[np.bool_]:
        """Which files hold values that their list leaves out."""
        is_cut: NDArray[np.bool_] = np.array([kind != COMPLETE for kind in self.kinds], np.bool_)
        found: NDArray[np.bool_] = is_cut & (self.values != 0)
        return found

    @property
    def is_known(self) -> bool:
        """Whether every file with values has a list."""
        return not any(kind == NONE for kind, cut in zip(self.kinds, self.is_truncated, strict=True) if cut)

    @property
    def duplicates(self) -> Longs:
        """How many values of each file occur more than once, at most."""
        at_most = np.minimum(self.estimates, np.maximum(self.values - self.estimates, 0))
        known = (self.distincts >= 0) & (self.singles >= 0)
        return np.where(known, self.distincts - self.singles, at_most)
