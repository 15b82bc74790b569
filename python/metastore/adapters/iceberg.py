"""Iceberg tables: SQL, metadata tables, and the metadata file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.adapters.iceberg_deletes import Deletes, find_deletes
from metastore.adapters.iceberg_metadata import iceberg_at_snapshot, read_iceberg_metadata_table, read_metadata
from metastore.adapters.iceberg_partitions import Partitions
from metastore.adapters.iceberg_schema import IcebergLeaf, describe_leaves, parse_default, walk_leaves
from metastore.adapters.identifiers import quote_name, split_name
from metastore.adapters.spark_versions import collect_arrow
from metastore.adapters.table_facts import DataFile, TableFacts
from metastore.errors import UnsupportedTable
from metastore.format.manifest import TableIdentity
from metastore.format.value_encoding import to_stored_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from metastore.adapters.catalog import CatalogEntry
    from metastore.adapters.iceberg_metadata import Metadata
    from metastore.format.table_column import Column


_NAME_MAPPING = "schema.name-mapping.default"
_DATA = 0
_SELECTED = re.compile("(branch|tag|snapshot_id|at_timestamp)_.+", re.IGNORECASE)
"""Last parts of names that stand for a table as it is elsewhere in its history, where no table is called so."""
_LISTINGS_KEPT, _MOST_FILES_KEPT = 8, 10_000

_listings: dict[tuple[str, bytes], tuple[DataFile, ...]] = {}
"""Data files by the table's name and the digest of its metadata file, oldest first."""


def load(spark: SparkSession, entry: CatalogEntry) -> TableFacts:
    """Read the facts of an Iceberg table at its current snapshot."""
    _require_whole_name(entry)
    spark.sql(f"REFRESH TABLE {entry.identifier}")
    metadata = read_metadata(spark, entry)
    identity = _identity(entry, metadata)
    found = tuple(walk_leaves(metadata.schema))
    described, refused = describe_leaves(found)
    return TableFacts(
        format="iceberg",
        uuid=identity.uuid,
        location=metadata.location,
        root=identity.location,
        name=identity.name,
        identifier=entry.identifier,
        snapshot=None if metadata.snapshot is None else str(metadata.snapshot),
        columns=described,
        files=() if metadata.snapshot is None else _files_once(spark, entry, metadata, described),
        defaults=_defaults(found, described),
        absent_is_null=_NAME_MAPPING not in metadata.content.get("properties", {}),
        local=metadata.is_local,
        snapshot_sql=iceberg_at_snapshot(entry.identifier, metadata.snapshot)
        if metadata.snapshot_has_current_schema
        else entry.identifier,
        refused=refused,
        properties=metadata.content.get("properties") or {},
    )


def identify(spark: SparkSession, entry: CatalogEntry) -> TableIdentity:
    """Learn which Iceberg table a name stands for, without looking at its files."""
    return _identity(entry, read_metadata(spark, entry))


def _require_whole_name(entry: CatalogEntry) -> None:
    *table, last = split_name(entry.identifier)
    if _SELECTED.fullmatch(last) and not entry.name.lower().endswith(f".{last.lower()}"):
        reason = "it is a branch, a tag or a snapshot, and ANALYZE reads a table where its main branch is"
        raise UnsupportedTable(entry.identifier, reason, f"The table is {quote_name(table)}.")


def _identity(entry: CatalogEntry, metadata: Metadata) -> TableIdentity:
    location = metadata.location
    bare = location.startswith("/") and not metadata.is_local
    root = _qualified(location, metadata) if bare else location
    return TableIdentity("iceberg", metadata.content["table-uuid"], root, entry.name)


def _qualified(location: str, metadata: Metadata) -> str:
    # A bare path is Hadoop's default file system's; Spark has said which when it read the metadata file.
    return metadata.resolved.removesuffix(metadata.spelled) + location


def _defaults(found: Sequence[IcebergLeaf], described: Sequence[Column]) -> dict[str, Any]:
    return {
        column.key: _default(leaf, column)
        for leaf, column in zip(found, described, strict=True)
        if leaf.default is not None
    }


def _default(leaf: IcebergLeaf, column: Column) -> Any:
    # Of a column with counts only, that it is not null is all that statistics say of a default.
    if column.encoding is None:
        return True
    return to_stored_values(pa.array([parse_default(leaf.kind, leaf.default)]), column)[0]


def _files_once(
    spark: SparkSession, entry: CatalogEntry, metadata: Metadata, described: Sequence[Column]
) -> tuple[DataFile, ...]:
    """The data files of the current snapshot, asked for once: neither a metadata file nor a snapshot ever changes."""
    key = (entry.identifier, metadata.digest)
    known = _listings.get(key)
    if known is None:
        known = _files(spark, entry, metadata, described)
        if len(known) <= _MOST_FILES_KEPT:
            while len(_listings) >= _LISTINGS_KEPT:
                _listings.pop(next(iter(_listings), key), None)
            _listings[key] = known
    return known


def _files(
    spark: SparkSession, entry: CatalogEntry, metadata: Metadata, described: Sequence[Column]
) -> tuple[DataFile, ...]:
    listing = read_iceberg_metadata_table(spark, entry.identifier, "files", metadata.snapshot)
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
        source = quote_name(("partition", name))
        wanted += [f"{source} AS value_{place}", f"CAST({source} AS STRING) AS text_{place}"]
    rows = collect_arrow(listing.selectExpr(*wanted))
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
