"""Tables of classes that extend Iceberg's: served where their scans are Iceberg's own, else no Iceberg tables to us."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

import metastore
from metastore.errors import UnsupportedTable
from planner.plans import check, conf, labels

pytestmark = pytest.mark.spark

SERVED = ("Named", "Delegating")
NOT_SERVED = ("Filtered", "OwnScan", "Hidden", "Swapped", "Pinned")


@pytest.fixture(scope="module")
def catalog(spark, warehouse, tmp_path_factory):
    """The catalog `extended`, of the same tables as `ice`."""
    jvm = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setTargetVersion(8)  # which may call static methods of interfaces
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(Path(__file__).with_name("extended_tables.java").read_text("utf-8"))
    path = tmp_path_factory.mktemp("classes") / "extended.jar"
    with zipfile.ZipFile(path, "w") as jar:
        for name, code in compiler.getBytecodes().items():
            jar.writestr(f"{name}.class", bytes(code))
    spark.sql(f"ADD JAR '{path}'")
    spark.conf.set("spark.sql.catalog.extended", "ExtendedCatalog")
    spark.conf.set("spark.sql.catalog.extended.type", "hadoop")
    spark.conf.set("spark.sql.catalog.extended.warehouse", str(warehouse))
    spark.conf.set("spark.sql.catalog.extended.cache-enabled", "false")
    return "extended"


@pytest.fixture
def table(spark, new_table, catalog):
    """The name, in the catalog `extended`, of a table with four data files of 100 ids each."""
    name = new_table("id bigint, other bigint, s string")
    for start in range(0, 400, 100):
        spark.range(start, start + 100, 1, 1).selectExpr("id", "-id AS other", "string(id) AS s").writeTo(name).append()
    return name.replace("ice.", f"{catalog}.", 1)


@pytest.mark.parametrize("kind", SERVED)
def test_a_class_that_reads_as_iceberg_does_is_served(spark, table, kind):
    with conf(spark, tests__table=kind):
        spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
        check(spark, f"SELECT * FROM {table} WHERE other = -250", [1])
        check(spark, f"SELECT count(*), max(other) FROM {table} WHERE id >= 100")
        spark.sql(f"DELETE FROM {table} WHERE id = 5")
        spark.sql(f"UPDATE {table} SET other = 1000 WHERE id = 350")
        check(spark, f"SELECT * FROM {table} WHERE other = 1000")
        check(spark, f"SELECT * FROM {table} WHERE id < 10")
        assert metastore.analyze(spark, table, progress=False).files == 4


@pytest.mark.parametrize("kind", NOT_SERVED)
def test_a_class_that_may_change_rows_is_left_alone(spark, table, kind):
    metastore.analyze(spark, table.replace("extended.", "ice.", 1), progress=False)
    with conf(spark, tests__table=kind):
        df = check(spark, f"SELECT * FROM {table} WHERE id = 250")
        assert labels(df) == []
        with pytest.raises(UnsupportedTable, match="Table"):
            metastore.analyze(spark, table, progress=False)
