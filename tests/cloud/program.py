"""A Spark of its own that works on tables of catalogs, and tells what it found as JSON on its last line."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import metastore
from metastore.adapters.catalog import look_up_table
from metastore.adapters.loading import identify_table
from metastore.spark_jobs.table_access import _find_new_credentials as new_keys
from metastore.spark_jobs.table_access import find_table_credentials


def start(settings: dict[str, str]) -> SparkSession:
    """Start Spark."""
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def create(spark: SparkSession, table: str) -> None:
    """Create a table of four files whose ids Iceberg's own bounds do not tell apart."""
    spark.sql(f"CREATE TABLE {table} (id INT, name STRING)")
    for number in range(4):
        ids = f"SELECT CAST(id * 4 + {number} AS INT) AS id FROM range(100)"
        spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, concat('n', id) FROM ({ids})")


def label(spark: SparkSession, query: str) -> str:
    """The scan's remark in the plan of a query."""
    plan = spark.sql(query)._jdf.queryExecution().executedPlan().toString()
    return plan.partition("[Metastore: ")[2].partition("]")[0]


def analyze(spark: SparkSession, catalog: str) -> dict[str, object]:
    """Go through what people do with tables of a catalog, and return what each step found."""
    table, other_table = f"{catalog}.db.keys", f"{catalog}.db.other"
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.db")
    create(spark, table)
    create(spark, other_table)
    point = f"SELECT name FROM {table} WHERE id = 6"
    before = label(spark, point)
    analyzed = spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").first()
    other = metastore.analyze(spark, other_table, progress=False)
    again = metastore.analyze(spark, table, progress=False)
    entry = look_up_table(spark, table)
    identity, _ = identify_table(entry)
    place = (identity, entry.identifier, f"{entry.location}/_metastore")
    keys = find_table_credentials(spark, *place)
    return {
        "before": before,
        "analyzed": [analyzed["rows"], analyzed["files_read"], list(analyzed["refused"])],
        "other": [other.rows, other.files_read],
        "again": again.files_read,
        "label": label(spark, point),
        "rows": [row.name for row in spark.sql(point).collect()],
        "summary": [
            row.asDict() for row in spark.sql(f"SELECT min, max, count FROM metastore.summary('{table}')").collect()
        ],
        "files": spark.sql(f"SELECT * FROM metastore.files('{table}') WHERE analyzed").count(),
        "source": spark.read.format("metastore").load(table).count(),
        "verified": {finding["state"] for finding in metastore.verify(spark, table)} == {"ok"},
        "has_keys": keys.has_keys,
        "renewed": new_keys(spark, *place) != keys,
        "garbage": len(metastore.gc(spark, table)),
        "without": spark.sql(f"ANALYZE TABLE {other_table} COMPUTE STATISTICS").first()["files_read"],
    }


if __name__ == "__main__":
    session = start(json.loads(sys.argv[1]))
    print(json.dumps({catalog: analyze(session, catalog) for catalog in sys.argv[2:]}))
