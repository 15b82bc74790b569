"""The snapshot of a table that is a directory: the listing of its files identifies it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore.adapters.descriptors import describe_format
from metastore.adapters.lineage import Lineage
from metastore.errors import MetastoreError
from metastore.reading.parquet_listing import list_parquet_files
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.format.data_files import DataFile
    from metastore.reading.discovery import Discovery


_LOG = get_logger(__name__)


def read_directory_lineage(directory: Discovery) -> Lineage | None:
    """Read the listing of a directory as the table's only snapshot; None if the listing cannot decide it.

    A table of a catalog may have other partitions than the folders in its directory. If the listing is the analyzed
    one, so is the snapshot; if it is another, the snapshot is unknown.
    """
    manifest = directory.manifest
    files = _list_files(directory)
    if manifest is None or files is None:
        return None
    current = _name_snapshot(manifest.table.format, files)
    analyzed = {snapshot.id for snapshot in manifest.snapshots}
    if current not in analyzed and not _shows_change(directory, files):
        return None
    return Lineage(
        uuid=manifest.table.uuid, current=current, parents={}, log=(), files={current: len(files)}, listed=files
    )


def _list_files(directory: Discovery) -> tuple[DataFile, ...] | None:
    try:
        return list_parquet_files(directory.location, by_path=directory.is_named_by_path)
    except MetastoreError as error:
        _LOG.info("whether the statistics of %s are current is unknown: %s", directory.location, error)
        return None


def _name_snapshot(table_format: str, files: Sequence[DataFile]) -> str:
    name_snapshot = describe_format(table_format).name_snapshot
    if name_snapshot is None:
        raise ValueError(f"a listing is no snapshot of {table_format}")
    return name_snapshot(files)


def _shows_change(directory: Discovery, files: Sequence[DataFile]) -> bool:
    """Return whether a listing that differs from the analyzed one proves that the table has changed."""
    if not files:
        return not directory.has_moved
    has_folders = any("/" in file.path for file in files)
    return directory.is_named_by_path or not has_folders
