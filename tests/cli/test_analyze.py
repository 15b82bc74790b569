"""Options of `metastore analyze`, as the function gets them."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import metastore
from metastore.spark import local_session
from reports import REPORT


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ([], {"ranks": False, "distribution": False, "frequencies": None, "expressions": ()}),
        (["--expression", "lower(name)", "--expression", "f(a, b)"], {"expressions": ["lower(name)", "f(a, b)"]}),
        (["--ranks", "a, `b,c`.d"], {"ranks": ["a", "`b,c`.d"]}),
        (["--ranks", "*", "--distribution", "k", "--frequencies", "exact"], {"ranks": True, "distribution": ["k"]}),
        (["--partition", "day = 1", "--partition", "a=b=c"], {"partition": {"day": "1", "a": "b=c"}}),
    ],
)
def test_analyze_hands_its_options_on(run, monkeypatch, typed, expected):
    calls = {}
    monkeypatch.setattr(local_session, "start_local_spark", lambda _: nullcontext("spark"))
    monkeypatch.setattr(metastore, "analyze", lambda *_, **options: calls.update(options) or REPORT)
    run("analyze", "db.t", *typed)
    assert {name: calls[name] for name in expected} == expected


@pytest.mark.parametrize("text", ["day", "=5", " = 5"])
def test_a_partition_is_a_column_and_a_value(run, text):
    refused = run("analyze", "db.t", "--partition", text, "--json", code=2)
    assert "is not of the form COLUMN=VALUE" in refused.stdout
