"""The files of a directory of Parquet files, without Spark."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from metastore.adapters.table_facts import DataFile
from metastore.errors import AccessDenied, UnsupportedTable
from metastore.store.location import local_path

if TYPE_CHECKING:
    from collections.abc import Iterator

_MILLISECOND = 1_000_000
_LISTED = ("_metadata", "_common_metadata")
"""How hidden names begin that Spark lists: folders of such a name are looked into."""
_NOWHERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}

Identity = tuple[int, int]


def list_parquet_files(location: str, *, by_path: bool = True) -> tuple[DataFile, ...] | None:
    """The data files that Spark reads of a local folder; None where the location is none that can be listed.

    Those are the files that lie in the folder itself, or, where it has partitions, those of the partitions. Of a
    table of a catalog, which may say itself where its partitions are, all are told where these rules find none.

    Raises:
        AccessDenied: A folder or file below cannot be looked at.
        UnsupportedTable: Spark refuses a table that is read by its path: its folders are partitioned in different ways.
    """
    root = local_path(location)
    if root is None or not Path(root).is_dir():
        return None
    try:
        listed = _Listing.of_folder(str(root))
    except OSError as error:
        raise AccessDenied(location, f"{error.filename}: {error.strerror}") from error
    conflict = listed.find_conflict()
    if conflict and by_path:
        hint = "Move what does not belong to the table elsewhere, or name one of the folders below."
        raise UnsupportedTable(location, f"as Spark, the data files were looked for in partitions, {conflict}", hint)
    found = () if conflict else listed.files()
    return found if found or by_path else listed.files(everywhere=True)


@dataclass(frozen=True)
class _Listing:
    """What lies below a folder.

    Attributes:
        folders: Those with data files, empty ones included: their names below the root, and the files.
        loops: Links to a folder that they lie in, which Spark follows some forty times.
    """

    folders: dict[tuple[str, ...], list[DataFile]] = field(default_factory=dict)
    loops: list[str] = field(default_factory=list)

    @classmethod
    def of_folder(cls, root: str) -> _Listing:
        """Look everywhere below a folder."""
        found = cls()
        found._add(root, (), ())
        return found

    def find_conflict(self) -> str | None:
        """Why Spark does not take the folders for partitions of one table, if it does not."""
        layouts = {_read_partition(names): "/".join(names) for names in self.folders}
        partitioned = next((one for one in layouts if one[0]), None)
        if partitioned is None:
            return None
        if self.loops:
            return f"but {self.loops[0]} is a link to a folder that it lies in"
        columns, base = partitioned
        other = next((one for one in layouts if one[1] != base or (one[0] and one[0] != columns)), None)
        if other is None:
            return None
        return f"but they lie in {layouts[partitioned]} as well as in {layouts[other] or 'the folder itself'}"

    def files(self, *, everywhere: bool = False) -> tuple[DataFile, ...]:
        """The data files that have bytes: of the partitions, or of the root where there are none."""
        partitions = [names for names in self.folders if _read_partition(names)[0]]
        wanted = self.folders if everywhere else partitions or [names for names in self.folders if not names]
        return tuple(file for names in wanted for file in self.folders[names] if file.size)

    def _add(self, folder: str, names: tuple[str, ...], above: tuple[Identity, ...]) -> None:
        about = Path(folder).stat()
        identity = (about.st_dev, about.st_ino)
        if identity in above:
            self.loops.append(folder)
            return
        for name, status in _scan(folder):
            if stat.S_ISDIR(status.st_mode):
                self._add(f"{folder}/{name}", (*names, name), (*above, identity))
            elif not _is_hidden(name):
                modified = status.st_mtime_ns // _MILLISECOND
                file = DataFile("/".join((*names, name)), status.st_size, None, "parquet", modified=modified)
                self.folders.setdefault(names, []).append(file)


def _scan(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """What lies in a folder, where links lead to; links to nowhere and what is deleted meanwhile are left out."""
    with os.scandir(folder) as found:
        listed = (one for one in found if not _is_hidden(one.name) or one.name.startswith(_LISTED))
        entries = sorted(listed, key=lambda one: one.name)
    for entry in entries:
        try:
            status = entry.stat()
        except OSError as error:
            if error.errno not in _NOWHERE:
                raise
        else:
            yield entry.name, status


def _read_partition(names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The partition columns of a folder, and the folder below which they begin: itself where there are none."""
    columns: list[str] = []
    for place in range(len(names), 0, -1):
        column, equals, _ = names[place - 1].partition("=")
        if equals:
            columns.insert(0, unquote(column).lower())
        elif columns:
            return tuple(columns), names[:place]
    return tuple(columns), () if columns else names


def _is_hidden(name: str) -> bool:
    # A folder of a partition may begin with an underscore.
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")
