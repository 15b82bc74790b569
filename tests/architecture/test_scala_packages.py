"""The shim's packages stand in one order, their files in no circle, and formats are named in their own files alone.

Import-linter holds the order of Python's packages.
"""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

import pytest

from architecture.circles import find_circles
from metastore.contract import read_contract

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
COMMENT = r"/\*.*?\*/|//[^\n]*"
TEXT = r'"(?:[^"\\\n]|\\.)*"'
COMMENT_OR_TEXT = re.compile(f"{COMMENT}|{TEXT}", re.DOTALL)
IMPORT_FROM_OUTSIDE = re.compile(
    r"^import (?:com|java|javax|org\.(?!metastore)|scala)\b[^{\n]*(?:\{[^}]*\})?", re.MULTILINE
)
DEFINITION = re.compile(r"^(?:[a-z]+(?:\[\w+\])? )*(?:class|object|trait) (\w+)", re.MULTILINE)

# Files that name formats, beside those of the formats.
REGISTRIES = {
    "tables/TableFormats.scala": "the list of all formats",
    "scan/ScanFormats.scala": "the list of all formats whose scans are planned",
    "conf/MetastoreConf.scala": "settings that hold for one format",
    "analyze/CatalogExport.scala": "a message that advises such a setting",
    "SessionExtensions.scala": "the strategy for directories of Parquet files is registered with Spark",
}
SPARKS_OWN = re.compile(r"WriteDelta")


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
        uses = {package_of(match[1]) for match in USE.finditer(body)}
        wrong += [f"{file.name} uses {use or 'the root'}" for use in sorted(uses.difference(allowed))]
    assert not wrong


def test_every_folder_has_its_place():
    folders = {
        file.parent.relative_to(SOURCES.joinpath(*ROOT.split(".")))
        for file in SOURCES.rglob("metastore/spark/**/*.scala")
    }
    assert {"" if str(f) == "." else ".".join(f.parts) for f in folders} == set(ORDER)


def code_of(file: Path) -> str:
    """The Scala code of a file without comments and texts."""
    return COMMENT_OR_TEXT.sub("", file.read_text("utf-8"))


def uses_of(files: list[Path]) -> dict[str, set[str]]:
    """For each file of a package the other files of it whose types it names."""
    codes = {file.stem: code_of(file) for file in files}
    owners = {}
    for name, code in codes.items():
        for definition in DEFINITION.findall(code):
            owners[definition] = name
    uses = {}
    for name, code in codes.items():
        words = set(re.findall(r"\b[A-Z]\w*", IMPORT_FROM_OUTSIDE.sub("", code)))
        uses[name] = {owners[word] for word in words if word in owners} - {name}
    return uses


@pytest.mark.parametrize("package", ORDER, ids=lambda package: package or "root")
def test_files_of_a_package_stand_in_no_circle(package):
    files = sorted(SOURCES.joinpath(*ROOT.split("."), *package.split(".")).glob("*.scala"))
    assert find_circles(uses_of(files)) == []


def is_of_format(file: Path, names: list[str]) -> bool:
    """Whether a file belongs to one format."""
    return file.parent.name in {"tables", "scan"} and file.name.startswith(tuple(names))


def test_formats_are_named_in_their_own_files():
    formats = read_contract("formats")
    titles = [format_["title"].split()[0] for format_ in formats]
    plugins = [format_["title"] for format_ in formats if "packages" in format_]
    named = re.compile("|".join(plugins + [f"\\b{title.lower()}" for title in plugins]))
    root = SOURCES.joinpath(*ROOT.split("."))
    files = sorted(root.rglob("*.scala"))
    types = {name for file in files if is_of_format(file, titles) for name in DEFINITION.findall(code_of(file))}
    wrong = []
    for file in files:
        path = file.relative_to(root).as_posix()
        if is_of_format(file, titles) or path in REGISTRIES:
            continue
        text = re.sub(COMMENT, "", file.read_text("utf-8"), flags=re.DOTALL)
        wrong += [f"{path} names {word}" for word in named.findall(SPARKS_OWN.sub("", text))]
        wrong += [f"{path} uses {word}" for word in types.intersection(re.findall(r"\w+", code_of(file)))]
    assert not wrong
