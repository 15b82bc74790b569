"""The newest metadata file of an Iceberg table."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore import jvm_session
from metastore.adapters.identifiers import escape_glob
from metastore.adapters.spark_versions import installed_spark_line
from metastore.errors import UnsupportedTable
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from metastore.adapters.catalog import CatalogEntry


_LOG = get_logger(__name__)
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Metadata:
    """A metadata file.

    Attributes:
        content: Its JSON.
        digest: SHA-256 of its bytes.
        spelled: Its path as the table spells it.
        resolved: The same, where `spelled` has no scheme with that of Hadoop's default file system.
    """

    content: Mapping[str, Any]
    digest: bytes
    spelled: str
    resolved: str

    @property
    def location(self) -> str:
        """The root of the table."""
        return str(self.content["location"]).rstrip("/")

    @property
    def is_local(self) -> bool:
        """Whether paths without a scheme are on the local file system."""
        return self.spelled.startswith("/") and self.resolved.startswith("file:")

    @property
    def snapshot(self) -> int | None:
        """The current snapshot."""
        current = self.content.get("current-snapshot-id")
        return None if current in (None, -1) else int(current)

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON of the current schema."""
        wanted = self.content.get("current-schema-id")
        for schema in self.content.get("schemas", ()):
            if schema["schema-id"] == wanted:
                return dict(schema)
        return dict(self.content["schema"])

    @property
    def snapshot_has_current_schema(self) -> bool:
        """Whether reading the current snapshot by its id shows the current schema."""
        wanted = self.content.get("current-schema-id")
        return any(
            snapshot["snapshot-id"] == self.snapshot and snapshot.get("schema-id", wanted) == wanted
            for snapshot in self.content.get("snapshots", ())
        )

    @property
    def specs(self) -> Mapping[int, Sequence[Mapping[str, Any]]]:
        """JSON of the fields of all partition specs, by id."""
        if "partition-specs" in self.content:
            return {spec["spec-id"]: spec["fields"] for spec in self.content["partition-specs"]}
        return {0: self.content.get("partition-spec", [])}


def read_metadata(spark: SparkSession, entry: CatalogEntry) -> Metadata:
    """Read the metadata file of a table as the catalog has it now."""
    spelled, resolved, raw = _from_jvm(spark, entry) or _from_spark(spark, entry)
    text = gzip.decompress(raw) if raw.startswith(_GZIP) else raw
    return Metadata(json.loads(text), hashlib.sha256(raw).digest(), spelled, resolved)


def _from_jvm(spark: SparkSession, entry: CatalogEntry) -> tuple[str, str, bytes] | None:
    """Path and bytes by what the driver's JVM has loaded: without the two Spark jobs that SQL takes.

    None where there is no such JVM, or what it has loaded is of another make than is known here.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped] # noqa: PLC0415 - it has no types; as below
    from pyspark.errors import PySparkException  # noqa: PLC0415 - not needed to import this module

    try:
        table = jvm_session.read_analyzed_plan(spark, entry.identifier).collectLeaves().head().table().table()
        spelled = table.operations().current().metadataFileLocation()
        stream = table.io().newInputFile(spelled).newStream()
        try:
            raw = bytes(stream.readAllBytes())
        finally:
            stream.close()
        return spelled, jvm_session.qualify_path(spark, spelled) if spelled.startswith("/") else spelled, raw
    except (Py4JError, PySparkException, AttributeError, TypeError) as failure:
        _LOG.debug("the metadata file of %s is looked for by SQL: %s", entry.name, failure)
        return None


def _from_spark(spark: SparkSession, entry: CatalogEntry) -> tuple[str, str, bytes]:
    """The same by SQL and Spark's reader of files."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - not needed to import this module

    try:
        log = spark.sql(f"SELECT file FROM {entry.identifier}.metadata_log_entries").collect()
        spelled = log[-1].file
        reader = spark.read.format("binaryFile").load(escape_glob(spelled))
        (row,) = reader.select("path", "content").collect()
    except PySparkException as failure:
        reason = f"its metadata file cannot be read: {str(failure).splitlines()[0]}"
        raise UnsupportedTable(entry.name, reason) from failure
    return spelled, row.path, bytes(row.content)


def iceberg_at_snapshot(identifier: str, snapshot: object) -> str:
    """SQL of an Iceberg table at a snapshot."""
    if installed_spark_line() >= (4, 0):
        return f"{identifier} VERSION AS OF {snapshot}"
    # Where Hudi's extension is listed, its parser takes VERSION AS OF of all tables for its own.
    return f"{identifier}.snapshot_id_{snapshot}"


def read_iceberg_metadata_table(spark: SparkSession, identifier: str, name: str, snapshot: object) -> DataFrame:
    """One of Iceberg's metadata tables at a snapshot."""
    if installed_spark_line() >= (4, 0):
        return spark.sql(f"SELECT * FROM {identifier}.{name} VERSION AS OF {snapshot}")
    # As above.
    return spark.read.option("snapshot-id", str(snapshot)).table(f"{identifier}.{name}")
