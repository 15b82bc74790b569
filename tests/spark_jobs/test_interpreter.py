"""Jobs run the Python of the driver where nothing names another, and what the user set is left as it was."""

from __future__ import annotations

import sys

import pytest

import metastore
from metastore.spark_jobs.interpreter import use_driver_python

pytestmark = pytest.mark.spark
ABSENT = "/no/such/python3"


@pytest.fixture
def table(spark):
    name = "ice.db.interpreter"
    spark.range(10).writeTo(name).using("iceberg").createOrReplace()
    yield name
    spark.sql(f"DROP TABLE {name}")


def test_a_script_that_names_no_interpreter_can_analyze(spark, table, monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", ABSENT)
    assert metastore.analyze(spark, table, progress=False).rows == 10
    assert spark.sparkContext.pythonExec == ABSENT


def test_the_interpreter_that_is_named_is_taken(spark, monkeypatch):
    context = spark.sparkContext
    monkeypatch.setattr(context, "pythonExec", ABSENT)
    monkeypatch.setenv("PYSPARK_PYTHON", ABSENT)
    with use_driver_python(context):
        assert context.pythonExec == ABSENT


def test_callers_side_by_side(spark, monkeypatch):
    context = spark.sparkContext
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(context, "pythonExec", ABSENT)
    first, second = use_driver_python(context), use_driver_python(context)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert context.pythonExec == sys.executable
    second.__exit__(None, None, None)
    assert context.pythonExec == ABSENT
