"""Rows about how the values of a column are distributed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

from metastore.contract import describe_function
from metastore.errors import InvalidArgument
from metastore.format.histogram_bins import Histogram, coarsen, find_quantiles
from metastore.format.value_rendering import make_renderer
from metastore.reading.summary_rows import Row, is_edge_cut, render_bounds, render_edge

if TYPE_CHECKING:
    from metastore.reading.column_details import ColumnDetails


_DEFAULTS = {one["name"]: one.get("default", "") for one in describe_function("quantiles")["arguments"]}
PROBABILITIES = tuple(map(float, _DEFAULTS["probabilities"].split(",")))


def build_frequency_rows(details: ColumnDetails, top: int | None, zone: str, *, exact: bool) -> list[Row]:
    """One row for each value, most frequent first."""
    _positive("top", top)
    number, shown = details.value_count, make_renderer(details.column, zone)
    return [
        {
            "value": shown(row["value"]),
            "frequency": row["frequency"],
            "fraction": row["frequency"] / number if number else None,
            "exact": exact and not row.get("error"),
            "error": (row.get("error") or 0) if exact else None,
        }
        for row in details.read_value_list(top).to_pylist()
    ]


def build_histogram_rows(
    details: ColumnDetails, histogram: Histogram, bins: int | None, zone: str, *, exact: bool
) -> list[Row]:
    """One row for each bin; infinite values are in none."""
    _positive("bins", bins)
    found = histogram if bins is None else coarsen(histogram, bins)
    edges = [render_edge(details.column, details.summary, _plain(one), zone) for one in found.edges]
    distincts = [None] * len(found.counts) if found.distincts is None else found.distincts.tolist()
    sure = found.exact_bins.tolist()
    return [
        {"bin": place, "lo": lo, "hi": hi, "count": count, "distinct": distinct, "exact": exact and known}
        for place, (lo, hi, count, distinct, known) in enumerate(
            zip(edges[:-1], edges[1:], found.counts.tolist(), distincts, sure, strict=True)
        )
    ]


def build_quantile_rows(
    details: ColumnDetails, histogram: Histogram | None, probabilities: Sequence[float], zone: str, *, exact: bool
) -> list[Row]:
    """One row for each probability: the value of rank ceil(p n), and by what share of all its rank may be off.

    That is null where deleted rows or later changes make it unknown; null is the value without values.
    """
    if histogram is None:
        error = 0.0 if exact else None
        return [{"probability": p, "value": None, "exact": exact, "error": error} for p in probabilities]
    number = histogram.number
    ranks = [max(1, math.ceil(probability * number)) for probability in probabilities]
    rows = []
    for probability, rank, found in zip(
        probabilities, ranks, find_quantiles(histogram, ranks, str(details.column.encoding)), strict=True
    ):
        error, text = found.error, render_edge(details.column, details.summary, found.value, zone)
        is_whole = not is_edge_cut(details.summary, found.value)
        if exact and (bound := _bound(details, rank, number, zone)) is not None:
            error, (text, is_whole) = 0, bound
        share = error / number if exact and error is not None else None
        rows.append({"probability": probability, "value": text, "exact": share == 0 and is_whole, "error": share})
    return rows


def _bound(details: ColumnDetails, rank: int, number: int, zone: str) -> tuple[str, bool] | None:
    """The bound that has a rank, as `summary` shows it, and whether it is a whole value."""
    if rank not in (1, number):
        return None
    name, flag = ("min", "lo_exact") if rank == 1 else ("max", "hi_exact")
    text: str | None = render_bounds(details.column, details.summary, zone)[name]
    return None if text is None else (text, details.summary.get(flag) is not False)


def _positive(argument: str, value: int | None) -> None:
    if value is not None and (type(value) is not int or value < 1):
        raise InvalidArgument(argument, f"{value} is not a positive whole number")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def check_probabilities(asked: float | Iterable[float]) -> list[float]:
    """The probabilities that a caller gave, one or several."""
    given = list(asked) if isinstance(asked, Iterable) and not isinstance(asked, str) else [asked]
    for one in given:
        if not isinstance(one, (Real, Decimal)) or not 0 <= one <= 1:
            raise InvalidArgument("probabilities", f"{one!r} is not a number from 0 to 1")
    if not given:
        raise InvalidArgument("probabilities", "none is given")
    return [float(one) for one in given]
