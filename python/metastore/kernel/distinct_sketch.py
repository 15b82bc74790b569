"""Sketches that count the distinct values of many data files together: the smallest hashes, or registers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.kernel import hyperloglog
from metastore.kernel.complete_parts import require_all
from metastore.kernel.hyperloglog import Registers
from metastore.kernel.theta_sketch import ThetaSketch, make_theta, theta_hashes_of_stored, union_thetas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array
    from metastore.format.table_column import Column


@dataclass(frozen=True)
class DistinctSketch:
    """The sketch of a column's values; it has a theta sketch, or registers, or both.

    Attributes:
        theta: The smallest hashes of the values, or all of them.
        registers: The registers of the values; None if the theta sketch has all hashes, or they are unknown.
    """

    theta: ThetaSketch | None
    registers: Registers | None = None

    @property
    def is_exact(self) -> bool:
        """Whether it counts rather than estimates."""
        return self.theta is not None and self.theta.is_exact

    @property
    def error(self) -> float:
        """The relative standard error of the estimate; 0 when it is exact."""
        theta = self._nearest_theta
        if theta is None:
            return hyperloglog.REGISTER_ERROR
        return theta.error

    @property
    def estimate(self) -> float:
        """The number of distinct values."""
        theta = self._nearest_theta
        if theta is not None:
            return theta.estimate
        if self.registers is None:
            return 0.0
        return float(self.registers.estimate())

    @property
    def _nearest_theta(self) -> ThetaSketch | None:
        """The theta sketch, unless the registers are nearer."""
        if self.theta is None or self.registers is None:
            return self.theta
        if self.theta.error > hyperloglog.REGISTER_ERROR:
            return None
        return self.theta


def make_sketch(hashes: UInt64Array, *, is_sorted: bool = False) -> DistinctSketch:
    """Make the sketch of values from their hashes."""
    theta = make_theta(hashes, is_sorted=is_sorted)
    if theta.is_exact:
        return DistinctSketch(theta)
    return DistinctSketch(theta, Registers.of(hashes))


def make_sketches(
    values: pa.Array, owners: NDArray[np.integer[Any]], column: Column
) -> Iterator[tuple[int, DistinctSketch]]:
    """Make sketches of several lists of distinct values, each with its owner."""
    order = np.argsort(owners, kind="stable")
    owners = owners[order]
    hashes = theta_hashes_of_stored(values, column)[order]
    starts = np.flatnonzero(np.diff(owners, prepend=owners[:1] - 1))
    for owner, owned in zip(owners[starts].tolist(), np.split(hashes, starts[1:]), strict=True):
        yield owner, make_sketch(owned)


def parse_sketches(
    thetas: Iterable[bytes | None], registers: Iterable[bytes | None] = repeat(None)
) -> list[DistinctSketch | None]:
    """Parse stored sketches, equal ones once: files with the same few values have the same."""
    rows = list(zip(thetas, registers, strict=False))
    parsed = {row: _parse_sketch(*row) for row in set(rows)}
    return list(map(parsed.__getitem__, rows))


def _parse_sketch(theta: bytes | None, registers: bytes | None) -> DistinctSketch | None:
    if theta is None and registers is None:
        return None
    parsed_theta = None
    if theta is not None:
        parsed_theta = ThetaSketch.from_bytes(theta)
    parsed_registers = None
    if registers is not None:
        parsed_registers = Registers.from_bytes(registers)
    return DistinctSketch(parsed_theta, parsed_registers)


def union_sketches(sketches: Sequence[DistinctSketch | None]) -> DistinctSketch | None:
    """Return the sketch of the values of all sketches; None if one is missing."""
    present = require_all(sketches)
    if present is None:
        return None
    theta = _union_thetas(present)
    if theta is not None and theta.is_exact:
        return DistinctSketch(theta)
    registers = _union_registers(present)
    if theta is None and registers is None:
        return None
    return DistinctSketch(theta, registers)


def _union_thetas(sketches: Sequence[DistinctSketch]) -> ThetaSketch | None:
    """Return the theta sketch of the values of all sketches; None if one has none."""
    thetas = require_all([sketch.theta for sketch in sketches])
    if thetas is None:
        return None
    return union_thetas(thetas)


def _union_registers(sketches: Sequence[DistinctSketch]) -> Registers | None:
    """Return the registers of the values of all sketches; None if one has neither registers nor all hashes."""
    hashes = []
    registers = []
    for sketch in sketches:
        if sketch.theta is not None and sketch.theta.is_exact:
            hashes.append(sketch.theta.hashes)
        elif sketch.registers is not None:
            registers.append(sketch.registers)
        else:
            return None
    if hashes:
        registers.append(Registers.of(np.concatenate(hashes)))
    return hyperloglog.union_registers(registers)
