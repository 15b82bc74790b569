"""Data files whose format cannot be analyzed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from metastore.adapters.descriptors import DIRECTORIES, FORMAT_NAMES, describe_format
from metastore.path_names import LOG_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from metastore.store.folder import Folder


_VISIBLE = re.compile(r"[^._]")
_PARTITION = re.compile(r"[^.=]*=[^.]*")
_OTHER_FILES = {"orc", "csv", "tsv", "json", "jsonl", "avro", "xml", "txt", "arrow", "feather"}


def describe_other_files(folder: Folder) -> str | None:
    """The files of a folder whose format cannot be analyzed, as a sentence; None if it has no such files."""
    kinds = _find_other_files(folder)
    if not kinds:
        return None
    listed = ", ".join(sorted(kinds)).upper()
    *titles, last = (describe_format(name).title for name in FORMAT_NAMES if name not in DIRECTORIES)
    return f"it holds {listed} files, not an {', '.join(titles)} or {last} table or Parquet files"


def _find_other_files(folder: Folder) -> set[str]:
    """The extensions of files of other formats, in a folder or in its first partition."""
    names = folder.names()
    visible = list(filter(_VISIBLE.match, names))
    extensions = _list_extensions(visible)
    if not extensions.isdisjoint(DIRECTORIES) or not set(names).isdisjoint(LOG_FOLDERS.values()):
        return set()
    other = extensions & _OTHER_FILES
    partitions = list(filter(_PARTITION.fullmatch, visible))
    if other or not partitions:
        return other
    return _find_other_files(folder / partitions[0])


def _list_extensions(names: Iterable[str]) -> set[str]:
    extensions: set[str] = set()
    for name in names:
        if "=" not in name:
            extensions.update(name.lower().split(".")[1:])
    return extensions
