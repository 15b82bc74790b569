"""What a table consists of, read from its files alone: asking Spark takes longer than the command before it."""

from __future__ import annotations

import json
import shutil
import struct
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq

from commands import avro, vectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NAMES = ("id", "code", "s", "x", "day")
_MASK = (1 << 64) - 1
_DELETED = 2
"""The status of an entry of an Iceberg manifest whose file is no longer there."""
_DATA, _POSITION_DELETES = 0, 1
"""What a file of an Iceberg manifest contains."""


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


def _local(location: str) -> Path:
    """The path of a file that may be named by a URI."""
    return Path("/" + location.removeprefix("file:").lstrip("/"))


class _Files:
    """Files of one table, each of which is read once: a file that is written never changes."""

    def __init__(self, location: Path) -> None:
        self.location = location
        self._hashes = cache(_hashes)
        self._live_rows = cache(self._rows_without)
        self._states: dict[Any, State] = {}

    def state(self) -> State:
        """The state of the current version."""
        version = self.version()
        if version not in self._states:
            files = self.files()
            rows = [self._live_rows(path, deleted) for path, deleted in files.items()]
            counts, totals = sum(one.count for one in rows), sum(one.total for one in rows)
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
        self._records = cache(avro.read_records)
        self._snapshots = cache(_current_snapshot)
        self._vector = cache(vectors.iceberg_positions)
        self._deletes = cache(_position_deletes)

    def version(self) -> int:
        return self._snapshot["snapshot-id"]

    @property
    def _snapshot(self) -> dict[str, Any]:
        numbers = (int(path.name[1:].split(".", 1)[0]) for path in self.location.glob("metadata/v*.metadata.json"))
        return self._snapshots(self.location / "metadata" / f"v{max(numbers)}.metadata.json")

    def files(self) -> dict[str, frozenset[int]]:
        live = [
            entry["data_file"]
            for manifest in self._records(_local(self._snapshot["manifest-list"]))
            for entry in self._records(_local(manifest["manifest_path"]))
            if entry["status"] != _DELETED
        ]
        deleted: dict[str, frozenset[int]] = {
            str(_local(file["file_path"])): frozenset() for file in live if file["content"] == _DATA
        }
        for file in live:
            if file["content"] != _DATA:
                for path, positions in self._positions(file).items():
                    if path in deleted:
                        deleted[path] |= positions
        return deleted

    def _positions(self, file: dict[str, Any]) -> dict[str, frozenset[int]]:
        assert file["content"] == _POSITION_DELETES, "no command of these writes equality deletes"
        path = _local(file["file_path"])
        if file["file_format"].upper() == "PUFFIN":
            positions = self._vector(path, file["content_offset"], file["content_size_in_bytes"])
            return {str(_local(file["referenced_data_file"])): positions}
        return self._deletes(path)


def _current_snapshot(metadata: Path) -> dict[str, Any]:
    table = json.loads(metadata.read_text("utf-8"))
    return next(one for one in table["snapshots"] if one["snapshot-id"] == table["current-snapshot-id"])


def _position_deletes(file: Path) -> dict[str, frozenset[int]]:
    table = pq.ParquetFile(file).read(["file_path", "pos"], use_threads=False)
    deleted: dict[str, set[int]] = {}
    for path, position in zip(table["file_path"].to_pylist(), table["pos"].to_pylist(), strict=True):
        deleted.setdefault(str(_local(path)), set()).add(position)
    return {path: frozenset(positions) for path, positions in deleted.items()}


class DeltaFiles(_Files):
    """The files of a Delta table, by its log from the first commit on."""

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
        positions = vectors.delta_positions(self.location, vector)
        assert len(positions) == vector["cardinality"]
        return positions

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
