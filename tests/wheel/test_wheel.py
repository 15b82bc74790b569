"""The wheel that users install holds every module and one jar, with which a first use works on every line of Spark.

All in one file: it is built once, by one process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from metastore import jars
from metastore.cli import doctor_checks

pytestmark = [pytest.mark.slow, pytest.mark.spark]

ROOT = Path(__file__).resolve().parents[2]
JAR = "pyspark/jars/metastore-shim.jar"
ENTRY = "org/metastore/spark/MetastoreExtensions"
JAVA_8 = 52
MOST_BYTES = 15_500_000
STORY = Path(__file__).parent / "story.py"
SPARKS = ("4.3.0", "4.2.1", "4.1.4", "4.0.1", "3.5.8")
SHARED = {
    b"scala/reflect/ScalaSignature",
    b"scala/runtime/AbstractFunction1",
    b"scala/runtime/BoxedUnit",
    b"scala/util/Properties$",
    b"org/apache/spark/package$",
    b"org/apache/spark/sql/SparkSessionExtensions",
    b"org/apache/spark/sql/SparkSessionExtensionsProvider",
}
"""What Scala 2.12 and 2.13, and Spark from 3.2 on, have alike."""


def built(out: Path, *arguments: str) -> dict[str, Path]:
    """The artefacts of a build, by the ending of their names."""
    uv(
        "build",
        "--quiet",
        "--out-dir",
        str(out),
        *arguments,
        cwd=ROOT,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1767225600"},
    )
    return {file.suffix: file for file in out.iterdir() if file.suffix in (".whl", ".gz")}


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory) -> dict[str, Path]:
    """An sdist and a wheel, both of the tree with classes that were compiled before."""
    return built(tmp_path_factory.mktemp("dist"), "--sdist", "--wheel")


@pytest.fixture(scope="module")
def wheel(artefacts) -> zipfile.ZipFile:
    return zipfile.ZipFile(artefacts[".whl"])


@pytest.mark.campaign
def test_another_build_has_the_same_bytes(artefacts, tmp_path):
    again = built(tmp_path)  # the wheel of the sdist, in an empty folder: everything is compiled again
    assert again.keys() == artefacts.keys() == {".whl", ".gz"}
    for ending, file in again.items():
        assert file.read_bytes() == artefacts[ending].read_bytes(), file.name


def test_an_index_would_take_them(artefacts):
    check = [sys.executable, "-m", "twine", "check", "--strict", *map(str, artefacts.values())]
    done = subprocess.run(check, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_exactly_one_jar(wheel):
    assert [name for name in wheel.namelist() if name.endswith(".jar")] == [JAR]


def test_every_file_of_the_packages(wheel):
    packages = [ROOT / "python/metastore", ROOT / "python/pyspark_metastore"]
    files = [f for package in packages for f in package.rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    expected = {f.relative_to(ROOT / "python").as_posix() for f in files}
    package_files = {name for name in wheel.namelist() if name.startswith(("metastore/", "pyspark_metastore/"))}
    assert package_files == expected


def test_jar_registers_itself_and_holds_a_build_for_every_line(wheel, tmp_path):
    wheel.extract(JAR, tmp_path)
    jar = zipfile.ZipFile(tmp_path / JAR)
    service = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"
    assert jar.read(service).decode().split() == [f"{ENTRY.replace('/', '.')}"]
    facts = doctor_checks.read_shim_properties(tmp_path / JAR)
    assert facts["lines"].split() == list(jars.LINES)
    for spark_build in build().builds():
        assert facts[f"spark-{spark_build.name}"].startswith(f"{spark_build.line}.")
        assert f"org/metastore/spark/{spark_build.package}/SessionExtensions.class" in jar.namelist()
        for line in spark_build.serves:
            assert facts[f"package-{line}-{spark_build.scala}"] == spark_build.package
    packages = "|".join(spark_build.package for spark_build in build().builds())
    neutral = {name for name in jar.namelist() if not re.search(rf"/({packages})/", name)}
    classes = {f"{ENTRY}.class", f"{ENTRY}$.class"}
    documents = {f"metastore-contract/{file.name}" for file in (ROOT / "contract").glob("*.json")}
    assert neutral == {*classes, *documents, service, "metastore-shim.properties"}
    assert {jar.read(name)[7] for name in classes} == {JAVA_8}


def test_entry_names_nothing_that_differs_between_versions_of_scala():
    jar = zipfile.ZipFile(jars.shim())
    for name in (f"{ENTRY}.class", f"{ENTRY}$.class"):
        named = set(re.findall(rb"(?:scala|org/apache/spark)/[\w/$]+", jar.read(name)))
        assert named <= SHARED, name


def test_installed_jar_is_made_from_the_sources_as_they_are():
    facts = doctor_checks.read_shim_properties(jars.shim())
    installed = build().find_build(build().installed(jars.pyspark_jars().parent)).name
    assert facts[f"source-{installed}"] == build().source_digest(installed), (
        "the installed shim is stale: uv sync --reinstall-package pyspark-metastore"
    )


def test_the_jar_is_no_larger_than_it_may_be(wheel):
    assert wheel.getinfo(JAR).file_size <= MOST_BYTES


def build():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "jvm-shim/hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Environment:
    """A virtual environment of its own, made with uv."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        uv("venv", "--quiet", "--python", sys.executable, str(folder / "venv"))
        self.python = folder / "venv/bin/python"

    @property
    def packages(self) -> Path:
        return next((self.folder / "venv/lib").glob("python3.*/site-packages"))

    def pip(self, verb: str, *arguments: str) -> None:
        uv("pip", verb, "--quiet", "--python", str(self.python), *arguments)

    def story(self, version: str) -> tuple[dict, str]:
        """Run the story; its output, and its log."""
        folder = Path(tempfile.mkdtemp(prefix=f"spark-{version}-", dir=self.folder))
        listed = ["listed"] if version.startswith("3.") else []
        ours = ("SPARK", "PYTHON", "PYSPARK", "METASTORE", "VIRTUAL_ENV")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        done = subprocess.run(
            [str(self.python), str(STORY), str(folder), *listed],
            cwd=folder,
            env={**environment, "PYSPARK_PYTHON": str(self.python)},
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1]), done.stderr


def uv(*arguments: str, **more: Any) -> None:
    done = subprocess.run(["uv", *arguments], check=False, capture_output=True, text=True, **more)  # noqa: S607
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("lines"))
    made.pip("install", "setuptools", wheel.filename)  # pyspark 3.5 needs its distutils
    assert (made.packages / JAR).is_file(), "installed where pyspark will be, though it is not there yet"
    return made


@pytest.mark.parametrize(
    "version", [*(pytest.param(version, marks=pytest.mark.campaign) for version in SPARKS[:-1]), SPARKS[-1]]
)
def test_any_spark_put_over_an_installation(environment, version):
    environment.pip("install", f"pyspark=={version}")
    facts, _ = environment.story(version)
    assert (facts["spark"], facts["range"], facts["rows"]) == (version, 5, [[1234, "2"]])
    assert facts["pruned"] == [False, False, False, True]
    assert facts["summary"] == {"id": [4000, "0", "3999"], "s": [4000, "0", "6"]}
    assert facts["version"]["jar"].endswith(JAR)


def test_a_spark_without_a_build_runs_as_if_we_were_not_there(environment):
    version = SPARKS[-1]
    environment.pip("install", f"pyspark=={version}")
    jar = environment.packages / JAR
    with zipfile.ZipFile(jar) as opened:
        entries = {name: opened.read(name) for name in opened.namelist()}
    properties = "metastore-shim.properties"
    lines = [line for line in entries[properties].splitlines() if not line.startswith((b"package-3.5", b"lines="))]
    entries[properties] = b"\n".join([b"lines=4.0 4.1", *lines])
    jar.unlink()  # uv links the files of its cache
    with zipfile.ZipFile(jar, "w") as written:
        for name, content in entries.items():
            written.writestr(name, content)
    facts, logged = environment.story(version)
    assert (facts["spark"], facts["range"], facts["rows"]) == (version, 5, [[1234, "2"]])
    assert "does not have it" in facts["error"]
    assert (
        logged.count(f"The Metastore is built for Spark 4.0, 4.1, this is {version} with Scala 2.12: it adds nothing")
        == 1
    )


def test_uninstalling_leaves_nothing(environment):
    environment.pip("uninstall", "pyspark-metastore")
    remaining = [path for path in environment.packages.rglob("*metastore*") if path.is_file()]
    assert [path.name for path in remaining if not path.name.startswith("hive-metastore-")] == []
