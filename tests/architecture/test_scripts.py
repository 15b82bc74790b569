"""Each script that the pages name starts as they say, from the root of the project."""

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
