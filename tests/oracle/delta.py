"""Delta tables through schema changes, deletions, partitions, without statistics of Delta's own: only ours decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import metastore
from gaps import find_gap
from lakes import SPARK
from oracle import tables
from oracle.columns import SCALARS
from oracle.data import random_design, write_files

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from pyspark.sql import SparkSession

    from oracle.tables import Subject

KINDS = ("delta", "delta evolved", "delta deletes", "delta partitioned")
PARTITION = "file_no"
WIDER = tables.WIDER if find_gap("widening", "delta", SPARK) is None else {}
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.dataSkippingNumIndexedCols": "0",
    "delta.enableDeletionVectors": "true",
    "delta.enableTypeWidening": "true",
    "delta.feature.timestampNtz": "supported",
}


def create(spark: SparkSession, kind: str, files: int, scratch: Path, rng: Random) -> Subject:
    """Makes a Delta table of about `files` data files, and analyzes it.

    Args:
        spark: the session.
        kind: one of KINDS.
        files: data files to write.
        scratch: where the table is made.
        rng: decides everything random.
    """
    design, root = random_design(rng, SCALARS), scratch / "delta ta%20ble"
    name = f"delta.`{root}`"
    before = files // 2 if kind == "delta evolved" else files
    write_files(design, before, scratch / "before", rng)
    _create(spark, kind, name, scratch / "before", rng)
    _append(spark, name, scratch / "before")
    if before < files:
        changed = tables.evolve(spark, name, kind, design, rng, wider=WIDER)
        write_files(changed, files - before, scratch / "after", rng)
        _append(spark, name, scratch / "after")
    without = (PARTITION,) if kind == "delta partitioned" else ()
    subject = tables.observe(spark, kind, name, "_metadata.file_path", root=root, without=without)
    metastore.analyze(spark, name, progress=False)
    if kind == "delta deletes":  # a file of which every row is deleted leaves the table
        tables.delete(spark, name, files, rng)
    return subject


def _create(spark: SparkSession, kind: str, name: str, folder: Path, rng: Random) -> None:
    columns = tables.one_file_a_task(spark, folder).limit(0)
    columns.createOrReplaceTempView("columns_of_the_table")
    properties = ", ".join(
        f"'{key}' = '{'id' if key.endswith('.mode') and rng.random() < 0.3 else value}'"
        for key, value in PROPERTIES.items()
    )
    partitioned = f"PARTITIONED BY ({PARTITION})" if kind == "delta partitioned" else ""
    of = f"{partitioned} TBLPROPERTIES ({properties}) AS SELECT * FROM columns_of_the_table"
    spark.sql(f"CREATE TABLE {name} USING delta {of}")


def _append(spark: SparkSession, name: str, folder: Path) -> None:
    tables.one_file_a_task(spark, folder).createOrReplaceTempView("rows_to_append")
    spark.sql(f"INSERT INTO {name} BY NAME SELECT * FROM rows_to_append")


def identity(spark: SparkSession, subject: Subject) -> tuple[str, str]:
    """Returns location and uuid of a Delta table."""
    (row,) = spark.sql(f"DESCRIBE DETAIL {subject.relation}").collect()
    return str(subject.root), row["id"]
