"""LIKE: what a pattern says of the values that match it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from metastore.pruning.literals import NOT_UTF8
from metastore.pruning.value_sets import ValueSet

if TYPE_CHECKING:
    from metastore.pruning.value_sets import Key

_WILDCARDS = "%_"


def texts_like(pattern: str, escape: str, *, negated: bool = False) -> ValueSet | None:
    r"""The texts that match a pattern, or do not; None where Spark would refuse it, or matches it by more than bytes.

    Example:
        >>> b"pear" in texts_like("p%r", "\\"), b"peat" in texts_like("p%r", "\\")
        (True, False)
    """
    parts = _split(pattern, escape)
    if parts is None or NOT_UTF8 in pattern:
        return None
    wild = next((place for place, (_, is_wild) in enumerate(parts) if is_wild), len(parts))
    try:
        prefix = "".join(text for text, _ in parts[:wild]).encode()
    except UnicodeEncodeError:
        return None
    start = texts_from(prefix)
    if wild == len(parts) or all(part == ("%", True) for part in parts[wild:]):
        found = ValueSet.of([prefix]) if wild == len(parts) else start
        return found.complement() if negated else found
    found = ValueSet(begins_inside=True, test=_matcher(parts, negated=negated))
    return found if negated else start & found


def texts_from(prefix: bytes) -> ValueSet:
    """The byte strings that begin with a prefix."""
    held = prefix.rstrip(b"\xff")
    return ValueSet.between(prefix, held[:-1] + bytes([held[-1] + 1]) if held else None)


def texts_with(part: bytes, *, at_end: bool) -> ValueSet:
    """The byte strings that contain another one, or end with it."""
    return ValueSet(begins_inside=True, test=lambda key: key.endswith(part) if at_end else part in key)


def _split(pattern: str, escape: str) -> list[tuple[str, bool]] | None:
    """The characters of a pattern, and whether each is a wildcard; None where an escape precedes nothing to escape."""
    found, rest = [], iter(pattern)
    for character in rest:
        if character == escape:
            escaped = next(rest, "")
            if not escaped or escaped not in escape + _WILDCARDS:
                return None
            found.append((escaped, False))
        else:
            found.append((character, character in _WILDCARDS))
    return found


class _matcher:  # noqa: N801 - it is called
    """Whether a text matches, or does not; what is no UTF-8 may."""

    def __init__(self, parts: list[tuple[str, bool]], *, negated: bool) -> None:
        self._negated = negated
        wild = {"%": ".*", "_": "."}
        self._pattern = re.compile("".join(wild[c] if is_wild else re.escape(c) for c, is_wild in parts), re.DOTALL)

    def __call__(self, key: Key) -> bool:
        try:
            return (self._pattern.fullmatch(key.decode()) is None) == self._negated
        except UnicodeDecodeError:
            return True
