"""Tables that a row-level command changes, and whose former rows can be restored."""

from __future__ import annotations

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
from commands.states import NAMES, DeltaFiles, IcebergFiles, Rows, sum_rows
from planner.plans import conf

if TYPE_CHECKING:
    from collections.abc import Callable

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
        touched: the data files that it removed (None), or in which it marked rows, with the positions marked by then.
    """

    error: str
    rows: Rows
    touched: frozenset[tuple[str, frozenset[int] | None]]


def _describe(failure: Exception) -> str:
    """The class of an error, or of its first cause in Java, and the beginning of its text, which names no files yet."""
    if isinstance(failure, Py4JJavaError):
        cause = failure.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        return str(cause.toString())[:120]
    return type(failure).__name__ + ": " + str(failure).strip().split("\n", 1)[0][:60]


def _remove(file: dict[str, Any]) -> dict[str, Any]:
    """The action that ends a data file."""
    compared_fields = ("path", "partitionValues", "size", "deletionVector")
    described = {key: file[key] for key in compared_fields if key in file}
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
        spread = self.spark.sql(rows).repartition(files, "id")
        if self.kind.format == "iceberg":
            spread.writeTo(self.name).option("distribution-mode", "none").append()
        else:
            spread.write.format("delta").mode("append").saveAsTable(self.name)

    def analyze(self) -> None:
        metastore.analyze(self.spark, self.name, progress=False)

    def drop(self) -> None:
        self.spark.sql(f"DROP TABLE IF EXISTS {self.name}")

    @cached_property
    def files(self) -> IcebergFiles | DeltaFiles:
        """The files of the table, read without Spark."""
        if self.kind.format == "iceberg":
            warehouse = self.spark.conf.get("spark.sql.catalog.ice.warehouse")
            return IcebergFiles(Path(warehouse, *self.name.split(".")[1:]))
        location = self.spark.sql(f"DESCRIBE DETAIL {self.name}").first().location
        return DeltaFiles(Path(location.removeprefix("file:")))

    def version(self) -> int:
        """The snapshot, or the version, that is current."""
        return self.files.version()

    def restore(self, version: int) -> None:
        """Makes a former version current: the same files."""
        if isinstance(self.files, DeltaFiles):
            _restore_delta(self.files, version)
        else:
            self.spark.sql(f"CALL ice.system.set_current_snapshot('{self.name.removeprefix('ice.')}', {version})")

    def run(self, command: Callable[[str], Any], settings: dict[str, str]) -> Change:
        """Runs a command under settings and returns its outcome."""
        before, error = self.files.state(), ""
        with conf(self.spark, **settings, spark__metastore__history__enabled="true"):
            try:
                command(self.name)
            except Exception as failure:  # noqa: BLE001 - any error is to be the same one
                error = _describe(failure)
            # The history notes a scan later, if its setting is still on.
            self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        after = self.files.state()
        return Change(error, after.rows, before.touched(after))

    def rows_of_spark(self) -> Rows:
        """The rows that Spark reads without us."""
        with conf(self.spark, **WITHOUT_US):
            return sum_rows(self.spark.table(self.name).select(*NAMES).collect())

    def scans(self, since: int = 0) -> list[tuple[int, int]]:
        """Files read and files there were, for each scan of the target that the history has noted.

        Args:
            since: leaves out queries that ended before it, in milliseconds since 1970.
        """
        short = self.name.rsplit(".", 1)[-1]
        condition = f"table LIKE '%{short}%' AND at >= timestamp_millis({since})"
        history = f"SELECT files_read, files_total FROM metastore.history() WHERE {condition}"
        try:
            return [(row.files_read, row.files_total) for row in self.spark.sql(history).collect()]
        except AnalysisException:  # nothing was noted yet
            return []


def _restore_delta(files: DeltaFiles, version: int) -> None:
    """Writes the commit itself: RESTORE takes ten times as long as the command before it."""
    now, former = files.live(files.version()), files.live(version)
    removed = [_remove(file) for path, file in now.items() if former.get(path) != file]
    added = [{"add": file} for path, file in former.items() if now.get(path) != file]
    if removed or added:
        files.commit(removed + added, version)
