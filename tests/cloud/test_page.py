"""The settings that docs/where.md tells to paste are those with which the tests here run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages.examples import read_examples

HERE = Path(__file__).resolve().parent
PREFIX = re.compile(
    r"(?:spark\.sql\.catalog\.lake|spark\.hadoop\.fs\.s3a\.bucket\.lake|spark\.hadoop\.fs\.s3a)\.(?=\w)"
)
BLOCKS = [example.text for example in read_examples("text") if example.page == "docs/where.md"]
NAMES = [line.split()[0] for block in BLOCKS for line in block.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_is_one_of_a_test(name):
    settings = HERE.parents[1] / "contract/settings.json"
    files = (HERE / "test_vended_keys.py", HERE / "test_hadoop_keys.py", settings)
    tests = "".join(file.read_text("utf-8") for file in files)
    setting = PREFIX.sub("", name).replace("spark.sql.catalog.lake", "spark.sql.catalog.{name}")
    assert re.search(rf'["\'.]{re.escape(setting)}["\']', tests)


def test_tests_that_the_page_names_are_there():
    page = (HERE.parents[1] / "docs/where.md").read_text("utf-8")
    named = set(re.findall(r"`(test_\w+\.py)`", page))
    assert len(named) > 3
    assert named <= {file.name for file in HERE.parent.rglob("test_*.py")}
