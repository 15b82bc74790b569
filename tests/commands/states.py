"""The state of a table, read from its files alone: a query of Spark would take longer than the command before it."""

from __future__ import annotations

import base64
import json
import shutil
import struct
import uuid
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq
from pyiceberg.avro.file import AvroFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    read_manifest_list,
)
from pyroaring import BitMap64

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NAMES = ("id", "code", "s", "x", "day")
_MASK = (1 << 64) - 1
_VERSION = 3
"""The version of Iceberg's format whose manifests are read: files of older ones lack some of its fields."""
_FIELD_INDEXES = {field.name: index for index, field in enumerate(DATA_FILE_TYPE[_VERSION].fields)}
"""The indexes of fields in an Iceberg data file: pyiceberg has no properties for those of version 3."""
_VECTOR_MAGIC = bytes.fromhex("d1d33964")
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_UUID_CHARACTERS = 20
"""The length of a UUID in Z85."""


class Rows(NamedTuple):
    """A number of rows and the sum of their hashes: equal for the same rows in any order."""

    count: int
    total: int


@dataclass(frozen=True)
class State:
    """The data files of a version with the positions deleted in each, and the rows that are left."""

    files: dict[str, frozenset[int]]
    rows: Rows

    def touched(self, after: State) -> frozenset[tuple[str, frozenset[int] | None]]:
        """The files that are removed afterwards (None) or lost rows, with the positions deleted by then."""
        changed = {path for path, deleted in self.files.items() if after.files.get(path) != deleted}
        return frozenset((path, after.files.get(path)) for path in changed)


def sum_rows(rows: Iterable[Sequence[Any]]) -> Rows:
    """Counts rows whose values have the order of NAMES, and adds their hashes."""
    hashes = [_hash(row) for row in rows]
    return Rows(len(hashes), sum(hashes) & _MASK)


def _hash(row: Sequence[Any]) -> int:
    """A hash for which -0.0 is not 0.0, and each NaN the same."""
    key, code, text, number, day = row
    return hash((key, code, text, None if number is None else struct.pack("<d", number), day)) & _MASK


def _hashes(path: str) -> list[int]:
    table = pq.ParquetFile(path).read(list(NAMES), use_threads=False)
    return [_hash(row) for row in zip(*(table[name].to_pylist() for name in NAMES), strict=True)]


def _vector(file: Path, offset: int) -> frozenset[int]:
    """Reads a deletion vector of Iceberg or Delta: its size, a magic number and a bitmap."""
    data = file.read_bytes()
    (size,) = struct.unpack_from(">I", data, offset)
    start, end = offset + 4, offset + 4 + size
    bitmap = start + len(_VECTOR_MAGIC)
    assert data[start:bitmap] == _VECTOR_MAGIC, file
    return frozenset(BitMap64.deserialize(data[bitmap:end]))


def _local(location: str) -> Path:
    """The path of a file that may be named by a URI."""
    return Path("/" + location.removeprefix("file:").lstrip("/"))


class _Files:
    """Files of one table, each of which is read once: a file that is written never changes."""

    def __init__(self, location: Path) -> None:
        self.location = location
        self._hashes = cache(_hashes)
        self._live_rows = cache(self._rows_without)
        self._vector = cache(_vector)
        self._states: dict[Any, State] = {}

    def state(self) -> State:
        """The state of the current version."""
        version = self.version()
        if version not in self._states:
            files = self.files()
            rows = [self._live_rows(path, deleted) for path, deleted in files.items()]
            counts, totals = sum(row.count for row in rows), sum(row.total for row in rows)
            self._states[version] = State(files, Rows(counts, totals & _MASK))
        return self._states[version]

    def version(self) -> int:
        raise NotImplementedError

    def files(self) -> dict[str, frozenset[int]]:
        raise NotImplementedError

    def _rows_without(self, path: str, deleted: frozenset[int]) -> Rows:
        live = [hashed for position, hashed in enumerate(self._hashes(path)) if position not in deleted]
        return Rows(len(live), sum(live))


class IcebergFiles(_Files):
    """The files of a table of a Hadoop catalog."""

    def __init__(self, location: Path) -> None:
        super().__init__(location)
        self._manifests = cache(_manifest_paths)
        self._live_files = cache(_live_files)
        self._snapshots = cache(_current_snapshot)
        self._deletes = cache(_position_deletes)

    def version(self) -> int:
        return self._snapshot["snapshot-id"]

    @property
    def _snapshot(self) -> dict[str, Any]:
        numbers = (int(path.name[1:].split(".", 1)[0]) for path in self.location.glob("metadata/v*.metadata.json"))
        return self._snapshots(self.location / "metadata" / f"v{max(numbers)}.metadata.json")

    def files(self) -> dict[str, frozenset[int]]:
        manifests = self._manifests(self._snapshot["manifest-list"])
        live = [file for manifest in manifests for file in self._live_files(manifest)]
        deleted: dict[str, frozenset[int]] = {
            str(_local(file.file_path)): frozenset() for file in live if file.content == DataFileContent.DATA
        }
        for file in live:
            if file.content != DataFileContent.DATA:
                for path, positions in self._positions(file).items():
                    if path in deleted:
                        deleted[path] |= positions
        return deleted

    def _positions(self, file: DataFile) -> dict[str, frozenset[int]]:
        assert file.content == DataFileContent.POSITION_DELETES, "no command of these writes equality deletes"
        path = _local(file.file_path)
        if file.file_format == FileFormat.PUFFIN:
            positions = self._vector(path, file[_FIELD_INDEXES["content_offset"]])
            return {str(_local(file[_FIELD_INDEXES["referenced_data_file"]])): positions}
        return self._deletes(path)


def _manifest_paths(manifest_list: str) -> list[str]:
    return [manifest.manifest_path for manifest in read_manifest_list(PyArrowFileIO().new_input(manifest_list))]


def _live_files(manifest: str) -> list[DataFile]:
    """The files of a manifest that are not deleted.

    ManifestFile.fetch_manifest_entry of pyiceberg would leave out the fields of deletion vectors.
    """
    types = {-1: ManifestEntry, 2: DataFile}
    with AvroFile(PyArrowFileIO().new_input(manifest), MANIFEST_ENTRY_SCHEMAS[_VERSION], types) as entries:
        return [entry.data_file for entry in entries if entry.status != ManifestEntryStatus.DELETED]


def _current_snapshot(metadata: Path) -> dict[str, Any]:
    table = json.loads(metadata.read_text("utf-8"))
    return next(snapshot for snapshot in table["snapshots"] if snapshot["snapshot-id"] == table["current-snapshot-id"])


def _position_deletes(file: Path) -> dict[str, frozenset[int]]:
    table = pq.ParquetFile(file).read(["file_path", "pos"], use_threads=False)
    deleted: dict[str, set[int]] = {}
    for path, position in zip(table["file_path"].to_pylist(), table["pos"].to_pylist(), strict=True):
        deleted.setdefault(str(_local(path)), set()).add(position)
    return {path: frozenset(positions) for path, positions in deleted.items()}


class DeltaFiles(_Files):
    """The files of a Delta table, by its log from the first commit on.

    The package deltalake takes 65 ms to open a version and to read its deletion vectors; reading the log takes 1 ms.
    """

    def __init__(self, location: Path) -> None:
        super().__init__(location)
        self._actions = cache(_actions)

    @cached_property
    def _log(self) -> Path:
        return self.location / "_delta_log"

    def _commits(self) -> list[Path]:
        return sorted(self._log.glob("*.json"))

    def version(self) -> int:
        return int(self._commits()[-1].stem)

    def files(self) -> dict[str, frozenset[int]]:
        live = self.live(self.version()).values()
        return {str(self.location / add["path"]): self._deleted(add) for add in live}

    def _deleted(self, add: dict[str, Any]) -> frozenset[int]:
        vector = add.get("deletionVector")
        if vector is None:
            return frozenset()
        assert vector["storageType"] == "u", "no command of these writes a vector into the log"
        positions = self._vector(self._vector_file(vector["pathOrInlineDv"]), vector["offset"])
        assert len(positions) == vector["cardinality"]
        return positions

    def _vector_file(self, text: str) -> Path:
        """The file that is named by a folder and a UUID in Z85."""
        folder, encoded = text[:-_UUID_CHARACTERS], text[-_UUID_CHARACTERS:]
        name = uuid.UUID(bytes=base64.b85decode(encoded.encode().translate(bytes.maketrans(_Z85, _B85))))
        return self.location / folder / f"deletion_vector_{name}.bin"

    def live(self, version: int) -> dict[str, dict[str, Any]]:
        """The `add` action of each data file of a version, by path."""
        live: dict[str, dict[str, Any]] = {}
        for commit in self._commits()[: version + 1]:
            actions = self._actions(commit)
            for removed in (action["remove"] for action in actions if "remove" in action):
                live.pop(removed["path"], None)
            live |= {action["add"]["path"]: action["add"] for action in actions if "add" in action}
        return live

    def commit(self, actions: list[dict[str, Any]], like: int) -> None:
        """Writes a commit of these actions, after which the table is as in a former version.

        The checksum of that version is written again, as each writer does: without one, Delta collects metadata and
        files by several jobs.
        """
        following = self.version() + 1
        commit = self._log / f"{following:020}.json"
        commit.write_text("\n".join(json.dumps(action) for action in actions) + "\n", "utf-8")
        checksum = self._log / f"{like:020}.crc"
        if checksum.exists():
            shutil.copyfile(checksum, self._log / f"{following:020}.crc")


def _actions(commit: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in commit.read_text("utf-8").splitlines()]
