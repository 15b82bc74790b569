"""Which values may occur in more than one place: two Bloom filters, of values seen and of values seen again."""

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
_LEAST, _MOST = 10, 29
_LOW = np.uint64((1 << 32) - 1)


@dataclass(frozen=True)
class RepeatFilterBuilder:
    """Filters that grow, and that merge bit by bit.

    What `again` does not hold was seen in one place at most; what it holds was probably seen in several. With 16 bits a
    value one single value in two million is taken for a repeated one.

    Attributes:
        probes: Bits that each value sets.
        once: Of values seen.
        again: Of values seen in several places.
    """

    probes: int
    once: Bits
    again: Bits

    @classmethod
    def for_values(cls, number: int) -> RepeatFilterBuilder:
        """Empty filters for so many values."""
        size = min(max((max(number, 1) * _BITS_A_VALUE - 1).bit_length(), _LEAST), _MOST)
        a_value = (1 << size) / max(number, 1)
        probes = 4 if a_value >= 8 else 3 if a_value >= 4 else 2 if a_value >= 2 else 1
        return cls(probes, np.zeros(1 << (size - 3), np.uint8), np.zeros(1 << (size - 3), np.uint8))

    def add(self, hashes: Hashes) -> None:
        """Add the distinct values of one place."""
        places = self._places(hashes)
        known = _test(self.once, places)
        _set(self.again, places[known])
        _set(self.once, places)

    def merge(self, other: RepeatFilterBuilder) -> RepeatFilterBuilder:
        """Add what was seen in other places."""
        np.bitwise_or(self.again, other.again, out=self.again)
        np.bitwise_or(self.again, self.once & other.once, out=self.again)
        np.bitwise_or(self.once, other.once, out=self.once)
        return self

    def finish(self) -> RepeatFilter:
        """What was seen in several places, to be sent."""
        return RepeatFilter(self.probes, len(self.again), pa.compress(self.again, _CODEC, asbytes=True))

    def _places(self, hashes: Hashes) -> Hashes:
        return _places(hashes, len(self.once), self.probes)


@dataclass(frozen=True)
class RepeatFilter:
    """The filter of values seen in several places: few bits are set, so that it is small as it is sent.

    Attributes:
        probes: Bits that each value sets.
        size: Bytes of the filter.
        packed: The filter, compressed.
    """

    probes: int
    size: int
    packed: bytes

    @cached_property
    def _again(self) -> Bits:
        return np.frombuffer(pa.decompress(self.packed, self.size, _CODEC), np.uint8)

    def may_repeat(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Which values may have been seen in several places."""
        held = _test(self._again, _places(hashes, self.size, self.probes))
        return np.asarray(held.reshape(self.probes, -1).all(axis=0))


def _places(hashes: Hashes, size: int, probes: int) -> Hashes:
    low, high = hashes & _LOW, (hashes >> np.uint64(32)) | np.uint64(1)
    mask = np.uint64(8 * size - 1)
    return np.concatenate([(low + np.uint64(probe) * high) & mask for probe in range(probes)])


def _test(bits: Bits, places: Hashes) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = bits[places >> np.uint64(3)] >> (places & np.uint64(7)).astype(np.uint8) & 1 != 0
    return found


def _set(bits: Bits, places: Hashes) -> None:
    np.bitwise_or.at(
        bits, places >> np.uint64(3), np.left_shift(1, places & np.uint64(7), dtype=np.uint64).astype(np.uint8)
    )
