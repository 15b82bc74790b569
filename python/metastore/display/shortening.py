"""Texts cut to a width."""

from __future__ import annotations

import re
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from collections.abc import Sequence

ELLIPSIS = "…"
_CONTEXT = 12
"""The characters of a common beginning that are kept before the first difference."""
_TIME = re.compile(r"^(~?\d{4}-\d\d-\d\d \d\d:\d\d):\d\d$")


def is_cut(value: Any) -> bool:
    """Return whether a value is the beginning of a longer text."""
    return str(value).endswith(ELLIPSIS)


def shorten(text: str, length: int) -> str:
    """Cut a text to a width: its end becomes an ellipsis; a time loses its seconds first."""
    if cell_len(text) <= length:
        return text
    without_seconds = _TIME.sub(r"\1", text)
    if cell_len(without_seconds) <= length:
        return without_seconds
    return set_cell_size(without_seconds, length - 1).rstrip() + ELLIPSIS


def shorten_alike(texts: Sequence[str], length: int) -> list[str]:
    """Cut texts to a width; if all would be cut to the same text, their common beginning is cut instead."""
    common = len(commonprefix(texts))  # noqa: RUF071 - of any texts, not of paths
    longest = max(map(len, texts), default=0)
    if longest > length and common + _CONTEXT >= length:
        first_characters = length // 3
        first_difference = common - _CONTEXT
        texts = [text[:first_characters] + ELLIPSIS + text[first_difference:] for text in texts]
    return [shorten(text, length) for text in texts]


def shorten_inside(text: str, length: int) -> str:
    """Cut a text to a width: its middle becomes an ellipsis, because names of data files differ at their ends."""
    if cell_len(text) <= length:
        return text
    end = text[-(length // 2) :]
    return shorten(text, length - len(end)) + end
