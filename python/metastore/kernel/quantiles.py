"""Quantile points: the values at equal steps of rank, and how those of many parts become those of the whole.

A part of n values with m + 1 points is taken as m + 1 weighted values: each step's n / m values lie half at its lower
and half at its upper point. All weights are integers in units of n / (2 m), so nothing is rounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.kernel.binary_values import BinaryValues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


PERCENT = 100
FINE = 1000


def quantile_ranks(number: int, steps: int) -> NDArray[np.int64]:
    """The ranks of the points among `number` values: max(1, ceil(i number / steps)) for i from 0 to `steps`."""
    found: NDArray[np.int64] = np.maximum(-(np.arange(steps + 1, dtype=np.int64) * -number // steps), 1)
    return found


def merge_number_points(points: NDArray[Any], numbers: NDArray[np.int64], steps: int) -> NDArray[Any]:
    """The points of the whole, of a fixed-width column."""
    flat = points.reshape(-1)
    order = np.argsort(flat)
    weights = _weights(points.shape[1] - 1, numbers)
    targets = quantile_ranks(int(weights.sum()), steps)
    return flat[order][np.searchsorted(np.cumsum(weights[order]), targets, side="left")]


def merge_text_points(points: Sequence[Sequence[bytes]], numbers: NDArray[np.int64], steps: int) -> list[bytes]:
    """The points of the whole, of a column of strings or binary values (see `merge_number_points`)."""
    values = [value for part in points for value in part]
    weights = _weights(len(points[0]) - 1, numbers)
    order = BinaryValues(pa.array(values, pa.large_binary())).order()
    rows = order[np.searchsorted(np.cumsum(weights[order]), quantile_ranks(int(weights.sum()), steps), side="left")]
    return [values[row] for row in rows.tolist()]


def _weights(steps: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.outer(numbers, _step(steps)).reshape(-1)


def _step(steps: int) -> NDArray[np.int64]:
    step = np.full(steps + 1, 2, dtype=np.int64)
    step[[0, -1]] = 1
    return step
