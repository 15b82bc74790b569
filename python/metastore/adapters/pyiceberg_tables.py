"""Iceberg tables that pyiceberg has opened."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from pyiceberg.avro.file import AvroFile
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

from metastore.adapters.current_tables import CurrentTable
from metastore.adapters.iceberg_lineage import parse_metadata
from metastore.adapters.table_facts import DataFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table

_UNTOLD = "untold"
_WITH_VECTORS = 3
"""The first format version with deletion vectors."""


def describe_iceberg_table(table: Table) -> CurrentTable:
    """The table at the snapshot that is current in what pyiceberg has loaded."""
    # The metadata's own method refuses format version 3, which pyiceberg does not write.
    lineage = parse_metadata(json.loads(IcebergBaseModel.model_dump_json(table.metadata)))
    return CurrentTable("iceberg", ".".join(table.name()), table.location(), lineage, lambda: _list_files(table))


def _list_files(table: Table) -> Iterator[DataFile]:
    try:
        tasks = list(table.scan().plan_files())
    except (ValueError, NotImplementedError):  # equality deletes, which it does not read
        yield from _list_all(table)
        return
    targets = _find_vector_targets(table) if table.format_version >= _WITH_VECTORS else {}
    for task in tasks:
        file = task.file
        names = {delete.file_path for delete in task.delete_files}
        applied = sorted(name for name in names if file.file_path in targets.get(name, {file.file_path}))
        yield DataFile(
            file.file_path,
            file.file_size_in_bytes,
            file.record_count,
            file.file_format.name.lower(),
            deletes=",".join(applied) or None,
        )


def _find_vector_targets(table: Table) -> Mapping[str, set[str]]:
    """The data files of which a file holds deletion vectors: pyiceberg takes them for all files of a partition."""
    snapshot = table.current_snapshot()
    manifests = snapshot.manifests(table.io) if snapshot else ()
    targets: dict[str, set[str]] = defaultdict(set)
    for manifest in manifests:
        if manifest.content == ManifestContent.DELETES:
            for vectors, target in _read_vectors(table.io, manifest):
                targets[vectors].add(target)
    return targets


def _read_vectors(io: FileIO, manifest: ManifestFile) -> Iterator[tuple[str, str]]:
    """The file of each deletion vector of a manifest, and the data file that it is of."""
    target = [field.name for field in DATA_FILE_TYPE[_WITH_VECTORS].fields].index("referenced_data_file")
    with AvroFile[_ManifestEntry](
        io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[_WITH_VECTORS],
        read_types={-1: _ManifestEntry, 2: ManifestDataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as entries:
        for entry in entries:
            file = entry.data_file
            if entry.status != ManifestEntryStatus.DELETED and file[target] is not None:
                yield file.file_path, file[target]


def _list_all(table: Table) -> Iterator[DataFile]:
    """The data files alone: which of them have deletes is not told."""
    files = table.inspect.data_files()
    names = ("file_path", "file_size_in_bytes", "record_count", "file_format")
    for path, size, rows, kind in zip(*(files[name].to_pylist() for name in names), strict=True):
        yield DataFile(path, size, rows, str(kind).lower(), deletes=_UNTOLD)
