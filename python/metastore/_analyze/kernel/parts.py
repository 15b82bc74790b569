"""What is known of the values of a column, or of a part of them, and how parts become the whole."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore._analyze.kernel import points, stored
from metastore._analyze.kernel.runs import moments
from metastore._analyze.kernel.theta import NOMINAL, Theta, ThetaBuilder, union
from metastore._format.columns import decimal_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore._analyze.kernel.runs import Runs
    from metastore._analyze.kernel.text import Texts
    from metastore._format.columns import Column


@dataclass(frozen=True)
class Part:
    """Statistics of at least one value; null and NaN are counted elsewhere.

    Attributes:
        number: How many values.
        lo: The least value, as stored; text is cut after 65 bytes.
        hi: The greatest.
        distinct: How many distinct values.
        error: The relative standard error of `distinct`; 0 when it is exact.
        theta: Their sketch.
        points: Quantile points: a numpy array, or a list of bytes for text.
        length: Bytes of all values.
        max_length: Bytes of the longest.
        total: The exact sum of unscaled integers, else None.
        sum: The sum as a number; None for text, as `mean` and `m2`.
        mean: The arithmetic mean.
        m2: The sum of squared distances from it.
    """

    number: int
    lo: Any
    hi: Any
    distinct: int
    error: float
    theta: Theta
    points: NDArray[Any] | list[bytes]
    length: int
    max_length: int
    total: int | None = None
    sum: float | None = None
    mean: float | None = None
    m2: float | None = None


def part_of_numbers(runs: Runs, column: Column, steps: int) -> Part:
    """What is known of the values of a fixed-width column.

    Args:
        runs: At least one run.
        column: The column.
        steps: How many steps the quantile points make.
    """
    number, wide = int(runs.counts.sum()), stored.width(column)
    builder = ThetaBuilder()
    builder.add(stored.hashes(runs.values, column))
    found = moments(runs, column)
    return Part(
        number,
        stored.stored(runs.values[0], column),
        stored.stored(runs.values[-1], column),
        len(runs.values),
        0.0,
        builder.finish(),
        runs.at_ranks(points.ranks(number, steps)),
        number * wide,
        wide,
        found.total,
        found.sum,
        found.mean,
        found.m2,
    )


def part_of_texts(texts: Texts, weights: NDArray[np.int64] | None, steps: int) -> Part:
    """What is known of at least one string or binary value.

    Distinct values are counted by their 63-bit hashes: among ten million, one count in 180,000 is short by one.

    Args:
        texts: The values.
        weights: How often each occurs, if not once.
        steps: How many steps the quantile points make.
    """
    number = len(texts) if weights is None else int(weights.sum())
    hashes = np.sort(texts.hashes())
    hashes = hashes[np.concatenate([[True], hashes[1:] != hashes[:-1]])]
    builder = ThetaBuilder()
    builder.add(hashes[: NOMINAL + 2])  # more than a sketch keeps, so that it knows its threshold
    values = texts.at_ranks(points.ranks(number, steps))
    length = texts.lengths.sum() if weights is None else np.dot(texts.lengths, weights)
    longest = int(texts.lengths.max())
    return Part(number, values[0], values[-1], len(hashes), 0.0, builder.finish(), values, int(length), longest)


def combined(parts: Sequence[Part], column: Column) -> Part:
    """The whole of at least one part; with several, distinct values and points are approximate.

    Args:
        parts: Parts with equally many points.
        column: Their column.
    """
    if len(parts) == 1:
        return parts[0]
    numbers = np.array([part.number for part in parts])
    theta = union(part.theta for part in parts)
    key = order_key(column)
    totals = None if parts[0].total is None else [part.total or 0 for part in parts]
    mean = m2 = None
    if parts[0].mean is not None:
        means, m2s = (np.array([getattr(part, name) for part in parts]) for name in ("mean", "m2"))
        mean, m2 = pooled(column, numbers, m2s, means, totals)
    return Part(
        int(numbers.sum()),
        min((part.lo for part in parts), key=key),
        max((part.hi for part in parts), key=key),
        _between(parts, theta),
        theta.error,
        theta,
        _merged_points([part.points for part in parts], numbers),
        sum(part.length for part in parts),
        max(part.max_length for part in parts),
        None if totals is None else sum(totals),
        None if parts[0].sum is None else added([part.sum or 0.0 for part in parts]),
        mean,
        m2,
    )


def _between(parts: Sequence[Part], theta: Theta) -> int:
    """The estimate, within what the parts' own counts leave possible."""
    counts = [part.distinct for part in parts if part.error == 0]
    most = sum(counts) if len(counts) == len(parts) else sum(part.number for part in parts)
    return min(max(round(theta.estimate), *counts, 0), most)


def _merged_points(rows: Sequence[Any], numbers: NDArray[np.int64]) -> Any:
    """The quantile points of the whole from those of its parts."""
    steps = len(rows[0]) - 1
    if isinstance(rows[0], list):
        return points.merged_texts(rows, numbers, steps)
    return points.merged_numbers(np.stack(rows), numbers, steps)


def pooled(
    column: Column, numbers: NDArray[np.int64], m2s: NDArray[np.float64], means: Any, totals: Sequence[int] | None
) -> tuple[float, float]:
    """Mean and second moment of the whole from those of parts with at least one value (Chan et al.).

    Args:
        column: The column.
        numbers: How many values each part has.
        m2s: Second moment of each.
        means: Mean of each.
        totals: Exact sum of each, where known: means of large numbers lie closer together than doubles tell.
    """
    whole = int(numbers.sum())
    with np.errstate(invalid="ignore", over="ignore"):
        if totals is None:
            pivot = means[0] if np.isfinite(means[0]) else 0.0  # infinity less infinity is not a number
            offsets = means - pivot
            mean = float(pivot + np.sum(numbers * offsets) / whole)
        else:
            scale = 10 ** (decimal_type(column.type) or (0, 0))[1]
            total = sum(totals)
            middle, counts = total // whole, numbers.tolist()
            offsets = np.array([(t - middle * n) / (n * scale) for t, n in zip(totals, counts, strict=True)])
            mean = total / (whole * scale)
        offsets = offsets - np.sum(numbers * offsets) / whole
        return mean, float(m2s.sum() + np.sum(numbers * offsets**2))


def added(sums: Sequence[float]) -> float:
    """The sum of sums, infinities and overflow included."""
    try:
        return math.fsum(sums)
    except (OverflowError, ValueError):  # beyond doubles, or infinities of both signs
        with np.errstate(invalid="ignore", over="ignore"):
            return float(np.sum(np.array(sums)))


def order_key(column: Column) -> Any:
    """The function that maps a stored value to what compares as it does."""
    if stored.is_wide(column):
        return lambda value: int.from_bytes(value, "big", signed=True)
    return lambda value: value
