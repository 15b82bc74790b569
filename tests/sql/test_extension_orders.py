"""The shim registers itself and may be listed too, before or after Iceberg's extensions: nothing changes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

OURS = "org.metastore.spark.MetastoreExtensions"
ICEBERG = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
conf, table = json.loads(sys.argv[1]), sys.argv[2]
builder = SparkSession.builder
for key, value in conf.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sql(f"CREATE TABLE {table} (id BIGINT, day DATE) TBLPROPERTIES ('write.metadata.metrics.default' = 'none')")
for part in range(3):
    rows = spark.range(part * 10, part * 10 + 10, 1, 1).selectExpr("id", "DATE'2024-01-01' AS day")
    rows.writeTo(table).append()
spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD days(day)")
found = spark.sql("SELECT count FROM metastore.summary(table => :t)", args={"t": table}).first()[0]
query = f"SELECT id FROM {table} WHERE id = 25"
plan = spark.sql(f"EXPLAIN {query}").first()[0]
calls = spark.sql(f"CALL ice.system.ancestors_of('{table}')").count()
functions = spark.sql("SELECT count(*) FROM metastore.help()").first()[0]
print(json.dumps([found, spark.sql(query).collect(), "3 -> 1 files" in plan, calls, functions]))
"""


@pytest.mark.parametrize("extensions", [f"{OURS},{ICEBERG}", f"{ICEBERG},{OURS}"], ids=["first", "last"])
def test_listed_and_registered_by_itself(spark_conf, tmp_path, extensions):
    conf = {
        **spark_conf,
        "spark.sql.extensions": extensions,
        "spark.sql.catalog.ice.warehouse": str(tmp_path),
        "spark.driver.memory": "1g",
    }
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(conf), "ice.db.ordered"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [30, [[25]], True, 3, 13]
