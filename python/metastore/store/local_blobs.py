"""Stores on a local disk: plain files in plain folders, and nothing else.

Whoever can write a table's folder can put anything into its store: a FIFO, on which opening waits for ever, or a
symbolic link that leads to the store of another table. So the folder of a store, the folders in it and what lies in
these are opened one below the other and never followed; what is not a plain file is none of ours. Only the way to the
store may lead through links: `/data -> /mnt/x` is a matter of who set up the machine.
"""

from __future__ import annotations

import enum
import os
import stat
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from metastore.errors import DamagedObject, StoreNotReadable, StoreNotWritable

if TYPE_CHECKING:
    from collections.abc import Iterator


class CreateReply(enum.Enum):
    """An answer to a put-if-absent; only the first one is certain to mean what it says."""

    CREATED = "created"
    EXISTS = "exists"
    UNKNOWN = "unknown"


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_BYTES = 1 << 30
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
_REMOVE = "Remove it: only plain files in plain folders are statistics."


@dataclass(frozen=True)
class BlobEntry:
    """What a listing tells of a blob: its bytes, and when it was last written by the store's clock."""

    size: int
    modified: datetime


class LocalBlobs:
    """Blobs in a folder of a local disk, see `metastore.store.obstore_blobs.Blobs`."""

    def __init__(self, uri: str, folder: Path) -> None:
        """Names a folder; nothing is opened yet."""
        self._uri = uri
        self._root = folder

    def exists(self) -> bool:
        """Whether the folder is there."""
        with self._telling(StoreNotReadable), self._open_root() as root:
            return root is not None

    def create_folder(self) -> None:
        """Makes the folder, and those above it, where they are missing."""
        with self._telling(StoreNotWritable):
            if not os.path.lexists(self._root):
                self._root.mkdir(parents=True, exist_ok=True)
            with self._open_root():
                pass

    def list_folder(self, folder: str) -> dict[str, BlobEntry]:
        """See `Blobs`; what is not a plain file is left out."""
        with self._telling(StoreNotReadable):
            return {name: found for name, found in self._entries(folder) if isinstance(found, BlobEntry)}

    def list_odd_entries(self, folder: str) -> dict[str, str]:
        """What in a folder is not a plain file, by name: what it is."""
        with self._telling(StoreNotReadable):
            return {name: found for name, found in self._entries(folder) if isinstance(found, str)}

    def get(self, path: str, most: int) -> bytes | None:
        """See `Blobs`; `DamagedObject` where it is not a plain file."""
        with self._telling(StoreNotReadable), self._open(path) as (file, size):
            if file is None:
                return None
            if size > most:
                raise DamagedObject(path, f"it has {size} bytes")
            return _bytes(file, 0, size)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """See `Blobs`; `DamagedObject` where it is not a plain file."""
        with self._telling(StoreNotReadable), self._open(path) as (file, size):
            return None if file is None else _bytes(file, start, min(length, size - start))

    def size(self, path: str) -> int | None:
        """See `Blobs`; None where it is not a plain file."""
        with self._telling(StoreNotReadable), self._open_folder(path) as (folder, name):
            found = None if folder is None else _status(name, folder)
            return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else None

    def put(self, path: str, data: bytes) -> None:
        """See `Blobs`."""
        with self._telling(StoreNotWritable), self._written(path, data) as (folder, unfinished, name):
            os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)

    def create(self, path: str, data: bytes) -> tuple[CreateReply, str]:
        """See `Blobs`."""
        try:
            with self._written(path, data) as (folder, unfinished, name):
                os.link(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
        except FileExistsError as error:
            return CreateReply.EXISTS, _reason(error)
        except _OddFolderError as error:
            raise StoreNotWritable(self._uri, str(error), _REMOVE) from None
        except PermissionError as error:
            raise StoreNotWritable(self._uri, _reason(error)) from error
        except OSError as error:
            return CreateReply.UNKNOWN, _reason(error)
        return CreateReply.CREATED, ""

    def delete(self, path: str) -> None:
        """See `Blobs`."""
        with self._telling(StoreNotWritable), self._open_folder(path) as (folder, name), suppress(FileNotFoundError):
            if folder is not None:
                os.unlink(name, dir_fd=folder)

    def _entries(self, below: str) -> Iterator[tuple[str, BlobEntry | str]]:
        with self._open_folder(f"{below}/") as (folder, _):
            if folder is None:
                return
            with os.scandir(folder) as entries:
                for entry in entries:
                    found = _status(entry.name, folder)
                    if found is not None and stat.S_ISREG(found.st_mode):
                        yield entry.name, BlobEntry(found.st_size, datetime.fromtimestamp(found.st_mtime, timezone.utc))
                    elif found is not None:
                        yield entry.name, _kind(found.st_mode)

    @contextmanager
    def _open(self, path: str) -> Iterator[tuple[int | None, int]]:
        """A file and its size, None where there is none."""
        with self._open_folder(path) as (folder, name):
            found = None if folder is None else _status(name, folder)
            if found is None:
                yield None, 0
                return
            if not stat.S_ISREG(found.st_mode):  # asked before it is opened: to open a device may do something
                raise DamagedObject(path, f"it is {_kind(found.st_mode)}")
            file = os.open(name, _READ, dir_fd=folder)
            try:
                found = os.fstat(file)
                if not stat.S_ISREG(found.st_mode):
                    raise DamagedObject(path, f"it is {_kind(found.st_mode)}")
                yield file, found.st_size
            finally:
                os.close(file)

    @contextmanager
    def _written(self, path: str, data: bytes) -> Iterator[tuple[int, str, str]]:
        """A folder, the name of a file there that has the data, and the name that it shall have."""
        with self._open_folder(path, make=True) as (folder, name):
            assert folder is not None  # noqa: S101 - it was made
            unfinished = f".{uuid.uuid4()}.tmp"
            try:
                with os.fdopen(os.open(unfinished, _WRITE, 0o666, dir_fd=folder), "wb") as file:
                    file.write(data)
                yield folder, unfinished, name
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(unfinished, dir_fd=folder)

    @contextmanager
    def _open_folder(self, path: str, *, make: bool = False) -> Iterator[tuple[int | None, str]]:
        """The folder that a path names, None where there is none, and the name there."""
        below, _, name = path.rpartition("/")
        with self._open_root() as root:
            if make and root is not None:
                with suppress(FileExistsError):
                    os.mkdir(below, dir_fd=root)
            if root is None or _status(below, root) is None:
                yield None, name
                return
            with _folder(below, root) as folder:
                yield folder, name

    @contextmanager
    def _open_root(self) -> Iterator[int | None]:
        if not os.path.lexists(self._root):
            yield None
            return
        with _folder(str(self._root)) as root:
            yield root

    @contextmanager
    def _telling(self, kind: type[StoreNotReadable | StoreNotWritable]) -> Iterator[None]:
        """What the disk refuses becomes an error of this kind."""
        try:
            yield
        except _OddFolderError as error:
            raise kind(self._uri, str(error), _REMOVE) from None
        except OSError as error:
            raise kind(self._uri, _reason(error)) from error


class _OddFolderError(Exception):
    """What should be a folder is something else."""


@contextmanager
def _folder(path: str, within: int | None = None) -> Iterator[int]:
    found = os.stat(path, dir_fd=within, follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode):
        raise _OddFolderError(f"{Path(path).name} is {_kind(found.st_mode)}")
    folder = os.open(path, _FOLDER, dir_fd=within)
    try:
        yield folder
    finally:
        os.close(folder)


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "a plain file")


def _bytes(file: int, start: int, length: int) -> bytes:
    parts = []
    while length > 0:
        part = os.pread(file, min(length, _READ_BYTES), start)
        if not part:
            break
        parts.append(part)
        start, length = start + len(part), length - len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _reason(error: OSError) -> str:
    return f"{error.strerror}: {error.filename}" if error.filename and error.strerror else str(error)
