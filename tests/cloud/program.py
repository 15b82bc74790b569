"""A Spark of its own that works on tables of catalogs, and tells what it found as JSON on its last line."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

import metastore
from metastore.adapters.catalog import look_up_table
from metastore.adapters.loading import identify_table
from metastore.cli.app import app
from metastore.spark_jobs.table_access import find_table_credentials

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

NO_INSTANCE = {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:9", "AWS_EC2_METADATA_DISABLED": "true"}
"""No key comes from the machine."""


def run(settings: dict[str, str], cases: dict[str, list[str]], folder: Path) -> dict[str, Any]:
    """Run the program, in a process without keys in its environment.

    Args:
        settings: Settings of Spark.
        cases: The names of two tables to create, by the name of the case.
        folder: The process's folder.

    Returns:
        What was found of each case, and all that was written for people as `texts`.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, __file__, json.dumps(settings), json.dumps(cases)],
        capture_output=True, text=True, check=False, timeout=600, cwd=folder, env={**environment, **NO_INSTANCE},
    )  # fmt: skip
    errors = [line for line in done.stderr.splitlines() if not line.startswith("\tat ")]
    assert done.returncode == 0, "\n".join(errors[-40:])
    return {**json.loads(done.stdout.splitlines()[-1]), "texts": done.stdout + done.stderr}


def start(settings: dict[str, str]) -> SparkSession:
    """Start Spark."""
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def create(spark: SparkSession, table: str) -> None:
    """Create a table of four files whose ids the format's own bounds do not tell apart."""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.rpartition('.')[0]}")
    spark.sql(f"CREATE TABLE {table} (id INT, name STRING)")
    for number in range(4):
        ids = f"SELECT CAST(id * 4 + {number} AS INT) AS id FROM range(100)"
        spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, concat('n', id) FROM ({ids})")


def label(query: DataFrame) -> str:
    """The scan's remark in the plan of a query."""
    plan = query._jdf.queryExecution().executedPlan().toString()
    return plan.partition("[Metastore: ")[2].partition("]")[0]


def analyze(spark: SparkSession, table: str, other_table: str) -> dict[str, object]:
    """Go through what people do with tables of a catalog, and return what each step found."""
    create(spark, table)
    create(spark, other_table)
    point = f"SELECT name FROM {table} WHERE id = 6"
    before = label(spark.sql(point))
    analyzed = spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").first()
    other = metastore.analyze(spark, other_table, progress=False)
    again = metastore.analyze(spark, table, progress=False)
    entry = look_up_table(spark, table)
    identity, _ = identify_table(entry)
    keys = find_table_credentials(spark, identity, entry.identifier, f"{entry.location}/_metastore")
    return {
        "before": before,
        "analyzed": [analyzed["rows"], analyzed["files_read"], list(analyzed["refused"])],
        "other": [other.rows, other.files_read],
        "again": again.files_read,
        "label": label(spark.sql(point)),
        "rows": [row.name for row in spark.sql(point).collect()],
        "summary": [
            row.asDict() for row in spark.sql(f"SELECT min, max, count FROM metastore.summary('{table}')").collect()
        ],
        "files": spark.sql(f"SELECT * FROM metastore.files('{table}') WHERE analyzed").count(),
        "source": spark.read.format("metastore").load(table).count(),
        "verified": {finding["state"] for finding in metastore.verify(spark, table)} == {"ok"},
        "has_keys": keys.has_keys,
        "ends": not math.isinf(keys.expires),
        "renewed": keys.renew is not None and keys.renew.__self__._find() != keys,
        "garbage": len(metastore.gc(spark, table)),
        "without": spark.sql(f"ANALYZE TABLE {other_table} COMPUTE STATISTICS").first()["files_read"],
        "automatic": analyze_by_itself(spark, other_table),
    }


def analyze_by_itself(spark: SparkSession, table: str) -> int:
    """Write a fifth file, and return the number of files that are analyzed then."""
    spark.conf.set("spark.metastore.analyze.auto", "wait")
    spark.sql(f"INSERT INTO {table} VALUES (1000, 'n1000')")
    spark.conf.unset("spark.metastore.analyze.auto")
    return spark.sql(f"SELECT * FROM metastore.files('{table}') WHERE analyzed").count()


def count_by_command(table: str) -> int:
    """Return the number of files that the command line shows of a table; it takes this Spark, and ends it."""
    output = StringIO()
    with redirect_stdout(output):
        app(["files", table, "--json"], standalone_mode=False)
    return len(json.loads(output.getvalue()))


if __name__ == "__main__":
    session = start(json.loads(sys.argv[1]))
    cases = json.loads(sys.argv[2])
    found: dict[str, Any] = {name: analyze(session, *tables) for name, tables in cases.items()}
    found["files by command"] = count_by_command(next(iter(cases.values()))[0])
    print(json.dumps(found))
