"""How far the values of a column are distributed otherwise than they were: drift, told by what is stored of both.

Two measures of the same shares p (before) and q (after) of the values in some bins:

- `psi`, the population stability index, the sum of (q - p) ln(q / p) (Siddiqi, Credit Risk Scorecards, 2006). What
  credit scoring takes it for: below 0.1 nothing has changed, from 0.2 or 0.25 on much has. A bin that one side has no
  value in counts there as a share of 0.0001, so that the index is a number.
- `js_distance`, the Jensen-Shannon distance: the square root of half of KL(p | m) + KL(q | m) with m = (p + q) / 2 and
  logarithms to the base 2 (Lin, Divergence measures based on the Shannon entropy, 1991): 0 for equal shares, 1 for
  values that have none in common. It is a metric (Endres and Schindelin, 2003).

The bins, of values that are neither null nor NaN:

- Where all values of both sides are listed: one bin a value if they are at most 20 (`VALUES`); of texts, as long as
  either side has no more than 10,000 (`LISTED`), the 19 that are most frequent on both sides together, and one for the
  others. These shares are exact.
- Else the deciles of the earlier distribution, fewer where a frequent value fills several: as both histograms tell, in
  which the values of a bin are taken to be spread evenly, those of texts half-way.

Where one side tells neither, both measures are null and say why, never 0. They describe all rows of the data files, as
all that tells of a distribution does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.errors import ColumnNotFound, InvalidArgument, NoStatistics
from metastore.format.histogram_bins import find_quantiles
from metastore.format.sortable_values import is_text, make_comparison_key
from metastore.format.table_column import is_compatible
from metastore.kernel.value_counts import COMPLETE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from metastore.format.histogram_bins import Histogram
    from metastore.reading.column_details import ColumnDetails
    from metastore.reading.summary_rows import Row

    DetailsOf = Callable[[str], ColumnDetails]
    """What is kept of the column of a name; raises NoStatistics or InvalidArgument where nothing is."""
    Floats = NDArray[np.float64]


VALUES, LISTED = 20, 10_000
DECILES = 10
EMPTY = 0.0001
"""The share that the index takes for a bin without values."""
PSI, JS_DISTANCE = "psi", "js_distance"
MEASURES = (PSI, JS_DISTANCE)
"""Each is a change already: no value before is there to take a share of."""
REASON = "reason"
"""Why a measure is null."""
ONLY_COUNTS = "of values of its type only counts are kept"
"""The reason of columns that never have one."""


class _UnknownDistributionError(Exception):
    """Why the distributions of a column cannot be compared."""


def compare_distributions(names: Iterable[str], before: DetailsOf, after: DetailsOf) -> list[Row]:
    """Both measures of each column that both sides have; `reason` says why one is null."""
    return [row for name in names for row in _compare_column(name, before, after)]


def _compare_column(name: str, before: DetailsOf, after: DetailsOf) -> list[Row]:
    reason, found = None, {}
    try:
        counts = _count(_details(before, name, "before"), _details(after, name, "after"))
        found = {PSI: measure_psi(*counts), JS_DISTANCE: measure_js_distance(*counts)}
    except _UnknownDistributionError as e:
        reason = str(e)
    return [{**explain_unknown(name, one, reason), "change": found.get(one)} for one in MEASURES]


def explain_unknown(name: str | None, measure: str, reason: str | None) -> Row:
    """The row of a measure of a column that is not known, and why."""
    return {"column_name": name, "measure": measure, "before": None, "after": None, "change": None, REASON: reason}


def measure_psi(before: Sequence[float], after: Sequence[float]) -> float:
    """The population stability index of two counts of the same bins.

    Example:
        >>> round(measure_psi([50, 50], [60, 40]), 6)
        0.040547
    """
    p, q = (np.maximum(_shares(one), EMPTY) for one in (before, after))
    return float(np.sum((q - p) * np.log(q / p)))


def measure_js_distance(before: Sequence[float], after: Sequence[float]) -> float:
    """The Jensen-Shannon distance of two counts of the same bins, to the base 2.

    Example:
        >>> measure_js_distance([10, 0], [0, 3])
        1.0
    """
    p, q = _shares(before), _shares(after)
    middle = (p + q) / 2
    halves = (np.sum(one[one > 0] * np.log2(one[one > 0] / middle[one > 0])) for one in (p, q))
    return float(np.sqrt(min(max(sum(halves) / 2, 0.0), 1.0)))


def _shares(counts: Sequence[float]) -> Floats:
    found: Floats = np.asarray(counts, np.float64) / sum(counts)
    return found


@dataclass(frozen=True)
class _Side:
    """The values of a column on one side."""

    details: ColumnDetails
    when: str

    @property
    def is_listed(self) -> bool:
        """Whether all of its values are listed, and they are not too many."""
        distinct = self.details.summary.get("distinct")
        is_complete = self.details.summary.get("frequencies") == COMPLETE
        return is_complete and self.details.has_value_list and distinct is not None and distinct <= LISTED

    def read_values(self) -> Counter[Any]:
        """Its values with their counts."""
        rows = self.details.read_value_list(None)
        pairs = zip(rows["value"].to_pylist(), rows["frequency"].to_pylist(), strict=True)
        return Counter({value: count for value, count in pairs if value == value})  # noqa: PLR0124 - NaN

    def read_histogram(self) -> Histogram:
        """Its histogram."""
        found = self.details.histogram()
        if found is None:
            raise _UnknownDistributionError(f"neither a histogram nor all values are kept {self.when}")
        return self.details.choose_rank_histogram(found)


def _details(of: DetailsOf, name: str, when: str) -> _Side:
    try:
        found = _Side(of(name), when)
    except InvalidArgument as e:
        raise _UnknownDistributionError(ONLY_COUNTS) from e
    except (NoStatistics, ColumnNotFound) as e:
        raise _UnknownDistributionError(f"the column has no statistics {when}") from e
    values = found.details.value_count
    if values is None:
        raise _UnknownDistributionError(f"the number of values is not known {when}")
    if values <= (found.details.summary.get("nans") or 0):
        raise _UnknownDistributionError(f"the column has no values {when}")
    return found


def _count(before: _Side, after: _Side) -> tuple[Sequence[float], Sequence[float]]:
    """How many values of both sides each bin has."""
    old, new = before.details.column, after.details.column
    same_key = replace(old, key=new.key)
    if not (is_compatible(same_key, new) or is_compatible(new, same_key)):
        raise _UnknownDistributionError(f"the type was {old.type} and is {new.type}")
    if before.is_listed and after.is_listed:
        values = before.read_values(), after.read_values()
        both = values[0] + values[1]
        if len(both) <= VALUES or is_text(new):
            ranked = sorted(both, key=lambda value: (-both[value], value))
            return _count_values(*values, ranked if len(both) <= VALUES else ranked[: VALUES - 1])
    bars = before.read_histogram(), after.read_histogram()
    number = bars[0].number
    ranks = [-(-place * number // DECILES) for place in range(1, DECILES)]
    ends = [one.value for one in find_quantiles(bars[0], ranks, str(old.encoding))]
    key = make_comparison_key(new)
    edges = sorted({key(end) for end in ends})
    return tuple(_count_up_to(one, edges, key) for one in bars)  # type: ignore[return-value] # of two


def _count_values(before: Counter[Any], after: Counter[Any], bins: Sequence[Any]) -> tuple[list[int], list[int]]:
    """The counts of some values, and of all others where there are any."""
    of_both = [[one[value] for value in bins] for one in (before, after)]
    others = [one.total() - sum(counts) for one, counts in zip((before, after), of_both, strict=True)]
    shown = [[*counts, rest] for counts, rest in zip(of_both, others, strict=True)] if any(others) else of_both
    return shown[0], shown[1]


def _count_up_to(histogram: Histogram, edges: Sequence[Any], key: Callable[[Any], Any]) -> list[float]:
    """How many values each bin between some edges has; what is above the last is one more.

    Infinite values are in the first and in the last.
    """
    ends = [key(edge.as_py() if hasattr(edge, "as_py") else edge) for edge in histogram.edges]
    sums = (histogram.below + np.concatenate([[0], np.cumsum(histogram.counts)])).tolist()
    lone = histogram.single_value_bins.tolist()
    upto = [0.0]
    for edge in edges:
        place = bisect_left(ends, edge, 1)  # the bin whose upper edge is the first that is not below
        if edge == np.inf:
            upto.append(histogram.number)
        elif place >= len(ends):
            upto.append(sums[-1])
        elif edge == ends[place]:
            last = place + 1
            while last < len(ends) and ends[last] == edge:  # a value that fills several bins
                last += 1
            upto.append(sums[last - 1])
        else:
            inside = 0.0 if lone[place - 1] or edge < ends[place - 1] else _part(ends[place - 1], ends[place], edge)
            upto.append(sums[place - 1] + inside * histogram.counts[place - 1])
    found: list[float] = np.diff([*upto, histogram.number]).tolist()
    return found


def _part(lo: Any, hi: Any, edge: Any) -> float:
    """The part of a bin's values that lies up to a place inside of it."""
    if isinstance(edge, bytes):
        return 0.5
    found = float((edge - lo) / (hi - lo))
    return found if np.isfinite(found) else 0.5
