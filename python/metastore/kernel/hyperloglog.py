"""HyperLogLog registers: they count the distinct values of many small data files together, in a byte for six values.

A theta sketch that is cut to what a small file may cost says little of many files that share their values. A fixed
number of registers (P. Flajolet et al., 2007) keeps its error whatever is merged, by taking maxima. They are made of
the hashes that theta sketches hold: the low bits choose a register, the others are counted for leading zeros. The
estimate is that of O. Ertl, New cardinality estimation algorithms for HyperLogLog sketches, 2017, algorithm 6: without
bias from none to very many values, and without tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array


REGISTER_BITS = 12
REGISTER_COUNT = 1 << REGISTER_BITS
REGISTER_ERROR = 1.04 / math.sqrt(REGISTER_COUNT)
"""The relative standard error of the estimate."""

_RANK_BITS = 63 - REGISTER_BITS


@dataclass(frozen=True, eq=False)
class Registers:
    """The registers of a column's values: one byte each, 0 where no value chose it."""

    values: NDArray[np.uint8]

    def __eq__(self, other: object) -> bool:
        """Whether they are the same."""
        return isinstance(other, Registers) and np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment] # they are not keys

    @classmethod
    def of(cls, hashes: UInt64Array) -> Registers:
        """The registers of theta hashes, in any order and not necessarily distinct."""
        high_bits = (hashes >> np.uint64(REGISTER_BITS)).astype(np.float64)
        ranks = (_RANK_BITS + 1 - np.frexp(high_bits)[1]).astype(np.uint8)
        values = np.zeros(REGISTER_COUNT, np.uint8)
        np.maximum.at(values, (hashes & np.uint64(REGISTER_COUNT - 1)).astype(np.int64), ranks)
        return cls(values)

    @classmethod
    def from_bytes(cls, data: bytes) -> Registers:
        """The registers that `to_bytes` wrote."""
        bits = np.unpackbits(np.frombuffer(data, np.uint8)[1:])
        more = np.flatnonzero(bits[:REGISTER_COUNT])
        ends = np.flatnonzero(bits[REGISTER_COUNT:] == 0)[: len(more)]
        if len(bits) < REGISTER_COUNT or len(ends) < len(more):
            raise ValueError("registers that are cut short")
        values = np.full(REGISTER_COUNT, data[0], np.int64)
        values[more] += np.diff(ends, prepend=-1)
        if values.max() > _RANK_BITS + 1:
            raise ValueError("registers that no hashes of 63 bits have")
        return cls(values.astype(np.uint8))

    def to_bytes(self) -> bytes:
        """The registers as the format stores them: the least, which are greater, by how much in ones up to a zero."""
        least = int(self.values.min())
        more = self.values > least
        lengths = (self.values[more] - least).astype(np.int64)
        bits = np.ones(int(lengths.sum()), np.uint8)
        bits[np.cumsum(lengths) - 1] = 0
        return bytes([least]) + np.packbits(np.concatenate([more, bits])).tobytes()

    def estimate(self) -> int:
        """The number of distinct values."""
        counts = np.bincount(self.values, minlength=_RANK_BITS + 2).tolist()
        inverse = REGISTER_COUNT * _tau(1 - counts[_RANK_BITS + 1] / REGISTER_COUNT)
        for count in reversed(counts[1 : _RANK_BITS + 1]):
            inverse = 0.5 * (inverse + count)
        inverse += REGISTER_COUNT * _sigma(counts[0] / REGISTER_COUNT)
        return round(REGISTER_COUNT * REGISTER_COUNT / (2 * math.log(2) * inverse))


def union_registers(registers: Sequence[Registers]) -> Registers:
    """The registers of the values of all registers."""
    values: Any = np.zeros(REGISTER_COUNT, np.uint8)
    for part in registers:
        values = np.maximum(values, part.values)
    return Registers(values)


def _sigma(share: float) -> float:
    if share == 1:
        return math.inf
    power = 1.0
    total = share
    while True:
        share *= share
        before = total
        total = total + share * power
        power += power
        if total == before:
            return total


def _tau(share: float) -> float:
    if share in (0.0, 1.0):
        return 0.0
    power = 1.0
    total = 1 - share
    while True:
        share = math.sqrt(share)
        power *= 0.5
        before = total
        total = total - (1 - share) ** 2 * power
        if total == before:
            return total / 3
