"""Iceberg tables, by public Spark API alone: SQL, metadata tables, Spark's own file reader."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore._format.manifest import TableIdentity
from metastore._format.stored import stored_values
from metastore._tables.arrow import arrow_table
from metastore._tables.iceberg_deletes import Deletes, find_deletes
from metastore._tables.iceberg_partitions import Partitions
from metastore._tables.iceberg_schema import Leaf, columns, default_value, leaves
from metastore._tables.model import DataFile, TableFacts
from metastore._tables.names import quote
from metastore._tables.spelling import literal
from metastore.errors import UnsupportedTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore._format.columns import Column
    from metastore._tables.catalog import Entry

_NAME_MAPPING = "schema.name-mapping.default"
_DATA = 0
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class _Metadata:
    """The table's newest metadata file."""

    content: Mapping[str, Any]
    spelled: str
    resolved: str

    @property
    def location(self) -> str:
        return str(self.content["location"]).rstrip("/")

    @property
    def is_local(self) -> bool:
        """Whether paths without a scheme are on the local file system."""
        return self.spelled.startswith("/") and self.resolved.startswith("file:")

    @property
    def snapshot(self) -> int | None:
        current = self.content.get("current-snapshot-id")
        return None if current in (None, -1) else int(current)

    @property
    def schema(self) -> Mapping[str, Any]:
        wanted = self.content.get("current-schema-id")
        for schema in self.content.get("schemas", ()):
            if schema["schema-id"] == wanted:
                return dict(schema)
        return dict(self.content["schema"])

    @property
    def snapshot_has_current_schema(self) -> bool:
        wanted = self.content.get("current-schema-id")
        return any(
            snapshot["snapshot-id"] == self.snapshot and snapshot.get("schema-id", wanted) == wanted
            for snapshot in self.content.get("snapshots", ())
        )

    @property
    def specs(self) -> Mapping[int, Sequence[Mapping[str, Any]]]:
        if "partition-specs" in self.content:
            return {spec["spec-id"]: spec["fields"] for spec in self.content["partition-specs"]}
        return {0: self.content.get("partition-spec", [])}


def load(spark: SparkSession, entry: Entry) -> TableFacts:
    """Read the facts of an Iceberg table at its current snapshot.

    Args:
        spark: The session.
        entry: The catalog's entry.

    Returns:
        The facts; a table that was never written has no snapshot and no files.

    Raises:
        UnsupportedTable: Its metadata file cannot be read.

    Example:
        >>> load(spark, describe(spark, "cat.db.sales")).uuid  # doctest: +SKIP
        '4e0d…'
    """
    spark.sql(f"REFRESH TABLE {entry.identifier}")
    metadata = _read_metadata(spark, entry)
    identity = _identity(entry, metadata)
    found = tuple(leaves(metadata.schema))
    described, refused = columns(found)
    at = f" VERSION AS OF {metadata.snapshot}"
    return TableFacts(
        format="iceberg",
        uuid=identity.uuid,
        location=metadata.location,
        root=identity.location,
        name=identity.name,
        identifier=entry.identifier,
        snapshot=None if metadata.snapshot is None else str(metadata.snapshot),
        columns=described,
        files=() if metadata.snapshot is None else _files(spark, entry, metadata, described),
        defaults=_defaults(found, described),
        absent_is_null=_NAME_MAPPING not in metadata.content.get("properties", {}),
        local=metadata.is_local,
        pinned=entry.identifier + (at if metadata.snapshot_has_current_schema else ""),
        refused=refused,
        properties=metadata.content.get("properties") or {},
    )


def identify(spark: SparkSession, entry: Entry) -> TableIdentity:
    """Learn which Iceberg table a name stands for, without looking at its files.

    Args:
        spark: The session.
        entry: The catalog's entry.

    Raises:
        UnsupportedTable: Its metadata file cannot be read.

    Example:
        >>> identify(spark, describe(spark, "cat.db.sales")).uuid  # doctest: +SKIP
        '4e0d…'
    """
    return _identity(entry, _read_metadata(spark, entry))


def _identity(entry: Entry, metadata: _Metadata) -> TableIdentity:
    location = metadata.location
    bare = location.startswith("/") and not metadata.is_local
    root = _qualified(location, metadata) if bare else location
    return TableIdentity("iceberg", metadata.content["table-uuid"], root, entry.name)


def _read_metadata(spark: SparkSession, entry: Entry) -> _Metadata:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - not needed to import this module

    try:
        log = spark.sql(f"SELECT file FROM {entry.identifier}.metadata_log_entries").collect()
        spelled = log[-1].file
        reader = spark.read.format("binaryFile").load(literal(spelled))
        (row,) = reader.select("path", "content").collect()
    except PySparkException as failure:
        reason = f"its metadata file cannot be read: {str(failure).splitlines()[0]}"
        raise UnsupportedTable(entry.name, reason) from failure
    raw = bytes(row.content)
    text = gzip.decompress(raw) if raw.startswith(_GZIP) else raw
    return _Metadata(json.loads(text), spelled, row.path)


def _qualified(location: str, metadata: _Metadata) -> str:
    # A bare path is Hadoop's default file system's; Spark has said which when it read the metadata file.
    return metadata.resolved.removesuffix(metadata.spelled) + location


def _defaults(found: Sequence[Leaf], described: Sequence[Column]) -> dict[str, Any]:
    return {
        column.key: _default(leaf, column)
        for leaf, column in zip(found, described, strict=True)
        if leaf.default is not None
    }


def _default(leaf: Leaf, column: Column) -> Any:
    # Of a column with counts only, that it is not null is all that statistics say of a default.
    if column.encoding is None:
        return True
    return stored_values(pa.array([default_value(leaf.kind, leaf.default)]), column)[0]


def _files(spark: SparkSession, entry: Entry, metadata: _Metadata, described: Sequence[Column]) -> tuple[DataFile, ...]:
    listing = spark.sql(f"SELECT * FROM {entry.identifier}.files VERSION AS OF {metadata.snapshot}")
    wanted = [
        "content",
        "file_path",
        "lower(file_format) AS file_format",
        "spec_id",
        "record_count",
        "file_size_in_bytes",
        "key_metadata IS NOT NULL AS encrypted",
    ]
    present = set(listing.columns)
    wanted += [name for name in ("referenced_data_file", "content_offset", "content_size_in_bytes") if name in present]
    fields = listing.select("partition.*").columns if "partition" in present else []
    for place, name in enumerate(fields):
        source = quote(("partition", name))
        wanted += [f"{source} AS value_{place}", f"CAST({source} AS STRING) AS text_{place}"]
    rows = arrow_table(listing.selectExpr(*wanted))
    deletes = find_deletes(spark, entry.identifier, str(metadata.snapshot), rows)
    partitions = Partitions(metadata.specs, described, rows, len(fields))
    return tuple(_data_files(rows, partitions, deletes))


def _data_files(rows: pa.Table, partitions: Partitions, deletes: Deletes) -> list[DataFile]:
    names = ("content", "file_path", "file_format", "spec_id", "record_count", "file_size_in_bytes", "encrypted")
    listed = zip(*(rows.column(name).to_pylist() for name in names), strict=True)
    files = []
    for index, (content, path, kind, spec, count, size, encrypted) in enumerate(listed):
        if content != _DATA:
            continue
        digest, deleted = deletes.of(path)
        files.append(
            DataFile(
                path=path,
                size=size,
                rows=count,
                format=kind,
                partition=partitions.texts(index, spec),
                constants=partitions.constants(index, spec),
                unknown=partitions.unknown(spec),
                encrypted=encrypted,
                deletes=digest,
                deleted_rows=deleted,
            )
        )
    return sorted(files, key=lambda file: file.path)
