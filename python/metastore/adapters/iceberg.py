"""Iceberg tables: what their metadata says, and how many rows their delete files delete."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from metastore import jvm_session
from metastore.adapters.descriptors import TableFormat
from metastore.adapters.iceberg_lineage import read_lineage
from metastore.adapters.spark_versions import collect_arrow, installed_spark_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from metastore.adapters.catalog import CatalogEntry
    from metastore.adapters.shim_facts import ShimAnswer
    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.kernel.theta_sketch import ThetaSketch


_NAME_MAPPING = "schema.name-mapping.default"


def complete(spark: SparkSession, entry: CatalogEntry, answer: ShimAnswer) -> TableFacts:
    """The facts of an Iceberg table at its current snapshot."""
    facts = replace(answer.facts, absent_is_null=_NAME_MAPPING not in answer.facts.properties)
    if facts.snapshot is None:
        return facts
    pinned = _at_snapshot(entry.identifier, facts.snapshot)
    return replace(
        facts,
        files=_count_deleted(spark, facts, pinned, answer.equality_deletes),
        snapshot_sql=pinned if answer.has_current_schema else entry.identifier,
    )


def _refuse_expressions(facts: TableFacts) -> str | None:
    """A name mapping that changes gives other columns to files that have no field ids."""
    return "of a table with a name mapping none are kept" if _NAME_MAPPING in facts.properties else None


def _publish_sketches(spark: SparkSession, facts: TableFacts, sketches: Mapping[str, ThetaSketch]) -> set[str]:
    """Writes a statistics file of the snapshot, as Iceberg's own compute_table_stats does."""
    thetas = {key: bytearray(one.to_bytes()) for key, one in sketches.items()}
    counts = {key: str(int(one.estimate)) for key, one in sketches.items()}
    shim = jvm_session.load_shim_class(spark, "TableSketches")
    return set(shim.publish(jvm_session.to_jvm_session(spark), facts.identifier, facts.snapshot, thetas, counts))


FORMAT = TableFormat(
    "iceberg",
    complete,
    file_sql="_file",
    shows_uri=False,
    position_sql="_pos",
    deleted_sql="_deleted",
    is_cached=True,
    read_lineage=read_lineage,
    refuse_expressions=_refuse_expressions,
    publish_sketches=_publish_sketches,
)


def _at_snapshot(identifier: str, snapshot: str) -> str:
    """SQL of a table at a snapshot."""
    if installed_spark_line() >= (4, 0):
        return f"{identifier} VERSION AS OF {snapshot}"
    # Where Hudi's extension is listed, its parser takes VERSION AS OF of all tables for its own.
    return f"{identifier}.snapshot_id_{snapshot}"


def _count_deleted(
    spark: SparkSession, facts: TableFacts, pinned: str, equality_deletes: Sequence[str]
) -> tuple[DataFile, ...]:
    """Count the deleted rows of every data file.

    Deletion vectors state their own cardinality. Position delete files are read; equality deletes are applied by
    Iceberg's own reader, which then marks what any kind of delete removes.
    """
    counts = {file.path: file.deleted_rows for file in facts.files}
    sources: dict[str, set[str]] = defaultdict(set)
    for file in facts.files:
        if file.deletes is not None:
            sources[file.path].add(file.deletes)
    uncounted = {path for path, count in counts.items() if count is None}
    for row in _position_deletes(spark, facts) if uncounted else ():
        if row["file_path"] in uncounted:
            counts[row["file_path"]] = row["positions"]
            sources[row["file_path"]].update(row["by"])
    if equality_deletes:
        counts = _marked_rows(spark, pinned)
        for path in counts:
            sources[path].update(equality_deletes)
    return tuple(_with_deletes(file, counts.get(file.path) or 0, sources) for file in facts.files)


def _with_deletes(file: DataFile, deleted: int, sources: Mapping[str, Iterable[str]]) -> DataFile:
    if not deleted:
        return file if file.deleted_rows == 0 else replace(file, deletes=None, deleted_rows=0)
    digest = hashlib.sha256("\n".join(sorted(sources[file.path])).encode()).hexdigest()
    return replace(file, deletes=digest, deleted_rows=deleted)


def _position_deletes(spark: SparkSession, facts: TableFacts) -> list[dict[str, Any]]:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the usual name, not needed to import this module

    rows = (
        _read_metadata_table(spark, facts, "position_deletes")
        .groupBy("file_path")
        .agg(F.countDistinct("pos").alias("positions"), F.collect_set("delete_file_path").alias("by"))
    )
    return list(collect_arrow(rows).to_pylist())


def _read_metadata_table(spark: SparkSession, facts: TableFacts, name: str) -> DataFrame:
    """One of Iceberg's metadata tables at the snapshot."""
    if installed_spark_line() >= (4, 0):
        return spark.sql(f"SELECT * FROM {facts.identifier}.{name} VERSION AS OF {facts.snapshot}")
    # As in `_at_snapshot`.
    return spark.read.option("snapshot-id", str(facts.snapshot)).table(f"{facts.identifier}.{name}")


def _marked_rows(spark: SparkSession, pinned: str) -> dict[str, int | None]:
    rows = spark.sql(f"SELECT _file, count_if(_deleted) AS deleted FROM {pinned} GROUP BY _file")
    return {row["_file"]: row["deleted"] for row in collect_arrow(rows).to_pylist()}
