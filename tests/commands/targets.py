"""Tables that a row-level command changes, and whose former rows can be restored."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

import lakes
import metastore
from planner.plans import conf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

COLUMNS = "id BIGINT, code INT, s STRING, x DOUBLE, day DATE"
WITHOUT_US = {"spark__metastore__enabled": "false"}
WITH_KEYS = {"spark__metastore__pruning__rowLevel": "all"}


@dataclass(frozen=True)
class Kind:
    """A kind of table: its format, how it rewrites rows, and its properties."""

    name: str
    format: str
    properties: dict[str, str]


def _iceberg(mode: str, version: int) -> dict[str, str]:
    modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    return {**modes, "format-version": str(version), "write.metadata.metrics.default": "none"}


def _delta(vectors: str) -> dict[str, str]:
    return {"delta.enableDeletionVectors": vectors, "delta.dataSkippingNumIndexedCols": "0"}


KINDS = (
    Kind("copy-on-write", "iceberg", _iceberg("copy-on-write", 2)),
    Kind("merge-on-read", "iceberg", _iceberg("merge-on-read", 2)),
    Kind("merge-on-read-v3", "iceberg", _iceberg("merge-on-read", 3)),
    Kind("delta", "delta", _delta("false")),
    Kind("delta-vectors", "delta", _delta("true")),
)
"""The kinds whose commands are planned in different ways. Their formats have no statistics of their own."""


def parameters(*often: str) -> list[Any]:
    """The kinds of the formats under test as parameters of a test; those not named run in the campaign."""
    return [
        pytest.param(kind, id=kind.name, marks=() if kind.name in often else pytest.mark.campaign)
        for kind in KINDS
        if kind.format in lakes.FORMATS
    ]


@dataclass(frozen=True)
class Change:
    """The outcome of one command.

    Attributes:
        error: the class of its error, if it failed.
        rows: number of rows after it, and the sum of their hashes.
        touched: the data files that it removed or marked rows in.
        read: files read and files there were, for each scan that the history notes of the target.
    """

    error: str
    rows: tuple[int, int]
    touched: frozenset[Any]
    read: tuple[tuple[int, int], ...]


def _describe(failure: Exception) -> str:
    """The class of an error, or of its first cause in Java, and the beginning of its text, which names no files yet."""
    if isinstance(failure, Py4JJavaError):
        cause = failure.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        return str(cause.toString())[:120]
    return type(failure).__name__ + ": " + str(failure).strip().split("\n", 1)[0][:60]


def _live_files(commits: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """The `add` action of each data file that is live after the commits of a Delta table, by path."""
    live: dict[str, dict[str, Any]] = {}
    for commit in commits:
        actions = [json.loads(line) for line in commit.read_text("utf-8").splitlines()]
        for removed in (action["remove"] for action in actions if "remove" in action):
            live.pop(removed["path"], None)
        live |= {action["add"]["path"]: action["add"] for action in actions if "add" in action}
    return live


def _remove(file: dict[str, Any]) -> dict[str, Any]:
    """The action that ends a data file."""
    kept = ("path", "partitionValues", "size", "deletionVector")
    described = {key: file[key] for key in kept if key in file}
    now = int(time.time() * 1000)
    return {"remove": {**described, "deletionTimestamp": now, "dataChange": True, "extendedFileMetadata": True}}


class Target:
    """A table of one kind in a Spark session."""

    def __init__(self, spark: SparkSession, kind: Kind, name: str) -> None:
        self.spark, self.kind = spark, kind
        self.name = f"ice.db.{name}" if kind.format == "iceberg" else name
        texts = ", ".join(f"'{key}' = '{value}'" for key, value in kind.properties.items())
        spark.sql(f"CREATE TABLE {self.name} ({COLUMNS}) USING {kind.format} TBLPROPERTIES ({texts})")

    def append(self, rows: str, files: int) -> None:
        """Appends the rows of a query, spread over files by the hash of their `id`."""
        made = self.spark.sql(rows).repartition(files, "id")
        if self.kind.format == "iceberg":
            made.writeTo(self.name).option("distribution-mode", "none").append()
        else:
            made.write.format("delta").mode("append").saveAsTable(self.name)

    def analyze(self) -> None:
        metastore.analyze(self.spark, self.name, progress=False)

    def drop(self) -> None:
        self.spark.sql(f"DROP TABLE IF EXISTS {self.name}")

    def version(self) -> int:
        """The snapshot, or the version, that is current."""
        if self.kind.format == "iceberg":
            refs = self.spark.sql(f"SELECT snapshot_id FROM {self.name}.refs WHERE name = 'main'")
            return int(refs.first()[0])
        return int(self._commits()[-1].stem)

    def restore(self, version: int) -> None:
        """Makes a former version current: the same files."""
        if self.kind.format == "iceberg":
            self.spark.sql(f"CALL ice.system.set_current_snapshot('{self.name.removeprefix('ice.')}', {version})")
        else:
            self._restore_delta(version)

    def _restore_delta(self, version: int) -> None:
        """Writes the commit itself: RESTORE takes ten times as long as the command before it."""
        commits = self._commits()
        now, former = _live_files(commits), _live_files(commits[: version + 1])
        removed = [_remove(file) for path, file in now.items() if former.get(path) != file]
        added = [{"add": file} for path, file in former.items() if now.get(path) != file]
        lines = [json.dumps(action) for action in removed + added]
        following = commits[-1].with_name(f"{len(commits):020}.json")
        following.write_text("\n".join(lines) + "\n", "utf-8")

    @cached_property
    def _log(self) -> Path:
        location = self.spark.sql(f"DESCRIBE DETAIL {self.name}").first().location
        return Path(location.removeprefix("file:")) / "_delta_log"

    def _commits(self) -> list[Path]:
        return sorted(self._log.glob("*.json"))

    def run(self, command: Callable[[str], Any], settings: dict[str, str]) -> Change:
        """Runs a command under settings, and tells what it did."""
        before, version = self._files(), self.version()
        error = ""
        with conf(self.spark, **settings, spark__metastore__history__enabled="true"):
            noted = [] if settings is WITHOUT_US else self._scans()
            try:
                command(self.name)
            except Exception as failure:  # noqa: BLE001 - any error is to be the same one
                error = _describe(failure)
            read = [] if settings is WITHOUT_US else self._scans()[len(noted) :]
        with conf(self.spark, **WITHOUT_US):
            count, total = self.spark.sql(
                f"SELECT count(*), coalesce(sum(xxhash64(*) % 1000003), 0) FROM {self.name}"
            ).first()
        touched = before - self._files() if self.version() != version else frozenset()
        return Change(error, (count, int(total)), touched, tuple(read))

    def _files(self) -> frozenset[Any]:
        """The live data files, each with what says which of its rows are deleted."""
        with conf(self.spark, **WITHOUT_US):
            if self.kind.format == "iceberg":
                return self._iceberg_files()
            return self._delta_files()

    def _iceberg_files(self) -> frozenset[Any]:
        live = self.spark.sql(f"SELECT file_path FROM {self.name}.data_files").collect()
        deleted: dict[str, set[int]] = {}
        if self.kind.name != "copy-on-write":
            for row in self.spark.sql(f"SELECT file_path, pos FROM {self.name}.position_deletes").collect():
                deleted.setdefault(row.file_path, set()).add(row.pos)
        return frozenset((row.file_path, frozenset(deleted.get(row.file_path, ()))) for row in live)

    def _delta_files(self) -> frozenset[Any]:
        live = _live_files(self._commits()).values()
        return frozenset((file["path"], (file.get("deletionVector") or {}).get("cardinality", 0)) for file in live)

    def _scans(self) -> list[tuple[int, int]]:
        """The scans of the target that the history has noted."""
        try:
            rows = self.spark.sql("SELECT * FROM metastore.history()").collect()
        except AnalysisException:  # nothing was noted yet
            return []
        short = self.name.rsplit(".", 1)[-1]
        return [(row.files_read, row.files_total) for row in rows if short in row.table]
