"""`metastore diff`: distributions, and the exit code where a change crosses a threshold."""

from __future__ import annotations

import json

import pytest

from metastore.cli.thresholds import parse_threshold
from metastore.errors import InvalidArgument


def test_distributions_are_told_where_they_are_asked_for(run, location):
    rows = json.loads(run("diff", location, 1, 2, "--distributions", "--json").stdout)["rows"]
    failed_thresholds = {
        (row["column_name"], row["measure"]): row["reason"] for row in rows if row["measure"] in ("psi", "js_distance")
    }
    assert (
        failed_thresholds["id", "psi"]
        == failed_thresholds["id", "js_distance"]
        == "neither a histogram nor all values are kept before"
    )
    assert {name for name, _ in failed_thresholds} == {"id", "who.`na.me`", "tags"}
    assert "psi" not in run("diff", location, 1, 2).stdout


@pytest.mark.parametrize(
    ("threshold", "code"), [("count>5", 3), ("count>10", 0), ("count>50%", 3), ("count>100%", 0), ("psi>0.2", 0)]
)
def test_a_crossed_threshold_ends_with_3(threshold, code, run, location):
    done = run("diff", location, 1, 2, "--fail-on", threshold, code=code)
    unit = " %" if threshold.endswith("%") else ""
    lines_of_threshold = [line for line in done.stderr.splitlines() if line.startswith(threshold)]
    assert lines_of_threshold == ([f"{threshold}, the change is {100 if unit else 10}{unit}"] if code else []), (
        "once for all columns"
    )
    assert "psi" in done.stdout or not threshold.startswith("psi")


def test_what_could_not_be_measured_is_told(run, location):
    (line,) = run("diff", location, 1, 2, "--fail-on", "psi>0.2").stderr.splitlines()
    assert line.startswith("psi is unknown for ")
    assert "neither a histogram nor all values are kept before" in line
    assert "metastore analyze '<its name>'" in line or "metastore analyze <its name>" in line
    assert run("diff", location, 1, 2, "--fail-on", "psi>0.2", "--strict", code=3).stderr.splitlines() == [line]
    run("diff", location, 1, 2, "--strict")


def test_what_was_not_known_of_a_summary_is_told(run, location):
    (line,) = run("diff", location, 1, 2, "--fail-on", "null_percentage>5").stderr.splitlines()
    assert line.startswith(
        "null_percentage is unknown for 3 of 3 columns and crosses nothing there: id, who.`na.me`, tags"
    )
    assert "(not known before)" in line
    assert run("diff", location, 1, 2, "--fail-on", "count>50").stderr == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("psi", "is not of the form"),
        ("psi>x", "is not of the form"),
        ("psy>0.2", "Did you mean psi"),
        ("psi>20%", "has no value before"),
        ("psi<0.2", "holds without a change"),
        ("count>=0", "holds without a change"),
    ],
)
def test_what_is_no_threshold(text, said):
    with pytest.raises(InvalidArgument, match=said):
        parse_threshold(text)


@pytest.mark.parametrize(
    ("text", "before", "change", "crossed"),
    [
        ("count<-10%", "100", -11.0, True),
        ("count<-10%", "100", -10.0, False),
        ("count<=-10%", "100", -10.0, True),
        ("count>10%", "0", 1.0, True),
        ("null_percentage>5", "1", 5.5, True),
        ("null_percentage>5", "1", None, False),
    ],
)
def test_what_crosses(text, before, change, crossed):
    row = {"measure": text.partition("<")[0].partition(">")[0], "before": before, "change": change}
    assert parse_threshold(text).is_crossed(row) == crossed
    assert not parse_threshold(text).is_crossed({**row, "measure": "other"})
