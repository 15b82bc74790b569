"""Each script that the pages name starts as they say, from the root of the project."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
NAMED = re.compile(r"python ((?:tests|benchmarks|tools)/[\w/-]+\.py)")


@pytest.mark.parametrize("script", sorted({name for page in PAGES for name in NAMED.findall(page.read_text("utf-8"))}))
def test_starts(script: str) -> None:
    """Its imports are found, and it says how it is used."""
    done = subprocess.run([sys.executable, script, "--help"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout


def test_the_projects_of_sbt_are_builds_of_the_contract() -> None:
    """Each compiles for the Scala of a build, and every build but one, for which there is no pyspark, has a project."""
    projects = re.findall(r'= shim\("([\d.]+)", "(\d+\.\d+)\.\d+"', (ROOT / "build.sbt").read_text("utf-8"))
    builds = json.loads((ROOT / "contract" / "spark_builds.json").read_text("utf-8"))
    assert set(projects) == {(one["name"], one["scala"]) for one in builds} - {("3.5_2.13", "2.13")}
