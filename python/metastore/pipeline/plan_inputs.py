"""How many rows data files have of which the table's metadata does not tell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metastore.adapters.identifiers import LOCATION, escape_glob
from metastore.store.block_damage import BlockDamageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.format.data_files import FileKey
    from metastore.store import Store
    from metastore.store.block_files import BlockFilesCache


def count_rows(spark: SparkSession, facts: TableFacts, store: Store, indexed: BlockFilesCache) -> TableFacts:
    """Count the rows of the data files that do not have their number yet.

    Statistics remember it; of other files Spark reads the footers.
    """
    if all(file.rows is not None for file in facts.files):
        return facts
    known = _remembered(facts, store, indexed)
    files = [file if file.rows is not None else replace(file, rows=known.get(file.key)) for file in facts.files]
    read = _footers(spark, [file for file in files if file.rows is None])
    rows = (read.get(file.location, 0) if file.rows is None else file.rows for file in files)
    return replace(facts, files=tuple(replace(file, rows=one) for file, one in zip(files, rows, strict=True)))


def _remembered(facts: TableFacts, store: Store, indexed: BlockFilesCache) -> Mapping[FileKey, int]:
    manifest = store.read()
    if manifest is None or manifest.table.uuid != facts.uuid:
        return {}
    found: dict[FileKey, int] = {}
    for block in manifest.blocks:
        try:
            (one,) = indexed.read([block])
        except BlockDamageError:
            continue
        rows = one.files.column("rows").to_pylist()
        found |= {key: rows[file] for key, file in one.ordinals.items() if rows[file] is not None}
    return found


def _footers(spark: SparkSession, files: Sequence[DataFile]) -> Mapping[str, int]:
    if not files:
        return {}
    rows = spark.read.parquet(*(escape_glob(file.location) for file in files)).selectExpr(f"{LOCATION} AS path")
    return {row.path: row["count"] for row in rows.groupBy("path").count().collect()}
