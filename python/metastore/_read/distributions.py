"""Rows about how the values of a column are distributed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from metastore._format.histogram import at_rank, coarser
from metastore._format.values import render, renderer
from metastore.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore._format.histogram import Histogram
    from metastore._read.details import Details
    from metastore._read.rows import Row

PROBABILITIES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def frequency_rows(details: Details, top: int | None, zone: str, *, exact: bool) -> list[Row]:
    """One row for each value, most frequent first.

    Args:
        details: The column.
        top: How many.
        zone: For timestamps.
        exact: Whether the list describes all live rows and nothing else.

    Raises:
        InvalidArgument: `top` is no positive whole number.
    """
    _positive("top", top)
    number, shown = details.values, renderer(details.column, zone)
    return [
        {
            "value": shown(row["value"]),
            "frequency": row["frequency"],
            "fraction": row["frequency"] / number if number else None,
            "exact": exact and not row.get("error"),
            "error": row.get("error") or 0,
        }
        for row in details.listed(top).to_pylist()
    ]


def histogram_rows(details: Details, histogram: Histogram, bins: int | None, zone: str) -> list[Row]:
    """One row for each bin.

    Raises:
        InvalidArgument: `bins` is no positive whole number.
    """
    _positive("bins", bins)
    found = histogram if bins is None else coarser(histogram, bins)
    shown = renderer(details.column, zone)
    edges = [shown(_plain(edge)) for edge in found.edges]
    distincts = [None] * len(found.counts) if found.distincts is None else found.distincts.tolist()
    return [
        {"bin": place, "lo": lo, "hi": hi, "count": count, "distinct": distinct}
        for place, (lo, hi, count, distinct) in enumerate(
            zip(edges[:-1], edges[1:], found.counts.tolist(), distincts, strict=True)
        )
    ]


def quantile_rows(
    details: Details, histogram: Histogram | None, probabilities: Sequence[float], zone: str, *, exact: bool
) -> list[Row]:
    """One row for each probability: the value of rank ceil(p n), exact only at the bounds; null without values."""
    if histogram is None:
        return [{"probability": probability, "value": None, "exact": exact} for probability in probabilities]
    number = int(histogram.counts.sum())
    encoding, rows = str(details.column.encoding), []
    for probability in probabilities:
        rank = max(1, math.ceil(probability * number))
        end = "lo" if rank == 1 else "hi" if rank == number else None
        known = exact and end is not None and bool(details.summary.get(f"{end}_exact"))
        bound = details.summary.get(f"{end}_{encoding}") if known else None
        value = bound if known else _plain(at_rank(histogram, rank, encoding))
        text = render(value, details.column, zone=zone)
        rows.append({"probability": probability, "value": text, "exact": known})
    return rows


def _positive(argument: str, value: int | None) -> None:
    if value is not None and (type(value) is not int or value < 1):
        raise InvalidArgument(argument, f"{value} is not a positive whole number")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
