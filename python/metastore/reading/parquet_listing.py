"""The files of a directory of Parquet files, without Spark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from metastore.adapters.table_facts import DataFile
from metastore.store.location import local_path

if TYPE_CHECKING:
    from collections.abc import Iterator

_MILLISECOND = 1_000_000


def list_parquet_files(location: str) -> tuple[DataFile, ...] | None:
    """The data files below a local folder, as Spark lists them; None where the location is none that can be listed."""
    root = local_path(location)
    return tuple(_walk(str(root))) if root is not None and Path(root).is_dir() else None


def _walk(folder: str, below: str = "") -> Iterator[DataFile]:
    with os.scandir(folder) as found:
        entries = sorted((one for one in found if not _is_hidden(one.name)), key=lambda one: one.name)
    for entry in entries:
        if entry.is_dir():
            yield from _walk(entry.path, f"{below}{entry.name}/")
        else:
            about = entry.stat()
            modified = about.st_mtime_ns // _MILLISECOND
            yield DataFile(f"{below}{entry.name}", about.st_size, None, "parquet", modified=modified)


def _is_hidden(name: str) -> bool:
    # A folder of a partition may begin with an underscore.
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")
