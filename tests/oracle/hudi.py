"""Hudi tables, copy on write and merge on read, with updates and deletes in new base files or in log files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import metastore
from oracle import tables
from oracle.columns import SCALARS, Leaf
from oracle.data import Design, random_design, write_files
from planner import plans

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from pyspark.sql import SparkSession

    from oracle.tables import Subject

KINDS = ("hudi cow", "hudi mor")
NOT_OF_AVRO = {"tinyint", "smallint", "timestamp_ntz"}
WRITES = {
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.bulkinsert.sort.mode": "NONE",
    "hoodie.datasource.write.recordkey.field": "oracle_key",
    "hoodie.datasource.write.precombine.field": "oracle_key",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.compact.inline": "false",
}
META = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
WITHOUT = (*(f"_hoodie_{name}" for name in META), "oracle_key")


def design_of(rng: Random) -> Design:
    """A random design with names that Avro has."""
    drawn = random_design(rng, tuple(kind for kind in SCALARS if kind not in NOT_OF_AVRO))
    named = {leaf: Leaf(tuple(_name(drawn, part) for part in leaf.path), leaf.type) for leaf in drawn.leaves}
    return replace(drawn, leaves=tuple(named.values()), shapes={named[leaf]: s for leaf, s in drawn.shapes.items()})


def _name(design: Design, part: str) -> str:
    plain = {"s": "s", "a": "a", "n": "n", "x": "x", "in.ner": "inner", "file_no": "file_no"}
    places = [leaf.path[0] for leaf in design.leaves]
    return plain.get(part) or f"c{places.index(part)}"


def create(spark: SparkSession, name: str, kind: str, files: int, scratch: Path, rng: Random) -> Subject:
    """Makes a Hudi table of about `files` data files, and analyzes it.

    Args:
        spark: the session.
        name: of the table, in the session's catalog.
        kind: one of KINDS.
        files: data files to write.
        scratch: where the table is made.
        rng: decides everything random.
    """
    root = scratch / "hudi_table"
    write_files(design_of(rng), files, scratch / "before", rng)
    before = tables.one_file_a_task(spark, scratch / "before")
    properties = {
        "hoodie.table.name": name,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ" if kind == "hudi mor" else "COPY_ON_WRITE",
    }
    rows = before.selectExpr("*", "monotonically_increasing_id() AS oracle_key")
    rows.write.format("hudi").options(**WRITES, **properties).save(str(root))
    spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{root}'")
    # Hudi's own skipping loses rows; a catalog keeps the settings with which it first reads a table.
    with plans.conf(spark, hoodie__enable__data__skipping="false"):
        subject = tables.observe(spark, kind, name, "input_file_name()", root=root, without=WITHOUT)
    metastore.analyze(spark, name, progress=False)
    return subject


def identity(spark: SparkSession, subject: Subject) -> tuple[str, str]:
    """Returns location and uuid of a Hudi table."""
    (row,) = spark.sql(f"SELECT facts FROM metastore_facts('{subject.relation}', files => false)").collect()
    return str(subject.root), json.loads(row.facts)["uuid"]
