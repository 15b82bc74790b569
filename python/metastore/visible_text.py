r"""Text that others wrote, made to be read: nothing in it acts on a terminal, turns a line around or hides.

Names, paths and values come from tables and stores, so whoever writes those writes what people read. Whatever Unicode
calls a control, a format or a surrogate, and letters that leave no mark, are shown as Python writes them in a string:
`\x1b`, `\u202e`. Values themselves are never changed, only what is shown of them.
"""

from __future__ import annotations

import json
import logging
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Letters and marks that are drawn as nothing; Unicode counts them as printable."""


def make_visible(text: str) -> str:
    r"""One line of text in which everything can be seen."""
    return _escaped(text, lambda char: char.encode("unicode_escape").decode("ascii"))


def make_lines_visible(text: str) -> str:
    r"""Several lines in which everything but their ends can be seen."""
    return "\n".join(map(make_visible, text.split("\n")))


def make_json_visible(document: str) -> str:
    r"""A JSON document that reads back the same, in which everything but the ends of its lines can be seen."""
    return "\n".join(_escaped(line, lambda char: json.dumps(char)[1:-1]) for line in document.split("\n"))


def get_logger(name: str) -> logging.Logger:
    """The logger of a module; what its lines are filled with can be seen."""
    found = logging.getLogger(name)
    found.addFilter(_show_arguments)
    return found


class VisibleFormatter(logging.Formatter):
    """Writes log records, stack traces too, so that everything can be seen."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        return make_lines_visible(super().format(record))


def _show_arguments(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(make_visible(str(one)) if isinstance(one, str | Exception) else one for one in record.args)
    return True


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    if text.isprintable() and (text.isascii() or _BLANK_LETTERS.isdisjoint(text)):
        return text
    return "".join(char if _is_shown(char) else escape(char) for char in text)


def _is_shown(char: str) -> bool:
    return char not in _BLANK_LETTERS and (char.isprintable() or unicodedata.category(char) == "Zs")
