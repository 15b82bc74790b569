"""`metastore.f(...)` in every place where SQL has tables, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metastore.jvm_session import find_shim_package

CASES = json.loads((Path(__file__).parents[1] / "cases/dot_names.json").read_text("utf-8"))
VERSION = "SELECT * FROM metastore.version()"

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("case", CASES, ids=[case["sql"] for case in CASES])
def test_only_table_functions_are_rewritten(spark, case):
    rewrite = find_shim_package(spark).sql.FunctionNames.rewrite
    rewritten = rewrite(case["sql"])
    assert rewritten == (case["rewritten"] or case["sql"])
    assert len(rewritten) == len(case["sql"])


@pytest.mark.parametrize(
    "query",
    [
        VERSION,
        "SELECT a.* FROM metastore.version() a JOIN metastore.help() h ON h.function = 'metastore.help'",
        f"WITH v AS ({VERSION}) SELECT * FROM v",
        f"SELECT * FROM ({VERSION}) WHERE EXISTS (SELECT 1 FROM metastore.help())",
        f"EXECUTE IMMEDIATE '{VERSION}'",
        f"EXECUTE IMMEDIATE '{VERSION} WHERE version = ?' USING '0.1.0'",
        f"BEGIN {VERSION}; END",
        "FROM metastore.version() |> WHERE true",
    ],
)
def test_functions_work_wherever_tables_do(spark, query):
    assert [row["version"] for row in spark.sql(query).collect()] == ["0.1.0"]


def test_views_keep_functions(spark):
    spark.sql(f"CREATE TEMPORARY VIEW sql_v AS {VERSION}")
    spark.sql("CREATE DATABASE IF NOT EXISTS sql_views")
    spark.sql(f"CREATE OR REPLACE VIEW sql_views.v AS {VERSION}")
    try:
        assert spark.table("sql_v").count() == spark.table("sql_views.v").count() == 1
    finally:
        spark.sql("DROP VIEW sql_v")
        spark.sql("DROP DATABASE sql_views CASCADE")


def test_a_database_named_metastore_stays_usable(spark):
    spark.sql("CREATE DATABASE metastore")
    try:
        spark.sql("CREATE TABLE metastore.files (a INT) USING parquet")
        spark.sql("INSERT INTO metastore.files (a) VALUES (1)")
        assert spark.sql("SELECT a FROM metastore.files").collect()[0]["a"] == 1
    finally:
        spark.sql("DROP DATABASE metastore CASCADE")


@pytest.mark.parametrize(("query", "args"), [("SELECT :p AS x", {"p": 3}), ("SELECT ? AS x", [3])])
def test_parameters_are_bound_beside_the_parsers_of_others(spark, query, args):
    assert spark.sql(query, args=args).collect()[0]["x"] == 3


@pytest.mark.parametrize(
    "statement",
    [
        "OPTIMIZE delta.`{location}`",
        "VACUUM delta.`{location}`",
        "RESTORE TABLE delta.`{location}` TO VERSION AS OF 0",
        "CREATE OR REPLACE TABLE delta.`{location}-clone` SHALLOW CLONE delta.`{location}` VERSION AS OF 0",
        "ALTER TABLE ice.db.sql_marks CREATE OR REPLACE TAG `is it 12:00?`",
        "ALTER TABLE ice.db.sql_marks WRITE ORDERED BY id, `what:time?`",
    ],
)
def test_statements_of_other_grammars_may_hold_marks(spark, statement, tmp_path):
    """Spark's own grammar reads a statement with `:` or `?` in search of parameters, and knows none of these."""
    location = (tmp_path / "table").as_uri()
    spark.sql(f"CREATE TABLE delta.`{location}` USING delta AS SELECT id FROM range(10)")
    spark.sql("CREATE OR REPLACE TABLE ice.db.sql_marks USING iceberg AS SELECT id, id AS `what:time?` FROM range(10)")
    spark.sql(statement.format(location=location)).collect()


def test_sql_functions_can_be_created_beside_iceberg(spark):
    spark.sql("CREATE TEMPORARY FUNCTION plus_one(x INT) RETURNS INT RETURN x + 1")
    assert spark.sql("SELECT plus_one(1) AS x").collect()[0]["x"] == 2
    spark.sql("DROP TEMPORARY FUNCTION plus_one")


def test_error_positions_stay_those_of_the_text(spark):
    with pytest.raises(Exception, match="pos 48"):
        spark.sql("SELECT * FROM `metastore`.`version`() WHERE x ==== 1")
