"""Counts of which some may be unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def add_up(counts: Iterable[int | None]) -> int | None:
    """Add up counts; None if one of them is unknown."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def subtract(total: int | None, *parts: int | None) -> int | None:
    """Subtract parts of a count; None if one of the numbers is unknown."""
    for part in parts:
        if total is None or part is None:
            return None
        total -= part
    return total


def join_counts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Join the counts of different files, by path or location.

    >>> join_counts([{"a": 1}, {"b": 2}])
    {'a': 1, 'b': 2}
    """
    counts: dict[str, int] = {}
    for part in parts:
        counts.update(part)
    return counts
