"""What counts the distinct values of many data files together: their smallest hashes where kept, or registers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.kernel import hyperloglog
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
    """The sketch of a column's values: at least one of both.

    Attributes:
        theta: Their smallest hashes, or all.
        registers: Their registers; None where the theta sketch has all hashes, or they are not known.
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
        return hyperloglog.REGISTER_ERROR if self._best is None else self._best.error

    @property
    def estimate(self) -> float:
        """The number of distinct values."""
        if self._best is not None:
            return self._best.estimate
        return 0.0 if self.registers is None else float(self.registers.estimate())

    @property
    def _best(self) -> ThetaSketch | None:
        """The theta sketch, unless the registers are nearer."""
        if self.theta is None or (self.registers is not None and self.theta.error > hyperloglog.REGISTER_ERROR):
            return None
        return self.theta


def make_sketch(hashes: UInt64Array, *, is_sorted: bool = False) -> DistinctSketch:
    """The sketch of values."""
    theta = make_theta(hashes, is_sorted=is_sorted)
    return DistinctSketch(theta, None if theta.is_exact else Registers.of(hashes))


def make_sketches(
    values: pa.Array, owners: NDArray[np.integer[Any]], column: Column
) -> Iterator[tuple[int, DistinctSketch]]:
    """Sketches of several lists of distinct values."""
    order = np.argsort(owners, kind="stable")
    owners, hashes = owners[order], theta_hashes_of_stored(values, column)[order]
    starts = np.flatnonzero(np.diff(owners, prepend=owners[:1] - 1))
    for owner, some in zip(owners[starts].tolist(), np.split(hashes, starts[1:]), strict=True):
        yield owner, make_sketch(some)


def parse_sketches(
    thetas: Iterable[bytes | None], registers: Iterable[bytes | None] = repeat(None)
) -> list[DistinctSketch | None]:
    """Sketches as they are merged; equal ones are one: files with the same few values have the same."""
    found: dict[tuple[bytes | None, bytes | None], DistinctSketch | None] = {(None, None): None}
    rows = list(zip(thetas, registers, strict=False))
    for theta, more in rows:
        if (theta, more) not in found:
            found[theta, more] = DistinctSketch(
                None if theta is None else ThetaSketch.from_bytes(theta),
                None if more is None else Registers.from_bytes(more),
            )
    return [found[row] for row in rows]


def union_sketches(sketches: Sequence[DistinctSketch | None]) -> DistinctSketch | None:
    """The sketch of the values of all; None where one is missing."""
    known = [one for one in sketches if one is not None]
    if len(known) < len(sketches):
        return None
    thetas = [one.theta for one in known if one.theta is not None]
    theta = union_thetas(thetas) if len(thetas) == len(known) else None
    if theta is not None and theta.is_exact:
        return DistinctSketch(theta)
    registers = _registers_of(known)
    return None if theta is None and registers is None else DistinctSketch(theta, registers)


def _registers_of(sketches: Sequence[DistinctSketch]) -> Registers | None:
    """The registers of all; None where one has neither registers nor all hashes."""
    whole = [one.theta.hashes for one in sketches if one.theta is not None and one.theta.is_exact]
    others = [one.registers for one in sketches if not one.is_exact]
    known = [one for one in others if one is not None]
    if len(known) < len(others):
        return None
    of_hashes = [Registers.of(np.concatenate(whole))] if whole else []
    return hyperloglog.union_registers([*of_hashes, *known])
