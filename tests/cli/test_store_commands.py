"""`metastore verify`, `gc` and `compact`."""

from __future__ import annotations

import json
import os
import re

import pytest


def test_verify_of_what_is_whole(run, location):
    done = run("verify", location)
    assert done.stdout.splitlines()[0].split() == ["object", "kind", "size", "rows", "state", "problem"]
    assert "all is well" in done.stderr
    printed = json.loads(run("verify", location, "--json").stdout)
    assert (printed["kind"], {row["state"] for row in printed["rows"]}) == ("verify", {"ok"})


def test_verify_ends_with_1_and_shows_the_damage_first(run, location):
    stored = min((location / "_metastore" / "objects").glob("table-summary-*"))
    stored.write_bytes(stored.read_bytes()[:-9])
    done = run("verify", location, code=1)
    assert stored.name in done.stdout.splitlines()[1]
    assert "1 with problems" in done.stderr
    assert json.loads(run("verify", location, "--json", code=1).stdout)["rows"][0]["state"] == "damaged"


def test_gc_lists_and_deletes_only_when_told_to(run, location):
    left_behind = location / "_metastore" / "objects" / ".00000000-0000-4000-8000-000000000000.tmp"
    left_behind.write_bytes(b"half")
    os.utime(left_behind, (0, 0))
    done = run("gc", location)
    assert "1 files of 4 B can be deleted: run this again with --delete" in done.stderr
    assert left_behind.exists()
    [row] = json.loads(run("gc", location, "--delete", "--json").stdout)["rows"]
    assert (row["path"], row["deleted"]) == (f"objects/{left_behind.name}", True)
    assert not left_behind.exists()
    done = run("gc", location)
    assert (done.stdout, done.stderr) == ("", "There is nothing to delete.\n")
    assert json.loads(run("gc", location, "--json").stdout)["rows"] == []
    assert "is less than 0" in run("gc", location, "--grace-days", "-1", code=2).stderr


def test_compact_tells_before_and_after(run, location):
    printed = json.loads(run("compact", location, "--json").stdout)
    assert (printed["blocks_before"], printed["files_before"], printed["files_after"]) == (3, 4, 3)
    assert printed["committed"] is True
    assert re.search(r"bytes_before +\d[\d.]* k?B$", run("compact", location).stdout, re.MULTILINE)


@pytest.mark.parametrize("verb", ["verify", "gc", "compact"])
def test_upkeep_of_nothing_ends_with_4(run, tmp_path, verb):
    assert "METASTORE_NO_STATISTICS" in run(verb, tmp_path, code=4).stderr
