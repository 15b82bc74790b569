"""Tables of files that only expressions tell apart, and nothing else that would."""

from __future__ import annotations

import itertools

import pytest

import metastore
from planner.expressions.sample_tables import EXPRESSIONS, four_files
from planner.plans import conf

_names = itertools.count()


@pytest.fixture(autouse=True)
def without_evaluation(spark):
    """Turn off the evaluation of single values of columns, which would decide the same."""
    with conf(spark, spark__metastore__pruning__values__maxEvaluations="0"):
        yield


@pytest.fixture(scope="module")
def make_table(spark, tmp_path_factory):
    """Makes a table of some format, each text of rows one file: its name in queries, and SQL of a row's file."""

    def make(kind: str, *files: str) -> tuple[str, str]:
        where = tmp_path_factory.mktemp(kind) / "t"
        name = f"ice.db.expressions_{next(_names)}" if kind == "iceberg" else f"{kind}.`{where}`"
        for number, query in enumerate(files):
            made = spark.sql(query).coalesce(1)
            if kind == "iceberg" and number == 0:
                made.writeTo(name).using("iceberg").tableProperty("write.metadata.metrics.default", "none").create()
            elif kind == "iceberg":
                made.writeTo(name).append()
            else:
                made.write.format(kind).mode("append").save(str(where))
        return name, "_file" if kind == "iceberg" else "_metadata.file_path"

    return make


@pytest.fixture(
    scope="module",
    params=[
        "iceberg",
        pytest.param("parquet", marks=pytest.mark.campaign),
        pytest.param("delta", marks=pytest.mark.slow),
    ],
)
def analyzed(request, spark, make_table):
    nan = [rows.replace("i % 4 + 0.5D lon", "IF(i = 9, double('NaN'), i % 4 + 0.5D) lon") for rows in four_files()[2:3]]
    table, file = make_table(request.param, *four_files()[:2], *nan, *four_files()[3:])
    report = metastore.analyze(spark, table, progress=False, expressions=EXPRESSIONS)
    assert not report.refused
    again = metastore.analyze(spark, table, progress=False, expressions=EXPRESSIONS)
    assert (again.files_read, again.committed) == (0, False)
    return table, file
