"""Opens data files in tasks: on the local disk, and on object stores whose credentials the driver has found."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from metastore.store.credentials import Credentials, open_file_system
from metastore.store.location import local_path, needs_hadoop, split_remote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyarrow import NativeFile
    from pyarrow.fs import FileSystem


@dataclass(frozen=True)
class DataFileAccess:
    """Access of Python to the data files of a table.

    Attributes:
        has_local_paths: Whether paths without a scheme are on the local disk.
        prefixes: The credentials for the locations that Python opens, by the beginning of their URLs: a bucket or
            container such as `s3://lake`, or a folder such as `s3://lake/db/t` with keys of its own.
    """

    has_local_paths: bool = True
    prefixes: Mapping[str, Credentials] = field(default_factory=dict)

    def renew_keys(self) -> float:
        """Renew aging keys, and return when the first key ends, in seconds since 1970; infinite if none does."""
        ends = [credentials.renewed().expires for credentials in self.prefixes.values()]
        return min(ends, default=math.inf)

    def reaches(self, location: str) -> bool:
        """Return whether Python opens a data file, or only Spark does."""
        if location.startswith("/"):
            return self.has_local_paths
        if find_bucket(location) is None:
            return local_path(location) is not None
        return self._find_prefix(location) != ""

    def open(self, location: str) -> str | NativeFile:
        """Return a data file in a form that pyarrow reads: the path of a local file, or an open remote file.

        Raises:
            OSError: The object store does not give the file.
        """
        path = local_path(location)
        if path is not None:
            return str(path)
        system, key = self._open_location(location)
        return system.open_input_file(key)

    def read_version(self, location: str) -> tuple[int, int]:
        """Read the size of a data file and the time of its last change, in milliseconds since 1970.

        Raises:
            OSError: There is no such file, or the object store does not answer.
        """
        path = local_path(location)
        if path is not None:
            state = Path(path).stat()
            return state.st_size, state.st_mtime_ns // 1_000_000
        system, key = self._open_location(location)
        info = system.get_file_info(key)
        if info.mtime_ns is None:
            raise FileNotFoundError(location)
        return info.size, info.mtime_ns // 1_000_000

    def _open_location(self, location: str) -> tuple[FileSystem, str]:
        """Open the file system of a location; also return its path there."""
        return open_file_system(location, self.prefixes[self._find_prefix(location)])

    def _find_prefix(self, location: str) -> str:
        """Find the longest prefix of a location on an object store; empty if there is none."""
        url = f"{name_prefix(location)}/"
        prefixes = [prefix for prefix in self.prefixes if url.startswith(f"{prefix}/")]
        return max(prefixes, key=len, default="")


LOCAL_FILES = DataFileAccess()
"""Access to the files of the local disk."""


def name_prefix(location: str) -> str:
    """Write a location on an object store as `DataFileAccess` writes its prefixes."""
    bucket, key = split_remote(location)
    return f"{bucket}/{key}".rstrip("/")


def find_bucket(location: str) -> str | None:
    """Return the URL of the bucket or container of a location, or None if it is on no object store."""
    if local_path(location) is not None or needs_hadoop(location):
        return None
    bucket, _ = split_remote(location)
    return bucket
