r"""Text that others wrote, made to be read: nothing in it acts on a terminal, turns a line around or hides.

Names, paths and values come from tables and stores, so whoever writes those writes what people read. Whatever Unicode
calls a control, a format or a surrogate, and letters that leave no mark, are shown as Python writes them in a string:
`\x1b`, `\u202e`. Values themselves are never changed, only what is shown of them.
"""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Letters and marks that are drawn as nothing; Unicode counts them as printable."""

_QUERY_OF_URL = re.compile(r"(\bhttps?://[^\s?'\"]+)\?[^\s'\"]*")


def make_visible(text: str) -> str:
    r"""Return a line of text with escapes for all that would be invisible."""
    return _escaped(text, _escape_in_python)


def make_lines_visible(text: str) -> str:
    r"""Return lines of text with escapes for all that would be invisible but line ends."""
    return "\n".join(map(make_visible, text.split("\n")))


def first_line(error: object) -> str:
    """Return the first line of an error's text without its full stop; the name of its class if it has no text."""
    line, _, _ = str(error).strip().partition("\n")
    return hide_queries(line).rstrip(".") or type(error).__name__


def hide_queries(text: str) -> str:
    """Remove the queries of addresses from a text: those of Azure have a key there.

    Example:
        >>> hide_queries("GET http://host/container/file?sig=secret failed")
        'GET http://host/container/file failed'
    """
    return _QUERY_OF_URL.sub(r"\1", text)


def make_json_visible(document: str) -> str:
    r"""Return the same JSON document with escapes for all that would be invisible but line ends."""
    lines = [_escaped(line, _escape_in_json) for line in document.split("\n")]
    return "\n".join(lines)


def get_logger(name: str) -> logging.Logger:
    """Return the logger of a module, which escapes the arguments of its messages."""
    logger = logging.getLogger(name)
    logger.addFilter(_show_arguments)
    return logger


class VisibleFormatter(logging.Formatter):
    """Writes log records and stack traces with escapes for all that would be invisible."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        return make_lines_visible(super().format(record))


def _show_arguments(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(map(_show_argument, record.args))
    return True


def _show_argument(argument: object) -> object:
    if isinstance(argument, str | Exception):
        return make_visible(str(argument))
    return argument


def _escape_in_python(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _escape_in_json(char: str) -> str:
    return json.dumps(char)[1:-1]


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    if text.isascii() and text.isprintable():  # most are
        return text
    return "".join(char if _is_visible(char) else escape(char) for char in text)


def _is_visible(char: str) -> bool:
    if char in _BLANK_LETTERS:
        return False
    return char.isprintable() or unicodedata.category(char) == "Zs"
