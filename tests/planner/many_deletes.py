"""Iceberg tables of very many pairs of a data file and a delete file, to be planned: their files do not exist."""

from __future__ import annotations

from typing import Any

from metastore.format.manifest import TableIdentity
from metastore.format.table_column import Column
from planner import written

SCHEMA = "id bigint, v int"
ROWS = 1000
DELETED = 10
SIZE = 10_000


def write_files(spark, table: str, files: int, deletes: str, commits: int = 1) -> None:
    """Commits as many data files as delete files.

    Args:
        spark: the session.
        table: an empty Iceberg table of SCHEMA and format version 2.
        files: how many files of each kind.
        deletes: "position" or "equality".
        commits: the files come in so many parts, data files before delete files: later data files have fewer deletes.
    """
    iceberg = spark._jvm.org.apache.iceberg
    target = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    spec = target.spec()
    parquet = iceberg.FileFormat.PARQUET
    for part in range(commits):
        change = target.newAppend()
        for number in range(part, files, commits):
            change.appendFile(_finish(iceberg.DataFiles.builder(spec), f"data-{number}", ROWS, parquet))
        change.commit()
        delta = target.newRowDelta()
        for number in range(part, files, commits):
            builder = iceberg.FileMetadata.deleteFileBuilder(spec)
            kind = builder.ofPositionDeletes() if deletes == "position" else _by_id(spark, builder)
            delta.addDeletes(_finish(kind, f"{deletes}-{number}", DELETED, parquet))
        delta.commit()
    spark.sql(f"REFRESH TABLE {table}")


def write_statistics(spark, table: str, files: int) -> None:
    """Writes statistics of the table's data files: `id` ascends from file to file, each has ROWS of them."""
    target = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    column = Column(key="1", path=("id",), type="bigint", encoding="long")
    described = []
    for number in range(files):
        bounds = written.bounds(number * ROWS, number * ROWS + ROWS - 1)
        row = {"rows": ROWS, "nulls": 0, "nans": 0, "distinct": ROWS, "distinct_error": 0.0, **bounds}
        described.append(
            written.DataFile(path=f"/nowhere/data-{number}.parquet", size=SIZE, rows=ROWS, columns={column: row})
        )
    identity = TableIdentity("iceberg", target.uuid().toString(), target.location(), table)
    written.Written(identity, described).write()


def allocated_bytes(spark) -> dict[int, int]:
    """Bytes that each live thread of the JVM has allocated since it started, by the thread's id."""
    jvm = spark._jvm
    threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    measure = jvm.java.lang.Class.forName("com.sun.management.ThreadMXBean").getMethods()
    (method,) = (m for m in measure if m.getName() == "getThreadAllocatedBytes" and m.getReturnType().isArray())
    arguments = spark.sparkContext._gateway.new_array(jvm.Object, 1)
    ids = threads.getAllThreadIds()
    arguments[0] = ids
    allocated = dict(zip(ids, method.invoke(threads, arguments), strict=True))
    return {thread: number for thread, number in allocated.items() if number > 0}


def plan(spark, query: str) -> str:
    """Plans a query without running it."""
    return str(spark.sql(query)._jdf.queryExecution().executedPlan().toString())


def _finish(builder: Any, name: str, rows: int, parquet: Any) -> Any:
    path = f"/nowhere/{name}.parquet"
    return builder.withPath(path).withFileSizeInBytes(SIZE).withRecordCount(rows).withFormat(parquet).build()


def _by_id(spark, builder: Any) -> Any:
    ids = spark.sparkContext._gateway.new_array(spark._jvm.int, 1)
    ids[0] = 1
    return builder.ofEqualityDeletes(ids)
