"""Iceberg's name mapping: under which names a data file without field ids has the table's columns."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cached_property
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
        text: The JSON of the table property; None where the table has none, and readers go by position.
    """

    text: str | None = None

    def mapped_key(self, key: str) -> str:
        """The key of a column in a data file without field ids: the field id, and how the mapping finds the column."""
        if self.text is None:
            return f"{key}@"
        return f"{key}@{self._names.get(key, _UNMAPPED)}"

    def map_columns(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """Columns under the keys that they have in data files without field ids."""
        return tuple(replace(column, key=self.mapped_key(column.key)) for column in columns)

    def resolve_block(self, block: Block) -> Block:
        """A block whose columns of unchanged meaning have the table's keys."""
        return replace(block, columns=self._resolve(block.columns))

    def resolve_snapshot(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot whose columns of unchanged meaning have the table's keys."""
        columns, expressions = self._resolve(snapshot.columns), self._resolve(snapshot.expressions)
        return replace(snapshot, columns=columns, expressions=expressions)

    def resolve_manifest(self, manifest: Manifest) -> Manifest:
        """A manifest whose columns of unchanged meaning have the table's keys."""
        blocks = tuple(self.resolve_block(block) for block in manifest.blocks)
        snapshots = tuple(self.resolve_snapshot(snapshot) for snapshot in manifest.snapshots)
        return replace(manifest, blocks=blocks, snapshots=snapshots)

    def _resolve(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        resolved = _resolve_columns(columns, self.mapped_key)
        if self.text is None:
            return resolved
        # Which data files an expression was computed of is not stored: a mapping may have changed any of them.
        return tuple(replace(one, key=f"@{one.key}") if one.is_expression else one for one in resolved)

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """Field id to the names on the way to the field, as JSON."""
        return dict(_walk(json.loads(self.text or _UNMAPPED), ()))


def has_mapped_columns(manifest: Manifest) -> bool:
    """Whether a manifest tells of data files without field ids."""
    columns = {id(block.columns): block.columns for block in manifest.blocks}
    columns |= {id(snapshot.columns): snapshot.columns for snapshot in manifest.snapshots}
    return any(_field_id(column.key) is not None for schema in columns.values() for column in schema)


def resolve_as_analyzed(manifest: Manifest) -> Manifest:
    """A manifest of which columns mean what they meant in the newest analyzed snapshot, where no table tells."""
    newest = manifest.snapshots[-1].columns if manifest.snapshots else ()
    mapped = {_field_id(column.key): column.key for column in newest}

    def mapped_key(key: str) -> str:
        return mapped.get(key, "")

    blocks = tuple(replace(one, columns=_resolve_columns(one.columns, mapped_key)) for one in manifest.blocks)
    snapshots = tuple(replace(one, columns=_strip_columns(one.columns)) for one in manifest.snapshots)
    return replace(manifest, blocks=blocks, snapshots=snapshots)


def _field_id(key: str) -> str | None:
    """The field id in a key of a column in data files without field ids; None of any other key."""
    match = _MAPPED_KEY.fullmatch(key)
    return match[1] if match else None


def _resolve_columns(columns: Sequence[Column], mapped_key: Callable[[str], str]) -> tuple[Column, ...]:
    resolved = []
    for column in columns:
        field_id = _field_id(column.key)
        if field_id is not None and mapped_key(field_id) == column.key:
            resolved.append(replace(column, key=field_id, mapped_key=column.key))
        else:
            resolved.append(column)
    return tuple(resolved)


def _strip_columns(columns: Sequence[Column]) -> tuple[Column, ...]:
    return tuple(replace(column, key=_field_id(column.key) or column.key) for column in columns)


def _walk(fields: Sequence[Mapping[str, Any]], above: tuple[list[str], ...]) -> Iterator[tuple[str, str]]:
    for field in fields:
        path = (*above, sorted(field.get("names") or ()))
        nested = field.get("fields") or ()
        if "field-id" in field:
            below = [_describe(one) for one in nested]
            yield str(field["field-id"]), _to_json([*path, *([{"fields": below}] if below else [])])
        yield from _walk(nested, path)


def _describe(field: Mapping[str, Any]) -> list[Any]:
    """A nested field: what a list or a map holds depends on it."""
    below = [_describe(one) for one in field.get("fields") or ()]
    return [field.get("field-id"), sorted(field.get("names") or ()), below]


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
