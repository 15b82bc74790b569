"""Finds values that may occur in several sources, by two Bloom filters: of all values and of repeated ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]
    Bits = NDArray[np.uint8]


_BITS_A_VALUE = 16
_CODEC = "zstd"
_LEAST = 10
_MOST = 29
_LOW = np.uint64((1 << 32) - 1)


@dataclass(frozen=True)
class RepeatFilterBuilder:
    """Two filters that grow, and that merge bit by bit.

    A value that `again` does not hold is in one source at most; a value that it holds is probably in several. With 16
    bits a value, one single value in two million counts as repeated.

    Attributes:
        probes: The bits that each value sets.
        once: The filter of all values.
        again: The filter of values in several sources.
    """

    probes: int
    once: Bits
    again: Bits

    @classmethod
    def for_values(cls, number: int) -> RepeatFilterBuilder:
        """Make empty filters for this number of values."""
        number = max(number, 1)
        size = min(max((number * _BITS_A_VALUE - 1).bit_length(), _LEAST), _MOST)
        bits_per_value = (1 << size) / number
        probes = int(np.searchsorted([2, 4, 8], bits_per_value, side="right")) + 1
        size_bytes = 1 << (size - 3)
        return cls(probes, np.zeros(size_bytes, np.uint8), np.zeros(size_bytes, np.uint8))

    def add(self, hashes: Hashes) -> None:
        """Add the distinct values of one source."""
        bits = _find_bits(hashes, len(self.once), self.probes)
        is_set = _test(self.once, bits)
        _set(self.again, bits[is_set])
        _set(self.once, bits)

    def merge(self, other: RepeatFilterBuilder) -> RepeatFilterBuilder:
        """Add the values of other sources."""
        np.bitwise_or(self.again, other.again, out=self.again)
        np.bitwise_or(self.again, self.once & other.once, out=self.again)
        np.bitwise_or(self.once, other.once, out=self.once)
        return self

    def finish(self) -> RepeatFilter:
        """Compress the filter of repeated values."""
        return RepeatFilter(self.probes, len(self.again), pa.compress(self.again, _CODEC, asbytes=True))


@dataclass(frozen=True)
class RepeatFilter:
    """The filter of values in several sources; few bits are set, so that it is small when compressed.

    Attributes:
        probes: The bits that each value sets.
        size: The bytes of the filter.
        packed: The compressed filter.
    """

    probes: int
    size: int
    packed: bytes

    @cached_property
    def _again(self) -> Bits:
        return np.frombuffer(pa.decompress(self.packed, self.size, _CODEC), np.uint8)

    def may_repeat(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Return for each value whether it may be in several sources."""
        is_set = _test(self._again, _find_bits(hashes, self.size, self.probes))
        return np.asarray(is_set.reshape(self.probes, -1).all(axis=0))


def _find_bits(hashes: Hashes, size: int, probes: int) -> Hashes:
    low = hashes & _LOW
    high = (hashes >> np.uint64(32)) | np.uint64(1)
    mask = np.uint64(8 * size - 1)
    return np.concatenate([(low + np.uint64(probe) * high) & mask for probe in range(probes)])


def _test(filter_bytes: Bits, bits: Hashes) -> NDArray[np.bool_]:
    shifts = (bits & np.uint64(7)).astype(np.uint8)
    is_set: NDArray[np.bool_] = filter_bytes[bits >> np.uint64(3)] >> shifts & 1 != 0
    return is_set


def _set(filter_bytes: Bits, bits: Hashes) -> None:
    masks = np.left_shift(1, bits & np.uint64(7), dtype=np.uint64).astype(np.uint8)
    np.bitwise_or.at(filter_bytes, bits >> np.uint64(3), masks)
