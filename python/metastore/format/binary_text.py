"""Binary values as people read and write them: `X'00FF80'`, which SQL takes back."""

from __future__ import annotations

import re

_LITERAL = re.compile(r"[Xx]'([0-9A-Fa-f]*)'")


def render_binary(value: bytes) -> str:
    r"""Write a binary value as SQL does.

    Example:
        >>> render_binary(b"\x00\xff\x80")
        "X'00FF80'"
    """
    return f"X'{value.hex().upper()}'"


def parse_binary(text: str) -> bytes | None:
    r"""Read a binary value that SQL wrote; None for any other text.

    Example:
        >>> parse_binary("x'00ff80'")
        b'\x00\xff\x80'
    """
    match = _LITERAL.fullmatch(text)
    if match is None:
        return None
    digits = match[1]
    return bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}")
