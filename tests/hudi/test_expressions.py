"""Statistics of expressions of Hudi tables: of base files whose rows every reader shows alike."""

from __future__ import annotations

import pytest

import metastore
from hudi.conftest import append, create, location, write
from planner.expressions import sample_tables, test_skipping
from planner.expressions.sample_tables import CELL, EXPRESSIONS
from planner.plans import check, check_first, conf, query_number

pytestmark = pytest.mark.spark

COLUMNS = f"id BIGINT, {sample_tables.COLUMNS}, n BIGINT"
ROW = f"id, {sample_tables.VALUES.format(file='CAST(id DIV 40 AS INT)', i='CAST(id % 40 AS INT)')}, id AS n"


@pytest.fixture(autouse=True)
def without_evaluation(spark):
    """Turn off the evaluation of single values, and Hudi's skipping, which loses rows."""
    with conf(spark, spark__metastore__pruning__values__maxEvaluations="0", hoodie__enable__data__skipping="false"):
        yield


@pytest.fixture
def filled(spark, table):
    create(spark, table, COLUMNS, kind="cow", preCombineField="n")
    append(spark, table, 0, 160, files=4, row=ROW)
    return table


def test_only_files_with_a_matching_row_are_read(spark, filled):
    report = metastore.analyze(spark, filled, progress=False, expressions=EXPRESSIONS)
    assert not report.refused
    again = metastore.analyze(spark, filled, progress=False, expressions=EXPRESSIONS)
    assert (again.files_read, again.committed) == (0, False)
    for predicate in test_skipping.PREDICATES:
        needed = query_number(spark, f"SELECT count(DISTINCT f) FROM {filled} WHERE {predicate}")
        check_first(spark, f"SELECT f, name, ts, a, b, lat FROM {filled} WHERE {predicate}", needed)


def test_keys_of_joins_choose_files(spark, filled):
    metastore.analyze(spark, filled, progress=False, expressions=["lower(name)", "a + b"])
    for key, values in (("lower(f.NAME)", "('ab205')"), ("f.a + f.b", "(20L), (NULL)"), ("f.f", "(2L)")):
        small = f"(SELECT * FROM VALUES {values} AS v(k)) d"
        check_first(spark, f"SELECT f, name, k FROM {filled} f JOIN {small} ON {key} = d.k", 1)
        check_first(spark, f"SELECT f, name, k FROM {filled} f LEFT JOIN {small} ON {key} = d.k", 4)


def test_a_changed_slice_is_read_until_it_is_rewritten(spark, table):
    create(spark, table, COLUMNS, kind="mor", preCombineField="n", **{"hoodie.compact.inline": "false"})
    append(spark, table, 0, 160, files=4, row=ROW)
    spark.sql(f"UPDATE {table} SET b = 5000 WHERE id = 7")
    report = metastore.analyze(spark, table, progress=False, expressions=["a + b"])
    (refused,) = report.refused
    assert refused.subject == "expression a + b"
    assert "log files" in refused.reason
    check(spark, f"SELECT id FROM {table} WHERE a + b > 1000", [1])
    check(spark, f"SELECT id FROM {table} WHERE a + b = 20", [2])
    before = spark.sql(f"SELECT min(_hoodie_commit_time) FROM {table}").first()[0]
    past = spark.read.format("hudi").option("as.of.instant", before).load(location(spark, table))
    assert past.where("a + b > 1000").count() == 0
    assert past.where("a + b = 0").count() == 40
    again = metastore.analyze(spark, table, progress=False, expressions=["a + b"])
    assert (again.files_read, again.committed, len(again.refused)) == (0, False, 1)


def test_a_rewritten_file_is_computed_anew(spark, filled):
    metastore.analyze(spark, filled, progress=False, expressions=["a + b", CELL])
    spark.sql(f"UPDATE {filled} SET b = 5000 WHERE id = 7")
    check(spark, f"SELECT id FROM {filled} WHERE a + b > 1000", [1])
    assert metastore.analyze(spark, filled, progress=False, expressions=["a + b", CELL]).files_read == 1
    check(spark, f"SELECT id FROM {filled} WHERE a + b > 5000", [1])
    check(spark, f"SELECT id FROM {filled} WHERE a + b > 6000", [0])


def test_a_file_that_lacks_a_column_is_read(spark, tmp_path):
    path = str(tmp_path / "t")
    write(path, spark.sql("SELECT id, id a, id ts FROM range(0, 10, 1, 1)"))
    write(path, spark.sql("SELECT id, id a, id ts, nullif(id, 0) b FROM range(10, 20, 1, 1)"))
    report = metastore.analyze(spark, f"hudi.`{path}`", progress=False, expressions=["a + b", "a * 2"])
    assert [refusal.subject for refusal in report.refused] == ["expression a + b"]
    assert "lacks a column" in report.refused[0].reason
    rows = spark.read.format("hudi").load(path)
    assert rows.where("a + b IS NULL").count() == 10
    assert rows.where("a + b = 24").count() == 1
    assert rows.where("a * 2 = 24").count() == 1


def test_partition_columns_have_none(spark, table):
    create(spark, table, f"{COLUMNS}, p INT", "PARTITIONED BY (p)", preCombineField="n")
    append(spark, table, 0, 80, files=2, row=f"{ROW}, CAST(id % 2 AS INT) p")
    metastore.analyze(spark, table, progress=False)
    with conf(spark, spark__metastore__expressions="a + p;a + b"):
        metastore.analyze(spark, table, progress=False)
    check(spark, f"SELECT id FROM {table} WHERE a + p = 101")
    check(spark, f"SELECT id FROM {table} WHERE a + b > 1000", [0])
