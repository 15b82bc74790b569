"""Lists of values with their frequencies: which values of a column are kept, and what is known of the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.kernel.binary_values import LONGEST_COUNTED_VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.kernel.budget import DetailLimits

    Counts = NDArray[np.int64]


NONE, TOP, DUPLICATES, COMPLETE = "none", "top", "duplicates", "complete"

_COMMON_LENGTH = 64  # bytes of a value
_SHORT = 4096
"""Values of a list that may be kept because they pack well; longer lists cost time when they are read, too."""

_FRAME, _BLOCK = 32, 256


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Values of a column, ascending, and how often each occurs.

    Attributes:
        kind: `complete` (all values), `duplicates` (all that occur more than once) or `top` (the most frequent).
        floor: No value that is left out is more frequent.
        values: As the format stores them: int64, double or binary.
        counts: The frequency of each.
    """

    kind: str
    floor: int
    values: pa.Array
    counts: Counts

    def __len__(self) -> int:
        """The number of values."""
        return len(self.counts)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same list."""
        return isinstance(other, ValueCounts) and self._parts() == other._parts()

    __hash__ = None  # type: ignore[assignment] # lists are not keys

    def _parts(self) -> tuple[Any, ...]:
        is_double = pa.types.is_floating(self.values.type)  # NaN is equal to itself here
        return self.kind, self.floor, self.values.view(pa.int64()) if is_double else self.values, self.counts.tolist()

    @property
    def size(self) -> int:
        """About as many bytes as the list takes when it is stored, or more."""
        number = len(self)
        if number == 0:
            return 0
        if pa.types.is_floating(self.values.type):
            return 10 * number
        if pa.types.is_integer(self.values.type):
            return _size_of_integers(self.values.to_numpy(), self.counts)
        return int(pc.sum(pc.binary_length(self.values)).as_py()) + 3 * number

    def is_whole(self, most: int) -> bool:
        """Whether all values are listed, no more than `most`, and of a length that is common."""
        return self.kind == COMPLETE and len(self) <= most and self.size <= most * _COMMON_LENGTH

    def limit(self, detail: DetailLimits) -> ValueCounts:
        """The same where it takes no more room than it may, else the most frequent of the values."""
        is_kept = self.is_whole(detail.whole) or self.size <= detail.list_bytes
        return self if is_kept else self.keep_most_frequent(detail.top)

    def keep_most_frequent(self, top: int) -> ValueCounts:
        """The most frequent of these values; of equally frequent ones the least."""
        if len(self) <= top:
            return self
        places, floor = _most_frequent(self.counts, top)
        return _listed(TOP, max(floor, self.floor), self.values.take(pa.array(places)), self.counts[places])

    def add_nan(self, number: int, top: int) -> ValueCounts:
        """The same with the NaNs of the column, which are greater than all numbers."""
        if number == 0:
            return self
        if self.kind != COMPLETE and number <= self.floor:
            return self
        values = pa.concat_arrays([self.values, pa.array([np.nan])])
        found = replace(self, values=values, counts=np.append(self.counts, number))
        return found if self.kind != TOP else found.keep_most_frequent(top)

    def sort_by_count(self) -> ValueCounts:
        """The same list by falling frequency, then value."""
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
    places, floor = _most_frequent(counts, detail.top)
    return (TOP, floor, places) if floor > 1 else (DUPLICATES, 1, places[counts[places] > 1])


def _most_frequent(counts: Counts, top: int) -> tuple[NDArray[np.intp], int]:
    """The places of the most frequent values, of equally frequent ones the first, and the floor of the others."""
    if len(counts) <= top:
        return np.arange(len(counts)), 0
    least = np.partition(counts, len(counts) - top)[len(counts) - top]
    more, equal = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
    places = np.sort(np.concatenate([more, equal[: top - len(more)]]))
    if len(more) + len(equal) > top:
        return places, int(least)
    return places, int(counts[counts < least].max())


def make_value_counts(kind: str, floor: int, values: pa.Array, counts: Counts) -> ValueCounts:
    """A list, without the values that are longer than the format keeps."""
    if pa.types.is_large_binary(values.type) or pa.types.is_binary(values.type):
        is_short = pc.less_equal(pc.binary_length(values), LONGEST_COUNTED_VALUE).to_numpy(zero_copy_only=False)
        if not is_short.all():
            floor = max(floor, int(counts[~is_short].max()))
            kind, values, counts = TOP, values.filter(pa.array(is_short)), counts[is_short]
        values = values.cast(pa.binary())
    return _listed(kind, floor, values, counts)


def _listed(kind: str, floor: int, values: pa.Array, counts: Counts) -> ValueCounts:
    if kind == TOP and floor == 1:  # all that occur more than once are there: the others say nothing
        repeats = counts > 1
        return ValueCounts(DUPLICATES, 1, values.filter(pa.array(repeats)), counts[repeats])
    return ValueCounts(kind, floor, values, counts)


def merge_value_counts(lists: Sequence[ValueCounts | None], top: int) -> ValueCounts | None:
    """The most frequent values of all parts of a column.

    Only values of which every part tells the frequency are kept, so that all frequencies are exact.
    """
    known = [one for one in lists if one is not None]
    if len(known) < len(lists) or not known:
        return None
    kind, floors = known[0].values.type, [one.floor for one in known]
    texts = pa.concat_arrays([one.values for one in known]).dictionary_encode()
    codes, counts = texts.indices.to_numpy(), np.concatenate([one.counts for one in known])
    floor_of = np.repeat(floors, [len(one) for one in known])
    total, least = (np.bincount(codes, weights=w, minlength=len(texts.dictionary)) for w in (counts, floor_of))
    unlisted = sum(floors) - least.astype(np.int64)  # what parts that do not list a value may hold of it
    total = total.astype(np.int64)
    is_exact = unlisted == 0
    floor = int(max([sum(floors), *(total + unlisted)[~is_exact]]))
    values = texts.dictionary.filter(pa.array(is_exact))
    order = pc.array_sort_indices(values)
    exact = ValueCounts(COMPLETE if floor == 0 else TOP, floor, values.take(order), total[is_exact][order.to_numpy()])
    exact = exact.keep_most_frequent(top)
    if exact.kind == COMPLETE:
        return exact
    is_known = exact.counts >= exact.floor
    return _listed(TOP, exact.floor, exact.values.filter(pa.array(is_known)).cast(kind), exact.counts[is_known])


def _size_of_integers(values: NDArray[np.int64], counts: Counts) -> int:
    """About as many bytes as integers, ascending, and their counts take as they are stored: ranked, and packed."""
    number, span = len(values), int(values[-1]) - int(values[0])
    if number > _SHORT:
        return (3 + (span // number).bit_length() // 8) * number
    order = np.argsort(-counts, kind="stable")
    return _FRAME + (_packed(values[order].astype(np.float64)) + _packed(counts[order].astype(np.float64))) * 9 // 8


def _packed(numbers: NDArray[np.float64]) -> int:
    """Bytes of DELTA_BINARY_PACKED: differences to the least one of a block, each miniblock as wide as its widest."""
    steps = np.diff(numbers)
    blocks = np.pad(steps, (0, -len(steps) % _BLOCK), "edge" if len(steps) else "empty").reshape(-1, 4, _BLOCK // 4)
    widest = blocks.max(axis=2) - blocks.min(axis=(1, 2))[:, None]
    return int(np.frexp(widest)[1].sum()) * (_BLOCK // 4) // 8
