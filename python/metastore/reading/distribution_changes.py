"""Distances between two distributions of a column's values (drift), computed from stored statistics.

Both measures compare the shares p (before) and q (after) of the values in the same bins:

- `psi`, the population stability index, is the sum of (q - p) ln(q / p) (Siddiqi, Credit Risk Scorecards, 2006). In
  credit scoring, less than 0.1 means no change, and more than 0.2 or 0.25 a large one. A share of 0 counts as 0.0001,
  so that the index is finite.
- `js_distance`, the Jensen-Shannon distance, is the square root of half of KL(p | m) + KL(q | m) with m = (p + q) / 2
  and logarithms to the base 2 (Lin, Divergence measures based on the Shannon entropy, 1991): 0 for equal shares, 1 if
  no value is on both sides. It is a metric (Endres and Schindelin, 2003).

The bins are of values that are neither null nor NaN:

- If all values of both sides are listed, each value is a bin, up to 20 values (`VALUES`). Texts may have up to 10,000
  values a side (`LISTED`): the 19 most frequent ones are bins, and the others share one. These shares are exact.
- Else the bins lie between the deciles of the earlier distribution; there are fewer if a frequent value fills several.
  The shares are estimates from both histograms: numbers lie evenly in a bin, and of texts half lies on each side.

If one side has neither a list nor a histogram, both measures are null, never 0, and the row says why. Deleted rows in
data files count, as in all statistics of distributions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.errors import ColumnNotFound, InvalidArgument, NoStatistics
from metastore.format.histogram_bins import find_quantiles
from metastore.format.sortable_values import is_text, make_comparison_key
from metastore.format.table_column import is_compatible
from metastore.kernel.value_counts import COMPLETE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from metastore.format.histogram_bins import Histogram
    from metastore.format.table_column import Column
    from metastore.reading.column_details import ColumnDetails
    from metastore.reading.summary_rows import Row

    ReadDetails = Callable[[str], ColumnDetails]
    """Reads the details of a column by name; raises NoStatistics, ColumnNotFound or InvalidArgument without any."""
    Floats = NDArray[np.float64]


VALUES = 20
LISTED = 10_000
DECILES = 10
EMPTY = 0.0001
"""The share of a bin without values in the index."""
PSI = "psi"
JS_DISTANCE = "js_distance"
MEASURES = (PSI, JS_DISTANCE)
"""The measures; each is a change already, without a value before and after."""
REASON = "reason"
"""The field of a row with the reason why its measure is null."""
ONLY_COUNTS = "of values of its type only counts are kept"
"""The reason of columns that never have a distribution."""


class _UnknownDistributionError(Exception):
    """The reason why the distributions of a column cannot be compared."""


def compare_distributions(names: Iterable[str], before: ReadDetails, after: ReadDetails) -> list[Row]:
    """Compute both measures of each column that both sides have; `reason` says why one is null."""
    rows = []
    for name in names:
        rows += _compare_column(name, before, after)
    return rows


def _compare_column(name: str, before: ReadDetails, after: ReadDetails) -> list[Row]:
    try:
        old = _read_side(before, name, "before")
        new = _read_side(after, name, "after")
        counts = _count_bins(old, new)
    except _UnknownDistributionError as e:
        return [explain_unknown(name, measure, str(e)) for measure in MEASURES]
    psi = measure_psi(counts.before, counts.after)
    distance = measure_js_distance(counts.before, counts.after)
    return [_make_row(name, PSI, change=psi), _make_row(name, JS_DISTANCE, change=distance)]


def explain_unknown(name: str | None, measure: str, reason: str) -> Row:
    """Make the row of a measure of a column that is unknown for a reason."""
    return _make_row(name, measure, reason=reason)


def _make_row(name: str | None, measure: str, *, change: float | None = None, reason: str | None = None) -> Row:
    return {
        "column_name": name,
        "measure": measure,
        "before": None,
        "after": None,
        "change": change,
        REASON: reason,
    }


def measure_psi(before: Sequence[float], after: Sequence[float]) -> float:
    """Compute the population stability index of two counts of the same bins.

    Example:
        >>> round(measure_psi([50, 50], [60, 40]), 6)
        0.040547
    """
    p = np.maximum(_shares(before), EMPTY)
    q = np.maximum(_shares(after), EMPTY)
    changes = (q - p) * np.log(q / p)
    return float(np.sum(changes))


def measure_js_distance(before: Sequence[float], after: Sequence[float]) -> float:
    """Compute the Jensen-Shannon distance of two counts of the same bins, to the base 2.

    Example:
        >>> measure_js_distance([10, 0], [0, 3])
        1.0
    """
    p = _shares(before)
    q = _shares(after)
    middle = (p + q) / 2
    divergence = (_measure_divergence(p, middle) + _measure_divergence(q, middle)) / 2
    within_range = min(max(divergence, 0.0), 1.0)  # rounding may leave it
    return float(np.sqrt(within_range))


def _measure_divergence(p: Floats, q: Floats) -> float:
    """Return the Kullback-Leibler divergence, to the base 2."""
    is_positive = p > 0
    positive = p[is_positive]
    terms = positive * np.log2(positive / q[is_positive])
    return float(np.sum(terms))


def _shares(counts: Sequence[float]) -> Floats:
    shares: Floats = np.asarray(counts, np.float64) / sum(counts)
    return shares


@dataclass(frozen=True)
class _Side:
    """The values of a column on one side.

    Attributes:
        when: `before` or `after`.
    """

    details: ColumnDetails
    when: str

    @property
    def is_listed(self) -> bool:
        """Whether all of its values are listed, and there are not too many."""
        if not self.details.has_value_list or self.details.summary.get("frequencies") != COMPLETE:
            return False
        distinct = self.details.summary.get("distinct")
        return distinct is not None and distinct <= LISTED

    def read_values(self) -> Counter[Any]:
        """Return the values without NaN, and their counts."""
        rows = self.details.read_value_list(None)
        values = rows["value"].to_pylist()
        frequencies = rows["frequency"].to_pylist()
        counts = Counter(dict(zip(values, frequencies, strict=True)))
        for nan in filter(_is_nan, list(counts)):
            del counts[nan]
        return counts

    def read_histogram(self) -> Histogram:
        """Return the histogram."""
        histogram = self.details.histogram()
        if histogram is None:
            raise _UnknownDistributionError(f"neither a histogram nor all values are kept {self.when}")
        return histogram


def _is_nan(value: Any) -> bool:
    return bool(value != value)  # noqa: PLR0124 - the only value that differs from itself


def _read_side(read: ReadDetails, name: str, when: str) -> _Side:
    try:
        details = read(name)
    except InvalidArgument as e:
        raise _UnknownDistributionError(ONLY_COUNTS) from e
    except (NoStatistics, ColumnNotFound) as e:
        raise _UnknownDistributionError(f"the column has no statistics {when}") from e
    values = details.value_count
    if values is None:
        raise _UnknownDistributionError(f"the number of values is not known {when}")
    if values <= details.nan_count:
        raise _UnknownDistributionError(f"the column has no values {when}")
    return _Side(details, when)


@dataclass(frozen=True)
class _BinCounts:
    """The numbers of values in the same bins on both sides."""

    before: Sequence[float]
    after: Sequence[float]


def _count_bins(before: _Side, after: _Side) -> _BinCounts:
    old = before.details.column
    new = after.details.column
    old_with_new_key = replace(old, key=new.key)  # a column that was made again is compared, too
    if not is_compatible(old_with_new_key, new) and not is_compatible(new, old_with_new_key):
        raise _UnknownDistributionError(f"the type was {old.type} and is {new.type}")
    if before.is_listed and after.is_listed:
        counts = _count_listed_values(before.read_values(), after.read_values(), are_texts=is_text(new))
        if counts is not None:
            return counts
    return _count_deciles(before.read_histogram(), after.read_histogram(), new, str(old.encoding))


def _count_listed_values(before: Counter[Any], after: Counter[Any], *, are_texts: bool) -> _BinCounts | None:
    """Count each value as a bin; None for too many values, unless they are texts, of which the rest shares a bin."""
    both = before + after
    values = sorted(both, key=lambda value: (-both[value], value))
    if len(values) <= VALUES:
        return _count_each(values, before, after)
    if not are_texts:
        return None
    frequent = _count_each(values[: VALUES - 1], before, after)
    old_others = before.total() - sum(frequent.before)
    new_others = after.total() - sum(frequent.after)
    return _BinCounts([*frequent.before, old_others], [*frequent.after, new_others])


def _count_each(values: Sequence[Any], before: Counter[Any], after: Counter[Any]) -> _BinCounts:
    """Count each value as a bin."""
    return _BinCounts([before[value] for value in values], [after[value] for value in values])


def _count_deciles(before: Histogram, after: Histogram, column: Column, encoding: str) -> _BinCounts:
    """Count the values between the deciles of the earlier histogram."""
    number = before.number
    ranks = [(decile * number + DECILES - 1) // DECILES for decile in range(1, DECILES)]  # rounded up
    to_key = make_comparison_key(column)
    edges = sorted({to_key(quantile.value) for quantile in find_quantiles(before, ranks, encoding)})
    return _BinCounts(
        _count_between(_CumulatedBins.of(before, to_key), edges),
        _count_between(_CumulatedBins.of(after, to_key), edges),
    )


def _count_between(bins: _CumulatedBins, edges: Sequence[Any]) -> list[float]:
    """Return the number of values below the first edge, between edges, and above the last."""
    counts = [0.0, *(bins.count_up_to(edge) for edge in edges), bins.number]
    differences: list[float] = np.diff(counts).tolist()
    return differences


@dataclass(frozen=True)
class _CumulatedBins:
    """The cumulative counts of a histogram.

    Attributes:
        ends: The edges as values that can be compared.
        counts: The number of values up to each edge.
        hold_one_value: Whether each bin has only its upper edge as a value.
        number: The number of values.
    """

    ends: Sequence[Any]
    counts: Sequence[float]
    hold_one_value: Sequence[bool]
    number: float

    @classmethod
    def of(cls, histogram: Histogram, to_key: Callable[[Any], Any]) -> _CumulatedBins:
        """Add up the bins of a histogram."""
        edges = histogram.edges
        if isinstance(edges, pa.Array):
            edges = edges.to_pylist()
        counts = histogram.below + np.concatenate([[0], np.cumsum(histogram.counts)])
        return cls(
            ends=list(map(to_key, edges)),
            counts=counts.tolist(),
            hold_one_value=histogram.single_value_bins.tolist(),
            number=histogram.number,
        )

    def count_up_to(self, edge: Any) -> float:
        """Return the number of values up to an edge."""
        if edge == np.inf:
            return self.number
        upper = bisect_left(self.ends, edge, 1)  # the first bin whose upper edge is not below
        if upper >= len(self.ends):
            return self.counts[-1]
        if edge == self.ends[upper]:
            last = bisect_right(self.ends, edge, upper) - 1  # a value may fill several bins
            return self.counts[last]
        lower = upper - 1
        if self.hold_one_value[lower] or edge < self.ends[lower]:
            return self.counts[lower]
        share = _estimate_share(self.ends[lower], self.ends[upper], edge)
        values_of_bin = self.counts[upper] - self.counts[lower]
        return self.counts[lower] + share * values_of_bin


def _estimate_share(low: Any, high: Any, edge: Any) -> float:
    """Return the share of a bin's values up to an edge inside of it."""
    if isinstance(edge, bytes):
        return 0.5
    share = float((edge - low) / (high - low))
    if np.isfinite(share):
        return share
    return 0.5
