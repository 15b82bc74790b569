"""Keeps the statistics of a data file small against the file: sketches shrink, or are left out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metastore._analyze.kernel.theta import Theta

if TYPE_CHECKING:
    from collections.abc import Iterable

    from metastore._analyze.kernel import ColumnStatistics

_SHARE = 20
_ALWAYS = 8 << 10
_HEADER = 24
_HASH = 8
_FEWEST = 64


def fitted(statistics: Iterable[tuple[int, ColumnStatistics]], size: int) -> list[tuple[int, ColumnStatistics]]:
    """Fit the sketches of a data file into a twentieth of its size.

    Args:
        statistics: Statistics by ordinal of the column.
        size: Bytes of the data file.

    Returns:
        The same with sketches cut to one common number of hashes; those that would keep too few are left out.

    Example:
        >>> fitted([], 1000)
        []
    """
    found = list(statistics)
    lengths = sorted(len(known.theta) for _, known in found if known.theta is not None)
    left = max(size // _SHARE, _ALWAYS)
    if sum(lengths) <= left:
        return found
    share = 0
    for place, length in enumerate(lengths):
        share = left // (len(lengths) - place)
        if length > share:
            break
        left -= length
    return [(ordinal, _cut(known, share)) for ordinal, known in found]


def _cut(known: ColumnStatistics, share: int) -> ColumnStatistics:
    if known.theta is None or len(known.theta) <= share:
        return known
    hashes = (share - _HEADER) // _HASH
    if hashes < _FEWEST:
        return replace(known, theta=None)
    return replace(known, theta=Theta.from_bytes(known.theta).trimmed(hashes).to_bytes())
