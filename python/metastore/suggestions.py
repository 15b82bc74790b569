"""Suggests names for one that was mistyped."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from metastore.errors import phrase_suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOLERANCE = 0.1
"""How far the likeness of a suggested name, from 0 to 1, may be below the best."""
_MOST = 3


def find_similar_names(name: str, names: Iterable[str], cutoff: float = 0.6) -> tuple[str, ...]:
    """Return the names that look most like a name, whatever their case, the most similar first."""
    by_folded_name: dict[str, list[str]] = {}
    for candidate in names:
        by_folded_name.setdefault(candidate.casefold(), []).append(candidate)
    folded = name.casefold()
    similar: list[str] = []
    best = 0.0
    for match in difflib.get_close_matches(folded, by_folded_name, _MOST, cutoff):
        likeness = difflib.SequenceMatcher(None, match, folded).ratio()
        best = max(best, likeness)
        if likeness >= best - _TOLERANCE:
            similar += by_folded_name[match]
    return tuple(similar)


def suggest_names(name: str, names: Iterable[str]) -> str:
    """Return the hint for a name that was mistyped; empty if no name is similar."""
    return phrase_suggestion(find_similar_names(name, names))
