"""`--json` prints one document that any parser of JSON takes, whatever a table holds."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest
import typer

import metastore
from metastore.answers import Answer
from metastore.cli.app import app
from metastore.cli.options import LocalSpark
from metastore.cli.output import JsonOutput

ODD = {
    "nan": float("nan"),
    "infinite": [float("inf"), np.float64("-inf")],
    "single": np.float32("nan"),
    "count": np.int64(7),
    "share": np.float32(0.5),
    "truth": np.bool_(True),  # noqa: FBT003 - a value
    "decimal": Decimal("NaN"),
    "day": date(2026, 1, 2),
    "time": datetime(2026, 1, 2, tzinfo=timezone.utc),
    "span": timedelta(hours=1),
    "bytes": b"\x00\xff",
    "map": {1: float("nan"), None: "\u202e\ud800"},
    "none": None,
    "column_name": "c",
    "reason": None,
}
LOCATION_ALONE = {"prune", "compact", "gc", "verify", "report"}
"""Verbs that are asked about a location."""
OF_THE_INSTALLATION = {"config", "doctor", "jar", "version"}
BY_NAME = {
    **{
        verb: ["db.t"] for verb in ("summary", "files", "columns", "layout", "snapshots", "tables", "export", "analyze")
    },
    **{verb: ["db.t", "c"] for verb in ("frequencies", "histogram", "quantiles")},
    "locate": ["db.t", "c", "1"],
    "diff": ["db.t", "1"],
    **{verb: ["SELECT 1"] for verb in ("filtered-summary", "explain", "whatif", "estimates")},
}


def strictly(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_every_verb_is_tried():
    verbs = set(typer.main.get_command(app).commands)
    assert verbs == LOCATION_ALONE | OF_THE_INSTALLATION | set(BY_NAME) | {"demo"}


@pytest.mark.parametrize("verb", BY_NAME)
def test_an_answer_with_odd_values(run, monkeypatch, verb):
    answer = Answer(kind=verb, subject="db.t", columns=tuple(ODD), rows=(ODD,))
    function = verb.replace("-", "_")
    monkeypatch.setattr(LocalSpark, "start", lambda _: nullcontext())
    monkeypatch.setattr("metastore.spark.session.call_function", lambda *_, **__: answer)
    made = {"analyze": SimpleNamespace(to_dict=lambda: ODD), "export": ODD}.get(verb, answer)
    monkeypatch.setattr(metastore, function, lambda *_, **__: made)
    document = strictly(run(verb, *BY_NAME[verb], "--json").stdout)
    row = document["rows"][0] if "rows" in document else document
    assert (row["nan"], row["infinite"], row["single"]) == ("nan", ["inf", "-inf"], "nan")
    assert (row["count"], row["share"], row["truth"], row["none"]) == (7, 0.5, True, None)
    assert (row["bytes"], row["day"], row["time"]) == ("00FF", "2026-01-02", "2026-01-02T00:00:00+00:00")


@pytest.mark.parametrize("verb", sorted(LOCATION_ALONE))
def test_a_location(run, location, tmp_path, verb):
    more = {"prune": ["id > 1"], "report": ["-o", str(tmp_path / "r.html")]}.get(verb, [])
    assert strictly(run(verb, location, *more, "--json").stdout)["version"] == 1


@pytest.mark.parametrize("verb", sorted(OF_THE_INSTALLATION))
def test_the_installation(run, verb, healthy):
    assert strictly(run(verb, "--json").stdout)["version"] == 1


def test_facts_and_errors(capsys):
    JsonOutput().end("demo", {"sums": ODD})
    assert strictly(capsys.readouterr().out)["sums"]["nan"] == "nan"
