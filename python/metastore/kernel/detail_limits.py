"""Limits of the details of a column: its list of values and its histogram."""

from __future__ import annotations

from dataclasses import dataclass

_LONGEST_LIST = 1 << 18


@dataclass(frozen=True)
class DetailLimits:
    """The limits of lists of values and of histograms.

    Attributes:
        bins: Most bins of a histogram, 2 to 10,000.
        top: The number of most frequent values that are listed if not all are.
        list_bytes: The most bytes of a list of values.
        longest_uncut: The most values of a list that holds all of them, however often each occurs.
    """

    bins: int = 1_000
    top: int = 1_000
    list_bytes: int = 64 << 20
    longest_uncut: int = 0

    @property
    def longest_list(self) -> int:
        """The most values of a list that is not cut."""
        return max(min(_LONGEST_LIST, self.list_bytes), self.shortest_list)

    @property
    def shortest_list(self) -> int:
        """The most values that are listed though hardly any of them occurs twice."""
        return max(self.top, self.longest_uncut)


DEFAULT_DETAIL_LIMITS = DetailLimits()
