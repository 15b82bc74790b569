"""Data files that queries read, and what planning them takes, with each format's own skipping and with the Metastore.

One table of each format: `id`, `day`, `name` and `c0` to `c9` ascend from file to file (the last ten overlap), `key`
and `number` are in no order, and ANALYZE is told to store where their values live, or is not. "Ideal" are the files
that hold a row of the answer.

On Spark 3.5 the table is Hudi's, with its column statistics index of all columns, and `results/pruning_hudi.json` is
written. There planning includes the look-up of files, which Hudi makes when the query runs; "plain planning ms" is what
it takes without any skipping; "own rows" tells where Hudi's skipping loses some. `--indexes` adds Hudi's record index,
and its secondary indexes of `key` and `number`; results are `pruning_hudi_indexed.json` then. The
results' name tells how many data files there are, where they are not 1,000.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from common import median, planning, report, spark_session

import metastore
from metastore import jars
from metastore.demo.executed_plan import count_files_read, find_scan_nodes, read_scan_metrics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPARK = ".".join(pyspark.__version__.split(".")[:2])
ALL = {"iceberg": "ice.db.pruned", "delta": "pruned_delta", "parquet": "pruned_parquet", "hudi": "pruned_hudi"}
TABLES = {form: name for form, name in ALL.items() if (form == "hudi") == (SPARK == "3.5")}
OWN = {
    "iceberg": "_file",
    "delta": "_metadata.file_path",
    "parquet": "_metadata.file_path",
    "hudi": "_hoodie_file_name",
}
FILES = 1000
WIDE = 10
FEW = 10
ROWS = "SELECT id FROM {table} WHERE {condition}"
SHAPES = {
    "limit": f"{ROWS} LIMIT {FEW}",
    "top-K": f"{ROWS} ORDER BY id DESC LIMIT {FEW}",
    "join": "SELECT t.id FROM {table} t JOIN (SELECT id * {middle} AS id FROM range(1, 2)) one USING (id)",
    "count": "SELECT count(*), count(DISTINCT day), max(name) FROM {table} WHERE {condition}",
    "mean": "SELECT avg(c0), sum(id) FROM {table} WHERE {condition}",
    "groups": "SELECT day, count(*) FROM {table} WHERE {condition} GROUP BY day",
}
"""Queries that ask for more than the rows of their condition."""
ONE_FILE = {"limit", "top-K"}
AGGREGATES = {"count", "mean", "groups"}
HUDI = {
    "hoodie.table.name": "pruned",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.bulkinsert.sort.mode": "NONE",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "false",
}
INDEXES = {"record_index": "id", "index_of_key": "key", "index_of_number": "number"}


def conf() -> dict[str, str]:
    """Settings of a session with the formats of this Spark."""
    if SPARK == "3.5":
        return {
            "spark.jars": ",".join(map(str, jars.fetch_all("hudi-3.5"))),
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": (
                "org.apache.spark.sql.hudi.HoodieSparkSessionExtension,org.metastore.spark.MetastoreExtensions"
            ),
            "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        }
    jar_paths = [jars.fetch("iceberg-4.1"), *jars.fetch_all("delta-4.1")]
    return {
        "spark.jars": ",".join(map(str, jar_paths)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def rows(spark: SparkSession, files: int, each: int, wide: int) -> DataFrame:
    """The rows of a table, a partition a file."""
    spread = [f"CAST(id + pmod(hash(id, {i}), {3 * each}) AS INT) AS c{i}" for i in range(wide)]
    return spark.range(0, files * each, 1, files).selectExpr(
        "id",
        f"date_add(DATE '2000-01-01', CAST(id DIV {each} AS INT)) AS day",
        "concat('user-', lpad(CAST(id AS STRING), 9, '0')) AS name",
        "md5(CAST(id AS STRING)) AS key",
        "xxhash64(id) AS number",
        *spread,
    )


def write(spark: SparkSession, form: str, made: DataFrame, path: Path, distribution: list[str]) -> None:
    """Writes and analyzes the table of one format; one of Hudi that `path` has already is taken as it is."""
    name = TABLES[form]
    if form == "iceberg":
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
        made.writeTo(name).using("iceberg").tableProperty("write.distribution-mode", "none").create()
    elif form == "hudi":
        if not path.exists():
            indexed = {
                "hoodie.metadata.index.column.stats.column.list": ",".join(["_hoodie_record_key", *made.columns])
            }
            made.write.format("hudi").options(**HUDI, **indexed).save(str(path))
        for table in (name, f"{name}_plain"):
            spark.sql(f"CREATE TABLE {table} USING hudi LOCATION '{path}'")
    else:
        made.write.format(form).saveAsTable(name)
    metastore.analyze(spark, name, distribution=distribution, progress=False)


def index(spark: SparkSession, table: str) -> None:
    """Has Hudi make the indexes that its table does not have yet."""
    for name, column in INDEXES.items():
        start = time.perf_counter()
        spark.sql(f"CREATE INDEX IF NOT EXISTS {name} ON {table} ({column})")
        sys.stderr.write(f"{name}: {time.perf_counter() - start:.1f} s\n")


def queries(files: int, each: int) -> dict[str, str]:
    """Conditions by the name of what they show."""
    middle = files * each // 2
    hidden = [f"md5('{middle + step}')" for step in (1, 7, 9)]
    return {
        "point": f"id = {middle}",
        "range": f"id BETWEEN {middle} AND {middle + each}",
        "in": f"id IN (5, {middle}, {files * each - 1})",
        "date": "day = DATE '2000-01-03'",
        "string": f"name = 'user-{middle:09d}'",
        "like": f"name LIKE 'user-{middle // 100:07d}%'",
        "unsorted string": f"key = {hidden[0]}",
        "unsorted in": f"key IN ({', '.join(hidden)})",
        "unsorted number": f"number = xxhash64({middle}L)",
        "ten columns": " AND ".join(f"c{i} BETWEEN {middle} AND {middle + 4 * each}" for i in range(WIDE)),
        "nothing": f"id = {files * each + 1}",
        "contains": "CAST(day AS STRING) LIKE '%-01-0%'",
        "limit": f"id >= {middle}",
        "top-K": f"id < {middle}",
        "join": f"id = {middle}",
        "count": f"id >= {middle}",
        "mean": f"id < {middle}",
        "groups": f"id >= {middle}",
    }


def query_of(form: str, name: str, condition: str, middle: int) -> str:
    """The text of a query."""
    return SHAPES.get(name, ROWS).format(table=TABLES[form], condition=condition, middle=middle)


def ideal(name: str, files: int, matching: tuple[int, int]) -> tuple[int, int]:
    """How many rows a query gives, and of how many data files, if all that are not needed were skipped."""
    if name in ONE_FILE:
        return min(FEW, matching[0]), 1
    return (files // 2 if name == "groups" else 1, 0) if name in AGGREGATES else matching


class Measured:
    """The runs of one query on one side."""

    def __init__(self) -> None:
        self.files = 0
        self.answer: list[Any] = []
        self.planning: list[float] = []
        self.seconds: list[float] = []

    def run(self, spark: SparkSession, query: str) -> None:
        """Runs the query once."""
        start = time.perf_counter()
        frame = spark.sql(query)
        self.answer = sorted(frame.collect())
        self.seconds.append(time.perf_counter() - start)
        self.planning.append(planning(frame) + looked_up(frame))
        self.files = sum(count_files_read(frame))


def looked_up(frame: DataFrame) -> int:
    """Milliseconds in which Hudi finds the files of a query that runs."""
    return sum(read_scan_metrics(scan)["metadataTime"] for scan in find_scan_nodes(frame)) if "hudi" in TABLES else 0


def measure(
    spark: SparkSession, form: str, name: str, query: str, condition: str, true: tuple[int, int], runs: int
) -> dict[str, Any]:
    """Runs one query in turn with the Metastore and without it; the first round warms up. `true` are rows and files."""
    sides = {"true": Measured(), "false": Measured()}
    plain = []
    for run in range(runs + 1):
        for enabled, side in sides.items():
            spark.conf.set("spark.metastore.enabled", enabled)
            side.run(spark, query)
            if run == 0:
                side.planning.clear()
                side.seconds.clear()
        plain += [unskipped(spark, condition)] if form == "hudi" and run else []
    ours, spark_alone = sides["true"], sides["false"]
    assert len(ours.answer) == true[0], (form, query)
    assert form == "hudi" or len(spark_alone.answer) == true[0], (form, query)
    assert name not in AGGREGATES or ours.answer == spark_alone.answer, (form, query)
    return {
        "rows": true[0],
        "ideal files": true[1],
        **({"own rows": len(spark_alone.answer)} if form == "hudi" else {}),
        "own files": spark_alone.files,
        "our files": ours.files,
        **({"plain planning ms": median(plain)} if form == "hudi" else {}),
        "own planning ms": median(spark_alone.planning),
        "our planning ms": median(ours.planning),
        "own seconds": median(spark_alone.seconds),
        "our seconds": median(ours.seconds),
    }


def unskipped(spark: SparkSession, condition: str) -> float:
    """Milliseconds to plan a query of Hudi and to list its files, of which none is skipped."""
    spark.conf.set("spark.metastore.enabled", "false")
    frame = spark.sql(f"SELECT id FROM {TABLES['hudi']}_plain WHERE {condition}")
    (scan,) = find_scan_nodes(frame)
    start = time.perf_counter()
    scan.selectedPartitions()
    return planning(frame) + 1000 * (time.perf_counter() - start)


def count_rows_and_files(spark: SparkSession, form: str, conditions: dict[str, str]) -> dict[str, tuple[int, int]]:
    """How many rows each condition has, and in how many files, by one scan of everything."""
    spark.conf.set("spark.metastore.enabled", "false")
    spark.conf.set("hoodie.enable.data.skipping", "false")  # a catalog keeps it with the first reading of a table
    name = TABLES[form] + ("_plain" if form == "hudi" else "")
    counts = ", ".join(f"count_if({condition})" for condition in conditions.values())
    files = spark.sql(f"SELECT {counts} FROM {name} GROUP BY {OWN[form]}").collect()
    spark.conf.unset("hoodie.enable.data.skipping")
    of_query = zip(conditions, zip(*files, strict=True), strict=True)
    return {query: (sum(files_skipped), sum(n > 0 for n in files_skipped)) for query, files_skipped in of_query}


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--rows", type=int, default=2000, help="of a file")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--wide", type=int, default=WIDE, help="columns beside the first five")
    parser.add_argument("--formats", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--without-distribution", action="store_true", help="what is kept of files alone")
    parser.add_argument("--indexes", action="store_true", help="of Hudi, beside its column statistics")
    parser.add_argument("--hudi", type=Path, help="folder of Hudi's table, to be used again")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as scratch, spark_session(Path(scratch), **conf()) as spark:
        for form in options.formats:
            made = rows(spark, options.files, options.rows, options.wide)
            distribution = [] if options.without_distribution else ["key", "number"]
            write(spark, form, made, options.hudi or Path(scratch) / "pruned", distribution)
            if options.indexes:
                index(spark, TABLES[form])
            conditions = queries(options.files, options.rows)
            for name, matching in count_rows_and_files(spark, form, conditions).items():
                query = query_of(form, name, conditions[name], options.files * options.rows // 2)
                true = ideal(name, options.files, matching)
                measured = measure(
                    spark, form=form, name=name, query=query, condition=conditions[name], true=true, runs=options.runs
                )
                results.append({"format": form, "query": name, **measured})
                sys.stderr.write(f"{results[-1]}\n")
    facts = {"files": options.files, "rows_of_a_file": options.rows, "columns": 5 + options.wide, "runs": options.runs}
    alone = "_files_alone" if options.without_distribution else ""
    indexed = "_indexed" if options.indexes else ""
    sized = "" if options.files == FILES else f"_{options.files}"
    report(f"{'pruning_hudi' if 'hudi' in TABLES else 'pruning'}{indexed}{alone}{sized}", results, **facts)


if __name__ == "__main__":
    main()
