"""Hudi tables through all changes: upserts, deletes, log files, compaction, clustering, columns added and widened."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import metastore
from oracle import reading, tables
from oracle.columns import SCALARS, Leaf
from oracle.data import Design, random_design, random_file
from oracle.zones import zone_of
from planner import plans

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from random import Random

    from pyspark.sql import SparkSession

    from oracle.tables import Subject

KINDS = ("hudi cow", "hudi mor", "hudi compacted", "hudi clustered", "hudi partitioned", "hudi evolved", "hudi stale")
MERGED_ON_READ = {"hudi mor", "hudi compacted", "hudi partitioned", "hudi stale"}
NOT_OF_AVRO = {"tinyint", "smallint", "timestamp_ntz"}
KEY, STEP, PART = "oracle_key", "oracle_step", "oracle_part"
PARTS = ("a b", "x.y", "1", "null", "日本", None)
ADDED = (Leaf(("added_i",), "int"), Leaf(("added_s",), "string"))
WIDER = {
    "int": ("bigint", "double", "float", "string"),
    "bigint": ("double", "float", "string"),
    "float": ("double", "string"),
    "double": ("string",),
}
WRITES = {
    "hoodie.bulkinsert.sort.mode": "NONE",
    "hoodie.datasource.write.recordkey.field": KEY,
    "hoodie.datasource.write.precombine.field": STEP,
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
}
IN_PARTITIONS = {
    "hoodie.datasource.write.partitionpath.field": PART,
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
}
WITHOUT = ("_hoodie_commit_seqno", "_hoodie_file_name", STEP)
KEYS_OF_A_FILE = 1000


def design_of(rng: Random) -> Design:
    """A random design with names that Avro has, and without lists, whose form Hudi's upserts change."""
    drawn = random_design(rng, tuple(kind for kind in SCALARS if kind not in NOT_OF_AVRO))
    named = {leaf: Leaf(tuple(_name(drawn, part) for part in leaf.path), leaf.type) for leaf in drawn.leaves}
    shapes = {named[leaf]: shape for leaf, shape in drawn.shapes.items()}
    return replace(drawn, leaves=tuple(named.values()), shapes=shapes, collections={"many": "map of string to int"})


def _name(design: Design, part: str) -> str:
    plain = {"s": "s", "a": "a", "n": "n", "x": "x", "in.ner": "inner", "file_no": "file_no"}
    paths = [leaf.path[0] for leaf in design.leaves]
    return plain.get(part) or f"c{paths.index(part)}"


@dataclass
class _Table:
    """A Hudi table that is written to: `rows` are the keys of each written file, `parts` its partition."""

    spark: SparkSession
    name: str
    kind: str
    scratch: Path
    rng: Random
    rows: dict[int, list[int]] = field(default_factory=dict)
    parts: dict[int, str | None] = field(default_factory=dict)
    writes: int = 0

    @property
    def root(self) -> Path:
        return self.scratch / "hudi_table"

    def insert(self, design: Design, numbers: Iterable[int]) -> None:
        """Writes a file of new rows for each number."""
        written = []
        for number in numbers:
            drawn = random_file(design, number, self.rng)
            self.rows[number] = [number * KEYS_OF_A_FILE + i for i in range(drawn.num_rows)]
            self.parts[number] = self.rng.choice(PARTS)
            written.append(self._keyed(drawn, number, self.rows[number]))
        self._write(written, "bulk_insert")

    def upsert(self, design: Design, keys: dict[int, list[int]]) -> None:
        """Gives rows of some files other values."""
        written = []
        for number, chosen in keys.items():
            drawn = random_file(replace(design, rows=(len(chosen),)), number + 50, self.rng)
            written.append(self._keyed(drawn, number, chosen))
        self._write(written, "upsert")

    def _keyed(self, rows: pa.Table, number: int, keys: list[int]) -> pa.Table:
        rows = rows.append_column(KEY, pa.array(keys, pa.int64()))
        rows = rows.append_column(STEP, pa.array([self.writes] * len(keys), pa.int64()))
        if self.kind != "hudi partitioned":
            return rows
        return rows.append_column(PART, pa.array([self.parts[number]] * len(keys), pa.string()))

    def _write(self, files: Sequence[pa.Table], operation: str) -> None:
        folder = self.scratch / f"written-{self.writes}"
        folder.mkdir(parents=True)
        for number, rows in enumerate(files):
            pq.write_table(rows, folder / f"part-{number:04d}.parquet")
        options = {
            **WRITES,
            **(IN_PARTITIONS if self.kind == "hudi partitioned" else {}),
            "hoodie.table.name": self.name,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.kind in MERGED_ON_READ else "COPY_ON_WRITE",
            "hoodie.datasource.write.operation": operation,
        }
        frame = tables.one_file_a_task(self.spark, folder)
        frame.write.format("hudi").options(**options).mode("append").save(str(self.root))
        self.writes += 1

    def delete(self, keys: Iterable[int]) -> None:
        """Deletes rows by their keys."""
        self.spark.sql(f"DELETE FROM {self.name} WHERE {KEY} IN ({', '.join(map(str, keys))})")

    def files_of(self, relation: str, keys: Iterable[int]) -> frozenset[str]:
        """The data files that hold rows with these keys."""
        of_key = {row.k: row.f for row in self.placed(relation)}
        return frozenset(of_key[key] for key in keys)

    def placed(self, relation: str) -> list[Any]:
        """The key `k` of each row and its data file `f`."""
        return list(self.spark.sql(f"SELECT {KEY} AS k, input_file_name() AS f FROM {relation}").collect())

    def choose(self, share: float) -> dict[int, list[int]]:
        """Draws about half of the files, and of each a share of its rows, at least one."""
        files = self.rng.sample(sorted(self.rows), max(1, len(self.rows) // 2))
        return {n: self.rng.sample(self.rows[n], max(1, int(share * len(self.rows[n])))) for n in files}


def create(spark: SparkSession, name: str, kind: str, files: int, scratch: Path, rng: Random) -> Subject:
    """Makes a Hudi table of about `files` data files, changes it, and analyzes it before and after.

    The subject shows the rows through a second table of the catalog at the same place, without Hudi's own skipping,
    which loses rows: a catalog keeps the settings with which it first reads a table.

    Args:
        spark: the session.
        name: of the table, in the session's catalog.
        kind: one of KINDS.
        files: data files to write.
        scratch: where the table is made.
        rng: decides everything random.
    """
    design = design_of(rng)
    table = _Table(spark, name, kind, scratch, rng)
    before = files // 2 if kind == "hudi evolved" else files
    obscured: frozenset[str] = frozenset()  # files with columns of which not all can be known
    table.insert(design, range(before))
    spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{table.root}'")
    metastore.analyze(spark, name, progress=False)
    if kind == "hudi evolved":
        stored_files = frozenset(row.f for row in table.placed(name))
        narrow, design = design, _widened(_add_columns(table, design), rng)
        if any(leaf.type in ("float", "double") and leaf not in design.leaves for leaf in narrow.leaves):
            obscured = stored_files
        table.insert(design, range(before, files))
        spark.sql(f"DROP TABLE {name}")  # a catalog keeps the narrower types
        spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{table.root}'")
    touched = _change(table, design)
    if kind == "hudi compacted":
        options = "hoodie.compact.inline.max.delta.commits=1"
        spark.sql(f"CALL run_compaction(op => 'scheduleandexecute', table => '{name}', options => '{options}')")
    if kind == "hudi clustered":
        options = "hoodie.clustering.plan.strategy.max.bytes.per.group=60000"
        spark.sql(f"CALL run_clustering(table => '{name}', options => '{options}')")
    spark.sql(f"REFRESH TABLE {name}")
    if kind == "hudi stale":  # the log files come after ANALYZE
        return _observed(table, touched, obscured)
    metastore.analyze(spark, name, progress=False)
    return _observed(table, frozenset(), obscured)


def _add_columns(table: _Table, design: Design) -> Design:
    columns = ", ".join(f"{leaf.sql} {leaf.type}" for leaf in ADDED)
    table.spark.sql(f"ALTER TABLE {table.name} ADD COLUMNS ({columns})")
    return replace(design, leaves=design.leaves + ADDED, shapes={**design.shapes, **dict.fromkeys(ADDED, "narrow")})


def _widened(design: Design, rng: Random) -> Design:
    """The same columns, about half of those that can be widened of another type from the next write on."""
    kinds = {leaf: leaf.type for leaf in design.leaves}
    for leaf in design.leaves:
        if leaf.type in WIDER and leaf.path != ("file_no",) and rng.random() < 0.6:
            kinds[leaf] = rng.choice(WIDER[leaf.type])
    shapes = {Leaf(leaf.path, kinds[leaf]): shape for leaf, shape in design.shapes.items()}
    return replace(design, leaves=tuple(Leaf(leaf.path, kinds[leaf]) for leaf in design.leaves), shapes=shapes)


def _change(table: _Table, design: Design) -> frozenset[str]:
    """Changes and deletes rows, all of one file too; returns the changed files."""
    updated, deleted = table.choose(0.4), table.choose(0.3)
    emptied = next(iter(deleted))
    deleted[emptied] = table.rows[emptied]
    doomed = [key for keys in deleted.values() for key in keys]
    touched = table.files_of(table.name, [*doomed, *(key for keys in updated.values() for key in keys)])
    table.upsert(design, updated)
    table.spark.sql(f"REFRESH TABLE {table.name}")
    table.delete(doomed)
    return touched


def _observed(table: _Table, changed: frozenset[str], obscured: frozenset[str]) -> Subject:
    spark, relation = table.spark, f"{table.name}_rows"
    with plans.conf(spark, hoodie__enable__data__skipping="false"):
        spark.sql(f"CREATE TABLE {relation} USING hudi LOCATION '{table.root}'")
        (live,) = reading.files(spark.table(relation))
        observed = tables.observe(spark, table.kind, relation, "input_file_name()", root=table.root, without=WITHOUT)
    assert changed <= live
    emptied = {file: {leaf: [] for leaf in observed.leaves} for file in sorted(live - observed.values.keys())}
    values: dict[str, dict[Leaf, list[Any]]] = observed.values | emptied
    zones = {
        f: {leaf: zone_of(leaf.type, values_of_leaf) for leaf, values_of_leaf in of.items()} for f, of in values.items()
    }
    return replace(observed, values=values, zones=zones, changed=changed, obscured=obscured, table=table.name)


def drop(spark: SparkSession, subject: Subject) -> None:
    """Forgets both tables of a subject."""
    for relation in (subject.relation, subject.table):
        spark.sql(f"DROP TABLE {relation}")


def identity(spark: SparkSession, subject: Subject) -> tuple[str, str]:
    """Returns location and uuid of a Hudi table."""
    (row,) = spark.sql(f"SELECT facts FROM metastore_facts('{subject.table}', files => false)").collect()
    return str(subject.root), json.loads(row.facts)["uuid"]
