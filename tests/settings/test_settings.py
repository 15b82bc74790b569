from __future__ import annotations

import json
from pathlib import Path

import pytest

from metastore import settings
from metastore.errors import InvalidArgument, InvalidSetting

CASES = json.loads((Path(__file__).parents[1] / "cases" / "settings.json").read_text("utf-8"))
"""Name, text and value of settings, null where the text is none; `tests/sql/test_settings.py` asks the shim."""
PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    for one in settings.REGISTRY.values():
        monkeypatch.delenv(one.environment, raising=False)
    return tmp_path


def found(key, **given):
    return next(one for one in settings.resolve(**given) if one.setting.key == settings.PREFIX + key)


def test_the_documentation_is_current():
    assert PAGE.read_text("utf-8") == settings.markdown(), "run: python -m metastore.settings docs/settings.md"


def test_defaults_are_typed():
    values = {one.setting.key.removeprefix(settings.PREFIX): one.value for one in settings.resolve()}
    assert values["enabled"] is True
    assert values["store"] is None
    assert values["analyze.formats"] == ("iceberg", "delta", "hudi")
    assert values["cache.size"] == 256 << 20
    assert values["planning.timeout"] == 2000
    assert {one.source for one in settings.resolve()} == {"default"}


def test_the_nearest_source_wins(monkeypatch, empty_folder):
    (empty_folder / "metastore.toml").write_text("[histogram]\nbins = 11\n[snapshots]\nkeep = 3\n")
    assert (found("histogram.bins").value, found("histogram.bins").source) == (11, "file")
    monkeypatch.setenv("METASTORE_HISTOGRAM_BINS", "12")
    assert (found("histogram.bins").value, found("histogram.bins").source) == (12, "environment")
    given = found("histogram.bins", arguments={"spark.metastore.histogram.bins": 13})
    assert (given.value, given.source) == (13, "argument")
    assert found("snapshots.keep").source == "file"


@pytest.mark.parametrize(("text", "source"), [("false", "environment"), ("0", "environment")])
def test_a_false_value_is_a_value(monkeypatch, text, source):
    monkeypatch.setenv("METASTORE_CBO_ENABLED", text)
    assert (found("cbo.enabled").value, found("cbo.enabled").source) == (False, source)


def test_an_empty_list_hides_the_default(monkeypatch):
    monkeypatch.setenv("METASTORE_ANALYZE_FORMATS", "")
    assert found("analyze.formats").value == ()


def test_a_pyproject_above_the_folder_is_read(monkeypatch, empty_folder):
    (empty_folder / "pyproject.toml").write_text(
        '[tool.metastore]\npruneInsideWrites = true\nranks.columns = ["a", "b"]\n'
    )
    below = empty_folder / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert found("pruneInsideWrites").value is True
    assert (found("ranks.columns").value, found("ranks.columns").text) == (("a", "b"), "a,b")


def test_a_pyproject_of_others_is_no_source(empty_folder):
    (empty_folder / "pyproject.toml").write_text("[tool.ruff]\nline-length = 9\n")
    assert found("enabled").source == "default"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("histogram.bins", "1"),
        ("histogram.bins", "many"),
        ("cache.size", "lots"),
        ("planning.timeout", "2 parsecs"),
        ("analyze.formats", "iceberg,excel"),
        ("enabled", "perhaps"),
    ],
)
def test_a_bad_value_names_setting_and_source(monkeypatch, key, value):
    monkeypatch.setenv(settings.REGISTRY[settings.PREFIX + key].environment, value)
    with pytest.raises(InvalidSetting, match=f"spark.metastore.{key} = '{value}'.*environment"):
        settings.resolve()


def test_a_misspelt_name_gets_the_near_one(empty_folder):
    (empty_folder / "metastore.toml").write_text("[cbo]\nenabeld = true\n")
    with pytest.raises(InvalidArgument, match=r"metastore\.toml.*spark\.metastore\.cbo\.enabled"):
        settings.resolve()


@pytest.mark.parametrize(("key", "text", "value"), CASES)
def test_texts_are_read_as_the_shim_reads_them(key, text, value):
    try:
        read = settings.get(key, argument=text)
    except InvalidSetting:
        read = None
    assert (list(read) if isinstance(read, tuple) else read) == value
    assert type(read) is not bool or type(value) is bool


@pytest.mark.parametrize(("value", "read"), [(12, 12), (True, None), (12.0, None), ([12], None)])
def test_values_of_a_file_that_are_no_texts(value, read):
    if read is None:
        with pytest.raises(InvalidSetting):
            settings.get("histogram.bins", argument=value)
    else:
        assert settings.get("histogram.bins", argument=value) == read


def test_environment_names_are_those_of_the_shim():
    names = {one.environment for one in settings.REGISTRY.values()}
    assert {"METASTORE_PRUNE_INSIDE_WRITES", "METASTORE_HUDI_BYPASS_SKIPPING", "METASTORE_CBO_ENABLED"} <= names
