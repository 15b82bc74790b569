"""Lists of values with their frequencies, and the greatest frequency that other values can have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.kernel.binary_values import LONGEST_COUNTED_VALUE, is_text_type
from metastore.kernel.complete_parts import require_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.kernel.detail_limits import DetailLimits

    Counts = NDArray[np.int64]


NONE = "none"
TOP = "top"
DUPLICATES = "duplicates"
COMPLETE = "complete"

_COMMON_LENGTH = 64  # bytes of a value
_SHORT = 4096
"""The longest list whose packed size is computed; the size of a longer one is estimated, to be quick."""

_FRAME = 32
_BLOCK = 256


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Values of a column, ascending, and how often each occurs.

    Attributes:
        kind: `complete` (all values), `duplicates` (all that occur more than once) or `top` (the most frequent).
        floor: The greatest frequency that a value that is not listed may have.
        values: As the format stores them: int64, double or binary.
        counts: The frequency of each.
    """

    kind: str
    floor: int
    values: pa.Array
    counts: Counts

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self.counts)

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same list."""
        return isinstance(other, ValueCounts) and self._parts() == other._parts()

    __hash__ = None  # type: ignore[assignment] # lists are not keys

    def _parts(self) -> tuple[Any, ...]:
        values = self.values
        if pa.types.is_floating(values.type):
            values = values.view(pa.int64())  # so that NaN is equal to itself
        return self.kind, self.floor, values, self.counts.tolist()

    @property
    def size(self) -> int:
        """The estimated bytes of the stored list; it hardly takes more."""
        number = len(self)
        if number == 0:
            return 0
        if pa.types.is_floating(self.values.type):
            return 10 * number
        if pa.types.is_integer(self.values.type):
            return _size_of_integers(self.values.to_numpy(), self.counts)
        return int(pc.sum(pc.binary_length(self.values)).as_py()) + 3 * number

    def is_uncut(self, most: int) -> bool:
        """Return whether all values are listed, at most `most` of them, and of usual lengths."""
        return self.kind == COMPLETE and len(self) <= most and self.size <= most * _COMMON_LENGTH

    def limit(self, detail: DetailLimits) -> ValueCounts:
        """Keep the list if it fits the limits, else only its most frequent values."""
        if self.is_uncut(detail.longest_uncut) or self.size <= detail.list_bytes:
            return self
        return self.keep_most_frequent(detail.top)

    def keep_most_frequent(self, top: int) -> ValueCounts:
        """Keep the most frequent of these values; of equally frequent ones, the least."""
        if len(self) <= top:
            return self
        positions, floor = _most_frequent(self.counts, top)
        return _listed(TOP, max(floor, self.floor), self.values.take(pa.array(positions)), self.counts[positions])

    def add_nan(self, number: int, top: int) -> ValueCounts:
        """Add the NaNs of the column, which are greater than all numbers."""
        if number == 0:
            return self
        if self.kind != COMPLETE and number <= self.floor:
            return self
        values = pa.concat_arrays([self.values, pa.array([np.nan])])
        with_nan = replace(self, values=values, counts=np.append(self.counts, number))
        if self.kind != TOP:
            return with_nan
        return with_nan.keep_most_frequent(top)

    def sort_by_count(self) -> ValueCounts:
        """Sort the list by descending frequency, then by value."""
        order = np.argsort(-self.counts, kind="stable")
        return replace(self, values=self.values.take(pa.array(order)), counts=self.counts[order])


def choose_counted_values(counts: Counts, detail: DetailLimits) -> tuple[str, int, NDArray[np.intp]]:
    """Decide which values are listed."""
    distinct = len(counts)
    single = int(np.count_nonzero(counts == 1))
    near_unique = 2 * single > distinct
    if distinct <= detail.shortest_list or (distinct <= detail.longest_list and not near_unique):
        return COMPLETE, 0, np.arange(distinct)
    if near_unique and distinct - single <= detail.longest_list:
        return DUPLICATES, 1, np.flatnonzero(counts > 1)
    positions, floor = _most_frequent(counts, detail.top)
    if floor > 1:
        return TOP, floor, positions
    return DUPLICATES, 1, positions[counts[positions] > 1]


def _most_frequent(counts: Counts, top: int) -> tuple[NDArray[np.intp], int]:
    """Find the positions of the most frequent values, and the floor of the others; of equal counts, the first wins."""
    if len(counts) <= top:
        return np.arange(len(counts)), 0
    rank = len(counts) - top
    least = np.partition(counts, rank)[rank]
    more = np.flatnonzero(counts > least)
    equal = np.flatnonzero(counts == least)
    positions = np.sort(np.concatenate([more, equal[: top - len(more)]]))
    if len(more) + len(equal) > top:
        return positions, int(least)
    return positions, int(counts[counts < least].max())


def make_value_counts(kind: str, floor: int, values: pa.Array, counts: Counts) -> ValueCounts:
    """Make a list without the values that are too long for the format."""
    if is_text_type(values.type):
        lengths = pc.binary_length(values)
        is_short = pc.less_equal(lengths, LONGEST_COUNTED_VALUE).to_numpy(zero_copy_only=False)
        if not is_short.all():
            kind = TOP
            floor = max(floor, int(counts[~is_short].max()))
            values = values.filter(pa.array(is_short))
            counts = counts[is_short]
        values = values.cast(pa.binary())
    return _listed(kind, floor, values, counts)


def _listed(kind: str, floor: int, values: pa.Array, counts: Counts) -> ValueCounts:
    if kind != TOP or floor != 1:
        return ValueCounts(kind, floor, values, counts)
    # With a floor of 1, all repeated values are listed; values that occur once are not needed.
    repeats = counts > 1
    return ValueCounts(DUPLICATES, 1, values.filter(pa.array(repeats)), counts[repeats])


def merge_value_counts(lists: Sequence[ValueCounts | None], top: int) -> ValueCounts | None:
    """Merge the lists of all parts of a column; None if one is missing.

    Only values that every part lists are kept, so that all frequencies are exact.
    """
    parts = require_all(lists)
    if not parts:
        return None
    merged = _merge_exact_counts(parts).keep_most_frequent(top)
    if merged.kind == COMPLETE:
        return merged
    is_known = merged.counts >= merged.floor
    known_values = merged.values.filter(pa.array(is_known)).cast(parts[0].values.type)
    return _listed(TOP, merged.floor, known_values, merged.counts[is_known])


def _merge_exact_counts(parts: Sequence[ValueCounts]) -> ValueCounts:
    """Merge the values that every part lists, ascending."""
    values = pa.concat_arrays(list(map(attrgetter("values"), parts)))
    counts = np.concatenate(list(map(attrgetter("counts"), parts)))
    part_floors = list(map(attrgetter("floor"), parts))
    sum_of_floors = sum(part_floors)
    floors = np.repeat(part_floors, list(map(len, parts)))
    encoded = values.dictionary_encode()
    codes = encoded.indices.to_numpy()
    distinct = len(encoded.dictionary)
    totals = np.bincount(codes, weights=counts, minlength=distinct).astype(np.int64)
    listing_floors = np.bincount(codes, weights=floors, minlength=distinct).astype(np.int64)
    unlisted = sum_of_floors - listing_floors  # the most that parts without a value may hold of it
    is_exact = unlisted == 0
    largest_inexact = (totals + unlisted)[~is_exact].max(initial=0)
    floor = max(sum_of_floors, int(largest_inexact))
    exact_values = encoded.dictionary.filter(pa.array(is_exact))
    order = pc.array_sort_indices(exact_values)
    kind = COMPLETE if floor == 0 else TOP
    return ValueCounts(kind, floor, exact_values.take(order), totals[is_exact][order.to_numpy()])


def _size_of_integers(values: NDArray[np.int64], counts: Counts) -> int:
    """Estimate the bytes of ascending integers and their counts when they are sorted by count, and packed."""
    number = len(values)
    span = int(values[-1]) - int(values[0])
    if number > _SHORT:
        return (3 + (span // number).bit_length() // 8) * number
    order = np.argsort(-counts, kind="stable")
    packed_values = _packed(values[order].astype(np.float64))
    packed_counts = _packed(counts[order].astype(np.float64))
    return _FRAME + (packed_values + packed_counts) * 9 // 8


def _packed(numbers: NDArray[np.float64]) -> int:
    """Compute the bytes of DELTA_BINARY_PACKED: a miniblock is as wide as its widest step above the least step."""
    steps = np.diff(numbers)
    if not len(steps):
        return 0
    padded = np.pad(steps, (0, -len(steps) % _BLOCK), "edge")
    blocks = padded.reshape(-1, 4, _BLOCK // 4)
    widest = blocks.max(axis=2) - blocks.min(axis=(1, 2))[:, None]
    return int(np.frexp(widest)[1].sum()) * (_BLOCK // 4) // 8
