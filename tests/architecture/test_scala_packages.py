"""The shim's packages stand in one order: each uses only those before it. Import-linter holds the same of Python."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

import pytest

ROOT = "org.metastore.spark"
SOURCES = Path(__file__).resolve().parents[2] / "jvm-shim/src/main/scala"
ORDER = [
    "contract",
    "reason",
    "conf",
    "python",
    "statistics.cache",
    "statistics.objects",
    "statistics.columns",
    "statistics.values",
    "statistics.zones",
    "statistics",
    "tables",
    "pruning",
    "estimates",
    "scan",
    "explain",
    "sql",
    "analyze",
    "auto",
    "",
]
USE = re.compile(rf"\b{re.escape(ROOT)}((?:\.[a-z]\w*)*)")
COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', re.DOTALL)


def package_of(name: str) -> str:
    """The package that a dotted name lies in: the longest one that there is."""
    parts = list(takewhile(str.islower, name.strip(".").split(".")))
    return next((".".join(parts[:n]) for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in ORDER), "")


@pytest.mark.parametrize("package", ORDER, ids=lambda package: package or "root")
def test_a_package_uses_only_those_before_it(package):
    folder = SOURCES.joinpath(*ROOT.split("."), *package.split("."))
    files = sorted(folder.glob("*.scala"))
    assert files
    allowed, wrong = ORDER[: ORDER.index(package) + 1], []
    for file in files:
        clause, _, body = COMMENT_OR_TEXT.sub("", file.read_text("utf-8")).partition("\n")
        assert clause == f"package {ROOT}.{package}".rstrip("."), file
        uses = {package_of(found[1]) for found in USE.finditer(body)}
        wrong += [f"{file.name} uses {use or 'the root'}" for use in sorted(uses.difference(allowed))]
    assert not wrong


def test_every_folder_has_its_place():
    folders = {
        file.parent.relative_to(SOURCES.joinpath(*ROOT.split(".")))
        for file in SOURCES.rglob("metastore/spark/**/*.scala")
    }
    assert {"" if str(f) == "." else ".".join(f.parts) for f in folders} == set(ORDER)
