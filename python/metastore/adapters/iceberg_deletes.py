"""Which rows of an Iceberg snapshot's data files are deleted, and by what."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from metastore.adapters.iceberg_metadata import iceberg_at_snapshot, read_iceberg_metadata_table
from metastore.adapters.spark_versions import collect_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


_POSITION, _EQUALITY = 1, 2


@dataclass(frozen=True)
class Deletes:
    """Deleted rows by data file.

    Attributes:
        digests: Data file to the digest of what deletes its rows.
        counts: Data file to the number of its deleted rows.
    """

    digests: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def of(self, path: str) -> tuple[str | None, int]:
        """Digest and number of the deletes of a data file; None and 0 without any."""
        return self.digests.get(path), self.counts.get(path, 0)


def find_deletes(spark: SparkSession, identifier: str, snapshot: str, files: pa.Table) -> Deletes:
    """Count the deleted rows of every data file of a snapshot.

    Deletion vectors state their own cardinality. Position delete files are read; equality deletes are applied by
    Iceberg's own reader, which then marks what any kind of delete removes.
    """
    removals = files.filter(pc.greater(files.column("content"), 0))
    sources: dict[str, set[str]] = defaultdict(set)
    counts: dict[str, int] = {}
    if removals.num_rows == 0:
        return Deletes()
    contents = set(removals.column("content").to_pylist())
    position_files = _deletion_vectors(removals, sources, counts)
    if position_files:
        _position_deletes(read_iceberg_metadata_table(spark, identifier, "position_deletes", snapshot), sources, counts)
    if _EQUALITY in contents:
        equality = removals.filter(pc.equal(removals.column("content"), _EQUALITY)).column("file_path").to_pylist()
        counts = _marked_rows(spark, iceberg_at_snapshot(identifier, snapshot))
        for path in counts:
            sources[path].update(equality)
    return Deletes({path: _digest(sources[path]) for path, count in counts.items() if count}, counts)


def _deletion_vectors(removals: pa.Table, sources: dict[str, set[str]], counts: dict[str, int]) -> bool:
    """Note the deletion vectors; tell whether there are position delete files besides."""
    position_files = False
    for row in removals.to_pylist():
        if row["content"] != _POSITION:
            continue
        if row["file_format"] != "puffin":
            position_files = True
            continue
        target = row["referenced_data_file"]
        sources[target].add(f"{row['file_path']}#{row['content_offset']}+{row['content_size_in_bytes']}")
        counts[target] = row["record_count"]
    return position_files


def _position_deletes(deletes: DataFrame, sources: dict[str, set[str]], counts: dict[str, int]) -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the usual name, not needed to import this module

    rows = deletes.groupBy("file_path").agg(
        F.countDistinct("pos").alias("positions"), F.collect_set("delete_file_path").alias("by")
    )
    for row in collect_arrow(rows).to_pylist():
        # A deletion vector replaces the position deletes that a file had before it.
        if row["file_path"] not in counts:
            sources[row["file_path"]].update(row["by"])
            counts[row["file_path"]] = row["positions"]


def _marked_rows(spark: SparkSession, table: str) -> dict[str, int]:
    rows = spark.sql(f"SELECT _file, count_if(_deleted) AS deleted FROM {table} GROUP BY _file")
    return {row["_file"]: row["deleted"] for row in collect_arrow(rows).to_pylist()}


def _digest(sources: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(sources)).encode()).hexdigest()
