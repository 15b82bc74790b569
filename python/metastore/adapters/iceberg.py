"""The table format Iceberg, including the number of rows that delete files delete."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from metastore import jvm_session
from metastore.adapters.descriptors import EncodedSketch, TableFormat
from metastore.adapters.iceberg_lineage import read_lineage, read_properties
from metastore.adapters.spark_versions import collect_arrow, installed_spark_line
from metastore.format.data_files import select_files
from metastore.format.name_mapping import PROPERTY, NameMapping

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from metastore.adapters.catalog import CatalogEntry
    from metastore.adapters.shim_facts import ShimAnswer
    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile


_COMPARED_PATHS = 200
"""With more paths in an IN, Iceberg does not compare the bounds of delete files, and reads all of them."""
_MOST_COMPARISONS = 10
"""The most lists of paths with which each row of a delete file is compared; with more paths, a hash table is used."""


def complete(answer: ShimAnswer) -> TableFacts:
    """Complete the facts of an Iceberg table at its current snapshot."""
    mapping = answer.facts.properties.get(PROPERTY)
    return replace(answer.facts, absent_is_null=mapping is None, name_mapping=NameMapping(mapping))


def pin_snapshot(facts: TableFacts, entry: CatalogEntry) -> TableFacts:
    """Pin reads of an Iceberg table to its snapshot."""
    snapshot_sql = _at_snapshot(entry.identifier, str(facts.snapshot))
    return replace(facts, snapshot_sql=snapshot_sql)


def _find_name_mapping(entry: CatalogEntry) -> NameMapping:
    return NameMapping(entry.name_mapping)


def _refuse_expressions(facts: TableFacts) -> str | None:
    # If the name mapping changes, files without field ids have other columns.
    if PROPERTY in facts.properties:
        return "of a table with a name mapping none are kept"
    return None


def _publish_sketches(spark: SparkSession, facts: TableFacts, sketches: Mapping[str, EncodedSketch]) -> set[str]:
    """Write a statistics file of the snapshot, as Iceberg's own compute_table_stats does."""
    sketch_bytes = {}
    estimates = {}
    for key, sketch in sketches.items():
        sketch_bytes[key] = bytearray(sketch.data)
        estimates[key] = str(sketch.distinct)
    shim = jvm_session.load_shim_class(spark, "TableSketches")
    session = jvm_session.to_jvm_session(spark)
    return set(shim.publish(session, facts.identifier, facts.snapshot, sketch_bytes, estimates))


def _at_snapshot(identifier: str, snapshot: str) -> str:
    if installed_spark_line() >= (4, 0):
        return f"{identifier} VERSION AS OF {snapshot}"
    # Before Spark 4, the parser of Hudi's extension handles VERSION AS OF of all tables.
    return f"{identifier}.snapshot_id_{snapshot}"


def _count_deleted_rows(spark: SparkSession, facts: TableFacts, files: Sequence[DataFile]) -> Mapping[str, int]:
    """Count the deleted rows of some data files.

    Position delete files are read without the data files. Equality deletes are applied by Iceberg's own reader, which
    marks what any kind of delete removes.
    """
    files_with_equality_deletes = []
    files_with_positions = []
    for file in files:
        if file.has_equality_deletes:
            files_with_equality_deletes.append(file)
        else:
            files_with_positions.append(file)
    counts = {file.path: 0 for file in files}
    if files_with_positions:
        counts |= _count_positions(spark, facts, files_with_positions)
    if files_with_equality_deletes:
        counts |= _count_marked_rows(spark, facts, files_with_equality_deletes)
    return counts


def _count_positions(spark: SparkSession, facts: TableFacts, files: Sequence[DataFile]) -> dict[str, int]:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the usual name, not needed to import this module

    rows = _select_paths(spark, _read_metadata_table(spark, facts, "position_deletes"), files)
    count = F.countDistinct("pos").alias("positions")
    last = F.max("pos").alias("last")
    counted = rows.groupBy("file_path").agg(count, last)
    counts = {}
    last_positions = {}
    for row in collect_arrow(counted).to_pylist():
        counts[row["file_path"]] = row["positions"]
        last_positions[row["file_path"]] = row["last"]
    deleted_from = select_files(files, last_positions)
    exceeded = [file for file in deleted_from if last_positions[file.path] >= file.physical_rows]
    if exceeded:
        counts |= _count_positions_within(spark, rows, exceeded)
    return counts


def _count_positions_within(spark: SparkSession, rows: DataFrame, files: Sequence[DataFile]) -> dict[str, int]:
    """Count the positions that exist in the data files: delete files may have others, which delete nothing."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - see above

    lengths = {file.path: file.physical_rows for file in files}
    file_lengths = spark.createDataFrame(list(lengths.items()), "file_path string, length bigint")
    limited = rows.join(F.broadcast(file_lengths), "file_path").where("pos < length")
    counted = limited.groupBy("file_path").agg(F.countDistinct("pos").alias("positions"))
    collected = collect_arrow(counted)
    positions = zip(collected["file_path"].to_pylist(), collected["positions"].to_pylist(), strict=True)
    return {**dict.fromkeys(lengths, 0), **dict(positions)}


def _count_marked_rows(spark: SparkSession, facts: TableFacts, files: Sequence[DataFile]) -> dict[str, int]:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - see above

    rows = spark.sql(f"SELECT _file, _deleted FROM {_at_snapshot(facts.identifier, str(facts.snapshot))}")
    if len(files) < len(facts.files):
        rows = rows.where(rows["_file"].isin([file.path for file in files]))  # the shim skips files by this condition
    counted = rows.groupBy("_file").agg(F.count_if("_deleted").alias("deleted"))
    return {row["_file"]: row["deleted"] for row in collect_arrow(counted).to_pylist()}


def _select_paths(spark: SparkSession, rows: DataFrame, files: Sequence[DataFile]) -> DataFrame:
    """Select the deleted positions of some data files.

    If the condition has few paths, Iceberg skips delete files by the bounds of their paths. Many paths need most delete
    files anyway; with a join, each row then needs only one look-up.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - see above

    paths = sorted(file.path for file in files)
    if len(paths) > _COMPARED_PATHS * _MOST_COMPARISONS:
        selected = spark.createDataFrame(paths, "string").toDF("file_path")
        return rows.join(F.broadcast(selected), "file_path", "left_semi")
    conditions = []
    for first in range(0, len(paths), _COMPARED_PATHS):
        part = paths[first : first + _COMPARED_PATHS]
        conditions.append(rows["file_path"].isin(part))
    return rows.where(reduce(or_, conditions))


def _read_metadata_table(spark: SparkSession, facts: TableFacts, name: str) -> DataFrame:
    """Read one of Iceberg's metadata tables at the snapshot."""
    if installed_spark_line() >= (4, 0):
        return spark.sql(f"SELECT * FROM {facts.identifier}.{name} VERSION AS OF {facts.snapshot}")
    # As in `_at_snapshot`.
    return spark.read.option("snapshot-id", str(facts.snapshot)).table(f"{facts.identifier}.{name}")


FORMAT = TableFormat(
    name="iceberg",
    complete=complete,
    pin_snapshot=pin_snapshot,
    file_sql="_file",
    shows_uri=False,
    position_sql="_pos",
    deleted_sql="_deleted",
    read_lineage=read_lineage,
    find_name_mapping=_find_name_mapping,
    read_properties=read_properties,
    refuse_expressions=_refuse_expressions,
    count_deleted_rows=_count_deleted_rows,
    publish_sketches=_publish_sketches,
    keys_in="file-io",
)
