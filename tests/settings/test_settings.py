from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

import metastore
from metastore import configuration
from metastore.cli import doctor_checks, doctor_store_checks
from metastore.errors import InvalidArgument, InvalidSetting

CASES = json.loads((Path(__file__).parents[1] / "cases" / "settings.json").read_text("utf-8"))
"""Name, text and value of settings, null where the text is none; `tests/sql/test_settings.py` asks the shim."""


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    for setting in configuration.REGISTRY.values():
        monkeypatch.delenv(setting.environment, raising=False)
    return tmp_path


def resolve_setting(key, **options):
    return next(
        resolved for resolved in configuration.resolve(**options) if resolved.setting.key == configuration.PREFIX + key
    )


def test_defaults_are_typed():
    values = {
        resolved.setting.key.removeprefix(configuration.PREFIX): resolved.value for resolved in configuration.resolve()
    }
    assert values["enabled"] is True
    assert values["store"] is None
    assert values["analyze.formats"] == ("iceberg", "delta", "hudi")
    assert values["cache.size"] == 256 << 20
    assert values["planning.timeout"] == 2000
    assert {resolved.source for resolved in configuration.resolve()} == {"default"}


def test_the_nearest_source_wins(monkeypatch, empty_folder):
    (empty_folder / "metastore.toml").write_text("[histogram]\nbins = 11\n[snapshots]\nkeep = 3\n")
    assert (resolve_setting("histogram.bins").value, resolve_setting("histogram.bins").source) == (11, "file")
    monkeypatch.setenv("METASTORE_HISTOGRAM_BINS", "12")
    assert (resolve_setting("histogram.bins").value, resolve_setting("histogram.bins").source) == (12, "environment")
    bins = resolve_setting("histogram.bins", arguments={"spark.metastore.histogram.bins": 13})
    assert (bins.value, bins.source) == (13, "argument")
    assert resolve_setting("snapshots.keep").source == "file"


@pytest.mark.parametrize(("text", "source"), [("false", "environment"), ("0", "environment")])
def test_a_false_value_is_a_value(monkeypatch, text, source):
    monkeypatch.setenv("METASTORE_CBO_ENABLED", text)
    assert (resolve_setting("cbo.enabled").value, resolve_setting("cbo.enabled").source) == (False, source)


def test_an_empty_list_hides_the_default(monkeypatch):
    monkeypatch.setenv("METASTORE_ANALYZE_FORMATS", "")
    assert resolve_setting("analyze.formats").value == ()


def test_a_pyproject_above_the_folder_is_read(monkeypatch, empty_folder):
    (empty_folder / "pyproject.toml").write_text(
        '[tool.metastore]\npruneInsideWrites = true\nranks.columns = ["a", "b"]\n'
    )
    below = empty_folder / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert resolve_setting("pruneInsideWrites").value is True
    assert (resolve_setting("ranks.columns").value, resolve_setting("ranks.columns").text) == (("a", "b"), "a,b")


def test_a_pyproject_of_others_is_no_source(empty_folder):
    (empty_folder / "pyproject.toml").write_text("[tool.ruff]\nline-length = 9\n")
    assert resolve_setting("enabled").source == "default"


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
    monkeypatch.setenv(configuration.REGISTRY[configuration.PREFIX + key].environment, value)
    with pytest.raises(InvalidSetting, match=f"spark.metastore.{key} = '{value}'.*environment"):
        configuration.resolve()


def test_a_misspelt_name_gets_the_near_one(empty_folder):
    (empty_folder / "metastore.toml").write_text("[cbo]\nenabeld = true\n")
    with pytest.raises(InvalidArgument, match=r"metastore\.toml.*spark\.metastore\.cbo\.enabled"):
        configuration.resolve()


@pytest.mark.parametrize(("key", "text", "value"), CASES)
def test_texts_are_read_as_the_shim_reads_them(key, text, value):
    try:
        read = configuration.get(key, argument=text)
    except InvalidSetting:
        read = None
    assert (list(read) if isinstance(read, tuple) else read) == value
    assert type(read) is not bool or type(value) is bool


@pytest.mark.parametrize(("value", "read"), [(12, 12), (True, None), (12.0, None), ([12], None)])
def test_values_of_a_file_that_are_no_texts(value, read):
    if read is None:
        with pytest.raises(InvalidSetting):
            configuration.get("histogram.bins", argument=value)
    else:
        assert configuration.get("histogram.bins", argument=value) == read


def test_environment_names_are_those_of_the_shim():
    names = {setting.environment for setting in configuration.REGISTRY.values()}
    assert {"METASTORE_PRUNE_INSIDE_WRITES", "METASTORE_HUDI_BYPASS_SKIPPING", "METASTORE_CBO_ENABLED"} <= names


PROGRAM = 'python = "/opt/evil"\nstore = "/opt/stats"\n[histogram]\nbins = 11\n'


def left_out(key):
    return resolve_setting(key).left_out


def test_a_file_of_ones_own_names_programs(empty_folder):
    (empty_folder / "metastore.toml").write_text(PROGRAM)
    assert (resolve_setting("python").text, resolve_setting("python").source) == ("/opt/evil", "file")
    assert (
        resolve_setting("python").file == resolve_setting("histogram.bins").file == str(empty_folder / "metastore.toml")
    )
    assert left_out("python") is None


def give_to_nobody(path: Path) -> None:
    os.chown(path, 65534, 65534)


WAYS = {
    "everybody may write the file": (lambda file: file.chmod(0o666), "can be written by everybody"),
    "everybody may write its folder": (lambda file: file.parent.chmod(0o777), "can be written by everybody"),
    "everybody may write a folder above": (lambda file: file.parents[1].chmod(0o777), "can be written by everybody"),
    "its group may write it": (lambda file: (os.chown(file, -1, 12345), file.chmod(0o664)), "written by its group"),
    "it is another's": (give_to_nobody, "belongs to"),
    "its folder is another's": (lambda file: give_to_nobody(file.parent), "belongs to"),
    "it is behind another's link": (
        lambda file: (
            file.rename(file.with_name("x")),
            file.symlink_to("x"),
            os.chown(file, 65534, 65534, follow_symlinks=False),
        ),
        "belongs to",
    ),
}


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_the_sample_has_the_defaults(monkeypatch):
    default = resolve_setting("planning.timeout").value
    monkeypatch.chdir(Path(__file__).parents[2] / "conf")
    assert (resolve_setting("planning.timeout").value, resolve_setting("snapshots.keep").source) == (default, "file")


@pytest.mark.parametrize("name", ["metastore.toml", "pyproject.toml"])
@pytest.mark.parametrize("way", WAYS)
def test_a_file_of_somebody_else_names_no_program(monkeypatch, empty_folder, caplog, way, name):
    folder = empty_folder / "above" / "project"
    (folder / "below").mkdir(parents=True)
    text = PROGRAM.replace("[histogram]", "[tool.metastore.histogram]")
    text = "[tool.metastore]\n" + text if name.startswith("py") else PROGRAM
    (folder / name).write_text(text)
    make, reason = WAYS[way]
    make(folder / name)
    monkeypatch.chdir(folder / "below")
    assert (resolve_setting("python").value, resolve_setting("python").source) == (None, "default")
    assert configuration.get("store") is None
    assert reason in left_out("python")
    assert str(folder / name) in left_out("store")
    assert resolve_setting("histogram.bins").value == 11  # names nothing: a project's settings serve all who work in it
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if "spark.metastore.python is left out" in line]) == 1
    monkeypatch.setenv("METASTORE_PYTHON", "/usr/bin/python3")
    assert resolve_setting("python").source == "environment"


def test_a_folder_where_everybody_deletes_only_what_is_theirs_is_as_good_as_ones_own(monkeypatch, empty_folder):
    folder = empty_folder / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    (folder / "metastore.toml").write_text(PROGRAM)
    monkeypatch.chdir(folder)
    assert resolve_setting("python").text == "/opt/evil"


def test_the_way_to_a_file_may_lead_through_links(monkeypatch, empty_folder):
    (empty_folder / "real").mkdir()
    (empty_folder / "data").symlink_to("real")
    (empty_folder / "real" / "metastore.toml").write_text(PROGRAM)
    monkeypatch.chdir(empty_folder / "data")
    assert resolve_setting("python").text == "/opt/evil"


def row_of(name):
    return next(row for row in metastore.settings() if row["name"] == name)


def test_settings_show_what_is_wrong_and_raise_nothing(monkeypatch, empty_folder):
    (empty_folder / "metastore.toml").write_text("[cbo]\nenabeld = true\n[snapshots]\nkeep = 3\n")
    monkeypatch.setenv("METASTORE_HISTOGRAM_BINS", "1")
    bins, keep = row_of("spark.metastore.histogram.bins"), row_of("spark.metastore.snapshots.keep")
    assert (bins["value"], bins["source"]) == ("1000", "default")
    assert bins["problem"].startswith("'1': ")
    assert "environment" in bins["problem"]
    assert (keep["value"], keep["source"], keep["problem"]) == ("3", "file", None)
    misspelt = row_of("cbo.enabeld")
    assert (misspelt["value"], misspelt["source"]) == ("True", "file")
    assert misspelt["problem"] == "there is no such setting. Did you mean spark.metastore.cbo.enabled?"
    assert metastore.settings().columns[:6] == ("name", "value", "source", "default", "meaning", "problem")


def test_settings_are_a_function_whatever_was_imported():
    import metastore.configuration  # noqa: PLC0415 - the module that the function reads

    assert callable(metastore.settings)
    assert "problem" in repr(metastore.settings()) or "spark.metastore.enabled" in repr(metastore.settings())


@pytest.mark.parametrize("user", ["analyze", "read", "plan"])
def test_a_wrong_value_stops_who_uses_the_setting_alone(monkeypatch, user):
    monkeypatch.setenv("METASTORE_HISTOGRAM_BINS", "1")
    if user == "analyze":
        with pytest.raises(InvalidSetting, match=r"histogram\.bins = '1'"):
            configuration.resolve(user=user)
    else:
        assert "spark.metastore.store" in {resolved.setting.key for resolved in configuration.resolve(user=user)}
    assert configuration.get("spark.metastore.store") is None


def test_every_setting_has_a_user():
    assert {user for setting in configuration.REGISTRY.values() for user in setting.users} == {
        "analyze",
        "read",
        "plan",
    }
    assert all(setting.users for setting in configuration.REGISTRY.values())


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("metastore.analyze.auto", "true", None),
        ("metastore.analyze.auto", " False", None),
        ("metastore.ranks.columns", "a, b", None),
        ("metastore.schema", None, r"Known: .*metastore\.analyze\.auto, .*"),
        ("write.format.default", "orc", None),
        (
            "metastore.analyze.atuo",
            "true",
            r"there is no such table property\. Did you mean metastore\.analyze\.auto\?",
        ),
        ("Metastore.Ranks.Columns", "a", r".* Did you mean metastore\.ranks\.columns\?"),
        ("metastore.analyze.auto", "treu", "'treu' is none of true, false"),
    ],
)
def test_table_properties_that_say_nothing(name, value, problem):
    problems = configuration.find_wrong_properties({name: str(value)})
    assert set(problems) == ({name} if problem else set())
    assert problem is None or re.search(problem, problems[name])


def test_settings_say_which_file_they_are_of(empty_folder):
    (empty_folder / "metastore.toml").write_text(PROGRAM)
    (empty_folder / "metastore.toml").chmod(0o666)
    rows = {row["name"]: row for row in metastore.settings()}
    assert rows["spark.metastore.histogram.bins"]["file"] == str(empty_folder / "metastore.toml")
    assert "written by everybody" in rows["spark.metastore.python"]["left_out"]
    result = doctor_checks.check_settings()
    assert result.state == doctor_checks.WARNING
    assert "spark.metastore.python is left out" in result.detail
    assert "chmod" in result.fix


@pytest.mark.parametrize("there", [False, True])
def test_doctor_makes_nothing(monkeypatch, tmp_path, there):
    (tmp_path / "w" / "t").mkdir(parents=True)
    if there:
        (tmp_path / "w" / "t" / "_metastore").mkdir()
    before = {str(path): path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert doctor_store_checks.check_store(str(tmp_path / "w" / "t")).state == doctor_checks.OK
    monkeypatch.setenv("METASTORE_STORE", str(tmp_path / "stats"))
    assert doctor_store_checks.check_store(None).state == doctor_checks.OK
    assert {str(path): path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.slow
def test_doctor_runs_nothing_of_the_working_folder(monkeypatch, tmp_path):
    for name in ("numpy", "pyarrow", "pyspark_metastore", "json"):
        (tmp_path / f"{name}.py").write_text(f"import pathlib; pathlib.Path('{tmp_path}/ran').touch()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    doctor_checks.check_workers_python()
    doctor_checks.check_data_sources()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "json.py",
        "numpy.py",
        "pyarrow.py",
        "pyspark_metastore.py",
    ]
