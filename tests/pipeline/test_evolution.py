"""Schemas and partitions that change, defaults, odd names."""

from __future__ import annotations

import pytest

import metastore
from pipeline.checks import Stored, check_table
from pipeline.internals import java, loaded

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_columns_renamed_dropped_added_again_promoted(spark, table):
    spark.sql(
        f"CREATE TABLE {table} (a INT, b STRING, c FLOAT, d DECIMAL(5, 2), s STRUCT<x: INT, y: STRING>) USING iceberg"
    )
    row = "named_struct('x', CAST(id AS INT), 'y', 'y')"
    spark.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'old', CAST(id / 3 AS FLOAT), "
        f"CAST(id / 2 AS DECIMAL(5, 2)), {row} FROM range(10)"
    )
    metastore.analyze(spark, table, progress=False)
    for change in (
        "RENAME COLUMN b TO renamed",
        "ALTER COLUMN a TYPE BIGINT",
        "ALTER COLUMN c TYPE DOUBLE",
        "ALTER COLUMN d TYPE DECIMAL(20, 2)",
        "DROP COLUMN s.x",
        "ADD COLUMN s.x STRING",
        "ADD COLUMN late INT",
        "ALTER COLUMN s.y FIRST",
    ):
        spark.sql(f"ALTER TABLE {table} {change}")
    report = metastore.analyze(spark, table, columns=["renamed"], progress=False)
    assert report.files_read == 0
    assert [column.name for column in Stored.of(spark, table).snapshot.columns][1] == "renamed"
    assert metastore.analyze(spark, table, progress=False).files_read == 1
    stored = check_table(spark, table)
    assert stored.table()["late"]["nulls"] == 10
    assert stored.table()["s.x"]["nulls"] == 10
    spark.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id + 5000000000, 'new', id / 3, CAST(id AS DECIMAL(20, 2)), "
        "named_struct('y', 'z', 'x', 'text'), 7 FROM range(10)"
    )
    assert metastore.analyze(spark, table, progress=False).files_read == 1
    check_table(spark, table)


def test_partition_evolution(spark, table):
    spark.sql(f"CREATE TABLE {table} (id INT, day DATE, p STRING, f DOUBLE) USING iceberg PARTITIONED BY (p, f)")
    values = "(1, DATE'2024-01-01', 'a', 0.5), (2, DATE'2024-01-02', NULL, CAST('NaN' AS DOUBLE)), (3, NULL, '', -0.0)"
    spark.sql(f"INSERT INTO {table} VALUES {values}")
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD p")
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD f")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD day")
    spark.sql(f"INSERT INTO {table} VALUES {values}")
    spark.sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD day WITH months(day)")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD p AS again")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN p TO q")
    spark.sql(f"INSERT INTO {table} VALUES {values}")
    metastore.analyze(spark, table, progress=False)
    stored = check_table(spark, table)
    partitions = partitions_of(stored)
    assert {"p": "a", "f": "0.5"} in partitions
    assert {"day": "2024-01-01"} in partitions
    assert any(values.get("again") == "a" for values in partitions)


def partitions_of(stored):
    rows = (row for block in stored.manifest.blocks for row in stored.store.get(block.files).to_pylist())
    return [dict(row["partition"] or []) for row in rows]


def test_a_partition_column_that_was_dropped_and_one_inside_a_struct(spark, table):
    spark.sql(f"CREATE TABLE {table} (id INT, gone INT, s STRUCT<day: INT>) USING iceberg PARTITIONED BY (gone, s.day)")
    spark.sql(
        f"INSERT INTO {table} VALUES (1, 5, named_struct('day', 7)), (2, 5, named_struct('day', CAST(NULL AS INT)))"
    )
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD gone")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN gone")
    spark.sql(f"INSERT INTO {table} VALUES (3, named_struct('day', 9))")
    metastore.analyze(spark, table, progress=False)
    partitions = partitions_of(check_table(spark, table))
    assert sorted(partitions, key=str) == sorted([{"s.day": "7"}, {"s.day": None}, {"s.day": "9"}], key=str)


def test_every_type_that_partitions_by_its_value(spark, table):
    kinds = {
        "b": ("BOOLEAN", "true"),
        "i": ("BIGINT", "-7"),
        "f": ("FLOAT", "CAST(0.1 AS FLOAT)"),
        "n": ("DECIMAL(5, 2)", "-1.50"),
        "w": ("DECIMAL(30, 2)", "-1.50"),
        "d": ("DATE", "DATE '1969-12-31'"),
        "t": ("TIMESTAMP", "TIMESTAMP '1969-12-31 23:59:59.999999'"),
        "z": ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ '2024-02-29 01:02:03'"),
        "x": ("BINARY", "X'00ff'"),
        "s": ("STRING", "'ž=/%'"),
    }
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in kinds.items())
    spark.sql(f"CREATE TABLE {table} (id INT, {columns}) USING iceberg PARTITIONED BY ({', '.join(kinds)})")
    values = ", ".join(value for _, value in kinds.values())
    spark.sql(f"INSERT INTO {table} VALUES (1, {values}), (2{', NULL' * len(kinds)})")
    metastore.analyze(spark, table, progress=False)
    partitions = partitions_of(check_table(spark, table))
    assert {row["t"] for row in partitions} == {"1969-12-31 23:59:59.999999", None}
    assert {row["s"] for row in partitions} == {"ž=/%", None}


def test_version_one_tables(spark, table):
    spark.sql(
        f"CREATE TABLE {table} (id INT, p INT, q STRING) USING iceberg PARTITIONED BY (p, q) "
        "TBLPROPERTIES ('format-version' = '1', 'write.metadata.compression-codec' = 'gzip')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 1, 'a'), (2, 2, 'b')")
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD p")
    spark.sql(f"INSERT INTO {table} VALUES (3, 3, 'a'), (4, NULL, NULL)")
    metastore.analyze(spark, table, progress=False)
    check_table(spark, table)


def test_initial_defaults_of_columns_added_later(spark, table):
    spark.sql(f"CREATE TABLE {table} (id INT) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    spark.sql(f"INSERT INTO {table} VALUES (1), (2)")
    iceberg = java(spark).org.apache.iceberg
    types, literal = iceberg.types.Types, iceberg.expressions.Literal.of
    change = loaded(spark, table).updateSchema()
    change.addColumn("n", types.IntegerType.get(), literal(7))
    change.addColumn("t", types.StringType.get(), literal("späť"))
    change.addColumn("b", types.BooleanType.get(), literal(True))  # noqa: FBT003 - a value
    change.addColumn("d", types.DecimalType.of(30, 2), literal(java(spark).java.math.BigDecimal("-1.50")))
    change.addColumn("day", types.DateType.get(), literal("1969-12-31").to(types.DateType.get()))
    change.commit()
    spark.sql(f"REFRESH TABLE {table}")
    spark.sql(f"INSERT INTO {table} VALUES (3, NULL, 'x', false, 7, NULL)")
    metastore.analyze(spark, table, progress=False)
    stored = check_table(spark, table)
    assert (stored.table()["n"]["lo"], stored.table()["n"]["nulls"]) == (7, 1)


def test_odd_names(spark):
    table = "ice.db.`o.d d ž`"
    spark.sql(
        f"CREATE TABLE {table} (`a.b` INT, `c``d` STRING, `e f` STRUCT<`x.y`: INT, `ž`: STRING>, `P p` STRING) "
        "USING iceberg PARTITIONED BY (`P p`)"
    )
    try:
        spark.sql(f"INSERT INTO {table} VALUES (1, 'x', named_struct('x.y', 2, 'ž', 'q'), 'a=b/c %20')")
        metastore.analyze(spark, table, columns=["`e f`.`x.y`", "c`d"], progress=False)
        metastore.analyze(spark, table, progress=False)
        check_table(spark, table)
    finally:
        spark.sql(f"DROP TABLE {table} PURGE")
