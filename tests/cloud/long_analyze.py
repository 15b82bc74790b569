"""A Spark of its own that analyzes a table for longer than the catalog's keys are valid.

Prints the report, and what queries say afterwards, as JSON on its last line.
"""

from __future__ import annotations

import json
import sys

import metastore
from cloud.program import label, start
from metastore.spark_jobs import session_jobs

FILES = 48
FILES_OF_TASK = 3
ROWS = 4800


def run(settings: dict[str, str], table: str) -> dict[str, object]:
    """Create a table, analyze it, and read it with its statistics."""
    spark = start(settings)
    # A task takes three of the small files, as it would take one of half a gigabyte.
    session_jobs._LARGEST = FILES_OF_TASK * session_jobs._OPEN_COST
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.rpartition('.')[0]}")
    spark.sql(f"CREATE TABLE {table} (id INT, name STRING)")
    spark.sql(
        f"INSERT INTO {table} SELECT CAST(id % {ROWS // FILES} * {FILES} + id DIV {ROWS // FILES} AS INT),"
        f" concat('n', id) FROM range(0, {ROWS}, 1, {FILES})"
    )
    analyzed = metastore.analyze(spark, table, progress=False)
    spark.sql(f"REFRESH TABLE {table}")  # Iceberg's cached table keeps the keys with which it was loaded
    again = metastore.analyze(spark, table, progress=False)
    point = spark.sql(f"SELECT name FROM {table} WHERE id = 7")
    return {
        "files_read": analyzed.files_read,
        "refused": [str(refusal) for refusal in analyzed.refused],
        "seconds": analyzed.seconds,
        "again": again.files_read,
        "label": label(point),
        "rows": [row.name for row in point.collect()],
    }


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]), sys.argv[2])))
