"""`metastore doctor`: what it finds, and what it tells to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import Row

import metastore
from cli.conftest import findings
from lakes import SPARK
from metastore import jars
from metastore.cli import doctor_checks
from metastore.cli.doctor_checks import BROKEN, OK, WARNING
from metastore.spark.session import EXTENSION


def test_doctor_finds_a_missing_java(run, healthy, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/no/where")
    result = findings(run, code=1)["java"]
    assert result["state"] == BROKEN
    assert "Install Java 17 or 21" in result["fix"]


@pytest.mark.parametrize(
    ("version", "state", "detail"),
    [
        ("4.1.9", OK, "4.1.9"),
        ("3.5.8", OK, "no data source"),
        ("4.0.1", OK, "4.0.1"),
        ("4.3.0", OK, "no release of Iceberg, Delta or Hudi yet"),
        ("3.5.6-amzn-1", OK, "no data source"),
        ("5.0.0", BROKEN, "built for Spark 3.5, 4.0, 4.1, 4.2 and 4.3"),
    ],
)
def test_doctor_knows_the_lines_of_spark(monkeypatch, version, state, detail):
    monkeypatch.setattr(doctor_checks.metadata, "version", lambda _: version)
    result = doctor_checks.check_pyspark()
    assert (result.state, bool(result.fix)) == (state, state == BROKEN)
    assert detail in result.detail
    assert doctor_checks.check_data_sources().state == OK


def test_doctor_finds_a_wrong_python_for_the_workers(run, healthy, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/bin/false")
    result = findings(run, code=1)["workers' python"]
    assert result["state"] == BROKEN
    assert result["fix"].startswith("export PYSPARK_PYTHON=")


def test_doctor_finds_a_python_without_our_data_source(run, healthy, monkeypatch, tmp_path):
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("PYSPARK_PYTHON")
    all_found = findings(run)
    assert all_found["workers' python"]["state"] == WARNING  # our own commands name theirs
    result = all_found["data sources"]
    assert (result["state"], "python3" in result["detail"]) == (WARNING, True)
    assert result["fix"] == f"export PYSPARK_PYTHON={sys.executable}"


def test_doctor_finds_a_spark_home_that_there_is_not(monkeypatch):
    monkeypatch.setenv("SPARK_HOME", "/no/where")
    result = doctor_checks.check_spark_home()
    assert (result.state, result.detail) == (BROKEN, "there is no folder /no/where")


def test_doctor_finds_a_broken_module_beside_ours(run, healthy, monkeypatch, tmp_path):
    (tmp_path / "pyspark_broken.py").write_text("import nothing_of_that_name\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    result = findings(run, code=1)["data sources"]
    assert result["state"] == BROKEN
    assert "pyspark_broken" in result["detail"]
    assert "nothing_of_that_name" in result["detail"]


def test_doctor_finds_that_our_data_source_is_not_there(run, healthy, monkeypatch, tmp_path):
    (tmp_path / "pyspark_metastore.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    result = findings(run, code=1)["data sources"]
    assert (result["state"], "ours is not there" in result["detail"]) == (BROKEN, True)
    assert "pip install --force-reinstall pyspark-metastore" in result["fix"]


def test_doctor_finds_a_misspelt_setting(run, healthy, monkeypatch, tmp_path):
    (tmp_path / "metastore.toml").write_text("[pruning]\nenabeld = false\n")
    results = findings(run, code=1)
    assert (results["settings"]["state"], results["store"]["state"]) == (BROKEN, WARNING)
    assert results["settings"]["fix"] == "Did you mean spark.metastore.pruning.enabled?"


def java_that_says(folder, text):
    """A JAVA_HOME whose java says its version so."""
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    java.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("said", "state", "detail"),
    [
        ('openjdk version "17.0.9" 2023-10-17', OK, "17.0.9"),
        ('openjdk version "11.0.21" 2023-10-17', None, "11.0.21"),
        ('openjdk version "25" 2025-09-16', WARNING, "is tested on"),
        ("Error: could not create the Java Virtual Machine", BROKEN, "does not tell its version"),
    ],
)
def test_doctor_asks_java_for_its_version(monkeypatch, tmp_path, said, state, detail):
    monkeypatch.setenv("JAVA_HOME", java_that_says(tmp_path / "java", said))
    result = doctor_checks.check_java()
    assert result.state == (state or (WARNING if SPARK == "3.5" else BROKEN))
    assert detail in result.detail
    assert bool(result.fix) == (result.state != OK)


def test_doctor_finds_a_path_without_java(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = doctor_checks.check_java()
    assert (result.state, result.detail) == (BROKEN, "there is no java on the PATH")


@pytest.mark.parametrize("client", [False, True])
def test_doctor_finds_a_python_without_pyspark(tmp_path, client):
    """Of the packages of this Python all but pyspark's own; the Connect client has its modules and another name."""
    for entry in Path(pyspark.__file__).parents[1].iterdir():
        if not entry.name.startswith("pyspark") or (client and entry.name == "pyspark"):
            (tmp_path / entry.name).symlink_to(entry)
    code = (
        "from metastore.cli import doctor_checks as d; r = d.check_pyspark(); print(r.state, r.detail, r.fix, sep='|')"
    )
    search_path = os.pathsep.join([str(tmp_path), str(Path(metastore.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": search_path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = (
        "warning|only the Connect client is installed|Its server needs the jar."
        if client
        else "broken|not installed|pip install 'pyspark-metastore[spark]'"
    )
    assert done.stdout.strip() == expected


def write_shim(jar, **facts):
    """A jar with the notes of a build."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(jar, "w") as opened:
        if facts:
            opened.writestr("metastore-shim.properties", "".join(f"{key}={value}\n" for key, value in facts.items()))
    return jar


@pytest.fixture
def pyspark_folder(monkeypatch, tmp_path):
    """A pyspark whose jars can be spoilt."""
    folder = tmp_path / "pyspark"
    (folder / "jars").mkdir(parents=True)
    monkeypatch.setattr(jars, "_installed_pyspark", lambda: folder)
    monkeypatch.setattr(jars, "_installed_shims", list)
    return folder


OURS = {"version": metastore.__version__, "lines": SPARK, f"source-{SPARK}": "0"}


@pytest.mark.parametrize(
    ("facts", "detail"),
    [
        (None, "does not exist"),
        ({}, "is no jar of ours"),
        ({**OURS, "version": "0.0.1"}, f"the jar is 0.0.1, the package {metastore.__version__}"),
        ({**OURS, "lines": "9.9"}, f"for Spark 9.9 only, and pyspark is {pyspark.__version__}"),
        (OURS, "older than its sources in this clone"),
    ],
)
def test_doctor_finds_a_jar_that_is_not_this_packages(pyspark_folder, facts, detail):
    if facts is not None:
        write_shim(pyspark_folder / "jars" / jars.SHIM, **facts)
    result = doctor_checks.check_jar()
    assert result.state == BROKEN
    assert detail in result.detail
    assert "pip install --force-reinstall pyspark-metastore" in result.fix


def test_doctor_finds_a_second_jar(pyspark_folder):
    write_shim(pyspark_folder / "jars" / jars.SHIM, **OURS)
    second = write_shim(pyspark_folder / "jars" / "metastore-shim-0.0.1.jar", **OURS)
    result = doctor_checks.check_jar()
    assert (result.state, result.fix) == (BROKEN, f"rm {second}")


def test_doctor_finds_a_jar_that_is_not_beside_those_of_spark(request, monkeypatch, tmp_path):
    jar = write_shim(tmp_path / "elsewhere" / jars.SHIM, **doctor_checks.read_shim_properties(jars.shim()))
    request.getfixturevalue("pyspark_folder")
    monkeypatch.setattr(jars, "_installed_shims", lambda: [jar])
    result = doctor_checks.check_jar()
    assert (result.state, "is not beside the jars of pyspark" in result.detail) == (WARNING, True)
    assert "metastore jar" in result.fix


def test_doctor_finds_another_spark_without_the_jar(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    result = doctor_checks.check_spark_home()
    assert (result.state, result.detail) == (WARNING, f"{tmp_path} does not have the jar")
    write_shim(tmp_path / "jars" / jars.SHIM)
    assert doctor_checks.check_spark_home().state == OK


@pytest.fixture
def spark_defaults(monkeypatch, tmp_path):
    """Writes a spark-defaults.conf of a Spark elsewhere."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)

    def write(**lines):
        file = tmp_path / "spark" / "conf" / "spark-defaults.conf"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"spark.{key.replace('__', '.')} {value}\n" for key, value in lines.items()))

    return write


def test_doctor_finds_an_extension_that_is_listed_without_its_jar(spark_defaults, tmp_path):
    spark_defaults(sql__extensions=f"a.B, {EXTENSION}")
    result = doctor_checks.check_extension()
    assert (result.state, f"{tmp_path / 'spark'} does not have the jar" in result.detail) == (BROKEN, True)
    assert 'spark-submit --jars "$(metastore jar)"' in result.fix
    write_shim(tmp_path / "spark" / "jars" / jars.SHIM)
    assert doctor_checks.check_extension().state == OK


def test_doctor_finds_an_extension_that_spark_3_5_does_not_have_listed(spark_defaults, monkeypatch):
    monkeypatch.setattr(doctor_checks.metadata, "version", lambda _: "3.5.8")
    spark_defaults(sql__extensions="a.B")
    result = doctor_checks.check_extension()
    assert (result.state, EXTENSION in result.fix) == (WARNING, True)


@pytest.mark.parametrize("key", ["jars", "driver__extraClassPath"])
def test_doctor_finds_two_versions_of_the_jar(spark_defaults, tmp_path, key):
    jar = tmp_path / "old" / "metastore-shim-0.0.1.jar"
    spark_defaults(**{key: f"file:{jar}" if key == "jars" else jar}, sql__extensions=EXTENSION)
    for facts, detail in ((None, "is no jar of ours"), ({**OURS, "version": "0.0.1"}, "is 0.0.1, the package")):
        if facts:
            write_shim(jar, **facts)
        result = doctor_checks.check_extension()
        assert (result.state, result.detail.startswith(f"{jar}, which spark-defaults.conf names, {detail}")) == (
            BROKEN,
            True,
        )
    write_shim(jar, **OURS)
    assert doctor_checks.check_extension().state == OK


@pytest.mark.parametrize(
    ("python", "detail"),
    [
        (None, "/no/python is not on the PATH"),
        ("echo 3.4", f"3.4; the driver's is {sys.version_info[0]}.{sys.version_info[1]}"),
        (f'exec {sys.executable} -S "$@"', "No module named 'numpy'"),
        ("exit 1", "it says nothing"),
    ],
)
def test_doctor_finds_workers_that_cannot_work(monkeypatch, tmp_path, python, detail):
    script = tmp_path / "python"
    if python:
        script.write_text(f"#!/bin/sh\n{python}\n")
        script.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(script) if python else "/no/python")
    result = doctor_checks.check_workers_python()
    assert (result.state, detail in result.detail) == (BROKEN, True)
    assert result.fix == f"export PYSPARK_PYTHON={sys.executable}"


@pytest.mark.skipif(SPARK == "3.5", reason="it has no data sources in Python")
def test_doctor_finds_another_module_in_the_place_of_ours(monkeypatch, tmp_path):
    (tmp_path / "pyspark_metastore.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    result = doctor_checks.check_data_sources()
    assert (result.state, "ours is not there" in result.detail) == (BROKEN, True)


def test_doctor_finds_settings_that_do_nothing(healthy, monkeypatch, tmp_path, spark_defaults):
    def check_detail(state):
        result = doctor_checks.check_settings()
        assert (result.state, bool(result.fix)) == (state, True)
        return result.detail

    monkeypatch.setenv("METASTORE_CBO_ENABLD", "true")
    assert "METASTORE_CBO_ENABLD is no setting" in check_detail(WARNING)
    monkeypatch.delenv("METASTORE_CBO_ENABLD")
    spark_defaults(metastore__enabled="false")
    assert check_detail(WARNING) == "spark.metastore.enabled is false"
    spark_defaults(metastore__enabled="maybe")
    assert "spark.metastore.enabled" in check_detail(BROKEN)
    spark_defaults()
    (tmp_path / "metastore.toml").write_text(f'store = "{tmp_path}"\n')
    (tmp_path / "metastore.toml").chmod(0o666)
    assert "spark.metastore.store is left out" in check_detail(WARNING)


def test_doctor_tells_of_table_formats_that_are_too_old():
    row = Row("format", "found", "oldest", "refusal")
    results = doctor_checks._check_formats(
        [row("Delta", "4.4", "3.2", None), row("Iceberg", "1.4", "1.6", "needs Iceberg 1.6")]
    )
    assert (results.state, results.detail) == (WARNING, "Delta 4.4, needs Iceberg 1.6")
    assert "Use Iceberg 1.6 or newer" in results.fix


@pytest.mark.slow
@pytest.mark.spark
def test_doctor_starts_a_spark_that_has_the_extension(healthy, monkeypatch):
    # It ends its Spark, and there is another in this process.
    command = [sys.executable, "-m", "metastore", "doctor", "--spark", "--json"]
    results = {result["check"]: result for result in json.loads(subprocess.check_output(command))["findings"]}
    assert results["spark"]["state"] == OK
    assert f"Spark {pyspark.__version__} has the extension {metastore.__version__}" in results["spark"]["detail"]
    monkeypatch.setenv("JAVA_HOME", "/no/where")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    results = {result["check"]: result for result in json.loads(done.stdout)["findings"]}
    assert (results["spark"]["state"], bool(results["spark"]["fix"]), done.returncode) == (BROKEN, True, 1)


def test_doctor_is_content_with_this_environment(run, healthy):
    results = findings(run)
    assert {result["state"] for result in results.values()} == ({OK, WARNING} if SPARK == "3.5" else {OK})
    assert "ok" in run("doctor").stdout
