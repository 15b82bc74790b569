"""Statistics of expressions: a query by an expression reads the files that its values leave open, and no others."""

from __future__ import annotations

import itertools

import pytest

import metastore
from metastore.errors import InvalidArgument
from planner.plans import check, conf, files_read, plain, rows, truth

pytestmark = pytest.mark.spark

COLUMNS = "f int, name string, ts timestamp, a int, b int, lon double, lat double"
# Of no column alone do the bounds of a file tell what its rows are.
ROWS = """
    SELECT {file} f, concat(IF(i % 2 = 0, 'Ab', 'aB'), {file}, lpad(i, 2, '0')) name,
    make_timestamp(2024, 1 + {file}, 1 + i % 28, i % 24, 0, 0) ts, i * 100 a, {file} * 10 - i * 100 b,
    i % 4 + 0.5D lon, (i + {file}) % 4 + 0.25D lat FROM (SELECT CAST(id AS int) i FROM range(40))
"""
CELL = "floor(lon) * 1000 + floor(lat)"
EXPRESSIONS = ["lower(name)", "date_format(ts, 'yyyy-MM')", "a + b", CELL, "a > b"]
PREDICATES = [
    "lower(name) = 'ab105'",
    "lower(name) LIKE 'ab2%' OR lower(name) = 'ab300'",
    "lower(name) IN ('ab000', 'zz') AND f >= 0",
    "'ab3' < lower(name)",
    "date_format(ts, 'yyyy-MM') = '2024-03'",
    "NOT date_format(ts, 'yyyy-MM') < '2024-03'",
    "a + b > 10",
    "b + a = 20",
    "a + b <> 30 AND a + b BETWEEN 20 AND 90",
    f"{CELL} = 2003",
    f"{CELL} IN (2, 3001)",
    "a + b IS NULL",
]
_names = itertools.count()


@pytest.fixture(autouse=True)
def without_evaluation(spark):
    """What values of single columns prove without any of this is left out."""
    with conf(spark, spark__metastore__pruning__values__maxEvaluations="0"):
        yield


@pytest.fixture(scope="module")
def make_table(spark, tmp_path_factory):
    """Makes a table of some format, each text of rows one file: its name in queries, and SQL of a row's file."""

    def make(kind: str, *files: str) -> tuple[str, str]:
        where = tmp_path_factory.mktemp(kind) / "t"
        name = f"ice.db.expressions_{next(_names)}" if kind == "iceberg" else f"{kind}.`{where}`"
        for place, one in enumerate(files):
            made = spark.sql(one).coalesce(1)
            if kind == "iceberg" and place == 0:
                made.writeTo(name).using("iceberg").tableProperty("write.metadata.metrics.default", "none").create()
            elif kind == "iceberg":
                made.writeTo(name).append()
            else:
                made.write.format(kind).mode("append").save(str(where))
        return name, "_file" if kind == "iceberg" else "_metadata.file_path"

    return make


def four_files() -> list[str]:
    return [ROWS.format(file=file) for file in range(4)]


@pytest.fixture(scope="module", params=["iceberg", "parquet", "delta"])
def analyzed(request, spark, make_table):
    table, file = make_table(request.param, *four_files())
    report = metastore.analyze(spark, table, progress=False, expressions=EXPRESSIONS)
    assert not report.refused
    again = metastore.analyze(spark, table, progress=False, expressions=EXPRESSIONS)
    assert (again.files_read, again.committed) == (0, False)
    return table, file


@pytest.mark.parametrize("predicate", PREDICATES)
def test_only_files_with_a_matching_row_are_read(spark, analyzed, predicate):
    table, file = analyzed
    needed = truth(spark, f"SELECT count(DISTINCT {file}) FROM {table} WHERE {predicate}")
    assert needed < 4
    check(spark, f"SELECT * FROM {table} WHERE {predicate}", [needed])
