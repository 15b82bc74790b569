"""Types of settings, whose texts are read as Spark and the shim read them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

from metastore.contract import format_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_WHOLE = re.compile(r"[+-]?[0-9]+")
_SIZE = re.compile(r"([0-9]+)(b|([kmgtp])b?)?", re.IGNORECASE)
_DURATION = re.compile(r"([0-9]+)(us|ms|s|m|min|h|d)?", re.IGNORECASE)
_EXPRESSION = re.compile(r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|[^;])+", re.DOTALL)
_MICROSECONDS = {
    "us": 1,
    "ms": 1000,
    "s": 10**6,
    "m": 60 * 10**6,
    "min": 60 * 10**6,
    "h": 3600 * 10**6,
    "d": 86400 * 10**6,
}
_MOST_LONG = (1 << 63) - 1
"""The shim's greatest number of bytes and milliseconds."""
_MOST_INT = (1 << 31) - 1
"""The shim's greatest number of anything else."""
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


def _whole(value: object) -> int:
    """Read a whole number: digits alone."""
    text = str(value).strip()
    if not _WHOLE.fullmatch(text) or abs(int(text)) > _MOST_INT:
        raise ValueError("write a whole number")
    return int(text)


def _bytes(value: object) -> int:
    """Read a size as Spark does: `256m`, `1g`, `4096`."""
    size = _parse_size(str(value).strip())
    if size is None or size > _MOST_LONG:
        raise ValueError("write a size such as 256m or 1g")
    return size


def _parse_size(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    unit = (match[3] or "").lower()
    return int(match[1]) << _SHIFTS[unit]


def _milliseconds(value: object) -> int:
    """Read a duration as Spark does: `2s`, `500ms`, `1min`."""
    match = _DURATION.fullmatch(str(value).strip())
    if match is None or int(match[1]) > _MOST_LONG:
        raise ValueError("write a duration such as 2s or 500ms")
    unit = (match[2] or "ms").lower()
    return min(int(match[1]) * _MICROSECONDS[unit] // 1000, _MOST_LONG)


def _names(value: object) -> tuple[str, ...]:
    """Read a list of names: `a,b`, or a TOML list."""
    names = value.split(",") if isinstance(value, str) else value
    return _read_items(names, "write a list of names such as a,b")


def _expressions(value: object) -> tuple[str, ...]:
    """Read a list of expressions, or a TOML list of them."""
    expressions = split_expressions(value) if isinstance(value, str) else value
    return _read_items(expressions, "write expressions such as lower(name); a + b")


def _read_items(items: object, advice: str) -> tuple[str, ...]:
    if not isinstance(items, list | tuple):
        raise ValueError(advice)  # noqa: TRY004 - pydantic reports ValueError
    return _strip_all(items)


def split_expressions(text: str) -> tuple[str, ...]:
    """Return the expressions of a list, which semicolons outside of quotes separate.

    Example:
        >>> split_expressions("lower(name); concat(a, ';')")
        ('lower(name)', "concat(a, ';')")
    """
    return _strip_all(_EXPRESSION.findall(text))


def _strip_all(items: Iterable[object]) -> tuple[str, ...]:
    """Return the items as texts without blanks around them, and without empty ones."""
    texts = map(str.strip, map(str, items))
    return tuple(filter(None, texts))


def _formats(value: object) -> tuple[str, ...]:
    formats = format_names()
    names = tuple(name.lower() for name in _names(value))
    for name in names:
        if name not in formats:
            raise ValueError(f"{name!r} is none of {', '.join(formats)}")
    return names


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).strip() or None


def _strip_blanks(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


_TYPES: Mapping[str, Any] = {
    "flag": Annotated[bool, BeforeValidator(_strip_blanks)],
    "size": Annotated[int, BeforeValidator(_bytes)],
    "duration": Annotated[int, BeforeValidator(_milliseconds)],
    "names": Annotated[tuple[str, ...], BeforeValidator(_names), NoDecode],
    "expressions": Annotated[tuple[str, ...], BeforeValidator(_expressions), NoDecode],
    "formats": Annotated[tuple[str, ...], BeforeValidator(_formats), NoDecode],
    "text": Annotated[str | None, BeforeValidator(_text)],
}


def annotate_setting(declared: Mapping[str, Any]) -> Any:
    """Return the pydantic type of a setting that the contract declares."""
    if declared["type"] == "choice":
        return Annotated[Literal[tuple(declared["choices"])], BeforeValidator(_strip_blanks)]
    if declared["type"] == "whole":
        return Annotated[int, BeforeValidator(_whole), Field(ge=declared["min"], le=declared["max"])]
    return _TYPES[declared["type"]]
