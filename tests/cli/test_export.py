"""How `metastore export` reaches the function, and what it prints."""

from __future__ import annotations

import json
from contextlib import nullcontext

import metastore
from metastore.spark import local_session


def test_export_says_what_was_written(run, monkeypatch):
    done = {"subject": "db.t", "snapshot": "7", "rows": 10, "size_bytes": 4096, "columns": ["a", "b"], "left_out": []}
    calls = []
    monkeypatch.setattr(local_session, "start_local_spark", lambda _: nullcontext("spark"))
    monkeypatch.setattr(metastore, "export", lambda *arguments, **options: calls.append((arguments, options)) or done)
    assert json.loads(run("export", "db.t", "--json").stdout) == {"version": 1, "kind": "export", **done}
    assert "a; b" in run("export", "db.t", "--to", "hive").stdout
    assert calls == [(("spark", "db.t"), {"to": "hive"})] * 2


def test_only_hive_is_known(run):
    assert "'glue' is not" in run("export", "db.t", "--to", "glue", code=2).stderr


def test_a_location_is_refused_before_spark_starts(run):
    error_text = run("export", "w/ice/db/wide", code=2).stderr
    assert "table: w/ice/db/wide is a location." in error_text
    assert "Name a table of Spark's session catalog" in error_text
