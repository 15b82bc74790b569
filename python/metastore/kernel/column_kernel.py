"""The kernel: the values of one column of one data file in, its statistics out, in bounded memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format import sortable_values
from metastore.kernel import quantiles
from metastore.kernel.binary_values import BinaryBuffer, is_text_type, list_chunks, to_large_binary
from metastore.kernel.column_bloom import ColumnBloomBuilder
from metastore.kernel.column_statistics import ColumnStatistics, finish_statistics
from metastore.kernel.detail_limits import DEFAULT_DETAIL_LIMITS, DetailLimits
from metastore.kernel.partial_aggregate import (
    PartialAggregate,
    aggregate_numbers,
    aggregate_texts,
    aggregate_unique_texts,
    combine_aggregates,
)
from metastore.kernel.user_defined import UserDefinedKernel
from metastore.kernel.value_runs import ValueRuns, count_integers, make_runs, merge_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.statistics import Statistic

    _Piece = tuple[pa.Array, NDArray[np.int64] | None]


DEFAULT_BUDGET = 64 << 20
HEADROOM = 12  # the work on values takes up to twelve times their memory
_MOST_PARTS = 16
_SAMPLE = 4096
_FEW = 1 << 16  # up to this number, values are sorted at once


class ColumnKernel:
    """Computes the statistics of one column of one data file.

    Everything is exact while the column's values, or else its distinct values, fit the budget. Beyond it bounds,
    counts, sums, lengths and frequencies stay exact, distinct values are estimated by the sketch
    (`distinct_error` > 0), and percentiles and histogram are merged from those of parts.
    """

    def __init__(
        self,
        column: Column,
        budget_bytes: int = DEFAULT_BUDGET,
        detail: DetailLimits = DEFAULT_DETAIL_LIMITS,
        expected: tuple[int, int] = (0, 0),
        statistics: Sequence[Statistic] = (),
    ) -> None:
        self._column = column
        self._detail = detail
        self._rows = self._nulls = 0
        self._values = _collector(column, budget_bytes, detail, expected)
        self._user_defined: UserDefinedKernel | None = None
        if statistics and column.encoding is not None:
            self._user_defined = UserDefinedKernel(column, statistics, budget_bytes // HEADROOM)

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Add physical rows."""
        for chunk in list_chunks(values):
            self._add_chunk(_decode_dictionary(chunk))
        if self._user_defined is not None:
            self._user_defined.add(values)

    def _add_chunk(self, chunk: pa.Array) -> None:
        self._rows += len(chunk)
        self._nulls += chunk.null_count
        if self._values is None or len(chunk) == chunk.null_count:
            return
        if chunk.null_count:
            chunk = chunk.drop_null()
        self._values.add(chunk)

    def finish(
        self, rows: int, compressed_bytes: int | None = None, uncompressed_bytes: int | None = None
    ) -> ColumnStatistics:
        """Return the statistics of the rows added."""
        if rows != self._rows:
            raise ValueError(f"{self._rows} rows of column {self._column.name} were added, {rows} expected")
        built_in = self._built_in((compressed_bytes, uncompressed_bytes))
        if self._user_defined is None:
            return built_in
        return self._user_defined.finish(built_in)

    def _built_in(self, sizes: tuple[int | None, int | None]) -> ColumnStatistics:
        rows = self._rows
        if self._values is None:
            return ColumnStatistics(
                rows=rows, encoding=None, nulls=self._nulls, compressed_bytes=sizes[0], uncompressed_bytes=sizes[1]
            )
        part = self._values.finish()
        nans = self._values.nans
        statistics = finish_statistics(part, self._column, (rows, self._nulls, nans), self._detail, sizes)
        if part is None:
            return statistics
        return replace(statistics, bloom=self._values.filter.finish(part.distinct, nans))


class _Collector(Protocol):
    nans: int
    filter: ColumnBloomBuilder

    def add(self, array: pa.Array) -> None: ...

    def finish(self) -> PartialAggregate | None: ...


class _Parts:
    """Parts that were closed because the budget was full."""

    def __init__(self, column: Column, detail: DetailLimits) -> None:
        self._column = column
        self._detail = detail
        self._closed: list[PartialAggregate] = []

    @property
    def steps(self) -> int:
        """The steps of the last part's quantile points: fine ones if it is combined with further parts."""
        if self._closed:
            return quantiles.FINE
        return quantiles.PERCENT

    def add(self, part: PartialAggregate) -> None:
        self._closed.append(part)
        if len(self._closed) >= _MOST_PARTS:
            self._closed = [combine_aggregates(self._closed, self._column, self._detail)]

    def combine(self, last: PartialAggregate | None) -> PartialAggregate | None:
        """Combine all parts; None if there is none."""
        parts = self._closed
        if last is not None:
            parts = [*parts, last]
        if not parts:
            return None
        return combine_aggregates(parts, self._column, self._detail)


class _Numbers:
    def __init__(self, column: Column, budget: int, detail: DetailLimits) -> None:
        self._column = column
        self._limit = budget // HEADROOM
        self._detail = detail
        self._pending: list[NDArray[Any]] = []
        self._bytes = 0
        self._runs: ValueRuns | None = None
        self._parts = _Parts(column, detail)
        self.filter = ColumnBloomBuilder(budget)
        self.nans = 0

    def add(self, array: pa.Array) -> None:
        values = sortable_values.narrow_sortable_array(array, self._column)
        if self._column.encoding == "double":
            values = self._take_nans(values)
        self._pending.append(values)
        self._bytes += values.nbytes
        if self._bytes > self._limit:
            self._collapse()
            self._close_large_part()

    def _take_nans(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Count NaN values, and return the other ones."""
        is_nan = np.isnan(values)
        if not is_nan.any():
            return values
        self.nans += int(is_nan.sum())
        return values[~is_nan]

    def _close_large_part(self) -> None:
        if self._runs is not None and self._runs.nbytes > self._limit:
            self._parts.add(self._part(self._runs, quantiles.FINE))
            self._runs = None

    def finish(self) -> PartialAggregate | None:
        self._collapse()
        if self._runs is None:
            return self._parts.combine(None)
        return self._parts.combine(self._part(self._runs, self._parts.steps, last=True))

    def _part(self, runs: ValueRuns, steps: int, *, last: bool = False) -> PartialAggregate:
        self.filter.add(sortable_values.sortable_to_arrow(runs.values, self._column), last=last)
        return aggregate_numbers(runs, self._column, steps, self._detail)

    def _collapse(self) -> None:
        if not self._bytes:
            return
        runs = make_runs(self._take_pending())
        if self._runs is not None:
            runs = merge_runs(self._runs, runs)
        self._runs = runs

    def _take_pending(self) -> NDArray[Any]:
        pending = self._pending
        self._pending = []
        self._bytes = 0
        if len(pending) == 1:
            return pending[0]
        return np.concatenate(pending)


class _Strings:
    nans = 0

    def __init__(self, column: Column, budget: int, detail: DetailLimits, expected: tuple[int, int]) -> None:
        self._limit = budget // HEADROOM
        self._detail = detail
        self._expected = expected if sum(expected) <= self._limit else (0, 0)
        self._counted: list[tuple[pa.Array, NDArray[np.int64]]] = []
        self._bytes = 0
        self._plain = BinaryBuffer(*self._expected)
        self._parts = _Parts(column, detail)
        self.filter = ColumnBloomBuilder(budget)

    def add(self, array: pa.Array) -> None:
        if pa.types.is_dictionary(array.type):
            self._add_dictionary(array)
        else:
            self._plain.add(to_large_binary(array))
        if self._bytes + self._plain.nbytes > self._limit:
            values, counts = _deduplicate(self._take_pieces())
            self._add_counted(values, counts)
            if 2 * self._bytes > self._limit:  # else the next pieces would be joined to many old values
                self._parts.add(self._part(quantiles.FINE))

    def _add_dictionary(self, array: pa.DictionaryArray) -> None:
        counts = count_integers(array.indices.to_numpy(), 0, len(array.dictionary))
        present = np.flatnonzero(counts)
        values = array.dictionary
        if len(present) < len(counts):
            values = values.take(pa.array(present))
        self._add_counted(to_large_binary(values), counts[present])

    def finish(self) -> PartialAggregate | None:
        if not self._counted and not len(self._plain):
            return self._parts.combine(None)
        return self._parts.combine(self._part(self._parts.steps, last=True))

    def _add_counted(self, values: pa.Array, counts: NDArray[np.int64]) -> None:
        self._counted.append((values, counts))
        self._bytes += values.nbytes + counts.nbytes

    def _take_pieces(self) -> list[_Piece]:
        """Take the collected values, and collect anew."""
        pieces: list[_Piece] = [*self._counted]
        if len(self._plain):
            pieces.append((self._plain.finish(), None))
        self._counted = []
        self._bytes = 0
        self._plain = BinaryBuffer(*self._expected)
        return pieces

    def _part(self, steps: int, *, last: bool = False) -> PartialAggregate:
        pieces = self._take_pieces()
        if len(pieces) == 1 and _are_nearly_unique(*pieces[0]):
            values, _ = pieces[0]
            self.filter.add(values, last=last)
            return aggregate_unique_texts(values, steps, self._detail)
        values, counts = _deduplicate(pieces)
        self.filter.add(values, last=last)
        return aggregate_texts(values, counts, steps, self._detail)


def _collector(column: Column, budget: int, detail: DetailLimits, expected: tuple[int, int]) -> _Collector | None:
    if column.encoding is None:
        return None
    if sortable_values.is_text(column):
        return _Strings(column, budget, detail, expected)
    return _Numbers(column, budget, detail)


def _decode_dictionary(array: pa.Array) -> pa.Array:
    """Decode dictionaries that hold nulls or numbers; leave those of strings."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not pa.types.is_dictionary(array.type):
        return array
    if is_text_type(array.type.value_type) and not array.dictionary.null_count:
        return array
    return array.dictionary_decode()


def _are_nearly_unique(values: pa.Array, counts: NDArray[np.int64] | None) -> bool:
    """Return whether values are many, and a sample says that a hash table would not make them much fewer."""
    if counts is not None or len(values) <= _FEW:
        return False
    sample = values.slice(0, _SAMPLE)
    return bool(pc.count_distinct(sample).as_py() >= len(sample) // 4)


def _deduplicate(pieces: list[_Piece]) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return the distinct values of pieces, and the count of each; values with counts are distinct in their piece."""
    if len(pieces) == 1:
        return _count_alone(*pieces[0])
    values, counts = zip(*pieces, strict=True)
    encoded = pa.concat_arrays(values).dictionary_encode()
    weights = np.concatenate(list(map(_count_each, values, counts)))
    return encoded.dictionary, np.bincount(encoded.indices.to_numpy(), weights=weights).astype(np.int64)


def _count_alone(values: pa.Array, counts: NDArray[np.int64] | None) -> tuple[pa.Array, NDArray[np.int64]]:
    if counts is not None:
        return values, counts
    encoded = values.dictionary_encode()
    return encoded.dictionary, np.bincount(encoded.indices.to_numpy())


def _count_each(values: pa.Array, counts: NDArray[np.int64] | None) -> NDArray[np.int64]:
    if counts is None:
        return np.ones(len(values), dtype=np.int64)
    return counts
