"""What a session writes is analyzed without being asked for: in each format, by each statement that writes."""

from __future__ import annotations

import itertools
import time

import pytest

import metastore
from formats.kinds import KINDS, ROW
from gaps import TARGETS
from lakes import SPARK
from planner.plans import conf, files_read

pytestmark = pytest.mark.spark

FORMATS = [target.format for target in TARGETS if target.spark == SPARK and target.format != "parquet"]
PATIENCE = 60.0
_names = itertools.count()


@pytest.fixture(params=[pytest.param(one, marks=pytest.mark.slow) if one == "delta" else one for one in FORMATS])
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def table(spark, kind, tmp_path):
    """A table of each format with one file that nobody analyzed."""
    name = kind.name.format(f"auto_{next(_names)}")
    kind.create(spark, name, tmp_path / "table")
    kind.append(spark, name, 0, 100)
    yield name
    kind.drop(spark, name)


def is_analyzed(spark, name: str) -> bool:
    return all(row["analyzed"] for row in metastore.files(spark, name))


def becomes_analyzed(spark, name: str) -> bool:
    until = time.monotonic() + PATIENCE
    while not (found := is_analyzed(spark, name)) and time.monotonic() < until:
        time.sleep(0.1)
    return found


WRITES = {
    "insert": "INSERT INTO {t} SELECT {row} FROM range(100, 200)",
    "overwrite": "INSERT OVERWRITE {t} SELECT {row} FROM range(100, 200)",
    "update": "UPDATE {t} SET v = 8 WHERE id = 7",
    "delete": "DELETE FROM {t} WHERE id % 2 = 1",
    "merge": "MERGE INTO {t} t USING (SELECT {row} FROM range(90, 120)) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET v = 9 WHEN NOT MATCHED THEN INSERT *",
}


@pytest.mark.parametrize(
    "write", [one if one in ("insert", "merge") else pytest.param(one, marks=pytest.mark.slow) for one in WRITES]
)
def test_a_statement_returns_when_its_files_are_analyzed(spark, kind, table, write):
    with conf(spark, spark__metastore__analyze__auto="wait"):
        spark.sql(WRITES[write].format(t=table, row=ROW))
    assert is_analyzed(spark, table)
    df = spark.sql(f"SELECT * FROM {table} WHERE id = 5000")
    assert (df.collect(), files_read(df)) == ([], [0])
    if kind.format != "hudi":
        df = spark.sql(f"SELECT * FROM {table} WHERE id % 1000 = 500")
        assert (df.collect(), files_read(df)) == ([], [0])


def test_it_goes_on_in_the_background(spark, kind, table):
    with conf(spark, spark__metastore__analyze__auto="background"):
        for start in (100, 200, 300):
            spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range({start}, {start + 50}, 1, 1)")
        assert becomes_analyzed(spark, table)
    assert len(metastore.files(spark, table)) >= (1 if kind.format == "hudi" else 4)


@pytest.mark.parametrize(("said", "expected"), [("true", True), ("false", False)])
def test_a_table_speaks_for_itself(spark, kind, table, said, expected):
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('metastore.analyze.auto' = '{said}')")
    with conf(spark, spark__metastore__analyze__auto="off" if expected else "wait"):
        spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range(100, 200)")
    assert becomes_analyzed(spark, table) if expected else not is_analyzed(spark, table)


@pytest.mark.skipif("iceberg" not in FORMATS, reason="of tables by path one format is enough")
def test_writers_of_data_frames(spark, tmp_path):
    rows = spark.sql(f"SELECT {ROW} FROM range(100)")
    path = str(tmp_path / "by_path")
    with conf(spark, spark__metastore__analyze__auto="wait"):
        rows.writeTo("ice.db.auto_created").using("iceberg").create()
        rows.writeTo("ice.db.auto_created").append()
        rows.write.format("delta").save(path)
        rows.write.format("delta").mode("append").save(path)
        spark.sql(f"CREATE TABLE auto_as_select USING delta AS SELECT {ROW} FROM range(10)")
        rows.write.format("delta").mode("overwrite").saveAsTable("auto_saved")
        rows.write.insertInto("auto_saved")
    try:
        for name in ("ice.db.auto_created", f"delta.`{path}`", "auto_as_select", "auto_saved"):
            assert is_analyzed(spark, name), name
    finally:
        for name in ("ice.db.auto_created", "auto_as_select", "auto_saved"):
            spark.sql(f"DROP TABLE {name}")


@pytest.mark.skipif("iceberg" not in FORMATS, reason="Delta has a statement for it")
def test_files_that_are_rewritten(spark):
    spark.sql("CREATE TABLE auto_optimized (id BIGINT) USING delta")
    try:
        for start in range(3):
            spark.sql(f"INSERT INTO auto_optimized SELECT id FROM range({start}, {start + 1}, 1, 1)")
        with conf(spark, spark__metastore__analyze__auto="wait"):
            spark.sql("OPTIMIZE auto_optimized").collect()
        assert len(metastore.files(spark, "auto_optimized")) == 1
        assert is_analyzed(spark, "auto_optimized")
    finally:
        spark.sql("DROP TABLE auto_optimized")


def test_a_write_succeeds_whatever_becomes_of_its_analysis(spark, kind, table):
    with conf(spark, spark__metastore__analyze__auto="wait", spark__metastore__store="/proc/nowhere"):
        spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range(100, 200)")
    assert spark.table(table).count() == 200
    with conf(spark, spark__metastore__analyze__auto="wait", spark__metastore__analyze__auto__timeout="0s"):
        spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range(200, 300)")
    assert spark.table(table).count() == 300
    assert becomes_analyzed(spark, table)


def test_what_writes_nothing_or_is_switched_off_is_left_alone(spark, kind, table):
    with conf(spark, spark__metastore__analyze__auto="wait", spark__metastore__enabled="false"):
        spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range(100, 200)")
    with conf(spark, spark__metastore__analyze__auto="wait"):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')")
        spark.sql(f"SELECT count(*) FROM {table}").collect()
        plan = spark.sql(f"EXPLAIN INSERT INTO {table} SELECT {ROW} FROM range(100, 200)").first()[0]
    assert "AnalyzeAfterWrite" in plan
    assert not is_analyzed(spark, table)
