"""What an Iceberg table's metadata says about its snapshots, where a location alone tells it.

Only Iceberg's file system tables (`v7.metadata.json`, as a Hadoop catalog writes them) keep their truth at their
location. Where a catalog names the metadata file, a file that lies there may be the trace of a commit that never took
place: nothing is claimed about it, and `current` is unknown.
"""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any

from metastore.adapters.lineage import Lineage
from metastore.format.name_mapping import PROPERTY, NameMapping
from metastore.format.table_column import Column, encoding_of
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from metastore.reading.folder import Folder


_LOG = get_logger(__name__)
_VERSION = re.compile(r"v(\d+)(\.gz)?\.metadata\.json(\.gz)?")
_OF_A_CATALOG = re.compile(r"(\d+)-[0-9a-f-]{36}(\.gz)?\.metadata\.json(\.gz)?")
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
    """What the metadata at a table's location says; None where nothing is certain."""
    folder = table / "metadata"
    try:
        name = _newest(folder.names())
        metadata = _read_metadata(folder, name) if name else None
        return None if metadata is None else parse_metadata(metadata)
    except (OSError, ValueError, KeyError, TypeError) as error:
        _LOG.info("the metadata of %s cannot be read, its current snapshot is unknown: %s", table.uri, error)
        return None


def read_properties(table: Folder) -> Mapping[str, str] | None:
    """Return the table properties of the newest metadata file, or None if no file is the newest.

    Where a catalog names the current file, the newest may be of a commit that failed. So the answer serves to name
    misspelt properties, and nothing else.
    """
    folder = table / "metadata"
    try:
        names = folder.names()
        name = _newest(names) or _newest_of_a_catalog(names)
        metadata = _read_metadata(folder, name) if name else None
        return None if metadata is None else dict(metadata.get("properties") or {})
    except (OSError, ValueError, TypeError, AttributeError) as error:
        _LOG.info("the metadata of %s cannot be read, its properties are unknown: %s", table.uri, error)
        return None


def _read_metadata(folder: Folder, name: str) -> Mapping[str, Any] | None:
    data = folder.read(name)
    if data is None:
        return None
    metadata: Mapping[str, Any] = json.loads(gzip.decompress(data) if ".gz" in name else data)
    return metadata


def _newest_of_a_catalog(names: tuple[str, ...]) -> str | None:
    """Return the metadata file with the highest number; None if several have it, of which one was committed."""
    numbered = [(int(match[1]), name) for name in names if (match := _OF_A_CATALOG.fullmatch(name))]
    highest = max((number for number, _ in numbered), default=None)
    newest = [name for number, name in numbered if number == highest]
    return newest[0] if len(newest) == 1 else None


def _newest(names: tuple[str, ...]) -> str | None:
    if any(_OF_A_CATALOG.fullmatch(name) for name in names):
        return None
    # A Hadoop catalog commits by creating the next number; version-hint.text is only where it starts to look.
    versions = [(int(match[1]), name) for name in names if (match := _VERSION.fullmatch(name))]
    return max(versions)[1] if versions else None


def parse_metadata(metadata: Mapping[str, Any]) -> Lineage:
    """What the document of a metadata file says."""
    current = metadata.get("current-snapshot-id")
    snapshots = metadata.get("snapshots") or []
    schemas = {one.get("schema-id", 0): tuple(_leaves(one)) for one in metadata.get("schemas") or []}
    summaries = {str(one["snapshot-id"]): one.get("summary") or {} for one in snapshots}
    return Lineage(
        uuid=metadata["table-uuid"],
        current=None if current in (None, -1) else str(current),
        parents={str(one["snapshot-id"]): _id(one.get("parent-snapshot-id")) for one in snapshots},
        log=tuple((int(one["timestamp-ms"]), str(one["snapshot-id"])) for one in metadata.get("snapshot-log") or []),
        references={name: str(one["snapshot-id"]) for name, one in (metadata.get("refs") or {}).items()},
        schema=schemas.get(metadata.get("current-schema-id"), ()),
        schemas={str(one["snapshot-id"]): schemas.get(one.get("schema-id"), ()) for one in snapshots},
        files={id_: int(one["total-data-files"]) for id_, one in summaries.items() if "total-data-files" in one},
        removed={id_: int(one.get("deleted-data-files", 0)) for id_, one in summaries.items() if "operation" in one},
        name_mapping=NameMapping((metadata.get("properties") or {}).get(PROPERTY)),
    )


def _leaves(struct: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[Column]:
    """The leaves of a schema as Spark sees them: struct fields are entered, lists and maps are leaves."""
    for one in struct["fields"]:
        path, kind = (*above, one["name"]), one["type"]
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from _leaves(kind, path)
        else:
            known = _spark_type(kind)
            yield Column(str(one["id"]), path, known or str(kind), encoding_of(known) if known else None)


def _spark_type(kind: Any) -> str | None:
    """Translate an Iceberg type to Spark's simple string."""
    if isinstance(kind, dict):
        return _nested_type(kind)
    if kind.startswith("decimal"):
        return str(kind.replace(" ", ""))
    if kind.startswith("fixed"):
        return "binary"
    return _SPARK_TYPES.get(re.split(r"[(\[]", kind)[0])


def _nested_type(kind: Mapping[str, Any]) -> str | None:
    if kind["type"] == "list":
        inner = [_spark_type(kind["element"])]
    elif kind["type"] == "map":
        inner = [_spark_type(kind["key"]), _spark_type(kind["value"])]
    else:
        inner = [_spark_type(field["type"]) for field in kind["fields"]]
    if any(part is None for part in inner):
        return None
    if kind["type"] == "struct":
        named = (f"{f['name']}:{part}" for f, part in zip(kind["fields"], inner, strict=True))
        return f"struct<{','.join(named)}>"
    return f"{'array' if kind['type'] == 'list' else 'map'}<{','.join(map(str, inner))}>"


def _id(value: object) -> str | None:
    return None if value is None else str(value)
