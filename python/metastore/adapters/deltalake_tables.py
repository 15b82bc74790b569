"""Delta tables that deltalake has opened."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from metastore.adapters.current_tables import CurrentTable
from metastore.adapters.lineage import Lineage
from metastore.adapters.table_facts import DataFile
from metastore.format.table_column import Column, encoding_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltalake import DeltaTable

_SPARK_TYPES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_PHYSICAL, _RAW_TYPE = "delta.columnMapping.physicalName", "__CHAR_VARCHAR_TYPE_STRING"
_DELETES = "deletionVectors"


def describe_delta_table(table: DeltaTable) -> CurrentTable:
    """The table at the version that deltalake has loaded."""
    identity, version = table.metadata(), table.version()
    columns = tuple(_leaves(json.loads(table.schema().to_json())))
    lineage = Lineage(
        uuid=str(identity.id),
        current=str(version),
        parents={str(one): str(one - 1) if one else None for one in range(version + 1)},
        log=(),
        schema=columns,
    )
    location = table.table_uri.rstrip("/")
    return CurrentTable("delta", identity.name or location, location, lineage, lambda: _list_files(table))


def _list_files(table: DeltaTable) -> Iterator[DataFile]:
    files = pa.table(table.get_add_actions(flatten=True))
    deleted = _names_with_deletes(table)
    names = ("path", "size_bytes", "num_records")
    for path, size, rows in zip(*(files[name].to_pylist() for name in names), strict=True):
        has_deletes = deleted is None or path.rpartition("/")[2] in deleted
        # Its statistics may be rounded or absent: rows are as good as these are.
        yield DataFile(unquote(path), size, rows, "parquet", deletes=_DELETES if has_deletes else None)


def _names_with_deletes(table: DeltaTable) -> set[str] | None:
    """The names of data files with deletion vectors; None where they cannot be told."""
    if _DELETES not in (table.protocol().reader_features or ()):
        return set()
    try:
        found = pa.RecordBatchReader.from_stream(table.deletion_vectors())
        return {path.rpartition("/")[2] for batch in found for path in batch.column("filepath").to_pylist()}
    except Exception:  # noqa: BLE001 - deltalake's own, of files that it cannot read
        return None


def _leaves(struct: Mapping[str, Any], above: tuple[str, ...] = (), keys: tuple[str, ...] = ()) -> Iterator[Column]:
    """The leaves of a schema as Spark sees them: struct fields are entered, lists and maps are leaves."""
    for field in struct["fields"]:
        about, kind = field.get("metadata") or {}, field["type"]
        path, key = (*above, field["name"]), (*keys, about.get(_PHYSICAL, field["name"]))
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from _leaves(kind, path, key)
            continue
        raw = str(about.get(_RAW_TYPE, ""))
        spelled = raw if raw.startswith("char(") else _spark_type(kind)
        collation = str(about["__COLLATIONS"]) if "__COLLATIONS" in about else None
        text = json.dumps(list(key), ensure_ascii=False, separators=(",", ":"))
        yield Column(text, path, spelled, encoding_of(spelled), collation)


def _spark_type(kind: Any) -> str:
    """Translate a Delta type to Spark's simple string."""
    if isinstance(kind, str):
        return _SPARK_TYPES.get(kind, kind.replace(", ", ","))
    if kind["type"] == "array":
        return f"array<{_spark_type(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_spark_type(kind['keyType'])},{_spark_type(kind['valueType'])}>"
    fields = (f"{one['name']}:{_spark_type(one['type'])}" for one in kind["fields"])
    return f"struct<{','.join(fields)}>"
