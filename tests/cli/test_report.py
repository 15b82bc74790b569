"""`metastore report`: a file, and the exit codes of a verb that reads."""

from __future__ import annotations

import json


def test_of_a_location(run, location, tmp_path):
    file = tmp_path / "page.html"
    printed = json.loads(run("report", location, "-o", file, "--json").stdout)
    assert (printed["kind"], printed["file"], printed["columns"]) == ("report", str(file), 3)
    assert printed["bytes_written"] == file.stat().st_size
    assert "who.`na.me`" in file.read_text("utf-8")


def test_an_earlier_snapshot_is_stale_and_one_to_compare_with_is_not(run, location, tmp_path):
    file = tmp_path / "page.html"
    done = run("report", location, "-o", file, "--at", 1, code=3)
    assert "The table has changed since" in done.stderr
    assert "what follows is about an earlier snapshot" in file.read_text("utf-8")
    run("report", location, "-o", file, "--before", 1)
    assert "compared with" in file.read_text("utf-8")


def test_mistakes(run, location, tmp_path):
    assert "cannot be written: No such file" in run("report", location, "-o", tmp_path / "no" / "x", code=2).stderr
    assert "was not analyzed" in run("report", location, "-o", tmp_path / "x", "--before", 7, code=2).stderr
