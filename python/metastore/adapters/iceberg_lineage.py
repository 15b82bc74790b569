"""The snapshots of an Iceberg table, read from the metadata at its location.

Only tables of a Hadoop catalog (`v7.metadata.json`) have their current metadata at their location. Other catalogs name
the metadata file, and a newer file may be left from a failed commit: then `current` is unknown.
"""

from __future__ import annotations

import gzip
import json
import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from metastore.adapters.lineage import Lineage, list_leaf_fields
from metastore.format.name_mapping import PROPERTY, NameMapping
from metastore.format.table_column import Column, encoding_of
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.store.folder import Folder


_LOG = get_logger(__name__)
_VERSION = re.compile(r"v(\d+)(\.gz)?\.metadata\.json(\.gz)?")
_CATALOG_VERSION = re.compile(r"(\d+)-[0-9a-f-]{36}(\.gz)?\.metadata\.json(\.gz)?")
_NO_SNAPSHOT = -1
"""The current snapshot's id in metadata of a table without snapshots."""

_SPARK_TYPES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "time": "time(6)",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "string": "string",
    "uuid": "string",
    "binary": "binary",
    "variant": "variant",
    "unknown": "void",
}


def read_lineage(table: Folder) -> Lineage | None:
    """Read the snapshots from the metadata at a table's location; None if they are uncertain."""
    folder = table / "metadata"
    try:
        name = _find_newest(folder.names())
        metadata = _read_metadata(folder, name)
        if metadata is None:
            return None
        return parse_metadata(metadata)
    except (OSError, ValueError, KeyError, TypeError) as error:
        _LOG.info("the metadata of %s cannot be read, its current snapshot is unknown: %s", table.uri, error)
        return None


def read_properties(table: Folder) -> Mapping[str, str] | None:
    """Return the table properties of the newest metadata file, or None if no file is the newest.

    If a catalog names the current file, the newest may be left from a failed commit. So the result is only good enough
    to find misspelt properties.
    """
    folder = table / "metadata"
    try:
        names = folder.names()
        name = _find_newest(names) or _find_newest_of_catalog(names)
        metadata = _read_metadata(folder, name)
        if metadata is None:
            return None
        return dict(metadata.get("properties") or {})
    except (OSError, ValueError, TypeError, AttributeError) as error:
        _LOG.info("the metadata of %s cannot be read, its properties are unknown: %s", table.uri, error)
        return None


def _read_metadata(folder: Folder, name: str | None) -> Mapping[str, Any] | None:
    data = folder.read(name) if name else None
    if data is None:
        return None
    if ".gz" in str(name):
        data = gzip.decompress(data)
    metadata: Mapping[str, Any] = json.loads(data)
    return metadata


def _find_newest_of_catalog(names: tuple[str, ...]) -> str | None:
    """Return the metadata file with the highest number; None if several files have it."""
    versions = _number_versions(names, _CATALOG_VERSION)
    highest, name = max(versions, default=(0, None))
    numbers = [number for number, _ in versions]
    if numbers.count(highest) == 1:
        return name
    return None


def _find_newest(names: tuple[str, ...]) -> str | None:
    """Return the metadata file that a Hadoop catalog committed last; None if another catalog wrote some files."""
    if _number_versions(names, _CATALOG_VERSION):
        return None
    # A Hadoop catalog commits by creating the next number; version-hint.text is only where it starts to look.
    _, newest = max(_number_versions(names, _VERSION), default=(0, None))
    return newest


def _number_versions(names: tuple[str, ...], pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    """Return the version number and name of each metadata file that the pattern matches."""
    matches = filter(None, map(pattern.fullmatch, names))
    return [(int(match[1]), match[0]) for match in matches]


def parse_metadata(metadata: Mapping[str, Any]) -> Lineage:
    """Read the snapshots from the document of a metadata file."""
    snapshots = {str(snapshot["snapshot-id"]): snapshot for snapshot in _list_of(metadata, "snapshots")}
    schemas = {}
    for schema in _list_of(metadata, "schemas"):
        schema_id = schema.get("schema-id", 0)
        schemas[schema_id] = tuple(map(_describe_leaf, list_leaf_fields(schema)))
    parents = {}
    snapshot_schemas = {}
    file_counts = {}
    removed_counts = {}
    for snapshot_id, snapshot in snapshots.items():
        parents[snapshot_id] = _to_text(snapshot.get("parent-snapshot-id"))
        snapshot_schemas[snapshot_id] = schemas.get(snapshot.get("schema-id"), ())
        summary = _mapping_of(snapshot, "summary")
        if "total-data-files" in summary:
            file_counts[snapshot_id] = int(summary["total-data-files"])
        if "operation" in summary:
            removed_counts[snapshot_id] = int(summary.get("deleted-data-files", 0))
    return Lineage(
        uuid=metadata["table-uuid"],
        current=_read_current(metadata),
        parents=parents,
        log=_read_log(metadata),
        references=_read_references(metadata),
        schema=schemas.get(metadata.get("current-schema-id"), ()),
        schemas=snapshot_schemas,
        files=file_counts,
        removed=removed_counts,
        name_mapping=NameMapping(_mapping_of(metadata, "properties").get(PROPERTY)),
    )


def _list_of(document: Mapping[str, Any], name: str) -> Sequence[Any]:
    return document.get(name) or []


def _mapping_of(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return document.get(name) or {}


def _to_text(snapshot_id: object) -> str | None:
    if snapshot_id is None:
        return None
    return str(snapshot_id)


def _read_current(metadata: Mapping[str, Any]) -> str | None:
    current = metadata.get("current-snapshot-id")
    if current == _NO_SNAPSHOT:
        return None
    return _to_text(current)


def _read_log(metadata: Mapping[str, Any]) -> tuple[tuple[int, str], ...]:
    log = []
    for entry in _list_of(metadata, "snapshot-log"):
        milliseconds = int(entry["timestamp-ms"])
        log.append((milliseconds, str(entry["snapshot-id"])))
    return tuple(log)


def _read_references(metadata: Mapping[str, Any]) -> dict[str, str]:
    references = {}
    for name, reference in _mapping_of(metadata, "refs").items():
        references[name] = str(reference["snapshot-id"])
    return references


def _describe_leaf(fields: Sequence[Mapping[str, Any]]) -> Column:
    """Describe a leaf, given the fields on the way to it."""
    leaf = fields[-1]
    key = str(leaf["id"])
    path = tuple(map(itemgetter("name"), fields))
    spark_type = _spark_type(leaf["type"])
    if spark_type is None:
        return Column(key=key, path=path, type=str(leaf["type"]), encoding=None)
    return Column(key=key, path=path, type=spark_type, encoding=encoding_of(spark_type))


def _spark_type(kind: Any) -> str | None:
    """Translate an Iceberg type to Spark's simple string."""
    if isinstance(kind, dict):
        return _nested_type(kind)
    if kind.startswith("decimal"):
        return str(kind.replace(" ", ""))
    if kind.startswith("fixed"):
        return "binary"
    name = re.split(r"[(\[]", kind)[0]
    return _SPARK_TYPES.get(name)


def _nested_type(kind: Mapping[str, Any]) -> str | None:
    """Translate a list, map or struct; None if the type of some part is unknown."""
    if kind["type"] == "list":
        return _write_type("array", [("", kind["element"])])
    if kind["type"] == "map":
        return _write_type("map", [("", kind["key"]), ("", kind["value"])])
    fields = [(f"{field['name']}:", field["type"]) for field in kind["fields"]]
    return _write_type("struct", fields)


def _write_type(name: str, parts: Sequence[tuple[str, Any]]) -> str | None:
    """Write a nested type of Spark from the prefix and the Iceberg type of each part."""
    texts = []
    for prefix, kind in parts:
        spark_type = _spark_type(kind)
        if spark_type is None:
            return None
        texts.append(prefix + spark_type)
    return f"{name}<{','.join(texts)}>"
