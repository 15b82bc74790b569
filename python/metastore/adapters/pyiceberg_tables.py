"""Iceberg tables that pyiceberg has opened."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pyiceberg.avro.file import AvroFile
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchIdentifierError, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntryStatus,
)
from pyiceberg.manifest import DataFile as ManifestDataFile
from pyiceberg.manifest import ManifestEntry as _ManifestEntry
from pyiceberg.typedef import IcebergBaseModel
from pyiceberg.utils.config import Config

from metastore.adapters.current_tables import CurrentTable
from metastore.adapters.iceberg_lineage import parse_metadata
from metastore.errors import TableNotFound
from metastore.format.data_files import DataFile
from metastore.store.table_credentials import find_file_io_credentials

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import FileScanTask, Table

_UNKNOWN_DELETES = "untold"
_WITH_VECTORS = 3
"""The first format version with deletion vectors."""


def describe_iceberg_table(table: Table) -> CurrentTable:
    """Describe a table at the snapshot that is current in what pyiceberg has loaded."""
    # The metadata's own method refuses format version 3, which pyiceberg does not write.
    metadata = IcebergBaseModel.model_dump_json(table.metadata)
    lineage = parse_metadata(json.loads(metadata))
    name = ".".join(table.name())
    location = table.location()
    access = find_file_io_credentials(location, table.io.properties, bucket_in_host=False)
    return CurrentTable(
        format="iceberg",
        name=name,
        location=location,
        lineage=lineage,
        list_files=lambda: _list_files(table),
        access=access,
    )


def load_iceberg_table(catalog: str, identifier: str) -> Table | None:
    """Load a table by its name in a catalog; None if pyiceberg's configuration has no such catalog.

    Raises:
        TableNotFound: The catalog has no such table.
    """
    properties: Any = Config().get_catalog_config(catalog)
    if properties is None:
        return None
    try:
        return load_catalog(catalog, **properties).load_table(identifier)
    except (NoSuchTableError, NoSuchNamespaceError, NoSuchIdentifierError) as error:
        raise TableNotFound(f"{catalog}.{identifier}") from error


def _list_files(table: Table) -> Iterator[DataFile]:
    try:
        tasks = list(table.scan().plan_files())
    except (ValueError, NotImplementedError):  # pyiceberg does not support equality deletes
        yield from _list_with_unknown_deletes(table)
        return
    targets = _find_vector_targets(table)
    for task in tasks:
        file = task.file
        yield DataFile(
            path=file.file_path,
            size=file.file_size_in_bytes,
            rows=file.record_count,
            format=file.file_format.name.lower(),
            deletes=_name_deletes(task, targets),
        )


def _name_deletes(task: FileScanTask, targets: Mapping[str, set[str]]) -> str | None:
    """Name the delete files of a data file: those that pyiceberg lists, without vectors of other data files."""
    path = task.file.file_path
    names = {delete.file_path for delete in task.delete_files}
    names_of_others = {name for name in names & targets.keys() if path not in targets[name]}
    return ",".join(sorted(names - names_of_others)) or None


def _find_vector_targets(table: Table) -> Mapping[str, set[str]]:
    """Find the data files to which the deletion vectors of each file belong.

    Pyiceberg lists a vector as a delete file of all files of the partition.
    """
    if table.format_version < _WITH_VECTORS:
        return {}
    snapshot = table.current_snapshot()
    if not snapshot:
        return {}
    targets: dict[str, set[str]] = defaultdict(set)
    for manifest in snapshot.manifests(table.io):
        if manifest.content == ManifestContent.DELETES:
            for vector_file, data_file in _read_vectors(table.io, manifest):
                targets[vector_file].add(data_file)
    return targets


def _read_vectors(io: FileIO, manifest: ManifestFile) -> Iterator[tuple[str, str]]:
    """Read the file of each deletion vector of a manifest, and the data file whose rows it deletes."""
    names = [field.name for field in DATA_FILE_TYPE[_WITH_VECTORS].fields]
    target = names.index("referenced_data_file")
    with AvroFile[_ManifestEntry](
        io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[_WITH_VECTORS],
        read_types={-1: _ManifestEntry, 2: ManifestDataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as entries:
        for entry in entries:
            data_file = entry.data_file[target]
            if data_file is not None and entry.status != ManifestEntryStatus.DELETED:
                yield entry.data_file.file_path, data_file


def _list_with_unknown_deletes(table: Table) -> Iterator[DataFile]:
    """List the data files as if all had deletes, because pyiceberg does not say which do."""
    files = table.inspect.data_files()
    for row in files.to_pylist():
        yield DataFile(
            path=row["file_path"],
            size=row["file_size_in_bytes"],
            rows=row["record_count"],
            format=str(row["file_format"]).lower(),
            deletes=_UNKNOWN_DELETES,
        )
