"""Builds the rows of `frequencies`, `histogram` and `quantiles`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING

from metastore.contract import describe_function
from metastore.errors import InvalidArgument
from metastore.format.histogram_bins import Histogram, Quantile, coarsen, find_quantiles, plain_number
from metastore.format.value_rendering import make_renderer
from metastore.reading.summary_rows import Row, count_or_zero, is_edge_cut, render_bounds, render_edge

if TYPE_CHECKING:
    from metastore.reading.column_details import ColumnDetails


_DEFAULTS = {argument["name"]: argument.get("default", "") for argument in describe_function("quantiles")["arguments"]}
PROBABILITIES = tuple(map(float, _DEFAULTS["probabilities"].split(",")))


def build_frequency_rows(details: ColumnDetails, top: int | None, zone: str, *, exact: bool) -> list[Row]:
    """Build one row for each value, most frequent first."""
    _require_positive("top", top)
    values = details.value_count
    render = make_renderer(details.column, zone)
    rows = []
    for stored in details.read_value_list(top).to_pylist():
        frequency = stored["frequency"]
        error = count_or_zero(stored, "error")
        row = {
            "value": render(stored["value"]),
            "frequency": frequency,
            "fraction": frequency / values if values else None,
            "exact": exact and not error,
            "error": error if exact else None,
        }
        rows.append(row)
    return rows


def build_histogram_rows(
    details: ColumnDetails, histogram: Histogram, bins: int | None, zone: str, *, exact: bool
) -> list[Row]:
    """Build one row for each bin; bins have no infinite values."""
    _require_positive("bins", bins)
    if bins is not None:
        histogram = coarsen(histogram, bins)
    edges = [render_edge(details.column, details.summary, plain_number(edge), zone) for edge in histogram.edges]
    counts = histogram.counts.tolist()
    distincts: Sequence[int | None] = histogram.list_distincts() or [None] * len(counts)
    parts = zip(pairwise(edges), counts, distincts, histogram.exact_bins.tolist(), strict=True)
    rows = []
    for number, ((low, high), count, distinct, is_exact_bin) in enumerate(parts):
        row = {
            "bin": number,
            "lo": low,
            "hi": high,
            "count": count,
            "distinct": distinct,
            "exact": exact and is_exact_bin,
        }
        rows.append(row)
    return rows


def build_quantile_rows(
    details: ColumnDetails, histogram: Histogram | None, probabilities: Sequence[float], zone: str, *, exact: bool
) -> list[Row]:
    """Build one row for each probability p: the value of rank ceil(p n), and the error of its rank.

    The error is a share of the values; it is null if deleted rows or later changes make it unknown. A column without
    values has null for each value.
    """
    if histogram is None:
        return _build_null_rows(probabilities, exact=exact)
    number = histogram.number
    ranks = [max(1, math.ceil(probability * number)) for probability in probabilities]
    quantiles = find_quantiles(histogram, ranks, str(details.column.encoding))
    rows = []
    for probability, rank, quantile in zip(probabilities, ranks, quantiles, strict=True):
        value = _render_quantile(details, quantile, zone)
        if not exact:
            value = replace(value, error=None)
        elif rank in (1, number):
            value = _read_bound(details, zone, is_first=rank == 1) or value
        rows.append(value.to_row(probability, number))
    return rows


def _build_null_rows(probabilities: Sequence[float], *, exact: bool) -> list[Row]:
    row = {"value": None, "exact": exact, "error": 0.0 if exact else None}
    return [{"probability": probability, **row} for probability in probabilities]


@dataclass(frozen=True)
class _RankedValue:
    """A value as text.

    Attributes:
        error: The number of values by which its rank may be off, or None if unknown.
        is_complete: Whether the text has the whole value, and not only its beginning.
    """

    text: str | None
    error: int | None
    is_complete: bool

    def to_row(self, probability: float, number: int) -> Row:
        """Return the row of a probability among a number of values."""
        return {
            "probability": probability,
            "value": self.text,
            "exact": self.error == 0 and self.is_complete,
            "error": None if self.error is None else self.error / number,
        }


def _render_quantile(details: ColumnDetails, quantile: Quantile, zone: str) -> _RankedValue:
    text = render_edge(details.column, details.summary, quantile.value, zone)
    return _RankedValue(text, quantile.error, not is_edge_cut(details.summary, quantile.value))


def _read_bound(details: ColumnDetails, zone: str, *, is_first: bool) -> _RankedValue | None:
    """Return the minimum or maximum as `summary` shows it, or None if unknown."""
    bounds = render_bounds(details.column, details.summary, zone)
    text, flag = (bounds["min"], "lo_exact") if is_first else (bounds["max"], "hi_exact")
    if text is None:
        return None
    return _RankedValue(text, 0, details.summary.get(flag) is not False)


def _require_positive(argument: str, value: int | None) -> None:
    if value is not None and (type(value) is not int or value < 1):
        raise InvalidArgument(argument, f"{value} is not a positive whole number")


def check_probabilities(probabilities: float | Iterable[float]) -> list[float]:
    """List one or several probabilities.

    Raises:
        InvalidArgument: There are none, or one is not a number from 0 to 1.
    """
    if isinstance(probabilities, Iterable) and not isinstance(probabilities, str):
        listed = list(probabilities)
    else:
        listed = [probabilities]
    if not listed:
        raise InvalidArgument("probabilities", "none is given")
    return [_check_probability(probability) for probability in listed]


def _check_probability(probability: float) -> float:
    if not isinstance(probability, (Real, Decimal)) or not 0 <= probability <= 1:
        raise InvalidArgument("probabilities", f"{probability!r} is not a number from 0 to 1")
    return float(probability)
