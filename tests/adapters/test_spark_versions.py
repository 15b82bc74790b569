"""The line that a version of Spark belongs to: vendors' versions are taken for their release's, by both languages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metastore import jars

CASES = json.loads((Path(__file__).parents[1] / "cases" / "spark_versions.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["version"])
def test_python_reads_the_line(case):
    assert jars.spark_line_of(case["version"]) == case["line"]


@pytest.mark.spark
def test_the_shim_reads_the_same_line(spark):
    line_of = spark._jvm.org.metastore.spark.MetastoreExtensions.lineOf
    assert {case["version"]: line_of(case["version"]) for case in CASES} == {
        case["version"]: case["line"] for case in CASES
    }


def test_a_preview_is_no_release():
    assert "adds nothing" in jars.explain_missing_shim("4.3.0-preview1").message
    assert "does not have it" in jars.explain_missing_shim("4.3.0-amzn-0").message
