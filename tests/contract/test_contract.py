"""Python, the shim and the generated pages follow the contract."""

from __future__ import annotations

import importlib.util
import re
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

import metastore
from gaps import RELEASES
from metastore import errors, jars
from metastore.configuration import REGISTRY
from metastore.contract import read_contract
from metastore.spark_jobs import session_jobs

ROOT = Path(__file__).parents[2]
SCALA = ROOT / "jvm-shim/src/main/scala"
ERRORS = read_contract("errors")["errors"]
FUNCTIONS = read_contract("functions")["functions"]
LISTED = [function for function in FUNCTIONS if not function.get("internal")]


def pages():
    spec = importlib.util.spec_from_file_location("make_pages", ROOT / "docs/make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PAGES


@pytest.mark.parametrize(("name", "render"), pages().items())
def test_the_documentation_is_current(name, render):
    assert (ROOT / "docs" / name).read_text("utf-8") == render(), "run: python docs/make.py"


def test_every_error_is_a_class():
    assert {error["class"] for error in ERRORS} == {*errors.__all__} - {"MetastoreError"}
    assert {error["code"] for error in ERRORS} == {getattr(errors, error["class"]).code for error in ERRORS}


def test_the_shim_raises_the_errors_that_are_said_to_be_raised_there():
    text = "".join(file.read_text("utf-8") for file in SCALA.rglob("*.scala"))
    assert (
        set(re.findall(r'"(METASTORE_[A-Z_]+)"', text)) - {error["code"] for error in ERRORS if error.get("shim")}
        == set()
    )
    assert {error["code"] for error in ERRORS if error.get("shim")} <= set(re.findall(r'"(METASTORE_[A-Z_]+)"', text))


@pytest.mark.parametrize(("reason", "end"), [("it says so.", "so."), ("it says so", "so."), ("and so on...", "on....")])
def test_a_message_that_quotes_a_sentence_ends_once(reason, end):
    assert str(errors.AnalyzeFailed("t", reason)).endswith(end)
    assert f" {end} Do it." in str(errors.StoreNotReadable("s", reason, "Do it."))


def test_exit_codes_of_errors_are_declared():
    assert {error["exit_code"] for error in ERRORS} <= {
        error["code"] for error in read_contract("errors")["exit_codes"]
    }


def test_functions_without_spark_are_methods_of_what_is_opened():
    for function in FUNCTIONS:
        if function.get("without_spark") and function["name"] != "tables":
            assert callable(getattr(metastore.Statistics, function["name"]))


def test_workers_get_the_contract():
    with zipfile.ZipFile(BytesIO(session_jobs._archive(Path(metastore.__file__).parent))) as archive:
        shipped = {Path(name).name for name in archive.namelist() if name.startswith("metastore/contract/")}
    assert shipped == {file.name for file in (ROOT / "contract").iterdir() if file.is_file()}


def test_formats_are_those_whose_jars_are_locked():
    locked = {lock.partition("-")[0] for lock in jars.read_lock()}
    with_releases = {format_["name"]: format_ for format_ in read_contract("formats") if "oldest" in format_}
    assert set(with_releases) <= locked
    for name, format_ in with_releases.items():
        tested = [version(release.version) for release in RELEASES if release.format == name and not release.refused]
        assert (version(format_["oldest"]), version(format_["newest"])) == (min(tested), max(tested))


def test_limits_are_said_in_the_page_of_the_format():
    limits, page = read_contract("limits"), (ROOT / "docs/format.md").read_text("utf-8")
    assert f"version {limits['format_version']}\n" in page
    for name in ("manifest_blocks", "zone_files", "cut_bytes"):
        assert re.search(rf"\b{limits[name]:,}\b", page), name
    assert f"{limits['manifest_bytes'] >> 20} MiB" in page


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


@pytest.mark.spark
def test_the_shim_shows_the_settings_of_the_contract(spark):
    rows = spark.sql("SELECT * FROM metastore.settings()").collect()
    assert [row.name for row in rows] == list(REGISTRY)
    assert not [row.name for row in rows if "`" in row.meaning]


@pytest.mark.spark
def test_the_shim_answers_the_functions_of_the_contract(spark):
    rows = spark.sql("SELECT * FROM metastore.help()").collect()
    assert [row["function"] for row in rows] == [f"metastore.{function['name']}" for function in LISTED]
    for row, function in zip(rows, LISTED, strict=True):
        assert re.findall(r"(?<!\[)(?<!\[, )\b\w+", row["arguments"]) == [
            argument["name"] for argument in function["arguments"] if argument["required"]
        ]


@pytest.mark.spark
def test_the_shim_has_the_formats_of_the_contract(spark):
    declared = {format_["title"]: format_ for format_ in read_contract("formats")}
    for row in spark.sql("SELECT * FROM metastore_formats()").collect():
        assert (row.oldest, row.newest) == (declared[row.format]["oldest"], declared[row.format]["newest"])
