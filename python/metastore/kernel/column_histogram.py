"""Histograms of a column's values, with bins of about equal height."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from metastore.format.histogram_bins import Histogram, choose_bin_ends, join_bins

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]


def make_equal_height_histogram(
    counts: Counts, last_ranks: Counts, bins: int, values: Callable[[Counts], pa.Array]
) -> Histogram:
    """Make the histogram of runs."""
    ends = np.arange(len(counts))
    if len(ends) > bins:
        ends = choose_bin_ends(last_ranks, counts, bins)
    heights = np.diff(last_ranks[ends], prepend=0)
    distincts = np.diff(ends, prepend=-1)
    return Histogram(edges=values(np.append(0, ends)), counts=heights, distincts=distincts)


def merge_bins(histogram: Histogram, bins: int) -> Histogram:
    """Merge neighbouring bins until there are about `bins`."""
    counts = histogram.counts
    if len(counts) <= bins:
        return histogram
    single_counts = np.zeros_like(counts)
    if histogram.distincts is not None:
        single_counts = counts * (histogram.distincts == 1)
    ends = choose_bin_ends(np.cumsum(counts), single_counts, bins)
    return join_bins(histogram, np.append(0, ends + 1))
