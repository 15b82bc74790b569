"""Names of tables at a location, as statements and commands write them."""

from __future__ import annotations

import fnmatch
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from metastore.contract import formats_with, property_of_formats

if TYPE_CHECKING:
    from collections.abc import Sequence

_FORMS = "parquet.`{0}`, delta.`{0}` or hudi.`{0}`, an Iceberg table by the name in its catalog"
_UNKNOWN = "<its name>"
LOG_FOLDERS = property_of_formats("log_folder")
_METADATA_FILES = property_of_formats("metadata_files")
_DIRECTORIES = formats_with("directory")
_NAMED_BY_PATH = formats_with("named_by_path")


def is_location(text: str) -> bool:
    """Return whether a text is a path or URI and not the name of a table."""
    if "`" in text:
        return False
    return "/" in text or text.startswith(".")


def name_in_statements(table: str) -> str:
    """Return the name of a table in SQL: format and path of a local folder, or `<its name>` where SQL cannot name it.

    Example:
        >>> name_in_statements("db.sales"), name_in_statements("/nowhere/sales")
        ('db.sales', '<its name>')
    """
    if not is_location(table):
        return table
    return name_folder(table) or _UNKNOWN


def name_in_shell(table: str) -> str:
    """Return the name of a table as an argument of a command."""
    name = name_in_statements(table)
    return name if name == _UNKNOWN else shlex.quote(name)


def phrase_names(location: str) -> str:
    """Return the sentence of a hint that says how statements and commands name a location.

    Example:
        >>> phrase_names("/t")
        'Name it parquet.`/t`, delta.`/t` or hudi.`/t`, an Iceberg table by the name in its catalog.'
    """
    name = name_folder(location)
    if name is not None:
        return f"Name it {shlex.quote(name)}."
    path = _absolute(location)
    table_format = recognize_folder(Path(path))
    if table_format is None:
        return f"Name it {_FORMS.format(path)}."
    title = property_of_formats("title")[table_format]
    return f"It is an {title} table: name it as its catalog does."


def name_folder(location: str) -> str | None:
    """Return format and path of the table in a local folder; None if it is unknown or has no name by its path."""
    path = _absolute(location)
    table_format = recognize_folder(Path(path))
    return f"{table_format}.`{path}`" if table_format in _NAMED_BY_PATH else None


def recognize_folder(path: Path) -> str | None:
    """Return the format of the table in a local folder, by the names of its files; None if it is unknown."""
    try:
        names = sorted(entry.name for entry in path.iterdir())
        return _recognize_by_metadata(path, names) or _recognize_by_data_files(path, names)
    except OSError:
        return None


def _recognize_by_metadata(path: Path, names: Sequence[str]) -> str | None:
    # Delta tables may have Iceberg's metadata, too.
    for table_format, log_folder in LOG_FOLDERS.items():
        if log_folder in names:
            return table_format
    for table_format, pattern in _METADATA_FILES.items():
        if any(path.glob(pattern)):
            return table_format
    return None


def _recognize_by_data_files(path: Path, names: Sequence[str]) -> str | None:
    data_names = [name for name in names if not name.startswith((".", "_"))]
    for table_format in _DIRECTORIES:
        if fnmatch.filter(data_names, f"*.{table_format}"):
            return table_format
    partitions = fnmatch.filter(data_names, "*=*")
    return recognize_folder(path / partitions[0]) if partitions else None


def _absolute(location: str) -> str:
    path = location.removeprefix("file://").removeprefix("file:")
    if "://" in path:
        return location
    return os.path.normpath(Path(path).absolute())
