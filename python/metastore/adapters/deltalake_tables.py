"""Delta tables that deltalake has opened."""

from __future__ import annotations

import json
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from metastore.adapters.current_tables import CurrentTable
from metastore.adapters.lineage import Lineage, list_leaf_fields
from metastore.format.data_files import DataFile
from metastore.format.table_column import Column, encoding_of
from metastore.store.table_credentials import find_object_store_credentials

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalake import DeltaTable

_SPARK_TYPES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_PHYSICAL = "delta.columnMapping.physicalName"
_RAW_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_COLLATIONS = "__COLLATIONS"
_DELETES = "deletionVectors"


def describe_delta_table(table: DeltaTable) -> CurrentTable:
    """Describe a table at the version that deltalake has loaded."""
    identity = table.metadata()
    version = table.version()
    schema = json.loads(table.schema().to_json())
    versions = list(map(str, range(version + 1)))
    lineage = Lineage(
        uuid=str(identity.id),
        current=str(version),
        parents=dict(zip(versions, [None, *versions[:-1]], strict=True)),
        log=(),
        schema=tuple(map(_describe_leaf, list_leaf_fields(schema))),
    )
    location = table.table_uri.rstrip("/")
    name = identity.name or location
    options = getattr(table, "_storage_options", None) or {}  # deltalake has no public name for them
    access = find_object_store_credentials(location, options)
    return CurrentTable(
        format="delta",
        name=name,
        location=location,
        lineage=lineage,
        list_files=lambda: _list_files(table),
        access=access,
    )


def _list_files(table: DeltaTable) -> Iterator[DataFile]:
    files = pa.table(table.get_add_actions(flatten=True))
    names_with_deletes = _find_names_with_deletes(table)
    paths = files["path"].to_pylist()
    sizes = files["size_bytes"].to_pylist()
    # The number of rows comes from Delta's own statistics, which may be rounded or absent.
    row_counts = files["num_records"].to_pylist()
    for path, size, rows in zip(paths, sizes, row_counts, strict=True):
        file = DataFile(path=unquote(path), size=size, rows=rows, format="parquet")
        if names_with_deletes is None or _name_of(path) in names_with_deletes:
            file = replace(file, deletes=_DELETES)
        yield file


def _find_names_with_deletes(table: DeltaTable) -> set[str] | None:
    """Return the names of data files with deletion vectors; None if deltalake cannot read these."""
    features = table.protocol().reader_features or ()
    if _DELETES not in features:
        return set()
    names: set[str] = set()
    try:
        for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
            paths = batch.column("filepath").to_pylist()
            names.update(map(_name_of, paths))
    except Exception:  # noqa: BLE001 - deltalake's own, of files that it cannot read
        return None
    return names


def _name_of(path: str) -> str:
    return path.rpartition("/")[2]


def _describe_leaf(fields: Sequence[Mapping[str, Any]]) -> Column:
    """Describe a leaf, given the fields on the way to it."""
    leaf = fields[-1]
    metadata = _metadata_of(leaf)
    spark_type = str(metadata.get(_RAW_TYPE, ""))
    if not spark_type.startswith("char("):
        spark_type = _spark_type(leaf["type"])
    physical_names = list(map(_physical_name, fields))
    key = json.dumps(physical_names, ensure_ascii=False, separators=(",", ":"))
    path = tuple(map(itemgetter("name"), fields))
    column = Column(key=key, path=path, type=spark_type, encoding=encoding_of(spark_type))
    if _COLLATIONS in metadata:
        column = replace(column, collation=str(metadata[_COLLATIONS]))
    return column


def _metadata_of(field: Mapping[str, Any]) -> Mapping[str, Any]:
    return field.get("metadata") or {}


def _physical_name(field: Mapping[str, Any]) -> str:
    return str(_metadata_of(field).get(_PHYSICAL, field["name"]))


def _spark_type(kind: Any) -> str:
    """Translate a Delta type to Spark's simple string."""
    if isinstance(kind, str):
        return _SPARK_TYPES.get(kind, kind.replace(", ", ","))
    if kind["type"] == "array":
        return f"array<{_spark_type(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_spark_type(kind['keyType'])},{_spark_type(kind['valueType'])}>"
    fields = []
    for field in kind["fields"]:
        field_type = _spark_type(field["type"])
        fields.append(f"{field['name']}:{field_type}")
    return f"struct<{','.join(fields)}>"
