"""LIKE patterns, and beginnings, ends and parts of texts, as sets of values."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from metastore.pruning.conditions import NoRuleError, require_rule
from metastore.pruning.literals import NOT_UTF8
from metastore.pruning.value_sets import ValueSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from metastore.pruning.value_sets import Key

_WILDCARDS = {"%": ".*", "_": "."}
"""Wildcards with their regular expressions."""


class _Character(NamedTuple):
    text: str
    is_wildcard: bool


_ANY_TEXT = _Character("%", is_wildcard=True)


def texts_like(pattern: str, escape: str, *, negated: bool = False) -> ValueSet:
    r"""Return the texts that match a pattern, or those that do not.

    Raises:
        NoRuleError: Spark refuses the pattern, or it is not plain text.

    Example:
        >>> b"pear" in texts_like("p%r", "\\"), b"peat" in texts_like("p%r", "\\")
        (True, False)
    """
    require_rule(applies=NOT_UTF8 not in pattern)
    characters = _split(pattern, escape)
    literal_text = _literal_beginning(characters)
    try:
        prefix = literal_text.encode()
    except UnicodeEncodeError:
        raise NoRuleError from None
    remaining = set(characters[len(literal_text) :])
    if not remaining:
        return _complement_if(ValueSet.of([prefix]), negated=negated)
    if remaining == {_ANY_TEXT}:
        return _complement_if(texts_starting_with(prefix), negated=negated)
    matching = ValueSet(begins_inside=True, test=_PatternTest(characters, negated=negated))
    if negated:
        return matching
    return texts_starting_with(prefix) & matching


def _complement_if(values: ValueSet, *, negated: bool) -> ValueSet:
    if negated:
        return values.complement()
    return values


def texts_starting_with(prefix: bytes) -> ValueSet:
    """Return the byte strings that begin with a prefix."""
    increasable = prefix.rstrip(b"\xff")
    if not increasable:
        return ValueSet.between(prefix, None)
    return ValueSet.between(prefix, increasable[:-1] + bytes([increasable[-1] + 1]))


def texts_ending_with(suffix: bytes) -> ValueSet:
    """Return the byte strings that end with a suffix."""
    return ValueSet(begins_inside=True, test=lambda key: key.endswith(suffix))


def texts_containing(part: bytes) -> ValueSet:
    """Return the byte strings that contain a part."""
    return ValueSet(begins_inside=True, test=lambda key: part in key)


def _split(pattern: str, escape: str) -> list[_Character]:
    """Return the characters of a pattern."""
    characters = []
    texts = iter(pattern)
    for text in texts:
        if text == escape:
            characters.append(_Character(_next_escaped(texts, escape), is_wildcard=False))
        else:
            characters.append(_Character(text, text in _WILDCARDS))
    return characters


def _next_escaped(texts: Iterator[str], escape: str) -> str:
    escaped = next(texts, "")
    require_rule(applies=escaped in (escape, *_WILDCARDS))
    return escaped


def _literal_beginning(characters: list[_Character]) -> str:
    """Return the text before the first wildcard."""
    literal_characters = takewhile(lambda character: not character.is_wildcard, characters)
    return "".join(character.text for character in literal_characters)


def _to_regex(character: _Character) -> str:
    if character.is_wildcard:
        return _WILDCARDS[character.text]
    return re.escape(character.text)


class _PatternTest:
    """A test whether a text matches, or does not match; bytes that are not UTF-8 pass it."""

    def __init__(self, characters: list[_Character], *, negated: bool) -> None:
        self._negated = negated
        self._pattern = re.compile("".join(map(_to_regex, characters)), re.DOTALL)

    def __call__(self, key: Key) -> bool:
        try:
            text = key.decode()
        except UnicodeDecodeError:
            return True
        is_match = self._pattern.fullmatch(text) is not None
        return is_match != self._negated
