"""Names as SQL writes them: parts and quoting."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from metastore.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def split_name(text: str) -> tuple[str, ...]:
    """Split a multi-part SQL identifier at its dots."""
    parts: list[str] = []
    position = 0
    while True:
        found = _PART.match(text, position)
        if found is None:
            raise InvalidArgument("name", f"{text!r} is not a name", "Quote odd parts with back-ticks.")
        quoted, plain = found.groups()
        parts.append(plain.strip() if quoted is None else quoted.replace("``", "`"))
        position = found.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            raise InvalidArgument("name", f"{text!r} is not a name", "Quote odd parts with back-ticks.")
        position += 1


def quote_name(parts: Iterable[str]) -> str:
    """Write name parts as SQL, every part quoted."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)
