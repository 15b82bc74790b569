"""A Spark of its own that works on tables of catalogs, and prints its results as JSON on its last line."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

import metastore
from metastore.adapters.catalog import look_up_table
from metastore.adapters.loading import identify_table
from metastore.cli.app import app
from metastore.spark_jobs.table_access import find_table_credentials
from metastore.store.table_credentials import RemoteSigning

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PACKAGE = Path(__file__).resolve().parents[2] / "python"
"""What another Python imports our package from."""
NO_INSTANCE = {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:9", "AWS_EC2_METADATA_DISABLED": "true"}
"""No key comes from the machine."""


def run(
    settings: dict[str, str],
    cases: dict[str, dict[str, str | None]],
    folder: Path,
    options: Mapping[str, dict[str, str]] = MappingProxyType({}),
    python: str = sys.executable,
) -> dict[str, Any]:
    """Run the program, in a process without keys in its environment.

    Args:
        settings: Settings of Spark.
        cases: By the name of the case, two tables to create; an Iceberg table with None, others with their path. The
            path of a Parquet table ends with `.parquet`, other paths are of Delta tables.
        folder: The process's folder.
        options: The options of Delta tables and of their readers, by path.
        python: The Python that has the Spark.

    Returns:
        The results of each case and, as `readers`, of each reader; as `texts`, all that was written for people.
    """
    environment = {}
    if python != sys.executable:
        environment = {"PYSPARK_PYTHON": python, "PYTHONPATH": str(PACKAGE)}
    return run_file(__file__, map(json.dumps, (settings, cases, dict(options))), folder, environment, python)


def run_file(
    file: str | Path,
    arguments: Iterable[str],
    folder: Path,
    environment: Mapping[str, str] = MappingProxyType({}),
    python: str = sys.executable,
) -> dict[str, Any]:
    """Run a file in a process without keys in its environment.

    Args:
        file: The file, which prints its results as JSON on its last line.
        arguments: Its arguments.
        folder: The process's folder.
        environment: More variables of its environment.
        python: The Python that runs it.

    Returns:
        Its results; as `texts`, all that was written for people.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [python, str(file), *arguments],
        capture_output=True, text=True, check=False, timeout=600, cwd=folder,
        env={**inherited, **environment, **NO_INSTANCE},
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
    """Create a table in its catalog's format."""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.rpartition('.')[0]}")
    spark.sql(f"CREATE TABLE {table} (id INT, name STRING)")


def create_at(spark: SparkSession, table: str, path: str) -> None:
    """Create a Delta or Parquet table at a path."""
    table_format = "parquet" if path.endswith(".parquet") else "delta"
    spark.sql(f"CREATE TABLE {table} (id INT, name STRING) USING {table_format} LOCATION '{path}'")


def create_with_options(spark: SparkSession, table: str, path: str, options: dict[str, str]) -> None:
    """Create a Delta table with options in its catalog entry, as Unity Catalog writes them; SQL cannot."""
    for name, value in options.items():
        spark.conf.set(name, value)
    create_at(spark, table, path)
    for name in options:
        spark.conf.unset(name)
    state = spark._jsparkSession.sessionState()
    entry = state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(table))
    storage = entry.storage()
    formats = storage.locationUri(), storage.inputFormat(), storage.outputFormat(), storage.compressed()
    properties = spark._jvm.PythonUtils.toScalaMap(options)
    state.catalog().alterTable(entry.withNewStorage(*formats, storage.serde(), properties))
    spark.sql(f"REFRESH TABLE {table}")


def fill(spark: SparkSession, table: str) -> None:
    """Write four files whose ids the format's own bounds do not tell apart."""
    ids = "SELECT CAST(id % 100 * 4 + id DIV 100 AS INT) AS id FROM range(0, 400, 1, 4)"
    spark.sql(f"INSERT INTO {table} SELECT id, concat('n', id) FROM ({ids})")


def label(query: DataFrame) -> str:
    """The scan's remark in the plan of a query."""
    plan = query._jdf.queryExecution().executedPlan().toString()
    return plan.partition("[Metastore: ")[2].partition("]")[0]


def analyze(spark: SparkSession, table: str, other_table: str) -> dict[str, object]:
    """Go through what people do with tables of a catalog, and return the result of each step."""
    point = f"SELECT name FROM {table} WHERE id = 6"
    before = label(spark.sql(point))
    analyzed = spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").first()
    other = metastore.analyze(spark, other_table, progress=False)
    again = metastore.analyze(spark, table, progress=False)
    return {
        "before": before,
        "analyzed": [analyzed["rows"], analyzed["files_read"], list(analyzed["refused"])],
        "other": [other.rows, other.files_read],
        "again": again.files_read,
        "label": label(spark.sql(point)),
        "rows": [row.name for row in spark.sql(point).collect()],
        "plans": spark.sql(point)._jdf.queryExecution().toString(),
        "summary": [
            row.asDict() for row in spark.sql(f"SELECT min, max, count FROM metastore.summary('{table}')").collect()
        ],
        "files": spark.sql(f"SELECT * FROM metastore.files('{table}') WHERE analyzed").count(),
        "source": read_by_source(spark, table),
        "verified": {finding["state"] for finding in metastore.verify(spark, table)} == {"ok"},
        **describe_keys(spark, table),
        "garbage": len(metastore.gc(spark, table)),
        "without": spark.sql(f"ANALYZE TABLE {other_table} COMPUTE STATISTICS").first()["files_read"],
        "automatic": analyze_by_itself(spark, other_table),
    }


def read_by_source(spark: SparkSession, table: str) -> int | None:
    """Count the rows of the data source in Python, which Spark 3.5 does not know."""
    return None if spark.version.startswith("3.") else spark.read.format("metastore").load(table).count()


def describe_keys(spark: SparkSession, table: str) -> dict[str, bool]:
    """Describe the keys of a table that Python gets, if it gets any."""
    entry = look_up_table(spark, table)
    identity, _ = identify_table(entry)
    try:
        keys = find_table_credentials(spark, identity, entry.identifier, f"{entry.location}/_metastore")
    except RemoteSigning:
        return {"has_keys": False}
    return {
        "has_keys": keys.has_keys,
        "ends": not math.isinf(keys.expires),
        "renewed": keys.renew is not None and keys.renew.__self__._find() != keys,
    }


def work(spark: SparkSession, tables: dict[str, str | None], options: dict[str, dict[str, str]]) -> dict[str, object]:
    """Create the tables of a case, and go through it."""
    for table, path in tables.items():
        if path is None:
            create(spark, table)
        elif path not in options:
            create_at(spark, table, path)
        else:
            create_with_options(spark, table, path, options[path])
        fill(spark, table)
    return analyze(spark, *tables)


def read_by_options(spark: SparkSession, path: str, options: dict[str, str]) -> dict[str, object]:
    """Read a Delta table with keys among the options, by a reader and by Delta's own API."""
    delta = spark._jvm.io.delta.tables.DeltaTable.forPath(spark._jsparkSession, path, options)
    frames = [spark.read.format("delta").options(**options).load(path), DataFrame(delta.toDF(), spark)]
    queries = [frame.where("id = 6").select("name") for frame in frames]
    return {"labels": [label(query) for query in queries], "rows": [query.first().name for query in queries]}


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
    settings, cases, options = map(json.loads, sys.argv[1:])
    session = start(settings)
    results: dict[str, Any] = {name: work(session, tables, options) for name, tables in cases.items()}
    results["readers"] = [read_by_options(session, *reader) for reader in options.items()]
    first_table = next(iter(next(iter(cases.values()))))
    results["files by command"] = count_by_command(first_table)
    print(json.dumps(results))
