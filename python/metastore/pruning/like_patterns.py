"""LIKE patterns as sets of values."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from metastore.pruning.literals import NOT_UTF8
from metastore.pruning.value_sets import ValueSet

if TYPE_CHECKING:
    from metastore.pruning.value_sets import Key

_WILDCARDS = {"%": ".*", "_": "."}
"""Each with its regular expression."""


class _Character(NamedTuple):
    text: str
    is_wildcard: bool


_ANY_TEXT = _Character("%", is_wildcard=True)


def texts_like(pattern: str, escape: str, *, negated: bool = False) -> ValueSet | None:
    r"""Return the texts that match a pattern, or those that do not.

    None for a pattern that Spark refuses, or that is not plain text.

    Example:
        >>> b"pear" in texts_like("p%r", "\\"), b"peat" in texts_like("p%r", "\\")
        (True, False)
    """
    if NOT_UTF8 in pattern:
        return None
    characters = _split(pattern, escape)
    if characters is None:
        return None
    literal_characters = list(takewhile(lambda character: not character.is_wildcard, characters))
    remaining = characters[len(literal_characters) :]
    try:
        prefix = "".join(character.text for character in literal_characters).encode()
    except UnicodeEncodeError:
        return None
    if not remaining:
        return _complement_if(ValueSet.of([prefix]), negated=negated)
    if all(character == _ANY_TEXT for character in remaining):
        return _complement_if(texts_from(prefix), negated=negated)
    matching = ValueSet(begins_inside=True, test=_matcher(characters, negated=negated))
    return matching if negated else texts_from(prefix) & matching


def _complement_if(values: ValueSet, *, negated: bool) -> ValueSet:
    return values.complement() if negated else values


def texts_from(prefix: bytes) -> ValueSet:
    """Return the byte strings that begin with a prefix."""
    increasable = prefix.rstrip(b"\xff")
    if not increasable:
        return ValueSet.between(prefix, None)
    return ValueSet.between(prefix, increasable[:-1] + bytes([increasable[-1] + 1]))


def texts_with(part: bytes, *, at_end: bool) -> ValueSet:
    """Return the byte strings that contain a part, or end with it."""
    return ValueSet(begins_inside=True, test=lambda key: key.endswith(part) if at_end else part in key)


def _split(pattern: str, escape: str) -> list[_Character] | None:
    """Return the characters of a pattern; None if an escape precedes no character to escape."""
    characters = []
    texts = iter(pattern)
    for text in texts:
        if text != escape:
            characters.append(_Character(text, text in _WILDCARDS))
            continue
        escaped = next(texts, None)
        if escaped is None or escaped not in (escape, *_WILDCARDS):
            return None
        characters.append(_Character(escaped, is_wildcard=False))
    return characters


def _to_regex(character: _Character) -> str:
    return _WILDCARDS[character.text] if character.is_wildcard else re.escape(character.text)


class _matcher:  # noqa: N801 - it is called
    """Test whether a text matches, or does not; bytes that are no UTF-8 pass."""

    def __init__(self, characters: list[_Character], *, negated: bool) -> None:
        self._negated = negated
        self._pattern = re.compile("".join(_to_regex(character) for character in characters), re.DOTALL)

    def __call__(self, key: Key) -> bool:
        try:
            return (self._pattern.fullmatch(key.decode()) is None) == self._negated
        except UnicodeDecodeError:
            return True
