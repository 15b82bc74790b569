"""Rules of the pruner as data: a predicate, what is known of one file, and what must come out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metastore.jvm_session import find_shim_package

pytestmark = pytest.mark.spark

CASES = json.loads((Path(__file__).parents[1] / "cases" / "pruning.json").read_text())


@pytest.fixture(scope="module")
def verdicts(spark):
    """For every predicate of every case: (kept, proven to match fully)."""
    probes = find_shim_package(spark).pruning.PruningProbe
    answers = {}
    for i, case in enumerate(CASES):
        for setting, value in case.get("conf", {}).items():
            spark.conf.set(setting, value)
        probe = probes.ofZones(spark._jsparkSession, case["schema"], json.dumps([case["zone"]]))
        for verdict in ("skip", "only_spark", "keep", "only_python", "all"):
            for predicate in case.get(verdict, []):
                answers[i, predicate] = probe.kept(predicate), probe.matchedFully(predicate)
        for setting in case.get("conf", {}):
            spark.conf.unset(setting)
    return answers


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: CASES[i]["name"])
def test_verdicts(verdicts, number):
    case = CASES[number]
    skipped = [*case.get("skip", []), *case.get("only_spark", [])]
    not_skipped = [*case.get("keep", []), *case.get("only_python", [])]
    assert [p for p in skipped if verdicts[number, p][0] != "0"] == []
    assert [p for p in not_skipped if verdicts[number, p] != ("1", "0")] == []
    assert [p for p in case.get("all", []) if verdicts[number, p] != ("1", "1")] == []


def test_conjuncts_of_a_query_whose_time_is_up_skip_no_file(spark):
    zones = [{"rows": 3, "columns": {"v": {"nulls": 0, "lo": "1", "hi": "5"}}}]
    probes = find_shim_package(spark).pruning.PruningProbe
    probe = probes.ofZones(spark._jsparkSession, "v INT", json.dumps(zones))
    assert probe.kept("v > 10") == "0"
    late = json.loads(probe.explainLate("v > 10"))
    assert [file["kept"] for file in late["files"]] == [True]
    assert late["unused"]["0"].startswith("[PLANNING_TIMEOUT]")


LONG = {
    "a list": (f"v IN ({', '.join(map(str, range(10, 20_010)))})", 20),
    "many alternatives": (" OR ".join(f"v > {10 + i} AND w < {i % 7}" for i in range(300)), 300),
}
"""Conjuncts that take long, and how often they ask at least whether there is time."""


@pytest.mark.parametrize("name", LONG)
def test_a_long_conjunct_asks_for_time_while_it_is_judged(spark, name):
    condition, least = LONG[name]
    zones = [{"rows": 3, "columns": {"v": {"nulls": 0, "lo": "1", "hi": "5"}, "w": {"nulls": 0, "lo": "1", "hi": "5"}}}]
    probe = find_shim_package(spark).pruning.PruningProbe.ofZones(
        spark._jsparkSession, "v INT, w INT", json.dumps(zones)
    )
    question_count, kept_bits, *_ = probe.keptWithin(condition, 1_000_000).split(" ")
    assert (int(question_count) >= least, kept_bits) == (True, "0")
    for questions in (0, least // 2):
        assert probe.keptWithin(condition, questions).split(" ", 1)[1] == "1 PLANNING_TIMEOUT"
