"""Iceberg's name mapping: the names of the table's columns in data files without field ids."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from metastore.format.manifest import Block, Manifest, Snapshot
    from metastore.format.table_column import Column

PROPERTY = "schema.name-mapping.default"
"""The table property that holds a name mapping."""

_MAPPED_KEY = re.compile(r"(\d+)@.*", re.DOTALL)
_UNMAPPED = "[]"


@dataclass(frozen=True)
class NameMapping:
    """A table's name mapping.

    Attributes:
        text: The JSON of the table property; None if the table has none, and readers match columns by position.
    """

    text: str | None = None

    def mapped_key(self, key: str) -> str:
        """Return the key of a column in a data file without field ids: its field id, and its names in the mapping."""
        if self.text is None:
            return f"{key}@"
        names = self._names_by_field_id.get(key, _UNMAPPED)
        return f"{key}@{names}"

    def map_columns(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """Give columns the keys that they have in data files without field ids."""
        return tuple(replace(column, key=self.mapped_key(column.key)) for column in columns)

    def resolve_block(self, block: Block) -> Block:
        """Give the columns of a block the table's keys, if the mapping has not changed them."""
        return replace(block, columns=self._resolve(block.columns))

    def resolve_snapshot(self, snapshot: Snapshot) -> Snapshot:
        """Give the columns of a snapshot the table's keys, if the mapping has not changed them."""
        columns = self._resolve(snapshot.columns)
        expressions = self._resolve(snapshot.expressions)
        return replace(snapshot, columns=columns, expressions=expressions)

    def resolve_manifest(self, manifest: Manifest) -> Manifest:
        """Give the columns of a manifest the table's keys, if the mapping has not changed them."""
        blocks = tuple(map(self.resolve_block, manifest.blocks))
        snapshots = tuple(map(self.resolve_snapshot, manifest.snapshots))
        return replace(manifest, blocks=blocks, snapshots=snapshots)

    def _resolve(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        resolved = _resolve_columns(columns, self.mapped_key)
        if self.text is None:
            return resolved
        # It is not stored which data files an expression was computed from: the mapping may have changed some of them.
        return tuple(map(_without_table_key, resolved))

    @cached_property
    def _names_by_field_id(self) -> Mapping[str, str]:
        """Field id to the names on the path to the field, as JSON."""
        fields = json.loads(self.text or _UNMAPPED)
        return dict(_list_names(fields, ()))


def has_mapped_columns(manifest: Manifest) -> bool:
    """Return whether a manifest describes data files without field ids."""
    parts: tuple[Block | Snapshot, ...] = (*manifest.blocks, *manifest.snapshots)
    schemas = {id(part.columns): part.columns for part in parts}
    columns = chain.from_iterable(schemas.values())
    return any(_MAPPED_KEY.fullmatch(column.key) for column in columns)


def resolve_as_analyzed(manifest: Manifest) -> Manifest:
    """Resolve a manifest's columns by the newest analyzed snapshot, if the table itself cannot be read."""
    keys_by_field_id: dict[str | None, str] = {}
    for snapshot in manifest.snapshots[-1:]:
        keys_by_field_id = {_parse_field_id(column.key): column.key for column in snapshot.columns}
    blocks = []
    for block in manifest.blocks:
        columns = _resolve_columns(block.columns, keys_by_field_id.get)
        blocks.append(replace(block, columns=columns))
    snapshots = []
    for snapshot in manifest.snapshots:
        columns = _strip_columns(snapshot.columns)
        snapshots.append(replace(snapshot, columns=columns))
    return replace(manifest, blocks=tuple(blocks), snapshots=tuple(snapshots))


def _without_table_key(column: Column) -> Column:
    """Give an expression a key that no table has; columns stay as they are."""
    if not column.is_expression:
        return column
    return replace(column, key=f"@{column.key}")


def _parse_field_id(key: str) -> str | None:
    """Return the field id in the key of a column in data files without field ids; None for any other key."""
    match = _MAPPED_KEY.fullmatch(key)
    if match is None:
        return None
    return match[1]


def _resolve_columns(columns: Sequence[Column], mapped_key: Callable[[str], str | None]) -> tuple[Column, ...]:
    resolved = list(columns)
    for number, column in enumerate(columns):
        field_id = _parse_field_id(column.key)
        if field_id is not None and mapped_key(field_id) == column.key:
            resolved[number] = replace(column, key=field_id, mapped_key=column.key)
    return tuple(resolved)


def _strip_columns(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Give columns their field ids as keys."""
    stripped = []
    for column in columns:
        key = _parse_field_id(column.key) or column.key
        stripped.append(replace(column, key=key))
    return tuple(stripped)


def _list_names(fields: Sequence[Mapping[str, Any]], parents: tuple[list[str], ...]) -> Iterator[tuple[str, str]]:
    """List the field id of each field with the names on the path to it, as JSON."""
    for field in fields:
        path = (*parents, _sort_names(field))
        nested = _nested_fields(field)
        if "field-id" in field:
            description: list[Any] = list(path)
            if nested:
                description.append({"fields": list(map(_describe, nested))})
            yield str(field["field-id"]), json.dumps(description, ensure_ascii=False, separators=(",", ":"))
        yield from _list_names(nested, path)


def _describe(field: Mapping[str, Any]) -> list[Any]:
    """Describe a nested field: the values of a list or a map depend on it."""
    nested = list(map(_describe, _nested_fields(field)))
    return [field.get("field-id"), _sort_names(field), nested]


def _sort_names(field: Mapping[str, Any]) -> list[str]:
    return sorted(field.get("names") or ())


def _nested_fields(field: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return field.get("fields") or ()
