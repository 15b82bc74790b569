"""How much detail is kept of a column beside its summary."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.format.histogram_bins import EQUI_HEIGHT

LONGEST_LIST = 1 << 18


@dataclass(frozen=True)
class DetailLimits:
    """What lists of values and histograms may hold.

    Attributes:
        bins: Most bins of a histogram, 2 to 10,000.
        top: Most frequent values kept where not all are.
        list_bytes: Bytes that the longest list of values may take.
        kind: Of histograms, `equi_height` or `equi_width`.
    """

    bins: int = 1_000
    top: int = 1_000
    list_bytes: int = 64 << 20
    kind: str = EQUI_HEIGHT

    @property
    def longest_list(self) -> int:
        """How many values a list that is not cut may hold."""
        return max(min(LONGEST_LIST, self.list_bytes), self.top)


DEFAULT_DETAIL_LIMITS = DetailLimits()
