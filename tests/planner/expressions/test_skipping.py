"""Statistics of expressions: a query by an expression reads the files that its values leave open, and no others."""

from __future__ import annotations

import pytest

import metastore
from lakes import SPARK
from metastore.errors import InvalidArgument
from planner.expressions.sample_tables import CELL, EXPRESSIONS, ROWS, four_files
from planner.plans import check, conf, files_read, query_number

pytestmark = pytest.mark.spark

PREDICATES = [
    "lower(name) = 'ab105'",
    "lower(name) LIKE 'ab2%' OR lower(name) = 'ab300'",
    "lower(name) IN ('ab000', 'zz') AND f >= 0",
    "'ab3' < lower(name)",
    "date_format(ts, 'MM yyyy') = '03 2024'",
    "NOT date_format(ts, 'MM yyyy') < '03 2024'",
    "a + b > 10",
    "b + a = 20",
    "a + b <> 30 AND a + b BETWEEN 20 AND 90",
    "a + b > 10 AND a + b < 20",
    "lower(name) > 'ab139' AND lower(name) < 'ab200'",
    f"{CELL} = 2003",
    f"{CELL} IN (2, 3001)",
    "a + b IS NULL",
    "NOT a > b AND lower(name) > 'ab1'",
    "lon + lat > 100",
    "isnan(lat + lon)",
]


@pytest.mark.parametrize("predicate", PREDICATES)
def test_only_files_with_a_matching_row_are_read(spark, analyzed, predicate):
    table, file = analyzed
    needed = query_number(spark, f"SELECT count(DISTINCT {file}) FROM {table} WHERE {predicate}")
    assert needed < 4
    check(spark, f"SELECT f, name, ts, a, b, lat FROM {table} WHERE {predicate}", [needed])


@pytest.mark.parametrize("predicate", ["lower(name) = 'ab105'", "a + b > 10", f"{CELL} = 2003"])
def test_without_their_statistics_all_are_read(spark, make_table, predicate):
    table, _ = make_table("iceberg", *four_files())
    metastore.analyze(spark, table, progress=False)
    check(spark, f"SELECT * FROM {table} WHERE {predicate}", [4])


def test_explain_names_the_expression(spark, make_table):
    table, _ = make_table("iceberg", *four_files())
    metastore.analyze(spark, table, progress=False, expressions=["a + b"])
    query = f"SELECT * FROM {table} WHERE a + b > 20"
    skipped = spark.sql("SELECT * FROM metastore.explain(:q) WHERE NOT kept", args={"q": query}).collect()
    assert {row.statistic for row in skipped} == {f"a + b in [{n}, {n}], 0 of 40 rows null" for n in (0, 10, 20)}


OTHER_SESSIONS = {
    "date_format(ts, 'MM yyyy') = '03 2024'": {"spark__sql__session__timeZone": "Asia/Tokyo"},
    "lower(name) = 'ab105'": {"spark__sql__caseSensitive": "true"},
    "a + b > 10": {"spark__sql__ansi__enabled": "false"},
    "a + b > 20": {"spark__sql__legacy__literal__pickMinimumPrecision": "false"},
}


@pytest.mark.parametrize("predicate", OTHER_SESSIONS)
def test_statistics_made_under_other_settings_are_not_used(spark, make_table, predicate):
    table, _ = make_table("iceberg", *four_files())
    with conf(spark, spark__sql__ansi__enabled="true"):
        metastore.analyze(spark, table, progress=False, expressions=EXPRESSIONS)
        assert files_read(check(spark, f"SELECT * FROM {table} WHERE {predicate}"))[0] < 4
        with conf(spark, **OTHER_SESSIONS[predicate]):
            check(spark, f"SELECT * FROM {table} WHERE {predicate}", [4])


def test_columns_are_known_by_their_ids(spark, make_table):
    table, _ = make_table("iceberg", *four_files())
    metastore.analyze(spark, table, progress=False, expressions=["lower(name)", "a + b"])
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN name TO title")
    check(spark, f"SELECT * FROM {table} WHERE lower(title) = 'ab105'", [1])
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN b TO name")
    check(spark, f"SELECT * FROM {table} WHERE a + name > 10", [2])
    spark.sql(f"ALTER TABLE {table} DROP COLUMN title")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN name")
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (b int, name string)")
    check(spark, f"SELECT * FROM {table} WHERE a + b IS NULL", [4])
    check(spark, f"SELECT * FROM {table} WHERE coalesce(lower(name) = 'ab105', true)", [4])
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN a TYPE bigint")
    check(spark, f"SELECT * FROM {table} WHERE a + f > 3900", [4])


def test_a_file_with_a_row_that_raises_has_none(spark, make_table):
    table, _ = make_table("iceberg", *four_files(), ROWS.format(file=4).replace("- i * 100)", "+ 2147480000)"))
    with conf(spark, spark__sql__ansi__enabled="true"):
        report = metastore.analyze(spark, table, progress=False, expressions=["lower(name)", "a + b"])
        (failed,) = report.refused
        assert failed.subject == "expression a + b"
        assert "ARITHMETIC_OVERFLOW" in failed.reason
        check(spark, f"SELECT * FROM {table} WHERE f < 4 AND a + b > 20", [1])
        check(spark, f"SELECT * FROM {table} WHERE lower(name) = 'ab400'", [1])
        again = metastore.analyze(spark, table, progress=False, expressions=["lower(name)", "a + b"])
        assert (again.files_read, again.committed) == (0, False)
        with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
            spark.sql(f"SELECT * FROM {table} WHERE a + b > 20").collect()


REFUSED = {
    "rand() + a": "not deterministic",
    "a": "is a column",
    "1 + 1": "reads no column",
    "current_date() > ts": "another one tomorrow",
    "(SELECT max(id) FROM range(3)) + a": "sub-query",
    "nothing + 1": "cannot be resolved",
    "a FROM range(1) --": "PARSE_SYNTAX_ERROR",
    "sum(a)": "from the rows of the table alone",
    "explode(array(a))": "from the rows of the table alone",
    "array(a)": "not compared",
    "transform(array(a), x -> x + 1)[0]": "Spark's own functions",
    "twice(a)": "may become another one",
    "concat(twice(a), name)": "may become another one",
}


def test_what_has_no_certain_values_is_refused(spark, make_table):
    table, _ = make_table("iceberg", ROWS.format(file=0))
    spark.udf.register("twice", lambda value: str(value) * 2)
    for text, reason in REFUSED.items():
        with pytest.raises(InvalidArgument, match=reason):
            metastore.analyze(spark, table, progress=False, expressions=[text])
    with conf(spark, spark__metastore__expressions=";".join(REFUSED)):
        report = metastore.analyze(spark, table, progress=False)
    assert {refusal.subject for refusal in report.refused} == {f"expression {text}" for text in REFUSED}
    assert report.columns == 7


def test_a_default_of_the_catalog_is_no_value_of_a_file(spark, tmp_path):
    spark.sql(f"CREATE TABLE defaulted (a int) USING parquet LOCATION '{tmp_path / 't'}'")
    spark.sql("INSERT INTO defaulted VALUES (1)")
    spark.sql("ALTER TABLE defaulted ADD COLUMN c int DEFAULT 5")
    spark.sql("INSERT INTO defaulted VALUES (2, 6)")

    with conf(spark, spark__sql__parquet__mergeSchema="true"):  # else a listing's first file says the columns
        with conf(spark, spark__metastore__expressions="a + c"):
            report = metastore.analyze(spark, "defaulted", progress=False)
            assert [refusal.subject for refusal in report.refused] == ["expression a + c"]
            metastore.analyze(spark, f"parquet.`{tmp_path / 't'}`", progress=False)
        check(spark, "SELECT * FROM defaulted WHERE a + c = 6", [2])
        check(spark, f"SELECT * FROM parquet.`{tmp_path / 't'}` WHERE a + c IS NULL")
    spark.sql("DROP TABLE defaulted")


def test_a_name_mapping_may_give_files_other_columns(spark, make_table):
    table, _ = make_table("iceberg", ROWS.format(file=0))
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('schema.name-mapping.default' = '[]')")
    with pytest.raises(InvalidArgument, match="name mapping"):
        metastore.analyze(spark, table, progress=False, expressions=["lower(name)"])


def test_settings_and_properties_name_expressions_for_the_statement(spark, make_table):
    table, _ = make_table("iceberg", *four_files())
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('metastore.expressions' = 'a + b; concat(name, '';'')')")
    with conf(spark, spark__metastore__expressions="lower(name)"):
        spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR COLUMNS name").collect()
        check(spark, f"SELECT * FROM {table} WHERE lower(name) = 'ab105'", [1])
        check(spark, f"SELECT * FROM {table} WHERE concat(name, ';') < 'Ab1'", [1])
        check(spark, f"SELECT * FROM {table} WHERE a + b > 10", [4])  # of its columns none was chosen
        spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
        check(spark, f"SELECT * FROM {table} WHERE a + b > 10", [2])


def test_deleted_rows_count_and_new_files_are_read(spark, make_table):
    table, _ = make_table("iceberg", *four_files())
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')")
    spark.sql(f"DELETE FROM {table} WHERE f = 1 AND lower(name) = 'ab105'")
    metastore.analyze(spark, table, progress=False, expressions=["lower(name)"])
    check(spark, f"SELECT * FROM {table} WHERE lower(name) = 'ab105'", [1])
    check(spark, f"SELECT * FROM {table} WHERE lower(name) > 'ab2'", [2])
    spark.sql(ROWS.format(file=7)).coalesce(1).writeTo(table).append()
    check(spark, f"SELECT * FROM {table} WHERE lower(name) = 'ab105'", [2])
    report = metastore.analyze(spark, table, progress=False, expressions=["lower(name)"])
    assert report.files_read == 1
    check(spark, f"SELECT * FROM {table} WHERE lower(name) = 'ab105'", [1])


def test_of_a_file_with_a_deletion_vector_delta_tells_too_few_rows(spark, make_table):
    table, _ = make_table("delta", *four_files())
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM {table} WHERE f = 1 AND lower(name) = 'ab105'")
    report = metastore.analyze(spark, table, progress=False, expressions=["lower(name)"])
    assert [refusal.subject for refusal in report.refused] == ["expression lower(name)"]
    check(spark, f"SELECT * FROM {table} WHERE lower(name) = 'ab305'", [2])


@pytest.mark.skipif(SPARK == "3.5", reason="there are no functions in SQL")
def test_functions_that_are_written_in_sql_are_what_they_are_made_of(spark, make_table):
    table, _ = make_table("iceberg", *four_files())
    made = "FUNCTION cell(x double, y double) RETURNS bigint RETURN floor(x) * 1000 + floor(y) + {n}"
    spark.sql("CREATE TEMPORARY " + made.format(n=0))
    spark.sql("CREATE TEMPORARY FUNCTION now_and(x string) RETURNS string RETURN concat(x, current_date())")
    spark.sql(f"CREATE TEMPORARY FUNCTION most(x int) RETURNS int RETURN x + (SELECT max(a) FROM {table})")
    metastore.analyze(spark, table, progress=False, expressions=["cell(lon, lat)", "lower(name) || 'x'"])
    for expression in ("cell(lon, lat)", f"{CELL} + 0"):
        check(spark, f"SELECT f, name, lat FROM {table} WHERE {expression} = 2003", [1])
    spark.sql("CREATE OR REPLACE TEMPORARY " + made.format(n=1))
    check(spark, f"SELECT f, name, lat FROM {table} WHERE cell(lon, lat) = 2003", [4])
    for text, reason in {"now_and(name)": "another one tomorrow", "most(a)": "sub-query"}.items():
        with pytest.raises(InvalidArgument, match=reason):
            metastore.analyze(spark, table, progress=False, expressions=[text])
