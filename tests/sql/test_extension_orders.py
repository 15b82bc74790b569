"""The shim registers itself and may be listed too, before or after the formats' extensions: nothing changes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from metastore.contract import read_contract

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OURS = "org.metastore.spark.MetastoreExtensions"
ICEBERG = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
DELTA = "io.delta.sql.DeltaSparkSessionExtension"
PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder
for key, value in json.loads(sys.argv[1]).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
properties = {
    "iceberg": "'write.metadata.metrics.default' = 'none'",
    "delta": "'delta.dataSkippingNumIndexedCols' = '0'",
}
found = {"functions": spark.sql("SELECT count(*) FROM metastore.help()").first()[0]}
for form, table in {"iceberg": "ice.db.ordered", "delta": "ordered"}.items():
    spark.sql(f"CREATE TABLE {table} (id BIGINT, day DATE) USING {form} TBLPROPERTIES ({properties[form]})")
    for part in range(3):
        spark.sql(f"INSERT INTO {table} SELECT id, DATE'2024-01-01' FROM range({part * 10}, {part * 10 + 10}, 1, 1)")
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
    query = f"SELECT id FROM {table} WHERE id = 25"
    found[form] = [
        spark.sql("SELECT count FROM metastore.summary(table => :t)", args={"t": table}).first()[0],
        spark.sql(f"SELECT id FROM {table} WHERE id = :id", args={"id": 25}).collect(),
        "3 -> 1 files" in spark.sql(f"EXPLAIN {query}").first()[0],
        spark.sql(f"SELECT count(*) FROM {table} WHERE id IN (SELECT id FROM {table} WHERE id > 20)").first()[0],
    ]
    spark.sql(f"MERGE INTO {table} t USING (SELECT 25 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 125")
    found[form].append(spark.sql(f"SELECT count(*) FROM {table} WHERE id IN (25, 125)").first()[0])
spark.sql("ALTER TABLE ice.db.ordered ADD PARTITION FIELD days(day)")
found["call"] = spark.sql("CALL ice.system.ancestors_of('ice.db.ordered')").count()
found["optimize"] = len(spark.sql("OPTIMIZE ordered").collect())
found["vacuum"] = len(spark.sql("VACUUM ordered RETAIN 1000 HOURS").collect())
both = "SELECT a.id FROM ice.db.ordered a JOIN ordered b ON a.id = b.id WHERE a.id = 5"
found["both"] = spark.sql(both).collect()
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    "extensions",
    [
        pytest.param(f"{OURS},{ICEBERG},{DELTA}", id="first", marks=pytest.mark.campaign),
        pytest.param(f"{DELTA},{ICEBERG},{OURS}", id="last"),
    ],
)
def test_listed_and_registered_by_itself(own_spark_conf, tmp_path, extensions):
    conf = {
        **own_spark_conf,
        "spark.sql.extensions": extensions,
        "spark.sql.catalog.ice.warehouse": str(tmp_path / "ice"),
        "spark.sql.warehouse.dir": str(tmp_path / "own"),
    }
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(conf)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    printed = json.loads(done.stdout.splitlines()[-1])
    assert printed == {
        "functions": sum(not function.get("internal") for function in read_contract("functions")["functions"]),
        "iceberg": [30, [[25]], True, 9, 1],
        "delta": [30, [[25]], True, 9, 1],
        "call": 4,
        "optimize": 1,
        "vacuum": 1,
        "both": [[5]],
    }
