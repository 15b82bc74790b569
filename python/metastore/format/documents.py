"""Converts frozen dataclasses to JSON documents and back; each field has its name, and exactly its declared type.

This runs in executors as well, which have only numpy and pyarrow, and no library for it.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, partial
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGS = range(-(1 << 63), 1 << 63)

UNSTORED = {"unstored": True}
"""Metadata of a field that is not in documents."""
FLAT = {"flat": True}
"""Metadata of a field whose own fields are part of its owner's document."""
BRIEF = {"brief": True}
"""Metadata of a field that is left out of documents if it is empty."""
REQUIRED = {"required": True}
"""Metadata of a field that every document has, although it has a default."""

T = TypeVar("T")


def to_document(value: Any) -> Any:
    """Convert a value into one that `json.dumps` writes."""
    kind: Any = type(value)
    if kind is tuple:
        return list(map(to_document, value))
    if not hasattr(kind, "__dataclass_fields__"):
        return value
    document: dict[str, Any] = {}
    for field in _list_stored_fields(kind):
        part = getattr(value, field.name)
        if field.is_flat:
            document |= to_document(part)
        elif part or not field.is_brief:
            document[field.stored_name] = to_document(part)
    return document


def from_document(kind: type[T], value: Any) -> T:
    """Read a value from a document; a wrong one is a TypeError or KeyError, also from `check` of a dataclass.

    Fields that have a default may be missing or null, fields that a class does not know are ignored.
    """
    declared: Any = kind
    bound: T = _binder(declared)(value)
    return bound


def require_type(kind: type, value: Any) -> Any:
    """Return a JSON value of exactly this type: a boolean is no integer, nor is a number of more than 64 bits."""
    if type(value) is not kind or (kind is int and value not in _LONGS):
        raise TypeError(f"{value!r:.80} is no {kind.__name__}")
    return value


@cache
def _binder(kind: Any) -> Callable[[Any], Any]:
    """Return the function that reads a value of a type from a document."""
    origin = get_origin(kind)
    arguments = get_args(kind)
    if kind is Any:
        return lambda value: value
    if origin in (Union, UnionType):
        return partial(_bind_optional, _binder(arguments[0]))
    if origin is tuple:
        return _list_binder(arguments)
    if origin is dict:
        return partial(_bind_mapping, _binder(arguments[1]))
    if is_dataclass(kind):
        return partial(_bind_fields, kind)
    return partial(require_type, kind)


def _list_binder(arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    bind_list = partial(_bind_list, _binder(arguments[0]))
    if arguments[-1] is ...:
        return bind_list
    return partial(_require_length, len(arguments), bind_list)


def _bind_optional(bind: Callable[[Any], Any], value: Any) -> Any:
    if value is None:
        return None
    return bind(value)


def _bind_list(bind: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, tuple):  # JSON has no tuples: the value was bound before
        return value
    require_type(list, value)
    return tuple(map(bind, value))


def _require_length(length: int, bind: Callable[[Any], Any], value: Any) -> Any:
    values = bind(value)
    if len(values) != length:
        raise TypeError(f"{len(values)} values where {length} are one")
    return values


def _bind_mapping(bind: Callable[[Any], Any], value: Any) -> Any:
    require_type(dict, value)
    return {key: bind(part) for key, part in value.items()}


def _bind_fields(kind: Any, document: Any) -> Any:
    require_type(dict, document)
    values = {}
    for field, bind in _list_field_binders(kind):
        value = document if field.is_flat else document.get(field.stored_name)
        if value is not None or not field.is_optional:
            values[field.name] = bind(value)
    instance = kind(**values)
    if hasattr(instance, "check"):
        instance.check()
    return instance


@dataclass(frozen=True, kw_only=True)
class _StoredField:
    """A field that documents have.

    Attributes:
        name: Its name in the class.
        stored_name: Its name in documents.
        is_flat: Whether its own fields are part of its owner's document.
        is_brief: Whether it is left out of documents if it is empty.
        is_optional: Whether documents may lack it.
    """

    name: str
    stored_name: str
    is_flat: bool
    is_brief: bool
    is_optional: bool


@cache
def _list_stored_fields(kind: Any) -> list[_StoredField]:
    stored_fields = []
    for field in fields(kind):
        if "unstored" in field.metadata:
            continue
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        stored_fields.append(
            _StoredField(
                name=field.name,
                stored_name=field.metadata.get("name", field.name),
                is_flat="flat" in field.metadata,
                is_brief="brief" in field.metadata,
                is_optional=has_default and "required" not in field.metadata,
            )
        )
    return stored_fields


@cache
def _list_field_binders(kind: Any) -> list[tuple[_StoredField, Callable[[Any], Any]]]:
    """List each stored field of a class with the function that reads it from a document."""
    hints = get_type_hints(kind)
    return [(field, _binder(hints[field.name])) for field in _list_stored_fields(kind)]
