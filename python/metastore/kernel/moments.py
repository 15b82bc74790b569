"""Sum, mean and second moment: of a column's values, and of the whole from those of its parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.format import sortable_values
from metastore.format.table_column import Column, decimal_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.kernel.value_runs import ValueRuns

_LOW = 0xFFFFFFFF


@dataclass(frozen=True)
class Moments:
    """Sums of a column's finite values.

    Attributes:
        total: The exact sum of unscaled integers; None for doubles.
        m2: The sum of the squared distances from the mean; None of no values, as `sum` and `mean`.
    """

    total: int | None
    sum: float | None
    mean: float | None
    m2: float | None


def compute_moments(runs: ValueRuns, column: Column) -> Moments:
    """Return the sum, mean and second moment of the finite values, decimals with their scale applied."""
    runs = runs.finite
    if not len(runs.values):
        return Moments(None, None, None, None)
    counts = runs.counts.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # sums beyond doubles
        if column.encoding == "double":
            total = float(np.sum(runs.values * counts))
            mean = total / float(counts.sum())
            return Moments(None, total, mean, _second_moment(runs.values - mean, counts))
        exact, distances = _integers(runs, column)
        scale = 10 ** (decimal_type(column.type) or (0, 0))[1]
        number = int(runs.counts.sum())
        second = _second_moment(distances / scale, counts)
        return Moments(exact, exact / scale, exact / (number * scale), second)


def pool_moments(
    column: Column, numbers: NDArray[np.int64], m2s: NDArray[np.float64], means: Any, totals: Sequence[int] | None
) -> tuple[float, float]:
    """Pool the means and second moments of parts with at least one value (Chan et al.)."""
    number = int(numbers.sum())
    with np.errstate(invalid="ignore", over="ignore"):
        if totals is None:
            pivot = 0.0  # infinity less infinity is not a number
            if np.isfinite(means[0]):
                pivot = means[0]
            offsets = means - pivot
            mean = float(pivot + np.sum(numbers * offsets) / number)
        else:
            scale = 10 ** (decimal_type(column.type) or (0, 0))[1]
            total = sum(totals)
            middle = total // number
            counts = numbers.tolist()
            offsets = np.array([(t - middle * n) / (n * scale) for t, n in zip(totals, counts, strict=True)])
            mean = total / (number * scale)
        offsets = offsets - np.sum(numbers * offsets) / number
        return mean, float(m2s.sum() + np.sum(numbers * offsets**2))


def add_sums(sums: Sequence[float]) -> float:
    """Return the sum of sums, infinities and overflow included."""
    try:
        return math.fsum(sums)
    except (OverflowError, ValueError):  # beyond doubles, or infinities of both signs
        with np.errstate(invalid="ignore", over="ignore"):
            return float(np.sum(np.array(sums)))


def _integers(runs: ValueRuns, column: Column) -> tuple[int, NDArray[np.float64]]:
    """Return the exact sum, and each value's distance from (nearly) the mean."""
    number = int(runs.counts.sum())
    if not sortable_values.is_wide_decimal(column):
        total = _exact_sum(runs.values, runs.counts)
        pivot = round(total / number)
        lo = int(runs.values[0])
        hi = int(runs.values[-1])
        pivot = min(max(pivot, lo), hi)
        if hi - lo < 1 << 63:
            return total, (runs.values - pivot).astype(np.float64)
        return total, runs.values.astype(np.float64) - float(pivot)
    high, low = sortable_values.decimal_halves(runs.values)
    total = (_exact_sum(high, runs.counts) << 64) + _exact_sum(low, runs.counts)
    distances: NDArray[np.float64] = high.astype(np.float64) * 2.0**64 + low.astype(np.float64) - total / number
    return total, distances


def _exact_sum(values: NDArray[Any], counts: NDArray[np.int64]) -> int:
    kind = values.dtype.type
    low = (values & kind(_LOW)).astype(np.int64)
    high = (values >> kind(32)).astype(np.int64)
    return (int(np.dot(high, counts)) << 32) + int(np.dot(low, counts))


def _second_moment(distances: NDArray[np.float64], counts: NDArray[np.float64]) -> float:
    weighted = distances * counts  # no np.dot of doubles: BLAS would start threads inside a task
    return float(np.sum(weighted * distances) - np.sum(weighted) ** 2 / counts.sum())
