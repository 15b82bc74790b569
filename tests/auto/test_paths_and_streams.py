"""Writes that name a table by its path, and those of streams, are followed as statements are."""

from __future__ import annotations

import pytest

from auto.checks import NUMBERS, becomes, has_values, is_analyzed
from formats.kinds import FORMATS, ROW
from planner.plans import conf

pytestmark = pytest.mark.spark


@pytest.mark.skipif("delta" not in FORMATS, reason="of Delta: a path tells of its properties")
@pytest.mark.parametrize(("said", "expected"), [("true", True), ("false", False)])
def test_a_table_that_is_written_by_its_path_speaks_for_itself(spark, tmp_path, said, expected):
    path, rows = str(tmp_path / "by_path"), spark.sql(f"SELECT {ROW} FROM range(100)")
    rows.write.format("delta").save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('metastore.analyze.auto' = '{said}')")
    with conf(spark, spark__metastore__analyze__auto="off" if expected else "wait"):
        rows.write.format("delta").mode("append").save(path)
    name = f"delta.`{path}`"
    assert becomes(has_values, spark, name) if expected else not is_analyzed(spark, name)


@pytest.mark.skipif("iceberg" not in FORMATS, reason="of Iceberg")
def test_each_batch_of_a_stream(spark, tmp_path):
    name = f"ice.db.auto_stream_{next(NUMBERS)}"
    source = str(tmp_path / "source")
    spark.sql("CREATE TABLE " + name + " (id BIGINT) USING iceberg")
    spark.range(0, 10, 1, 1).write.parquet(source)
    try:
        with conf(spark, spark__metastore__analyze__auto="wait"):
            stream = spark.readStream.schema("id BIGINT").parquet(source)
            checkpoint = str(tmp_path / "checkpoint")
            query = stream.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True).toTable(name)
            assert query.awaitTermination(60)
        assert spark.table(name).count() == 10
        assert is_analyzed(spark, name)
    finally:
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("said", ["by the session", pytest.param("by the table", marks=pytest.mark.slow)])
def test_each_batch_of_a_stream_into_files(spark, kind, table, tmp_path, said):
    if kind.format == "iceberg":
        pytest.skip("its streams are commands")
    if (kind.format, said) == ("hudi", "by the table"):
        pytest.skip("the catalog alone knows its properties, and a sink its path")
    if said == "by the table":
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('metastore.analyze.auto' = 'true')")
    source, rows = str(tmp_path / "source"), spark.sql(f"SELECT {ROW} FROM range(100, 200, 1, 1)")
    rows.write.parquet(source)
    write = spark.readStream.schema(rows.schema).parquet(source).writeStream.format(kind.format)
    write = (
        write.option("hoodie.table.name", table)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
    )
    with conf(spark, spark__metastore__analyze__auto="background" if said == "by the session" else "off"):
        assert write.start(kind.location(spark, table)).awaitTermination(120)
    spark.sql(f"REFRESH TABLE {table}")
    assert becomes(has_values, spark, table)
