"""`metastore doctor`: what it finds, and what it tells to do."""

from __future__ import annotations

import json
import os
import sys

import pytest

from metastore import jars
from metastore.cli import doctor_checks
from metastore.cli.doctor_checks import BROKEN, OK
from store import s3


def findings(run, code=0):
    found = json.loads(run("doctor", "--json", code=code).stdout)["findings"]
    return {one["check"]: one for one in found}


@pytest.fixture
def healthy(monkeypatch, tmp_path):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.chdir(tmp_path)


def test_doctor_finds_a_missing_java(run, healthy, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/no/where")
    found = findings(run, code=1)["java"]
    assert found["state"] == BROKEN
    assert "Install Java 17 or 21" in found["fix"]


@pytest.mark.parametrize(
    ("version", "state", "told"),
    [
        ("4.1.9", OK, "4.1.9"),
        ("3.5.8", OK, "no data source"),
        ("4.0.1", OK, "4.0.1"),
        ("4.2.0", BROKEN, "built for Spark 3.5, 4.0 and 4.1"),
    ],
)
def test_doctor_knows_the_lines_of_spark(monkeypatch, version, state, told):
    monkeypatch.setattr(doctor_checks.metadata, "version", lambda _: version)
    found = doctor_checks.check_pyspark()
    assert (found.state, bool(found.fix)) == (state, state == BROKEN)
    assert told in found.detail
    assert doctor_checks.check_data_sources().state == OK


def test_doctor_finds_a_wrong_python_for_the_workers(run, healthy, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/bin/false")
    found = findings(run, code=1)["workers' python"]
    assert found["state"] == BROKEN
    assert found["fix"].startswith("export PYSPARK_PYTHON=")


def test_doctor_finds_a_python_without_our_data_source(run, healthy, monkeypatch, tmp_path):
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("PYSPARK_PYTHON")
    found = findings(run, code=1)["data sources"]
    assert (found["state"], "python3" in found["detail"]) == (BROKEN, True)
    assert found["fix"] == f"export PYSPARK_PYTHON={sys.executable}"


def test_doctor_finds_a_broken_module_beside_ours(run, healthy, monkeypatch, tmp_path):
    (tmp_path / "pyspark_broken.py").write_text("import nothing_of_that_name\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    found = findings(run, code=1)["data sources"]
    assert found["state"] == BROKEN
    assert "pyspark_broken" in found["detail"]
    assert "nothing_of_that_name" in found["detail"]


def test_doctor_finds_a_second_jar(run, healthy):
    second = jars.pyspark_jars() / "metastore-shim-0.0.1.jar"
    second.write_bytes(b"")
    try:
        found = findings(run, code=1)["jar"]
    finally:
        second.unlink()
    assert (found["state"], found["fix"]) == (BROKEN, f"rm {second}")


def test_doctor_finds_a_misspelt_setting(run, healthy, monkeypatch, tmp_path):
    (tmp_path / "metastore.toml").write_text("[cbo]\nenabeld = false\n")
    found = findings(run, code=1)["settings"]
    assert found["state"] == BROKEN
    assert "spark.metastore.cbo.enabled" in found["fix"]


def test_doctor_finds_a_store_that_is_no_folder(run, healthy, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("METASTORE_STORE", str(tmp_path / "file"))
    found = findings(run, code=1)["store"]
    assert found["state"] == BROKEN
    assert found["fix"]


@pytest.mark.slow
def test_doctor_tries_a_store_on_s3_with_the_credentials_of_spark(run, healthy, monkeypatch, tmp_path):
    with s3.running() as address:
        keys = {"access.key": s3.KEY, "secret.key": s3.SECRET, "endpoint": address, "endpoint.region": "us-east-1"}
        lines = [f"spark.hadoop.fs.s3a.{key} {value}" for key, value in keys.items()]
        (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
        for bucket, state in ((s3.BUCKET, OK), ("nowhere", BROKEN)):
            monkeypatch.setenv("METASTORE_STORE", f"s3a://{bucket}/central")
            done = run("doctor", "--json", code=int(state == BROKEN))
            assert s3.SECRET not in done.stdout + done.stderr
            found = {one["check"]: one for one in json.loads(done.stdout)["findings"]}["store"]
            assert found["state"] == state
            assert found["fix"] or state == OK


def test_doctor_does_not_try_what_only_spark_reaches(run, healthy, monkeypatch):
    monkeypatch.setenv("METASTORE_STORE", "hdfs://nn/statistics")
    found = findings(run)["store"]
    assert (found["state"], found["detail"]) == (OK, "hdfs://nn/statistics is not tried: only Spark reaches it")


def test_doctor_is_content_with_this_environment(run, healthy):
    found = findings(run)
    assert {one["state"] for one in found.values()} == {OK}
    assert "ok" in run("doctor").stdout
