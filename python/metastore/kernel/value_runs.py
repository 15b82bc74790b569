"""Runs: the distinct values of a fixed-width column in order, with their counts; all statistics follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.format.object_layout import find_run_starts

if TYPE_CHECKING:
    from numpy.typing import NDArray


_SMALL_SPAN, _LARGEST_SPAN = 1 << 16, 1 << 20  # beyond a processor's cache counting is slower than sorting
_LOW = 0xFFFFFFFF
_SAMPLE = 1 << 10
_COUNTED_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class ValueRuns:
    """Distinct values, ascending, without NaN, and their counts."""

    values: NDArray[Any]
    counts: NDArray[np.int64]

    @property
    def infinities(self) -> tuple[int, int]:
        """The numbers of values that are -Infinity and Infinity."""
        if self.values.dtype.kind != "f" or len(self.values) == 0:
            return 0, 0
        below = above = 0
        if self.values[0] == -np.inf:
            below = int(self.counts[0])
        if self.values[-1] == np.inf:
            above = int(self.counts[-1])
        return below, above

    @property
    def finite(self) -> ValueRuns:
        """The runs of finite values."""
        below, above = self.infinities
        if below + above == 0:
            return self
        start = int(below > 0)
        end = len(self.values) - int(above > 0)
        return ValueRuns(self.values[start:end], self.counts[start:end])

    @property
    def nbytes(self) -> int:
        """The memory of the runs."""
        return self.values.nbytes + self.counts.nbytes


def make_runs(values: NDArray[Any]) -> ValueRuns:
    """Return the runs of values in any order, integers of four or eight bytes, doubles or texts of one length.

    An array that owns its values may be sorted in place.
    """
    if len(values) == 0:
        return ValueRuns(_long(values), np.empty(0, dtype=np.int64))
    if _is_sorted(values):
        return _of_sorted(values)
    if values.dtype.kind != "i":
        return _sorted(values)
    lo = int(values.min())
    hi = int(values.max())
    distance = hi - lo
    if distance < max(min(len(values), _LARGEST_SPAN), _SMALL_SPAN):
        return _counted(values, lo, distance + 1)
    if distance > _LOW:
        return _sorted(values)
    offsets = np.empty(len(values), np.uint32)  # half the bytes are sorted in half the time
    np.subtract(values, lo, out=offsets, casting="unsafe")
    runs = _sorted(offsets)
    return ValueRuns(runs.values.astype(np.int64) + lo, runs.counts)


def merge_runs(first: ValueRuns, second: ValueRuns) -> ValueRuns:
    """Return the runs of the values of both."""
    values = np.concatenate([first.values, second.values])
    if len(values) == 0:
        return first
    order = np.argsort(values, kind="stable")
    values = values[order]
    counts = np.concatenate([first.counts, second.counts])[order]
    starts = find_run_starts(values)
    return ValueRuns(values[starts], np.add.reduceat(counts, starts))


def _sorted(values: NDArray[Any]) -> ValueRuns:
    if not values.flags.owndata:  # Arrow's
        return _of_sorted(np.sort(values))
    values.sort()
    return _of_sorted(values)


def _of_sorted(values: NDArray[Any]) -> ValueRuns:
    starts = find_run_starts(values)
    return ValueRuns(_long(values[starts]), np.diff(starts, append=len(values)))


def _long(values: NDArray[Any]) -> NDArray[Any]:
    """Return integers of four bytes as those of eight that runs hold."""
    if values.dtype == np.int32:
        return values.astype(np.int64)
    return values


def _is_sorted(values: NDArray[Any]) -> bool:
    beginning = values[:_SAMPLE]
    remaining = values[_SAMPLE - 1 :]
    if not (beginning[1:] >= beginning[:-1]).all():
        return False
    return bool((remaining[1:] >= remaining[:-1]).all())


def _counted(values: NDArray[Any], lo: int, span: int) -> ValueRuns:
    counts = count_integers(values, lo, span)
    present = np.flatnonzero(counts)
    return ValueRuns(present + lo, counts[present])


def count_integers(values: NDArray[Any], lo: int, span: int) -> NDArray[np.int64]:
    """Count each integer from `lo` on; all values are less than `lo + span`."""
    counts = np.zeros(span, np.int64)
    step = max(_COUNTED_AT_ONCE, 4 * span)
    for start in range(0, len(values), step):
        batch = values[start : start + step]
        if lo:
            batch = batch - lo
        counts += np.bincount(batch, minlength=span)
    return counts
