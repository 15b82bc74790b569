"""The first steps of a new user, on whatever Spark is installed; `test_wheel.py` runs them in its own environments.

It prints one JSON document: what Spark said, and what the Metastore did.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import metastore

EXTENSION = "org.metastore.spark.MetastoreExtensions"


def main(folder: Path) -> None:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    builder = builder.config("spark.metastore.analyze.formats", "parquet")
    builder = builder.config("spark.metastore.planning.timeout", "60s")  # a machine may be busy
    builder = builder.config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}")
    builder = builder.config("spark.sql.extensions", EXTENSION) if "listed" in sys.argv else builder
    spark = builder.getOrCreate()
    facts: dict[str, object] = {"spark": spark.version, "range": spark.range(5).count()}
    rows = spark.range(0, 4000, 1, 4).selectExpr("id", "CAST(id % 7 AS STRING) AS s")
    rows.write.mode("overwrite").saveAsTable("sales")
    query = "SELECT * FROM sales WHERE id = 1234"
    try:
        spark.sql("ANALYZE TABLE sales COMPUTE STATISTICS FOR ALL COLUMNS")
        facts["pruned"] = sorted(row["kept"] for row in metastore.explain(spark, query))
        rows_of = metastore.summary(spark, "sales")
        facts["summary"] = {row["column_name"]: [row["count"], row["min"], row["max"]] for row in rows_of}
        facts["version"] = metastore.version(spark)
    except metastore.MetastoreError as error:
        facts["error"] = error.message
    facts["rows"] = [list(row) for row in spark.sql(query).collect()]
    sys.stdout.write(json.dumps(facts) + "\n")
    spark.stop()


main(Path(sys.argv[1]))
