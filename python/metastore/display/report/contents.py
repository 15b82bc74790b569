"""Collects the answers that a report shows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from metastore.errors import ColumnNotFound, InvalidArgument, NoStatistics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.answers import Answer, Summary


_MANY_COLUMNS = 100
_BINS, _BINS_OF_MANY = 200, 60
"""Bins that a chart is drawn from; of many columns, fewer ones are nearly as exact and much faster."""
VALUES = 8
_MISSING_DETAILS = (NoStatistics, InvalidArgument, ColumnNotFound)
"""Errors for a column without details, for a type with counts only, and for a column that was renamed since."""
PROBABILITIES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


class ColumnVerbs(Protocol):
    """The methods of `metastore.open(...)` that a report calls for each column."""

    def histogram(self, column: str, bins: int | None = None, *, at: str | None = None) -> Answer:
        """The histogram of a column."""

    def frequencies(self, column: str, top: int | None = None, *, at: str | None = None) -> Answer:
        """The most frequent values of a column."""

    def quantiles(self, column: str, probabilities: Sequence[float], at: str | None = None) -> Answer:
        """The quantiles of a column."""


@dataclass(frozen=True)
class ColumnContents:
    """The answers about one column.

    Attributes:
        summary: Its row of the summary.
        bins: Its histogram, or None.
        values: Its most frequent values, or None.
        quantiles: Its quantiles, or None.
    """

    summary: Mapping[str, Any]
    bins: Answer | None = None
    values: Answer | None = None
    quantiles: Answer | None = None


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The answers about one table.

    Attributes:
        summary: One row per column.
        columns: The columns of the summary, each with all answers about it.
        layout: How columns are spread over the data files, if the report includes it.
        history: The savings by pruning, if the report includes them.
        is_recorded: Whether the session records a history.
        before: The earlier snapshot that the table is compared with, or None.
        changes: The rows of `diff`; None without `before`.
    """

    summary: Summary
    columns: tuple[ColumnContents, ...]
    layout: Answer | None = None
    history: Answer | None = None
    is_recorded: bool = False
    before: Contents | None = None
    changes: Answer | None = None


def collect_columns(verbs: ColumnVerbs, summary: Summary) -> tuple[ColumnContents, ...]:
    """The answers about each column of a summary, at its snapshot."""
    most_bins = _BINS if len(summary) <= _MANY_COLUMNS else _BINS_OF_MANY
    return tuple(_collect_column(verbs, row, summary.snapshot, most_bins) for row in summary.rows)


def _collect_column(verbs: ColumnVerbs, row: Mapping[str, Any], at: str | None, most_bins: int) -> ColumnContents:
    name = row["column_name"]
    bins = values = quantiles = None
    with suppress(*_MISSING_DETAILS):
        values = verbs.frequencies(name, VALUES, at=at)
    with suppress(*_MISSING_DETAILS):
        bins = verbs.histogram(name, most_bins, at=at)
        quantiles = verbs.quantiles(name, PROBABILITIES, at=at)
    return ColumnContents(row, bins, values, quantiles)
