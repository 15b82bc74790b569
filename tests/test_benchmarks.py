"""The benchmarks run, on as little as they take: what they measure changes, and nobody runs all of them often."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SCRIPTS = [path for path in sorted(BENCHMARKS.glob("*.py")) if "ArgumentParser(" in path.read_text()]
SMALL = {
    "analyze": "--wide --columns 6 --runs 1",
    "answers": "--files 2 --columns 3 --runs 1",
    "append": "--files 80 --runs 1",
    "auto": "--scale 0.01 --files 2 --runs 1",
    "cardinality": "--scale 0.005 --ways metastore spark",
    "engines": "--files 6 --rows 200 --runs 1",
    "frequencies": "--rows 500000 --files 2",
    "growth": "--files 20 30 --manifests 6 9 --runs 1",
    "index_lookup": "--store C --share 0.001 --work new/folder",
    "locate": "--files 2 --rows 100000 --runs 1",
    "large_object": "--gigabytes 0.02 --groups 2",
    "lookup": "",
    "merge": "--files 4 --rows 100 --keys 3 --modes merge-on-read --runs 1",
    "memory": "--gigabytes 0.01",
    "pruning": "--files 4 --rows 50 --runs 1 --wide 10",
    "nan": "--files 2 --rows 500 --runs 1",
    "small_files": "--scale 0.004",
    "table_level": "--files 300 --columns 2 --runs 1",
    "wide": "--columns 6",
}


LONG = (
    "analyze",
    "auto",
    "cardinality",
    "engines",
    "frequencies",
    "index_lookup",
    "large_object",
    "locate",
    "merge",
    "nan",
    "pruning",
    "small_files",
    "wide",
)


@pytest.mark.parametrize(
    "name", [pytest.param(benchmark, marks=[pytest.mark.campaign] * (benchmark in LONG)) for benchmark in SMALL]
)
def test_it_runs_and_reports(tmp_path, name):
    environment = {**os.environ, "METASTORE_BENCHMARK_RESULTS": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *SMALL[name].split()]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (report,) = tmp_path.glob("*.json")
    rows = json.loads(report.read_text())["rows"]
    assert len(done.stdout.splitlines()) == len(rows) + 1


@pytest.mark.parametrize("name", [path.stem for path in SCRIPTS if '"--work"' in path.read_text()])
def test_the_folder_of_the_work_is_made(tmp_path, name):
    folder = tmp_path / "new/folder"
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), "--work", str(folder), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert folder.is_dir()


def test_all_are_run_but_those_that_need_packages_of_their_own():
    scripts = {path.stem for path in SCRIPTS}
    assert scripts - SMALL.keys() == {"tpc", "tpc_data"}
