"""The bloom filter of a column of which not all values may be listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from metastore._format.bloom import BloomBuilder

if TYPE_CHECKING:
    from metastore._analyze.kernel.detail import Detail

_SHARE = 8  # of the budget
_MANY = 1 << 40
_NAN = pa.array([np.nan])


class ColumnFilter:
    """Collects the values of a column, part by part.

    Example:
        >>> from metastore._analyze.kernel.detail import DETAIL
        >>> few = ColumnFilter(DETAIL, 1 << 20)
        >>> few.add(pa.array([1, 2, 3]), last=True)
        >>> few.finish(3, nans=0) is None
        True
    """

    def __init__(self, detail: Detail, budget_bytes: int) -> None:
        """Begin with no values.

        Args:
            detail: Lists of at most `top` values are never cut: they need no filter.
            budget_bytes: The memory that the column may take.
        """
        self._few = detail.top
        self._most_bytes = budget_bytes // _SHARE
        self._builder: BloomBuilder | None = None

    def add(self, values: pa.Array, *, last: bool) -> None:
        """Add stored values of a part, each at least once; after the last part none follow."""
        if self._builder is None:
            if last and len(values) <= self._few:
                return
            self._builder = BloomBuilder(len(values)) if last else BloomBuilder(_MANY, self._most_bytes)
        self._builder.add_values(values)

    def finish(self, distinct: int, nans: int) -> bytes | None:
        """The filter; None where there is no need for one, or no room.

        Args:
            distinct: How many distinct values there are, about.
            nans: How many of the column's values are NaN.
        """
        if self._builder is None:
            return None
        if nans:
            self._builder.add_values(_NAN)
        return self._builder.finish(distinct)
