"""SQL's table functions as the shim answers them, and as a Python process that is kept beside the driver would.

Both read the same statistics of an Iceberg table. Python's time is that of reading and of packing the rows as Arrow.
It would also need the table's live data files, which only the driver knows: a line shows the time to list them.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from common import alternate, median, report, seconds, spark_session

import metastore

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

TABLE = "ice.db.numbers"
FIRST_ANSWER = "import sys, metastore; metastore.open(sys.argv[1]).summary()"


def write_table(spark: SparkSession, files: int, columns: int) -> str:
    """Write and analyze a table of some data files with a hundred rows each, and return its location."""
    numbers = ", ".join(f"id * {n + 1} AS c{n}" for n in range(columns))
    rows = spark.range(files * 100).repartition(files).selectExpr(*numbers.split(", "))
    rows.writeTo(TABLE).tableProperty("write.distribution-mode", "none").create()
    spark.sql(f"ANALYZE TABLE {TABLE} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    return spark.sql(f"DESCRIBE EXTENDED {TABLE}").where("col_name = 'Location'").first()[1].removeprefix("file:")


def pack(rows: Any) -> bytes:
    """The rows as an Arrow stream."""
    table = pa.Table.from_pylist([{name: str(value) for name, value in row.items()} for row in rows])
    packed = io.BytesIO()
    with pa.ipc.new_stream(packed, table.schema) as stream:
        stream.write_table(table)
    return packed.getvalue()


def list_functions(location: str) -> dict[str, tuple[str, Callable[[], bytes]]]:
    """Each function's call in SQL, and what Python does for it."""
    opened = metastore.open
    return {
        "summary": ("summary('{}')", lambda: pack(opened(location).summary())),
        "frequencies": ("frequencies('{}', 'c1', 10)", lambda: pack(opened(location).frequencies("c1", 10))),
        "histogram": ("histogram('{}', 'c1', 20)", lambda: pack(opened(location).histogram("c1", 20))),
        "quantiles": ("quantiles('{}', 'c1')", lambda: pack(opened(location).quantiles("c1"))),
        "locate": ("locate('{}', 'c1', '4')", lambda: pack(opened(location).locate("c1", 4))),
        "files": ("files('{}')", lambda: pack(opened(location).files())),
        "columns": ("columns('{}', 'c1')", lambda: pack(opened(location).columns("c1"))),
        "layout": ("layout('{}')", lambda: pack(opened(location).layout())),
        "snapshots": ("snapshots('{}')", lambda: pack(opened(location).snapshots())),
    }


def measure_table(spark: SparkSession, files: int, columns: int, runs: int) -> list[dict[str, Any]]:
    """Time every function, then the first answer of a new process."""
    location = write_table(spark, files, columns)
    rows = []
    facts = [seconds(lambda: spark.sql(f"SELECT * FROM metastore_facts('{TABLE}')").collect()) for _ in range(runs + 1)]
    for name, (call, answer) in list_functions(location).items():
        query = f"SELECT * FROM metastore.{call.format(TABLE)}"
        times = alternate({"SQL": lambda query=query: spark.sql(query).collect(), "Python": answer}, runs)
        rows.append({"function": name, "files": files, **{side: median(t) for side, t in times.items()}})
    command = [sys.executable, "-c", FIRST_ANSWER, location]
    start = [seconds(lambda: subprocess.run(command, check=True)) for _ in range(runs)]
    rows.append({"function": "first answer of a process", "files": files, "SQL": 0.0, "Python": median(start)})
    rows.append({"function": "live data files", "files": files, "SQL": median(facts[1:]), "Python": 0.0})
    spark.sql(f"DROP TABLE {TABLE} PURGE")
    return rows


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="*", default=[8, 2_000], help="data files of the tables")
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, spark_session(Path(work)) as spark:
        rows = [row for files in options.files for row in measure_table(spark, files, options.columns, options.runs)]
    report("answers", rows)


if __name__ == "__main__":
    main()
