"""The release command refuses what is not ready, by name."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATED = ("pyproject.toml", "python/metastore/__init__.py", "CHANGELOG.md")


@pytest.fixture(scope="module")
def command():
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools/release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path):
    """A copy of the files that state the version, as they will be at the release."""
    for name in STATED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def rewrite(file, pattern, text):
    file.write_text(re.sub(pattern, text, file.read_text("utf-8"), count=1, flags=re.MULTILINE), "utf-8")


def test_the_version_is_stated_once_and_for_all(command, tree):
    version = re.search(r'^version = "(.+)"$', (tree / "pyproject.toml").read_text("utf-8"), re.MULTILINE)[1]
    rewrite(tree / "CHANGELOG.md", r"^## \[.*", f"## [{version}] - 2026-12-01")
    assert command.require_one_version(tree) == version


def test_another_version_in_the_package(command, tree):
    rewrite(tree / "python/metastore/__init__.py", r"^__version__ = .*", '__version__ = "9.9.9"')
    with pytest.raises(command.NotReady, match=r"__init__.py says version 9\.9\.9"):
        command.require_one_version(tree)


@pytest.mark.parametrize("section", ["[Unreleased]", "[9.9.9] - 2026-12-01", "[0.1.0]"])
def test_a_changelog_that_is_not_of_this_version(command, tree, section):
    rewrite(tree / "CHANGELOG.md", r"^## \[.*", f"## {section}")
    with pytest.raises(command.NotReady, match=re.escape(section.partition(" ")[0])):
        command.require_one_version(tree)
