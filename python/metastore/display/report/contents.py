"""The answers that a report is made of."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from metastore.errors import ColumnNotFound, InvalidArgument, NoStatistics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.answers import Answer, Summary


BINS, VALUES = 200, 8
_NOT_KEPT = (NoStatistics, InvalidArgument, ColumnNotFound)
"""Not analyzed so deeply; a type of which only counts are kept; renamed since."""
PROBABILITIES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


class ColumnVerbs(Protocol):
    """What can be asked about the columns of a table: `metastore.open` gives it."""

    def histogram(self, column: str, bins: int | None = None, *, at: str | None = None) -> Answer:
        """How its values are distributed."""

    def frequencies(self, column: str, top: int | None = None, *, at: str | None = None) -> Answer:
        """Its most frequent values."""

    def quantiles(self, column: str, probabilities: Sequence[float], at: str | None = None) -> Answer:
        """The values at some shares of all."""


@dataclass(frozen=True)
class ColumnContents:
    """What the verbs answer about one column.

    Attributes:
        summary: Its row of the summary.
        bins: Its histogram; None where there is none.
        values: Its most frequent values; None where none are kept.
        quantiles: Its quantiles; None where there are none.
    """

    summary: Mapping[str, Any]
    bins: Answer | None = None
    values: Answer | None = None
    quantiles: Answer | None = None


@dataclass(frozen=True)
class Contents:
    """What the verbs answer about one table.

    Attributes:
        summary: One row per column.
        columns: The same columns, each with all that is known of it.
        layout: How columns are spread over the data files; None where that was not asked.
        history: What pruning saved; None where that was not asked.
        is_recorded: Whether the session keeps that.
        before: What it is compared with; None where it is with nothing.
        changes: What differs, as `diff` tells it; None without `before`.
    """

    summary: Summary
    columns: tuple[ColumnContents, ...]
    layout: Answer | None = None
    history: Answer | None = None
    is_recorded: bool = False
    before: Contents | None = None
    changes: Answer | None = None


def collect_columns(verbs: ColumnVerbs, summary: Summary) -> tuple[ColumnContents, ...]:
    """What there is to tell of each column of a summary, at its snapshot."""
    return tuple(_collect_column(verbs, row, summary.snapshot) for row in summary.rows)


def _collect_column(verbs: ColumnVerbs, row: Mapping[str, Any], at: str | None) -> ColumnContents:
    name = row["column_name"]
    bins = values = quantiles = None
    with suppress(*_NOT_KEPT):
        values = verbs.frequencies(name, VALUES, at=at)
    with suppress(*_NOT_KEPT):
        bins, quantiles = verbs.histogram(name, BINS, at=at), verbs.quantiles(name, PROBABILITIES, at=at)
    return ColumnContents(row, bins, values, quantiles)
