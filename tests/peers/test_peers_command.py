"""How results of the peers' suites with us and without us are compared; the suites themselves are run by `run.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from iceberg_sources import rewrite
from run import BY_CBO, HERE, NOT_RUN, Explanation, compare, describe, explain_by_cbo

PASSED = {"result": "passed"}
WRONG = {"result": "failed", "message": "Results do not match for query"}
PLAN = {"result": "failed", "message": "BroadcastHashJoin was not found"}
EXPLAINED = Explanation(suite="JoinSuite", test="t", says="BroadcastHashJoin", why="by true numbers")


@pytest.mark.parametrize(
    ("off", "on", "expected"),
    [
        (PASSED, PASSED, None),
        (PLAN, PLAN, None),
        (PASSED, PLAN, "by true numbers"),
        (PASSED, WRONG, ""),
        (PASSED, {"result": "unfinished"}, ""),
        (WRONG, PASSED, ""),
    ],
)
def test_another_result_is_a_difference_and_its_message_must_be_the_explained_one(off, on, expected):
    differences = compare("JoinSuite", {"t": off}, {"t": on}, [EXPLAINED])
    assert [difference.why for difference in differences] == ([] if expected is None else [expected])


def test_an_explanation_names_a_method_of_junit_for_all_its_parameters():
    (difference,) = compare(
        "JoinSuite", {"t #2 catalogName = hive": PASSED}, {"t #2 catalogName = hive": PLAN}, [EXPLAINED]
    )
    assert difference.why == "by true numbers"


def test_a_test_that_was_not_run_is_a_difference():
    (difference,) = compare("JoinSuite", {"t": PASSED}, {}, [])
    assert (difference.off, difference.on, difference.why) == ("passed", "not run", "")


def test_tests_that_one_run_did_not_reach_are_counted():
    differences = compare("JoinSuite", {"a": PASSED, "b": PASSED, "c": PASSED}, {"b": WRONG}, [])
    assert describe(differences) == [
        "JoinSuite: b: passed without us, failed with us\n    Results do not match for query",
        "JoinSuite: 2 tests were run in one way alone (see --minutes)",
    ]


@pytest.mark.parametrize(
    ("with_cbo", "expected"),
    [
        ({"t": {"result": "failed", "message": "CartesianProduct [key#3]\nin another plan"}}, BY_CBO),
        ({"t": {"result": "failed", "message": "BroadcastHashJoin [key#3]"}}, ""),
        ({"t": PASSED}, ""),
        ({}, ""),
    ],
)
def test_a_plan_that_spark_makes_alike_by_cost_is_explained(with_cbo, expected):
    on = {"t": {"result": "failed", "message": "CartesianProduct [key#17]\n:- Filter"}}
    (difference,) = explain_by_cbo(compare("JoinSuite", {"t": PASSED}, on, []), on, with_cbo)
    assert difference.why == expected


def test_the_optimizer_explains_no_test_that_was_not_run():
    differences = compare("JoinSuite", {"t": PASSED}, {}, [])
    assert explain_by_cbo(differences, {}, {"t": PLAN}) == differences


def test_a_suite_that_was_run_in_neither_way_is_a_difference():
    failed = {NOT_RUN: {"result": "failed", "message": "Missing class"}}
    assert len(compare("JoinSuite", failed, failed, [])) == 1


def test_every_explanation_is_of_a_listed_suite_and_says_which_failure_it_explains():
    names = [suite["name"] for suite in json.loads((HERE / "suites.json").read_text("utf-8"))]
    assert len(names) == len(set(names))
    for entry in json.loads((HERE / "explained.json").read_text("utf-8")):
        assert entry["suite"] in names
        assert entry["tests"]
        assert entry["says"]
        assert entry["why"]


def test_a_source_of_iceberg_names_packages_as_its_jar_for_spark_does():
    assert rewrite("import org.apache.parquet.schema.Type;") == (
        "import org.apache.iceberg.shaded.org.apache.parquet.schema.Type;"
    )
    assert rewrite("import org.apache.iceberg.parquet.Parquet;") == "import org.apache.iceberg.parquet.Parquet;"
