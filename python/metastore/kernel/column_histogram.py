"""Histograms with bins of equal width, of numbers and of strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format import sortable_values
from metastore.format.histogram_bins import (
    EQUI_HEIGHT,
    EQUI_WIDTH,
    Histogram,
    choose_bin_ends,
    divide_range,
    join_bins,
    plain_number,
)
from metastore.format.table_column import Column, decimal_type
from metastore.format.value_rendering import CUT_BYTES, decimal_from_bytes, decimal_to_bytes
from metastore.kernel.binary_values import count_common_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Counts = NDArray[np.int64]

    Numbers = NDArray[np.float64]


def merge_bins(histogram: Histogram, bins: int) -> Histogram:
    """Merge neighbouring bins until there are about `bins`, or fewer of equal width."""
    counts, number = histogram.counts, len(histogram.counts)
    if number <= bins:
        return histogram
    if histogram.kind == EQUI_WIDTH:  # stay as wide as each other
        return join_bins(histogram, np.arange(0, number + 1, _least_divisor(number, -(-number // bins))))
    lone = np.zeros_like(counts) if histogram.distincts is None else counts * (histogram.distincts == 1)
    return join_bins(histogram, np.append(0, choose_bin_ends(np.cumsum(counts), lone, bins) + 1))


def _least_divisor(number: int, least: int) -> int:
    """The least divisor of a number from a limit on."""
    divisor = least
    while number % divisor:
        divisor += 1
    return divisor


def make_equal_height_histogram(
    counts: Counts, last_ranks: Counts, bins: int, values: Callable[[Counts], pa.Array]
) -> Histogram:
    """Make the histogram of runs."""
    distinct = len(counts)
    ends = np.arange(distinct) if distinct <= bins else choose_bin_ends(last_ranks, counts, bins)
    heights, distincts = np.diff(last_ranks[ends], prepend=0), np.diff(ends, prepend=-1)
    return Histogram(EQUI_HEIGHT, values(np.append(0, ends)), heights, distincts)


_WORD = 6
_ALL_BITS = (1 << 64) - 1


class ValueScale:
    r"""Values between two bounds as numbers that keep their order, and their distance.

    Strings and binary values are read as numbers of base 256: by the six bytes behind the common beginning of all.
    """

    def __init__(self, column: Column, lo: Any, hi: Any) -> None:
        self._column, self._lo, self._hi = column, lo, hi
        self._is_text = column.encoding == "binary" and decimal_type(column.type) is None
        self._common = count_common_bytes(lo, hi) if self._is_text else 0

    def edges(self, bins: int) -> list[Any]:
        """The edges of at most `bins` bins of equal width, as stored; none if doubles cannot hold their width."""
        lo, hi = self._number(self._lo), self._number(self._hi)
        if self._column.encoding == "double":
            return _divide_doubles(lo, hi, bins)
        edges = divide_range(lo, hi, max(min(bins, hi - lo), 1), "long")
        if self._is_text:
            return self._to_texts(edges)
        return list(map(decimal_to_bytes, edges)) if self._column.encoding == "binary" else edges

    def _to_texts(self, edges: Sequence[Any]) -> list[bytes]:
        """Edges of texts; the first and the last are the bounds themselves."""
        prefix = self._lo[: self._common]
        inner = [prefix + word.to_bytes(_WORD, "big") for word in edges[1:-1]]
        return [value[:CUT_BYTES] for value in (self._lo, *inner, self._hi)]

    def edges_to_arrow(self, edges: Sequence[Any]) -> pa.Array | None:
        """Edges as a histogram keeps them: None where they follow from the bounds."""
        return pa.array(edges, pa.binary()) if self._column.encoding == "binary" else None

    def positions(self, values: Any) -> Numbers:
        """The positions of values: stored values, or a kernel's numbers or `large_binary` texts."""
        if self._is_text:
            return self._words(values)
        if not isinstance(values, np.ndarray):
            values = sortable_values.stored_to_sortable(values, self._column)
        if sortable_values.is_wide_decimal(self._column):
            high, low = sortable_values.decimal_halves(values)
            return np.asarray(high.astype(np.float64) * 2.0**64 + low)
        if self._column.encoding == "double":
            return np.asarray(values, np.float64)
        # As distances from the least value, which are exact up to 2^53.
        return np.asarray((values.view(np.uint64) - np.uint64(self._lo & _ALL_BITS)).astype(np.float64))

    def _number(self, value: Any) -> Any:
        if self._is_text:
            return int.from_bytes(value[self._common : self._common + _WORD].ljust(_WORD, b"\0"), "big")
        return decimal_from_bytes(value) if self._column.encoding == "binary" else value

    def _words(self, values: Any) -> Numbers:
        """The numbers of texts; one that goes on behind its six bytes is greater by a half."""
        texts = values if isinstance(values, pa.Array) else pa.array(values, pa.large_binary())
        words = pc.binary_slice(texts, self._common, self._common + _WORD).to_pylist()
        padded = np.array([b"\0\0" + word.ljust(_WORD, b"\0") for word in words], "S8")
        goes_on = np.asarray(pc.greater(pc.binary_length(texts), self._common + _WORD))
        return padded.view(">u8").astype(np.float64) + 0.5 * goes_on


def _divide_doubles(lo: float, hi: float, bins: int) -> list[Any]:
    if not np.isfinite(hi - lo):
        return []
    return divide_range(lo, hi, bins if hi > lo else 1, "double")


def make_equal_width_histogram(scale: ValueScale, values: Any, counts: Counts, bins: int) -> Histogram | None:
    """Make the histogram of finite values; None if their range is wider than doubles hold."""
    edges = scale.edges(bins)
    if not edges:
        return None
    bin_numbers = np.searchsorted(scale.positions(edges), scale.positions(values), side="left") - 1
    bin_numbers = np.clip(bin_numbers, 0, len(edges) - 2)
    heights, distincts = (np.zeros(len(edges) - 1, np.int64) for _ in range(2))
    np.add.at(heights, bin_numbers, counts)
    np.add.at(distincts, bin_numbers, 1)
    return Histogram(EQUI_WIDTH, scale.edges_to_arrow(edges), heights, distincts)


def merge_equal_width_bins(parts: Sequence[Histogram], column: Column, bins: int) -> tuple[list[Any], Counts] | None:
    """Edges and counts of all parts; each count is uncertain by one bin of every part."""
    key = sortable_values.make_comparison_key(column)
    lo, hi = min((part.edges[0] for part in parts), key=key), max((part.edges[-1] for part in parts), key=key)
    scale = ValueScale(column, plain_number(lo), plain_number(hi))
    edges = scale.edges(bins)
    if not edges:
        return None
    at, sums = scale.positions(edges), np.zeros(len(edges))
    for part in parts:
        sums += count_below(at, scale.positions(part.edges), part.counts, part.single_value_bins)
    ranks = np.maximum.accumulate(np.rint(sums).astype(np.int64))
    ranks[0], ranks[-1] = 0, sum(int(part.counts.sum()) for part in parts)
    return edges, np.diff(ranks)


def count_below(at: Numbers, edges: Numbers, counts: Counts, lone: NDArray[np.bool_]) -> Numbers:
    """Count the values of a histogram up to each position; those of a bin lie evenly in it."""
    sums = np.concatenate([[0], np.cumsum(counts)])
    passed = np.searchsorted(edges, at, side="right") - 1
    inside = np.clip(passed, 0, len(counts) - 1)
    widths, shares = edges[inside + 1] - edges[inside], np.zeros(len(at))
    np.divide(at - edges[inside], widths, out=shares, where=(widths > 0) & ~lone[inside])
    inner_sums = sums[inside] + shares * counts[inside]
    return np.where(passed < 0, 0.0, np.where(passed >= len(counts), float(sums[-1]), inner_sums))
