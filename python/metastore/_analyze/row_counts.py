"""How many rows data files have of which the table's metadata does not tell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metastore._analyze.hadoop import store_of
from metastore._format.files import FileKey, file_keys
from metastore._tables.spelling import LOCATION, literal
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore._tables.model import DataFile, TableFacts


def counted(spark: SparkSession, facts: TableFacts) -> TableFacts:
    """Count the rows of the data files that do not have their number yet.

    Statistics remember it; of other files Spark reads the footers.

    Args:
        spark: A classic session.
        facts: The table.

    Returns:
        The same with a number of rows for every file.

    Example:
        >>> counted(spark, facts).files[0].rows  # doctest: +SKIP
        1500000
    """
    if all(file.rows >= 0 for file in facts.files):
        return facts
    known = _remembered(spark, facts)
    files = [file if file.rows >= 0 else replace(file, rows=known.get(file.key, -1)) for file in facts.files]
    read = _footers(spark, [file for file in files if file.rows < 0])
    return replace(
        facts, files=tuple(file if file.rows >= 0 else replace(file, rows=read.get(file.location, 0)) for file in files)
    )


def _remembered(spark: SparkSession, facts: TableFacts) -> Mapping[FileKey, int]:
    store, _ = store_of(spark, facts.identity, writable=False)
    manifest = store.read()
    if manifest is None or manifest.table.uuid != facts.uuid:
        return {}
    found: dict[FileKey, int] = {}
    for block in manifest.blocks:
        try:
            listed = store.get(block.files, [*FileKey._fields, "rows"])
        except DamagedObject:
            continue
        rows = zip(file_keys(listed), listed.column("rows").to_pylist(), strict=True)
        found |= {key: count for key, count in rows if count is not None}
    return found


def _footers(spark: SparkSession, files: Sequence[DataFile]) -> Mapping[str, int]:
    if not files:
        return {}
    rows = spark.read.parquet(*(literal(file.location) for file in files)).selectExpr(f"{LOCATION} AS path")
    return {row.path: row["count"] for row in rows.groupBy("path").count().collect()}
