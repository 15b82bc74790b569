"""The verbs that show where values are and how they are distributed."""

from __future__ import annotations

import json

import pyarrow as pa

from table_level import made
from table_level.made import Content


def test_quantiles_of_the_probabilities_asked_for(run, tmp_path):
    made.level(tmp_path, [Content("bigint", [pa.array(range(100))], ["complete"])])
    rows = json.loads(run("quantiles", tmp_path, "c0", "-p", "0", "-p", "1", "--json").stdout)["rows"]
    assert [(row["probability"], row["value"], row["exact"]) for row in rows] == [(0, "0", True), (1, "99", True)]
    assert len(json.loads(run("quantiles", tmp_path, "c0", "--json").stdout)["rows"]) == 7
    assert "2.0 is not a number from 0 to 1" in run("quantiles", tmp_path, "c0", "-p", "2", code=2).stderr


def test_the_files_that_may_hold_a_value(run, location):
    low = json.loads(run("columns", location, "id", "--json").stdout)["rows"][0]
    rows = json.loads(run("locate", location, "id", "--json", "--", low["min"]).stdout)["rows"]
    assert low["path"] in {row["path"] for row in rows}
    assert json.loads(run("locate", location, "id", "--json", "--", "-99999").stdout)["rows"] == []
    assert "is no" in run("locate", location, "id", "x", code=2).stderr
