"""Files are judged together as each of them is alone, however few an earlier conjunct leaves."""

from __future__ import annotations

import json

import pytest

from metastore.jvm_session import find_shim_package

pytestmark = pytest.mark.spark

SCHEMA = "a BIGINT, d DOUBLE, s STRING, n DECIMAL(38, 2), b BOOLEAN"
FILES = 60
FILTERS = (
    "a >= 57 AND s < 'key-058' AND d > 1",
    "a IN (3, 58, 59) AND n = 58 AND s LIKE 'key-05%'",
    "a > 50 AND (d < 29.5 OR s = 'key-059') AND b",
    "a > 50 AND d + 0 > 0 AND s IS NULL",
    "s >= 'key-05' AND a % 2 = 0 AND NOT (n < 57.5) AND d <=> 29.0D",
    "a > 100 AND s = 'key-001' AND b IS NOT NULL",
    "a BETWEEN 52 AND 58 AND s BETWEEN 'key-053' AND 'key-057' AND n IN (54, 56, 99) AND NOT b",
)


def file(number: int) -> dict:
    """Bounds of a file: its number in every type; some nulls, NaNs, unknown columns and contradictions."""
    text = f"'key-{number:03}'"
    columns = {
        "a": {"nulls": 0, "lo": f"{number}L", "hi": f"{number + 1}L"},
        "d": {"nulls": 0, "nans": number % 3 % 2, "lo": f"{number / 2}D", "hi": f"{number / 2}D"},
        "s": {"nulls": number % 2, "lo": text, "hi": text},
        "n": {"nulls": 0, "lo": f"{number}BD", "hi": f"{number}BD"},
        "b": {"nulls": 10 if number % 7 == 0 else 0},
    }
    if number % 5 == 0:
        del columns["n"]
    if number % 11 == 0:
        columns["s"]["lo"], columns["s"]["hi"] = "'z'", "'a'"
    return {"rows": 0 if number % 13 == 0 else 10, "columns": columns}


@pytest.fixture(scope="module")
def probe(spark):
    probes = find_shim_package(spark).pruning.PruningProbe
    return lambda files: probes.ofZones(spark._jsparkSession, SCHEMA, json.dumps(files))


@pytest.mark.parametrize("predicate", FILTERS)
def test_together_as_alone(probe, predicate):
    files = [file(number) for number in range(FILES)]
    together = json.loads(probe(files).explain(predicate))
    alone = [json.loads(probe([file]).explain(predicate)) for file in files[-15:]]
    kept_flags = [f["kept"] for f in together["files"]]
    assert kept_flags.count(False) > 0
    for decided, expected in zip(together["files"][-15:], alone, strict=True):
        del decided["path"], expected["files"][0]["path"]
        assert decided == expected["files"][0]
