"""The environment of the peers' suites: a PySpark of their release, their jars and resources, our harness."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from metastore import jars

if TYPE_CHECKING:
    from collections.abc import Sequence

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from versions.environments import EnvironmentMissing, fetch_locked, make_environment, put_shim, pyspark_of, say

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYSPARK = "4.1.3"
"""The newest release of Spark 4.1 whose jars of tests are published."""
SPARK_TESTS = f"spark-sql_2.13-{PYSPARK}-tests.jar"


@dataclass(frozen=True)
class Environment:
    """Folders and programs that a run of a suite needs."""

    python: Path
    pyspark: Path
    home: Path
    """A folder that looks like the checkout of Spark to tests that ask for a resource's path."""
    classes: Path
    jars: tuple[Path, ...]

    @property
    def resources(self) -> Path:
        return self.home / "sql" / "core" / "src" / "test" / "resources"

    def class_path(self, more: Sequence[Path], *, with_shim: bool) -> str:
        """Returns the class path of the suites, with our shim or without it."""
        spark = [jar for jar in sorted((self.pyspark / "jars").glob("*.jar")) if with_shim or jar.name != jars.SHIM]
        return join_paths([self.classes, *more, self.resources, HERE, *self.jars, *spark])


@dataclass(frozen=True)
class CompiledSuites:
    """The environment of suites that are compiled from sources.

    Attributes:
        class_path: Their classes, and jars and resources that they need.
        properties: Java's, as the build of the project has them.
    """

    class_path: tuple[Path, ...]
    properties: dict[str, str]


def prepare() -> Environment:
    """Returns the environment, made where it is missing."""
    python = make_environment("peers", PYSPARK)
    pyspark = pyspark_of(python)
    put_shim(pyspark)
    test_jars = fetch_locked(HERE / "jars.lock")
    cache = peers_cache()
    home = _unpack_resources(cache, next(jar for jar in test_jars if jar.name == SPARK_TESTS))
    classes = compile_scala(sorted((HERE / "harness").glob("*.scala")), [pyspark / "jars" / "*", *test_jars], cache)
    return Environment(
        python=python,
        pyspark=pyspark,
        home=home,
        classes=classes,
        jars=test_jars,
    )


def peers_cache() -> Path:
    """Returns the folder that holds what the suites need and what their runs write."""
    return jars.cache().parent / "peers"


def join_paths(paths: Sequence[Path]) -> str:
    """Returns paths as Java takes them."""
    return os.pathsep.join(map(str, paths))


def _unpack_resources(cache: Path, jar: Path) -> Path:
    """Unpacks what the jar has besides classes: some tests ask for the path of a resource."""
    home = cache / f"spark-{PYSPARK}"
    if home.exists():
        return home
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder, zipfile.ZipFile(jar) as opened:
        resources = Path(folder) / "home" / "sql" / "core" / "src" / "test" / "resources"
        names = [name for name in opened.namelist() if not name.endswith(".class")]
        opened.extractall(resources, names)
        shutil.move(Path(folder) / "home", home)
    return home


def compile_scala(sources: list[Path], class_path: list[Path], cache: Path) -> Path:
    """Returns the folder of the compiled classes of sources, by the compiler that PySpark carries."""
    compiler = next(str(path) for path in class_path if path.name == "*")
    options = ["-release", "17", "-nowarn", "-cp", join_paths(class_path)]
    command = ["java", "-Xss8m", "-Xmx2g", "-cp", compiler, "scala.tools.nsc.Main", *options, *map(str, sources)]
    return _compile(command, _digest([*sources, *(path for path in class_path if path.name != "*")]), cache)


def compile_java(sources: list[Path], source_path: Path, class_path: list[Path], cache: Path) -> Path:
    """Returns the folder of the compiled classes of sources, and of what they use of the sources below a folder."""
    options = ["--release", "17", "-nowarn", "-proc:none", "-implicit:class", "-sourcepath", str(source_path)]
    command = ["javac", "-J-Xmx1g", *options, "-cp", join_paths(class_path), *map(str, sources)]
    files = [*sources, *sorted(source_path.rglob("*.java")), *(path for path in class_path if path.suffix == ".jar")]
    return _compile(command, _digest(files), cache)


def _compile(command: list[str], digest: str, cache: Path) -> Path:
    """Runs a compiler, unless the classes of these sources are kept."""
    classes = cache / f"classes-{digest[:16]}"
    if classes.exists():
        return classes
    say("compiling ...")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        out = Path(folder) / "classes"
        out.mkdir()
        done = subprocess.run([*command, "-d", str(out)], check=False, capture_output=True, text=True)
        if done.returncode:
            raise EnvironmentMissing(f"the sources do not compile:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        shutil.move(out, classes)
    return classes


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        content = file.name.encode() if file.suffix == ".jar" else file.read_bytes()
        digest.update(str(file.name).encode() + b"\0" + content)
    return digest.hexdigest()
