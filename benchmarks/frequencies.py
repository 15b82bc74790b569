"""Frequencies of 100 million values of a table, exact, against DuckDB's group-by of the same files.

    uv run python benchmarks/frequencies.py --rows 20000000

Five columns, one for each way in which values repeat. Every list that ANALYZE makes has to be that of the group-by,
value for value, and no list may have been in the driver: its memory grows by less than the largest list takes.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import report, seconds, spark_session

import metastore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

    from metastore import Statistics

    Longs = NDArray[np.int64]

TABLE = "ice.db.frequencies"
ODD = np.int64(-7046029254386353131)
"""Multiplying by an odd number is a permutation of 64-bit numbers: it puts unique values in no order."""
DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
KIB = 1024
ANYWAY = 64  # MiB that a driver grows by whatever it analyzes


def identifiers(numbers: Longs) -> pa.Array:
    """Numbers as texts of 16 hexadecimal digits that look random."""
    with np.errstate(over="ignore"):
        spread = ((numbers + 1) * ODD).view(np.uint8)
    digits = np.empty((len(spread), 2), np.uint8)
    digits[:, 0], digits[:, 1] = DIGITS[spread >> 4], DIGITS[spread & 15]
    offsets = pa.py_buffer(np.arange(0, 16 * len(numbers) + 1, 16, dtype=np.int32))
    return pa.StringArray.from_buffers(len(numbers), offsets, pa.py_buffer(digits.reshape(-1)))


def columns(first: int, rows: int, total: int) -> dict[str, Any]:
    """The values of one data file.

    Args:
        first: The number of its first row.
        rows: How many it has.
        total: How many the table has.
    """
    chance = np.random.default_rng(first)
    with np.errstate(over="ignore"):
        unique = np.arange(first, first + rows) * ODD
    return {
        "skewed": np.minimum(chance.zipf(1.2, rows), 1 << 40),
        "uniform": chance.integers(0, max(total // 4, 1), rows),
        "near_unique": chance.integers(0, 50 * total, rows),
        "all_unique": unique,
        "identifier": identifiers(chance.integers(0, max(total // 2, 1), rows)),
    }


def write(folder: Path, first: int, rows: int, total: int) -> tuple[str, int, int]:
    """Writes one data file; returns its path, size and number of rows."""
    values = columns(first, rows, total)
    arrays = [pa.array(column_values) for column_values in values.values()]
    fields = [
        pa.field(name, array.type, metadata={"PARQUET:field_id": str(ordinal)})
        for ordinal, (name, array) in enumerate(zip(values, arrays, strict=True), 1)
    ]
    table, path = pa.table(arrays, schema=pa.schema(fields)), folder / f"{first:012}.parquet"
    pq.write_table(table, path, use_dictionary=["skewed"], compression="snappy", row_group_size=1 << 20)
    return str(path), path.stat().st_size, rows


def filled(spark: SparkSession, name: str, total: int, files: int) -> list[str]:
    """Makes a table of data files that other processes write; returns their paths."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    kinds = "skewed BIGINT, uniform BIGINT, near_unique BIGINT, all_unique BIGINT, identifier STRING"
    spark.sql(f"CREATE TABLE {name} ({kinds}) USING iceberg")
    iceberg = spark._jvm.org.apache.iceberg  # noqa: SLF001 - SQL does not append files with field ids
    table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)  # noqa: SLF001 - as above
    folder = Path(table.location().removeprefix("file:")) / "data"
    folder.mkdir(parents=True, exist_ok=True)
    starts = [number * total // files for number in range(files + 1)]
    with ProcessPoolExecutor(2, get_context("spawn")) as workers:
        writing = [workers.submit(write, folder, first, end - first, total) for first, end in pairwise(starts)]
        written = [task.result() for task in writing]
    append = table.newAppend()
    for path, size, rows in written:
        builder = iceberg.DataFiles.builder(table.spec()).withPath(path).withFormat("parquet")
        append.appendFile(builder.withFileSizeInBytes(size).withRecordCount(rows).build())
    append.commit()
    return [path for path, _, _ in written]


def checked(opened: Statistics, paths: Sequence[str], total: int) -> list[dict[str, Any]]:
    """Compares every list with the group-by.

    Raises:
        AssertionError: One is not that of the group-by.
    """
    database = duckdb.connect(config={"memory_limit": "6GB", "threads": "2"})
    table = opened._table  # noqa: SLF001 - which objects hold a column's list stands in the manifest
    snapshot = table.snapshots[-1]
    summaries = {row["column"]: row for row in table.store.get(snapshot.summary).to_pylist()}
    rows = []
    for ordinal, column in enumerate(snapshot.columns):
        facts = summaries[ordinal]
        list_objects = [ref.object for ref in snapshot.frequencies if ordinal in ref.columns]
        value = f"encode({column.name})" if column.encoding == "binary" else column.name
        counted = f"SELECT {value} AS v, count(*) AS n FROM read_parquet($paths) GROUP BY 1"
        database.execute(f"CREATE OR REPLACE TEMP TABLE truth AS {counted}", {"paths": list(paths)})
        duplicates = facts["frequencies"] == "duplicates"
        expected_query = f"SELECT count(*), sum(hash(v, n)), sum(n) FROM truth WHERE n > {int(duplicates)}"
        truth = database.execute(expected_query).fetchone()
        distinct, singles = database.execute("SELECT count(*), count(*) FILTER (n = 1) FROM truth").fetchone() or (0, 0)
        objects = [f"{opened.location.removeprefix('file:')}/_metastore/objects/{ref.name}" for ref in list_objects]
        stored_query = (
            f"SELECT count(*), sum(hash(v, n)), sum(n) FROM (SELECT value_{column.encoding} AS v, frequency AS n"
        )
        stored_query += f' FROM read_parquet($objects) WHERE "column" = {ordinal})'
        listed = database.execute(stored_query, {"objects": objects}).fetchone() if objects else (0, None, None)
        assert listed == truth, f"{column.name}: listed {listed}, counted {truth}"
        assert (facts["distinct"], facts["distinct_error"], facts["singles"]) == (distinct, 0, singles), facts
        rows.append(
            {
                "column": column.name,
                "values": total,
                "distinct": distinct,
                "singles": singles,
                "algorithm": facts["frequencies_algorithm"],
                "listed": truth[0],
                "list_mb": sum(ref.length for ref in list_objects) >> 20,
                "plain_mb": distinct * (24 if column.encoding == "binary" else 16) >> 20,
            }
        )
    return rows


def peak() -> int:
    """The largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // KIB


def main() -> None:
    """Writes, analyzes, checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows of five values each")
    parser.add_argument("--files", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="frequencies-") as scratch:
        work = Path(scratch)
        with spark_session(work, **{"spark.local.dir": str(work / "shuffle")}) as spark:
            paths: list[str] = []
            wrote = seconds(lambda: paths.extend(filled(spark, TABLE, options.rows, options.files)))
            filled(spark, f"{TABLE}_small", 1000, 2)
            metastore.analyze(spark, f"{TABLE}_small", frequencies="exact", progress=False)  # loads what jobs need
            before = peak()
            took = seconds(lambda: metastore.analyze(spark, TABLE, frequencies="exact", progress=False))
            grown = peak() - before
        sys.stderr.write(f"wrote in {wrote:.0f} s, analyzed in {took:.0f} s, driver grew by {grown} MiB\n")
        rows = checked(metastore.open(str(work / "ice/db/frequencies")), paths, options.rows)
    report("frequencies", rows, seconds=round(took, 1), driver_growth_mib=grown, driver_peak_mib=before + grown)
    largest = max(ANYWAY, *(row["plain_mb"] for row in rows))
    assert grown < largest, f"the driver grew by {grown} MiB, the largest list has {largest} MiB"


if __name__ == "__main__":
    main()
