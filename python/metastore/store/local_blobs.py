"""Stores on a local disk: plain files in plain folders, and nothing else.

Everybody with write access to a table's folder can put anything into its store: a FIFO, on which opening waits for
ever, or a symbolic link that leads to the store of another table. So the folder of a store, the folders in it and their
entries are opened one below the other, and links are never followed; other entries than plain files are not read. Only
the path to the store may lead through links: `/data -> /mnt/x` is a decision of the machine's administrator.
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
    """The answer to a put-if-absent; only CREATED is certain."""

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
    """A blob in a listing: its bytes, and the time of its last write by the store's clock."""

    size: int
    modified: datetime


class LocalBlobs:
    """Blobs in a folder of a local disk, see `metastore.store.obstore_blobs.Blobs`; none if there is no such folder."""

    def __init__(self, uri: str, folder: Path) -> None:
        self._uri = uri
        self._root = folder

    def create_folder(self) -> None:
        """Make the folder and its parents unless they exist."""
        with self._raise_as(StoreNotWritable):
            if not os.path.lexists(self._root):
                self._root.mkdir(parents=True, exist_ok=True)
            with self._open_root():
                pass

    def list_folder(self, folder: str) -> dict[str, BlobEntry]:
        """See `Blobs`; other entries than plain files are left out."""
        entries = {}
        with self._raise_as(StoreNotReadable):
            for name, status in self._list_statuses(folder):
                if stat.S_ISREG(status.st_mode):
                    modified = datetime.fromtimestamp(status.st_mtime, timezone.utc)
                    entries[name] = BlobEntry(status.st_size, modified)
        return entries

    def list_odd_entries(self, folder: str) -> dict[str, str]:
        """List the entries of a folder that are not plain files, with their kinds."""
        kinds = {}
        with self._raise_as(StoreNotReadable):
            for name, status in self._list_statuses(folder):
                if not stat.S_ISREG(status.st_mode):
                    kinds[name] = _describe_kind(status)
        return kinds

    def get(self, path: str, most: int) -> bytes | None:
        """See `Blobs`; `DamagedObject` if it is not a plain file."""
        with self._raise_as(StoreNotReadable), self._open(path) as (file, size):
            if file is None:
                return None
            if size > most:
                raise DamagedObject(path, f"it has {size} bytes")
            return _read_bytes(file, 0, size)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """See `Blobs`; `DamagedObject` if it is not a plain file."""
        with self._raise_as(StoreNotReadable), self._open(path) as (file, size):
            if file is None:
                return None
            return _read_bytes(file, start, min(length, size - start))

    def size(self, path: str) -> int | None:
        """See `Blobs`; None if it is not a plain file."""
        with self._raise_as(StoreNotReadable), self._open_folder(path) as (folder, name):
            status = _read_status(name, folder)
            if status is None or not stat.S_ISREG(status.st_mode):
                return None
            return status.st_size

    def put(self, path: str, data: bytes) -> None:
        """See `Blobs`."""
        with self._raise_as(StoreNotWritable), self._write_unfinished(path, data) as (folder, unfinished, name):
            os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)

    def create(self, path: str, data: bytes) -> tuple[CreateReply, str]:
        """See `Blobs`."""
        try:
            with self._write_unfinished(path, data) as (folder, unfinished, name):
                os.link(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
        except FileExistsError as error:
            return CreateReply.EXISTS, _describe_error(error)
        except _OddFolderError as error:
            raise StoreNotWritable(self._uri, str(error), _REMOVE) from None
        except PermissionError as error:
            raise StoreNotWritable(self._uri, _describe_error(error)) from error
        except OSError as error:
            return CreateReply.UNKNOWN, _describe_error(error)
        return CreateReply.CREATED, ""

    def delete(self, path: str) -> None:
        """See `Blobs`."""
        with self._raise_as(StoreNotWritable), self._open_folder(path) as (folder, name), suppress(FileNotFoundError):
            if folder is not None:
                os.unlink(name, dir_fd=folder)

    def _list_statuses(self, folder_name: str) -> Iterator[tuple[str, os.stat_result]]:
        """List the name and status of each entry of a folder."""
        with self._open_folder(f"{folder_name}/") as (folder, _):
            if folder is None:
                return
            with os.scandir(folder) as entries:
                for entry in entries:
                    status = _read_status(entry.name, folder)
                    if status is not None:
                        yield entry.name, status

    @contextmanager
    def _open(self, path: str) -> Iterator[tuple[int | None, int]]:
        """Open a file; yield its descriptor, or None if there is no file, and its size."""
        with self._open_folder(path) as (folder, name):
            status = _read_status(name, folder)
            if status is None:
                yield None, 0
                return
            _require_plain_file(path, status)  # before it is opened, because opening a device may have an effect
            file = os.open(name, _READ, dir_fd=folder)
            try:
                status = os.fstat(file)
                _require_plain_file(path, status)
                yield file, status.st_size
            finally:
                os.close(file)

    @contextmanager
    def _write_unfinished(self, path: str, data: bytes) -> Iterator[tuple[int, str, str]]:
        """Write a temporary file; yield its folder and its name, and the name of the path."""
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
        """Open the folder of a path; yield its descriptor, or None if there is no folder, and the name in it."""
        folder_name, _, name = path.rpartition("/")
        with self._open_root() as root:
            if make and root is not None:
                with suppress(FileExistsError):
                    os.mkdir(folder_name, dir_fd=root)
            if _read_status(folder_name, root) is None:
                yield None, name
                return
            with _open_plain_folder(folder_name, root) as folder:
                yield folder, name

    @contextmanager
    def _open_root(self) -> Iterator[int | None]:
        if not os.path.lexists(self._root):
            yield None
            return
        with _open_plain_folder(str(self._root)) as root:
            yield root

    @contextmanager
    def _raise_as(self, kind: type[StoreNotReadable | StoreNotWritable]) -> Iterator[None]:
        """Raise an OSError as `kind`."""
        try:
            yield
        except _OddFolderError as error:
            raise kind(self._uri, str(error), _REMOVE) from None
        except OSError as error:
            raise kind(self._uri, _describe_error(error)) from error


class _OddFolderError(Exception):
    """An entry in the place of a folder that is no plain folder."""


@contextmanager
def _open_plain_folder(path: str, within: int | None = None) -> Iterator[int]:
    status = os.stat(path, dir_fd=within, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        raise _OddFolderError(f"{Path(path).name} is {_describe_kind(status)}")
    folder = os.open(path, _FOLDER, dir_fd=within)
    try:
        yield folder
    finally:
        os.close(folder)


def _read_status(name: str, folder: int | None) -> os.stat_result | None:
    """Read the status of an entry of a folder; None if there is no such entry, or no folder."""
    if folder is None:
        return None
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _require_plain_file(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise DamagedObject(path, f"it is {_describe_kind(status)}")


def _describe_kind(status: os.stat_result) -> str:
    return _KINDS.get(stat.S_IFMT(status.st_mode), "a plain file")


def _read_bytes(file: int, start: int, length: int) -> bytes:
    """Read `length` bytes from a position on, or fewer at the end of the file."""
    parts = []
    while length > 0:
        part = os.pread(file, min(length, _READ_BYTES), start)
        if not part:
            break
        parts.append(part)
        start += len(part)
        length -= len(part)
    return b"".join(parts)  # of a single part this makes no copy


def _describe_error(error: OSError) -> str:
    if error.filename and error.strerror:
        return f"{error.strerror}: {error.filename}"
    return str(error)
