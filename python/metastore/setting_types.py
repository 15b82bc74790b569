"""What values settings have, and how their texts are read: as Spark and the shim read them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

from metastore.contract import format_names

if TYPE_CHECKING:
    from collections.abc import Mapping


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
_MOST, _MOST_WHOLE = (1 << 63) - 1, (1 << 31) - 1
"""The greatest numbers that the shim holds: of bytes and milliseconds, and of all else."""


def _whole(value: object) -> int:
    """Reads a whole number: digits alone."""
    if isinstance(value, bool) or _WHOLE.fullmatch(str(value).strip()) is None or abs(int(str(value))) > _MOST_WHOLE:
        raise ValueError("write a whole number")
    return int(str(value))


def _bytes(value: object) -> int:
    """Reads a size as Spark does: `256m`, `1g`, `4096`."""
    match = _SIZE.fullmatch(str(value).strip())
    size = -1 if match is None else int(match[1]) << (10 * "_kmgtp".index((match[3] or "_").lower()))
    if not 0 <= size <= _MOST:
        raise ValueError("write a size such as 256m or 1g")
    return size


def _milliseconds(value: object) -> int:
    """Reads a duration as Spark does: `2s`, `500ms`, `1min`."""
    match = _DURATION.fullmatch(str(value).strip())
    if match is None or int(match[1]) > _MOST:
        raise ValueError("write a duration such as 2s or 500ms")
    return min(int(match[1]) * _MICROSECONDS[(match[2] or "ms").lower()] // 1000, _MOST)


def _names(value: object) -> tuple[str, ...]:
    """Reads a list of names: `a,b`, or a TOML list."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple):
        raise ValueError("write a list of names such as a,b")  # noqa: TRY004 - pydantic reports ValueError
    return tuple(name for name in (str(item).strip() for item in given) if name)


def split_expressions(text: str) -> tuple[str, ...]:
    """The expressions of a list: semicolons stand between them, those inside of quotes aside.

    Example:
        >>> split_expressions("lower(name); concat(a, ';')")
        ('lower(name)', "concat(a, ';')")
    """
    return tuple(one for part in _EXPRESSION.findall(text) if (one := part.strip()))


def _expressions(value: object) -> tuple[str, ...]:
    """Reads a list of expressions, or a TOML list of them."""
    given = split_expressions(value) if isinstance(value, str) else value
    if not isinstance(given, list | tuple):
        raise ValueError("write expressions such as lower(name); a + b")  # noqa: TRY004 - pydantic reports ValueError
    return tuple(one for one in (str(item).strip() for item in given) if one)


def _formats(value: object) -> tuple[str, ...]:
    names = tuple(name.lower() for name in _names(value))
    known = format_names()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join(known)}")
    return names


def _text(value: object) -> str | None:
    return str(value).strip() or None if value is not None else None


def _strip_blanks(value: object) -> object:
    """Leaves out blanks around a text."""
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
    """The type of a setting's values, as pydantic reads it, from what the contract declares."""
    if declared["type"] == "choice":
        return Annotated[Literal[tuple(declared["choices"])], BeforeValidator(_strip_blanks)]
    if declared["type"] == "whole":
        return Annotated[int, BeforeValidator(_whole), Field(ge=declared["min"], le=declared["max"])]
    return _TYPES[declared["type"]]
