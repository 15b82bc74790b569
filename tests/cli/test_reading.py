"""The verbs that show where values are and how they are distributed."""

from __future__ import annotations

import json

import pyarrow as pa

from reading.stores import metadata
from table_level import analyzed_tables
from table_level.analyzed_tables import Content


def test_quantiles_of_the_probabilities_asked_for(run, tmp_path):
    analyzed_tables.commit_table_level(tmp_path, [Content("bigint", [pa.array(range(100))], ["complete"])])
    rows = json.loads(run("quantiles", tmp_path, "c0", "-p", "0", "-p", "1", "--json").stdout)["rows"]
    assert [(row["probability"], row["value"], row["exact"]) for row in rows] == [(0, "0", True), (1, "99", True)]
    assert len(json.loads(run("quantiles", tmp_path, "c0", "--json").stdout)["rows"]) == 7
    assert "2.0 is not a number from 0 to 1" in run("quantiles", tmp_path, "c0", "-p", "2", code=2).stderr


def test_the_files_that_a_filter_leaves(run, location):
    done = run("prune", location, "id > 100 AND reverse(`who`.`na.me`) = 'X'")
    assert done.stdout == ""
    assert "0 of 2 data files of cat.db.t may have rows with id > 100" in done.stderr
    assert "Not used: REVERSE(`who`.`na.me`) = 'X' (there is no rule for" in done.stderr
    assert (
        "Not used: id = 'x' (there is no rule for 'x', which is no bigint)" in run("prune", location, "id = 'x'").stderr
    )
    assert run("prune", location, "id < 0").stdout == f"{location}/t/b.parquet\n"
    document = json.loads(run("prune", location, "id < 0", "--json").stdout)
    assert (document["paths"], document["total"], document["current"]) == ([f"{location}/t/b.parquet"], 2, True)
    assert "no column 'ids'" in run("prune", location, "ids < 0", code=1).stderr
    deep = run("prune", location, "(" * 50_000 + "id < 0" + ")" * 50_000, code=2).stderr
    assert "it is nested too deeply" in deep
    assert len(deep) < 1_000
    metadata(location, 4, 3, {1: None, 2: 1, 3: 2})
    done = run("prune", location, "id < 0", code=3)
    assert (done.stdout, "no longer current" in done.stderr) == (f"{location}/t/b.parquet\n", True)


def test_the_files_that_may_hold_a_value(run, location):
    low = json.loads(run("columns", location, "id", "--json").stdout)["rows"][0]
    rows = json.loads(run("locate", location, "id", "--json", "--", low["min"]).stdout)["rows"]
    assert low["path"] in {row["path"] for row in rows}
    assert json.loads(run("locate", location, "id", "--json", "--", "-99999").stdout)["rows"] == []
    assert (
        run("locate", location, "id", "-99999", "--json").stdout
        == run("locate", location, "id", "--json", "--", "-99999").stdout
    )
    assert "is no" in run("locate", location, "id", "x", code=2).stderr
    for wrong in (["id"], ["id", "7", "--null"]):
        assert "Give a value or --null." in run("locate", location, *wrong, code=2).stderr


def test_of_values_that_come_once_it_is_said_that_none_is_listed(run, tmp_path):
    analyzed_tables.commit_table_level(tmp_path, [Content("bigint", [pa.array([None] * 9, pa.int64())], ["complete"])])
    assert "No value of c0 is known to occur twice" in run("frequencies", tmp_path, "c0").stderr
    assert "There is no histogram of c0" in run("histogram", tmp_path, "c0").stderr


def test_a_folder_beside_what_was_mistyped_is_named(run, location):
    assert f"Did you mean {location}?" in run("summary", f"{location}x", code=1).stderr
    assert f"Did you mean {location}?" in run("tables", f"{location}x/", code=1).stderr
