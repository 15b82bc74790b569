"""Frozen dataclasses as JSON documents and back: every field by its name, and of exactly the type that it declares.

Executors read and write these too, and have numpy and pyarrow alone: no library of the field binds dataclasses there.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MOST = 1 << 63

UNSTORED = {"unstored": True}
"""Metadata of a field that no document has."""
FLAT = {"flat": True}
"""Metadata of a field whose own fields stand in the document of what has it."""
BRIEF = {"brief": True}
"""Metadata of a field that documents leave out where it is empty."""
REQUIRED = {"required": True}
"""Metadata of a field that every document has, although it has a default."""

T = TypeVar("T")


def to_document(value: Any) -> Any:
    """What `json.dumps` writes of a value."""
    kind: Any = type(value)
    if kind is tuple:
        return [to_document(part) for part in value]
    if not hasattr(kind, "__dataclass_fields__"):
        return value
    found: dict[str, Any] = {}
    for name, stored_name, metadata in _stored(kind):
        part = getattr(value, name)
        if "flat" in metadata:
            found |= to_document(part)
        elif part or "brief" not in metadata:
            found[stored_name] = to_document(part)
    return found


def from_document(kind: type[T], value: Any) -> T:
    """What a document holds, refused by a TypeError or KeyError; `check` of a dataclass refuses what no writer makes.

    Fields that have a default may be missing or null, fields that a class does not know are passed over.
    """
    declared: Any = kind
    bound: T = _binder(declared)(value)
    return bound


def require_type(kind: type, value: Any) -> Any:
    """A JSON value that is of a type exactly: a boolean is no integer, nor is what 64 bits do not hold."""
    if type(value) is not kind or (isinstance(value, int) and not -_MOST <= value < _MOST):
        raise TypeError(f"{value!r:.80} is no {kind.__name__}")
    return value


@cache
def _binder(kind: Any) -> Callable[[Any], Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value: value
    if origin in (Union, UnionType):
        return partial(_bind_optional, _binder(arguments[0]))
    if origin is tuple:
        return partial(_bind_list, _binder(arguments[0]), None if arguments[-1] is ... else len(arguments))
    if origin is dict:
        return partial(_bind_mapping, _binder(arguments[1]))
    return partial(_bind_fields if is_dataclass(kind) else require_type, kind)


def _bind_optional(bind: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else bind(value)


def _bind_list(bind: Callable[[Any], Any], size: int | None, value: Any) -> Any:
    if isinstance(value, tuple):  # JSON has none: it was bound before
        return value
    if size not in (None, len(require_type(list, value))):
        raise TypeError(f"{len(value)} values where {size} are one")
    return tuple(map(bind, value))


def _bind_mapping(bind: Callable[[Any], Any], value: Any) -> Any:
    return {key: bind(part) for key, part in require_type(dict, value).items()}


def _bind_fields(kind: Any, document: Any) -> Any:
    require_type(dict, document)
    bound = {}
    for name, stored_name, is_optional, bind in _field_binders(kind):
        value = document if stored_name is None else document.get(stored_name)
        if value is not None or not is_optional:
            bound[name] = bind(value)
    found = kind(**bound)
    if hasattr(found, "check"):
        found.check()
    return found


@cache
def _stored(kind: Any) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Of each field that documents have: its name, its name there and its metadata."""
    stored = (field for field in fields(kind) if "unstored" not in field.metadata)
    return [(field.name, field.metadata.get("name", field.name), field.metadata) for field in stored]


@cache
def _field_binders(kind: Any) -> list[tuple[str, str | None, bool, Callable[[Any], Any]]]:
    """Of each field: its name, its name in documents unless it is flat, whether it may be missing, what binds it."""
    hints, all_fields = get_type_hints(kind), kind.__dataclass_fields__
    found = []
    for name, stored_name, metadata in _stored(kind):
        has_default = all_fields[name].default is not MISSING or all_fields[name].default_factory is not MISSING
        is_optional = has_default and "required" not in metadata
        found.append((name, None if "flat" in metadata else stored_name, is_optional, _binder(hints[name])))
    return found
