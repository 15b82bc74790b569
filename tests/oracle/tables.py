"""The oracle's tables: Iceberg tables through every kind of change, directories of Parquet files, and their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore.adapters.spark_versions import collect_arrow
from oracle import details, reading, without_metrics
from oracle.columns import ICEBERG_SCALARS, Leaf
from oracle.data import PADDING, Design, random_design, unsorted_design, write_files
from oracle.zones import Zone, zone_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from random import Random

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

ONE_FILE_A_TASK = {"spark.sql.files.openCostInBytes": "1g", "spark.sql.files.maxPartitionBytes": "1g"}
ICEBERG_KINDS = ("plain", "evolved", "deletes", "vectors", "partitioned", "defaults", "unsorted")


@dataclass(frozen=True)
class Subject:
    """A relation under test.

    `relation` is what stands behind FROM, `file` the expression that names a row's file, `zones` the bounds
    of each file as they were before rows were deleted, and the single values that its statistics know, `values` the
    values that they are bounds of. `root` is the
    directory below which a table of plain files names them. `changed` are files whose rows are not only their own: log
    files change them; `obscured` are files with columns of which statistics need not know all. `table` is the relation
    that queries ask, where `relation` shows its rows without any skipping.
    """

    kind: str
    relation: str
    file: str
    leaves: tuple[Leaf, ...]
    collections: tuple[str, ...]
    zones: dict[str, dict[Leaf, Zone]]
    values: dict[str, dict[Leaf, list[Any]]]
    root: Path | None = None
    changed: frozenset[str] = frozenset()
    obscured: frozenset[str] = frozenset()
    table: str | None = None

    def sample(self, leaf: Leaf) -> list[Any]:
        """All values of a column."""
        return [v for of_file in self.values.values() for v in of_file[leaf]]

    def bounds(self) -> dict[str, dict[Leaf, Zone]]:
        """The zones without single values."""
        return {f: {leaf: zone.bounds() for leaf, zone in zones.items()} for f, zones in self.zones.items()}

    def paths(self) -> dict[str, str]:
        """The files, by the paths that the table's statistics and EXPLAIN know them by."""
        if self.root is None:
            return {file: file for file in self.zones}
        return {str(reading.local(file).relative_to(self.root)): file for file in self.zones}


def one_file_a_task(spark: SparkSession, folder: Path) -> DataFrame:
    """Reads files so that each becomes a task, and so a file of what it is written to."""
    for key, value in ONE_FILE_A_TASK.items():
        spark.conf.set(key, value)
    return spark.read.parquet(str(folder))


def _create(frame: DataFrame, name: str, version: int) -> None:
    writer = frame.limit(0).writeTo(name).using("iceberg").tableProperty("format-version", str(version))
    for key, value in without_metrics.PROPERTIES.items():
        writer = writer.tableProperty(key, value)
    modes = ("write.delete.mode", "write.update.mode", "write.merge.mode")
    for mode in modes:
        writer = writer.tableProperty(mode, "merge-on-read")
    writer.create()


def iceberg(
    spark: SparkSession, name: str, kind: str, files: int, scratch: Path, rng: Random, *, covered: bool = False
) -> Subject:
    """Makes an Iceberg table of about `files` data files.

    Args:
        spark: the session; its catalog holds the table.
        name: catalog, namespace and table.
        kind: one of ICEBERG_KINDS.
        files: data files to write.
        scratch: where files are drawn before they are copied into the table.
        rng: decides everything random.
        covered: keep from Iceberg's readers whatever they might judge rows by.
    """
    design = random_design(rng, ICEBERG_SCALARS)
    if kind == "unsorted":
        design, files = unsorted_design(design, rng), files // 8
    before = files if kind in {"plain", "deletes", "vectors", "unsorted"} else files // 2
    write_files(design, before, scratch / "before", rng)
    _create(one_file_a_task(spark, scratch / "before"), name, 3 if kind in {"vectors", "defaults"} else 2)
    _append(spark, name, scratch / "before", covered=covered)
    if before < files:
        changed = evolve(spark, name, kind, design, rng)
        write_files(changed, files - before, scratch / "after", rng)
        _append(spark, name, scratch / "after", covered=covered)
    subject = details.analyzed(observe(spark, kind, name, "_file", without=(PADDING,)))
    if kind in {"deletes", "vectors"}:
        delete(spark, name, files, rng)
    return subject


def _append(spark: SparkSession, name: str, folder: Path, *, covered: bool) -> None:
    if covered:
        without_metrics.leave_out_metrics(spark, name)
    one_file_a_task(spark, folder).writeTo(name).append()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


WIDER = {"int": "bigint", "float": "double", "decimal(9,2)": "decimal(12,2)", "decimal(18,4)": "decimal(30,4)"}


def evolve(
    spark: SparkSession, name: str, kind: str, design: Design, rng: Random, wider: Mapping[str, str] = WIDER
) -> Design:
    """Changes the table's schema or partitioning and returns the design of the files that follow."""
    if kind == "partitioned":
        spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD {rng.choice(['bucket(2, file_no)', 'file_no'])}")
        return design
    if kind == "defaults":
        _add_with_defaults(spark, name)
        added = (Leaf(("added_i",), "int"), Leaf(("added_s",), "string"), Leaf(("added_n",), "int"))
        shapes = {**design.shapes, **dict.fromkeys(added, "narrow")}
        return Design(design.leaves + added, shapes, design.collections)
    top = [leaf for leaf in design.leaves if len(leaf.path) == 1 and leaf.path[0] != "file_no"]
    renamed, again, swapped = rng.sample(top, 3)
    leaves = {leaf: leaf for leaf in design.leaves}
    spark.sql(
        f"ALTER TABLE {name} RENAME COLUMN {_quoted(renamed.path[0])} TO `re named.{renamed.path[0].replace('`', '')}`"
    )
    leaves[renamed] = Leaf((f"re named.{renamed.path[0].replace('`', '')}",), renamed.type)
    other = rng.choice(ICEBERG_SCALARS)
    for column in (again, swapped):
        spark.sql(f"ALTER TABLE {name} DROP COLUMN {_quoted(column.path[0])}")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN {_quoted(again.path[0])} {again.type}")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN {_quoted(swapped.path[0])} {other}")
    leaves[swapped] = Leaf(swapped.path, other)
    for old, new in list(leaves.items()):
        if new.type in wider and old not in {swapped, again} and new.path[0] != "file_no":
            spark.sql(f"ALTER TABLE {name} ALTER COLUMN {new.sql} TYPE {wider[new.type]}")
    return Design(tuple(leaves.values()), {new: design.shapes[old] for old, new in leaves.items()}, design.collections)


def _add_with_defaults(spark: SparkSession, name: str) -> None:
    """Adds columns that old files do not hold: two have a value there all the same, one is null."""
    jvm: Any = spark._jvm
    types, literals = jvm.org.apache.iceberg.types.Types, jvm.org.apache.iceberg.expressions.Literal
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    change = table.updateSchema().addColumn("added_i", types.IntegerType.get(), literals.of(7))
    change = change.addColumn("added_s", types.StringType.get(), literals.of("zz"))
    change.addColumn("added_n", types.IntegerType.get()).commit()
    spark.sql(f"REFRESH TABLE {name}")


def delete(spark: SparkSession, name: str, files: int, rng: Random) -> None:
    """Deletes single rows of about half of the files, and every row of one."""
    chosen = rng.sample(range(files), max(1, files // 2))
    spark.sql(f"DELETE FROM {name} WHERE file_no IN ({', '.join(map(str, chosen))}) AND pmod(hash(s), 3) = 1")
    spark.sql(f"DELETE FROM {name} WHERE file_no = {chosen[0]}")


def _readable(leaf: Leaf) -> str:
    """SQL that brings a leaf's value to Python unchanged."""
    if leaf.type == "string":
        return f"CAST({leaf.sql} AS BINARY)"
    if leaf.type == "date":
        return f"unix_date({leaf.sql})"
    if leaf.type == "timestamp":
        return f"unix_micros({leaf.sql})"
    if leaf.type == "timestamp_ntz":
        return f"unix_micros(from_utc_timestamp(CAST({leaf.sql} AS TIMESTAMP), 'UTC'))"
    return leaf.sql


def leaves_of(schema: StructType) -> tuple[tuple[Leaf, ...], tuple[str, ...]]:
    """Returns the scalar leaves of a schema and the names of its collections."""
    from pyspark.sql.types import ArrayType, MapType, StructType  # noqa: PLC0415 - Spark is there by now

    leaves: list[Leaf] = []
    collections: list[str] = []

    def visit(path: tuple[str, ...], of: DataType) -> None:
        if isinstance(of, StructType):
            for field in of.fields:
                visit((*path, field.name), field.dataType)
        elif isinstance(of, ArrayType | MapType):
            collections.append(path[0])
        else:
            leaves.append(Leaf(path, of.simpleString()))

    visit((), schema)
    return tuple(leaves), tuple(collections)


def observe(
    spark: SparkSession, kind: str, relation: str, file: str, *, root: Path | None = None, without: Sequence[str] = ()
) -> Subject:
    """Reads every row of every file, through Spark, and keeps bounds and samples; `without` some columns.

    Files and rows are in the order of their values, whatever names the files were given: draws repeat with their seed.
    """
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    top_leaves, collections = leaves_of(spark.sql(f"SELECT * FROM {relation} LIMIT 0").schema)
    leaves = tuple(leaf for leaf in top_leaves if leaf.path[0] not in without)
    columns = ", ".join(f"{_readable(leaf)} AS v{i}" for i, leaf in enumerate(leaves))
    rows = collect_arrow(spark.sql(f"SELECT {file} AS f, {columns} FROM {relation}")).to_pydict()
    members: dict[str, list[int]] = {}
    for row in sorted(range(len(rows["f"])), key=lambda p: repr([rows[f"v{i}"][p] for i in range(len(leaves))])):
        members.setdefault(rows["f"][row], []).append(row)
    values = {
        name: {leaf: [rows[f"v{i}"][p] for p in positions] for i, leaf in enumerate(leaves)}
        for name, positions in members.items()
    }
    zones = {name: {leaf: zone_of(leaf.type, v) for leaf, v in of_file.items()} for name, of_file in values.items()}
    return Subject(
        kind=kind,
        relation=relation,
        file=file,
        leaves=leaves,
        collections=collections,
        zones=zones,
        values=values,
        root=root,
    )
