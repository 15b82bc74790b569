"""Iceberg tables that pyiceberg has opened."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from metastore.adapters.current_tables import CurrentTable
from metastore.adapters.iceberg_lineage import parse_metadata
from metastore.adapters.table_facts import DataFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table

_UNTOLD = "untold"


def describe_iceberg_table(table: Table) -> CurrentTable:
    """The table at the snapshot that is current in what pyiceberg has loaded."""
    lineage = parse_metadata(json.loads(table.metadata.model_dump_json()))
    return CurrentTable("iceberg", ".".join(table.name()), table.location(), lineage, lambda: _list_files(table))


def _list_files(table: Table) -> Iterator[DataFile]:
    try:
        tasks = list(table.scan().plan_files())
    except (ValueError, NotImplementedError):  # equality deletes, which it does not read
        yield from _list_all(table)
        return
    for task in tasks:
        file = task.file
        deletes = ",".join(sorted(one.file_path for one in task.delete_files)) or None
        yield DataFile(
            file.file_path, file.file_size_in_bytes, file.record_count, file.file_format.name.lower(), deletes=deletes
        )


def _list_all(table: Table) -> Iterator[DataFile]:
    """The data files alone: which of them have deletes is not told."""
    files = table.inspect.data_files()
    names = ("file_path", "file_size_in_bytes", "record_count", "file_format")
    for path, size, rows, kind in zip(*(files[name].to_pylist() for name in names), strict=True):
        yield DataFile(path, size, rows, str(kind).lower(), deletes=_UNTOLD)
