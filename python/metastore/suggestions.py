"""What texts mean: a value that Spark's CAST wrote, a table's location or its name, a name that was mistyped."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from metastore.errors import phrase_suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable

_MUCH_LESS = 0.1
"""Of likeness, from 0 to 1."""
_MOST = 3


def find_similar_names(name: str, names: Iterable[str], cutoff: float = 0.6) -> tuple[str, ...]:
    """The names that look most like one that does not exist, whatever their case, and about as much as the first."""
    known: dict[str, list[str]] = {}
    for candidate in names:
        known.setdefault(candidate.casefold(), []).append(candidate)
    matches = difflib.get_close_matches(name.casefold(), known, _MOST, cutoff)
    likeness = [difflib.SequenceMatcher(None, match, name.casefold()).ratio() for match in matches]
    near = [match for match, one in zip(matches, likeness, strict=True) if one >= likeness[0] - _MUCH_LESS]
    return tuple(candidate for match in near for candidate in known[match])


def suggest_names(name: str, names: Iterable[str]) -> str:
    """The hint for a name that was mistyped; empty where none is near."""
    return phrase_suggestion(find_similar_names(name, names))
