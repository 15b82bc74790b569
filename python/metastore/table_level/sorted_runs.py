"""Sorted runs of a column's values, which a distributed sort moves, merges and cuts."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format import sortable_values
from metastore.format.value_rendering import DECIMAL_BYTES
from metastore.kernel.binary_values import to_large_binary
from metastore.kernel.value_runs import make_runs
from metastore.table_level.shuffle_job import rows_from_ipc, rows_to_ipc

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column


@dataclass(frozen=True)
class SortedRun:
    """Distinct values, ascending, without null and NaN, and the count of each.

    Attributes:
        values: An Arrow array of `int64`, `double`, `large_binary`, or, for wide decimals, 16 bytes that compare as
            unsigned bytes do.
        counts: The count of each value.
    """

    values: pa.Array
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of distinct values."""
        return len(self.counts)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return int(self.values.nbytes + self.counts.nbytes)

    def to_bytes(self) -> bytes:
        """Encode the run for its way between tasks."""
        return rows_to_ipc(pa.table({"value": self.values, "count": self.counts}))

    @classmethod
    def from_bytes(cls, data: bytes) -> SortedRun:
        """Decode a run of `to_bytes`."""
        values, counts = rows_from_ipc(data).combine_chunks().columns
        return cls(values.combine_chunks(), counts.to_numpy())

    def sample_values(self, steps: int) -> list[Any]:
        """Take values at equal steps, with the first and the last one."""
        if not len(self):
            return []
        positions = np.unique(np.linspace(0, len(self) - 1, steps + 1).astype(np.int64))
        return list(self.values.take(pa.array(positions)).to_pylist())

    def split_at(self, edges: Sequence[Any]) -> list[SortedRun]:
        """Split the run behind each edge: a part ends with its edge, the last part with the run."""
        spans = pairwise([0, *self._find_ends(edges), len(self)])
        return [SortedRun(self.values.slice(start, end - start), self.counts[start:end]) for start, end in spans]

    def _find_ends(self, edges: Sequence[Any]) -> list[int]:
        if not edges:
            return []
        if not pa.types.is_primitive(self.values.type):
            return [bisect.bisect_right(self.values, edge, key=lambda value: value.as_py()) for edge in edges]
        ends: list[int] = np.searchsorted(self.values.to_numpy(), edges, side="right").tolist()
        return ends


def sort_values(array: pa.Array, column: Column) -> SortedRun:
    """Make the run of values in any order; null and NaN are left out."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if sortable_values.is_text(column):
        counted = array.drop_null().value_counts()
        values = counted.field(0)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        return _merge_equal_values(to_large_binary(values), counted.field(1).to_numpy())
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    numbers = sortable_values.sortable_array(array.drop_null(), column)
    if column.encoding == "double":
        numbers = numbers[~np.isnan(numbers)]
    runs = make_runs(numbers)
    return SortedRun(_arrow(runs.values), runs.counts)


def make_constant_run(value: Any, rows: int, column: Column) -> SortedRun:
    """Make the run of a stored value that all rows have."""
    if sortable_values.is_text(column):
        return SortedRun(pa.array([value], pa.large_binary()), np.array([rows], np.int64))
    if column.encoding == "double" and np.isnan(value):
        return SortedRun(pa.array([], pa.float64()), np.empty(0, np.int64))
    return SortedRun(_arrow(sortable_values.stored_to_sortable([value], column)), np.array([rows], np.int64))


def merge_sorted_runs(runs: Iterable[SortedRun]) -> SortedRun:
    """Merge at least one run."""
    all_runs = list(runs)
    filled = list(filter(len, all_runs))
    if len(filled) < 2:
        return (filled or all_runs)[0]
    values = pa.concat_arrays([run.values for run in filled])
    counts = np.concatenate([run.counts for run in filled])
    return _merge_equal_values(values, counts)


def run_to_stored(run: SortedRun) -> pa.Array:
    """Encode the values of a run as the format stores them."""
    if not pa.types.is_fixed_size_binary(run.values.type):
        return run.values
    raw = np.frombuffer(run.values.buffers()[1], np.uint8)
    start = DECIMAL_BYTES * run.values.offset
    end = start + DECIMAL_BYTES * len(run)
    decimals = raw[start:end].reshape(-1, DECIMAL_BYTES).copy()
    decimals[:, 0] ^= 0x80
    stored = decimals.view(f"V{DECIMAL_BYTES}").reshape(-1).tolist()
    return pa.array(stored, pa.large_binary())


def run_from_stored(values: pa.Array, counts: NDArray[np.int64], column: Column) -> SortedRun:
    """Make the run of stored values, which are ascending."""
    if column.encoding != "binary":
        return SortedRun(values, counts)
    if not sortable_values.is_wide_decimal(column):
        return SortedRun(values.cast(pa.large_binary()), counts)
    return SortedRun(_arrow(sortable_values.stored_to_sortable(values.to_pylist(), column)), counts)


def _merge_equal_values(values: pa.Array, counts: NDArray[np.int64]) -> SortedRun:
    if not len(values):
        return SortedRun(values, np.empty(0, np.int64))
    order = pc.sort_indices(values)
    values = values.take(order)
    counts = np.asarray(counts, np.int64)[order.to_numpy()]
    differs = pc.not_equal(values.slice(1), values.slice(0, len(values) - 1))
    is_new = np.ones(len(values), np.bool_)
    is_new[1:] = differs.to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(is_new)
    return SortedRun(values.filter(pa.array(is_new)), np.add.reduceat(counts, starts))


def _arrow(numbers: NDArray[Any]) -> pa.Array:
    if numbers.dtype.kind != "S":
        return pa.array(numbers)
    buffer = pa.py_buffer(np.ascontiguousarray(numbers).tobytes())
    return pa.Array.from_buffers(pa.binary(DECIMAL_BYTES), len(numbers), [None, buffer])
