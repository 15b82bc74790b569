"""Tables for tests that ask whole queries: analyzed, of the first format that this session has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import metastore
from lakes import FORMATS
from oracle import delta, parquet, tables

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from pyspark.sql import SparkSession

    from oracle.tables import Subject

KINDS = {
    "iceberg": {"rows": ("evolved", "deletes"), "files": ("evolved", "vectors")},
    "delta": {"rows": ("delta evolved", "delta deletes"), "files": ("delta evolved", "delta deletes")},
    "parquet": {"rows": ("parquet", "parquet legacy"), "files": ("parquet", "parquet partitioned")},
}
FORMAT = next(name for name in ("iceberg", "delta", "parquet") if name in (*FORMATS, "parquet"))
CONF = {} if FORMAT == "iceberg" else {"spark.sql.parquet.filterPushdown": "false"}
"""Settings without which Spark itself judges rows by the statistics of row groups."""


def create(spark: SparkSession, kind: str, files: int, folder: Path, rng: Random) -> Subject:
    """Makes a table of about `files` data files, which its own readers know nothing about, and analyzes it."""
    if kind in delta.KINDS:
        return delta.create(spark, kind, files, folder, rng)
    if kind in parquet.KINDS:
        return parquet.create(spark, kind, files, folder, rng)
    name = f"ice.db.{folder.name.replace('-', '_')}"
    subject = tables.iceberg(spark, name, kind, files=files, scratch=folder, rng=rng, covered=True)
    metastore.analyze(spark, name, progress=False)
    return subject
