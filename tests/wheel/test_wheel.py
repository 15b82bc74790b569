"""The wheel that users install holds every module and exactly one jar, made from the sources as they are."""

from __future__ import annotations

import importlib.util
import subprocess
import zipfile
from pathlib import Path

import pytest

from metastore import jars

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
JAR = "pyspark/jars/metastore-shim.jar"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        ["uv", "build", "--quiet", "--wheel", "--out-dir", str(out)],  # noqa: S607 - uv is how the project is run
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(out.glob("*.whl")))


def test_exactly_one_jar(wheel):
    assert [name for name in wheel.namelist() if name.endswith(".jar")] == [JAR]


def test_every_file_of_the_packages(wheel):
    packages = [ROOT / "python/metastore", ROOT / "python/pyspark_metastore"]
    files = [f for package in packages for f in package.rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    expected = {f.relative_to(ROOT / "python").as_posix() for f in files}
    found = {name for name in wheel.namelist() if name.startswith(("metastore/", "pyspark_metastore/"))}
    assert found == expected


def test_jar_registers_itself_and_holds_its_extension(wheel, tmp_path):
    wheel.extract(JAR, tmp_path)
    jar = zipfile.ZipFile(tmp_path / JAR)
    service = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"
    assert jar.read(service).decode().split() == ["org.metastore.spark.MetastoreExtensions"]
    assert "org/metastore/spark/MetastoreExtensions.class" in jar.namelist()


def test_installed_jar_is_made_from_the_sources_as_they_are():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "jvm-shim/hatch_build.py")
    hatch_build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hatch_build)
    properties = zipfile.ZipFile(jars.shim()).read("metastore-shim.properties").decode()
    assert f"source={hatch_build.source_digest('4.1')}" in properties.split(), (
        "the installed shim is stale: uv sync --reinstall-package pyspark-metastore"
    )
