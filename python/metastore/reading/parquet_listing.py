"""The files of a directory of Parquet files, without Spark."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from metastore.errors import AccessDenied, UnsupportedTable
from metastore.format.data_files import DataFile
from metastore.store.location import local_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NANOSECONDS_A_MILLISECOND = 1_000_000
_VISIBLE_PREFIXES = ("_metadata", "_common_metadata")
"""Prefixes of hidden names that Spark does not ignore: it lists folders with such names."""
_NO_TARGET = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}

FolderNames = tuple[str, ...]
"""A folder, as the names of the folders from the root to it."""
Identity = tuple[int, int]
"""Device and inode of a folder."""


def list_parquet_files(location: str, *, by_path: bool = True) -> tuple[DataFile, ...] | None:
    """List the data files of a local folder as Spark reads them.

    These are the files in the folder itself or, if it has partitions, those of the partitions. The partitions of a
    table in a catalog may lie elsewhere: all files are listed if these rules find no file.

    Returns:
        The files, or None if the location is no local folder.

    Raises:
        AccessDenied: A folder or file below cannot be read.
        UnsupportedTable: Spark refuses a table that is read by its path: its folders are partitioned in different ways.
    """
    root = local_path(location)
    if root is None or not Path(root).is_dir():
        return None
    listing = _read_listing(location, str(root))
    conflict = listing.find_conflict()
    if not by_path:
        files = () if conflict else listing.list_files()
        return files or listing.list_all_files()
    if conflict:
        hint = "Move what does not belong to the table elsewhere, or name one of the folders below."
        raise UnsupportedTable(location, f"as Spark, the data files were looked for in partitions, {conflict}", hint)
    return listing.list_files()


def _read_listing(location: str, root: str) -> _Listing:
    listing = _Listing()
    try:
        listing.add_folder(root)
    except OSError as error:
        raise AccessDenied(location, f"{error.filename}: {error.strerror}") from error
    return listing


@dataclass(frozen=True)
class _Partitioning:
    """Partition columns in the path of a folder.

    Attributes:
        columns: The names in lower case, the outermost first.
        base: The folder in which the partitions begin; without partition columns the folder itself.
    """

    columns: tuple[str, ...]
    base: FolderNames

    @classmethod
    def of_folder(cls, names: FolderNames) -> _Partitioning:
        """Read the partition columns of a folder."""
        columns: list[str] = []
        for depth in range(len(names), 0, -1):
            column, equals, _ = names[depth - 1].partition("=")
            if equals:
                columns.insert(0, unquote(column).lower())
            elif columns:
                return cls(tuple(columns), names[:depth])
        return cls(tuple(columns), () if columns else names)

    def fits(self, partitions: _Partitioning) -> bool:
        """Return whether a folder can be in a table with these partitions."""
        return self.base == partitions.base and self.columns in ((), partitions.columns)


@dataclass(frozen=True)
class _Listing:
    """Data files below a folder.

    Attributes:
        folders: The data files of each folder that has any, empty files included.
        loops: Links to a folder above them, which Spark follows some forty times.
    """

    folders: dict[FolderNames, list[DataFile]] = field(default_factory=dict)
    loops: list[str] = field(default_factory=list)

    def add_folder(self, folder: str, names: FolderNames = (), parents: tuple[Identity, ...] = ()) -> None:
        """Add the data files of a folder and of all folders below it."""
        status = Path(folder).stat()
        identity = (status.st_dev, status.st_ino)
        if identity in parents:
            self.loops.append(folder)
            return
        for name, entry in _scan_folder(folder):
            if stat.S_ISDIR(entry.st_mode):
                self.add_folder(f"{folder}/{name}", (*names, name), (*parents, identity))
            elif not _is_hidden(name):
                self.folders.setdefault(names, []).append(_make_data_file((*names, name), entry))

    def find_conflict(self) -> str | None:
        """Return the reason why Spark refuses the folders as partitions of one table, or None."""
        partitions = self._list_partitions()
        if not partitions:
            return None
        if self.loops:
            return f"but {self.loops[0]} is a link to a folder that it lies in"
        folders = {_Partitioning.of_folder(names): "/".join(names) for names in self.folders}
        first = _Partitioning.of_folder(partitions[0])
        for partitioning, folder in folders.items():
            if not partitioning.fits(first):
                return f"but they lie in {folders[first]} as well as in {folder or 'the folder itself'}"
        return None

    def list_files(self) -> tuple[DataFile, ...]:
        """Return the data files of the partitions, or of the root if there are no partitions."""
        return self._select_files(self._list_partitions() or [()])

    def list_all_files(self) -> tuple[DataFile, ...]:
        """Return the data files of all folders."""
        return self._select_files(self.folders)

    def _list_partitions(self) -> list[FolderNames]:
        """Return the folders in partitions that have data files."""
        return [names for names in self.folders if _Partitioning.of_folder(names).columns]

    def _select_files(self, folders: Iterable[FolderNames]) -> tuple[DataFile, ...]:
        """Return the files in these folders that are not empty."""
        files = chain.from_iterable(self.folders.get(names, ()) for names in folders)
        return tuple(file for file in files if file.size)


def _make_data_file(names: FolderNames, status: os.stat_result) -> DataFile:
    return DataFile(
        path="/".join(names),
        size=status.st_size,
        rows=None,
        format="parquet",
        modified=status.st_mtime_ns // _NANOSECONDS_A_MILLISECOND,
    )


def _scan_folder(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """List a folder by name and follow links; those without a target and deleted files are left out."""
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        if _is_hidden(entry.name) and not entry.name.startswith(_VISIBLE_PREFIXES):
            continue
        try:
            status = entry.stat()
        except OSError as error:
            if error.errno not in _NO_TARGET:
                raise
        else:
            yield entry.name, status


def _is_hidden(name: str) -> bool:
    # The name of a partition column may begin with an underscore.
    is_internal = name.startswith("_") and "=" not in name
    return is_internal or name.startswith(".") or name.endswith("._COPYING_")
