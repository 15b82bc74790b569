"""Completion in a shell while a line is typed; the program is not on the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest


def completed(line: str, folder, **environment) -> list[str]:
    """Return the program's answer to a shell that completes a line."""
    words = line.split(" ")
    completion_request = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_METASTORE_COMPLETE": "complete_bash"}
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'metastore'; from metastore.cli import main; main()"]
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **completion_request, **environment},
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture
def warehouse(location, tmp_path):
    """A folder in which Spark would keep its tables, with one that is analyzed."""
    shutil.copytree(location, tmp_path / "spark-warehouse" / "db.db" / "t")
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("summary ", ["cat.db.t"]),
        ("analyze cat.d", ["cat.db.t"]),
        ("verify x", []),
        ("frequencies cat.db.t i", ["id"]),
        ("columns cat.db.t ", ["id", "tags", "who.`na.me`"]),
        ("analyze cat.db.t --columns id,ta", ["id,tags"]),
        ("analyze cat.db.t --ranks i", ["id"]),
        ("frequencies nowhere.t i", []),
    ],
)
def test_names_of_tables_and_columns(warehouse, typed, offered):
    assert completed(f"metastore {typed}", warehouse) == offered


def test_columns_of_a_location(location, tmp_path):
    assert completed(f"metastore histogram {location} i", tmp_path) == ["id"]


def test_paths_are_left_to_the_shell(warehouse):
    assert completed("metastore summary ./sp", warehouse) == []


def test_a_damaged_store_disturbs_no_line(warehouse):
    for manifest in warehouse.rglob("*.json"):
        manifest.write_text("{")
    assert completed("metastore summary ", warehouse) == []


def test_a_damaged_store_hides_no_other_table(warehouse):
    damaged = warehouse / "spark-warehouse" / "db.db" / "a"
    shutil.copytree(damaged.with_name("t"), damaged)
    for manifest in damaged.rglob("*.json"):
        manifest.write_text("{")
    assert completed("metastore summary ", warehouse) == ["cat.db.t"]


def test_as_a_module(location):
    command = [sys.executable, "-m", "metastore", "summary", str(location)]
    completions = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert completions.splitlines()[1].startswith("id")
