"""What the peers' suites run with: a PySpark of their release, their jars of tests, their resources, our harness."""

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

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "jvm-shim"))
from hatch_build import source_digest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYSPARK = "4.1.3"
"""The newest release of Spark 4.1 whose jars of tests are published."""
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
SPARK_TESTS = f"spark-sql_2.13-{PYSPARK}-tests.jar"
IVY_FILE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="org.metastore" module="peers"/>
  <dependencies>
    {}
  </dependencies>
</ivy-module>
"""


class EnvironmentMissing(Exception):  # noqa: N818 - as the errors of the package are named
    """Something that the suites need could not be had; the message says what to do."""


@dataclass(frozen=True)
class TestJar:
    """A jar of `jars.lock`."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @property
    def file_name(self) -> str:
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{suffix}.jar"

    @property
    def dependency(self) -> str:
        """The jar as Ivy names it."""
        artifact = ""
        if self.classifier:
            artifact = f'<artifact name="{self.artifact}" type="jar" ext="jar" m:classifier="{self.classifier}"/>'
        named = f'org="{self.group}" name="{self.artifact}" rev="{self.version}"'
        return f'<dependency {named} transitive="false">{artifact}</dependency>'


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


def prepare() -> Environment:
    """Returns the environment, made where it is missing."""
    pyspark = _make_virtual_environment()
    test_jars = _fetch_jars()
    cache = peers_cache()
    home = _unpack_resources(cache, next(jar for jar in test_jars if jar.name == SPARK_TESTS))
    classes = compile_scala(sorted((HERE / "harness").glob("*.scala")), [pyspark / "jars" / "*", *test_jars], cache)
    return Environment(
        python=ROOT / ".venv-peers" / "bin" / "python",
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


def say(text: str) -> None:
    """Tells on stderr what is under way."""
    print(text, file=sys.stderr, flush=True)


def _make_virtual_environment() -> Path:
    folder = ROOT / ".venv-peers"
    python = folder / "bin" / "python"
    if not python.exists():
        say(f"PySpark {PYSPARK} into {folder} ...")
        _uv("venv", "--python", sys.executable, str(folder))
        _uv("pip", "install", "--python", str(python), f"pyspark=={PYSPARK}", *BESIDE)
    (pyspark,) = folder.glob("lib/python3*/site-packages/pyspark")
    _build_shim(pyspark)
    return pyspark


def _build_shim(pyspark: Path) -> None:
    jar = pyspark / "jars" / jars.SHIM
    if jar.exists() and f"source-4.1={source_digest('4.1')}" in _shim_properties(jar):
        return
    say("our jar for it ...")
    jar.unlink(missing_ok=True)
    build = [sys.executable, str(ROOT / "jvm-shim" / "hatch_build.py"), "--pyspark", str(pyspark)]
    subprocess.run([*build, "--out", str(jar)], check=True)


def _shim_properties(jar: Path) -> str:
    with zipfile.ZipFile(jar) as opened:
        return opened.read("metastore-shim.properties").decode()


def _uv(*arguments: str) -> None:
    subprocess.run(["uv", "--quiet", *arguments], check=True)  # noqa: S607 - uv runs this command


def _read_lock() -> list[TestJar]:
    lines = (HERE / "jars.lock").read_text("utf-8").splitlines()
    return [_parse(line) for line in lines if line and not line.startswith("#")]


def _parse(line: str) -> TestJar:
    coordinate, sha256 = line.split()
    group, artifact, version, *classifiers = coordinate.split(":")
    return TestJar(group, artifact, version, "".join(classifiers), sha256)


def _fetch_jars() -> tuple[Path, ...]:
    locked = _read_lock()
    missing = [jar for jar in locked if not (jars.cache() / jar.file_name).exists()]
    if missing:
        say(f"{len(missing)} jars of tests into {jars.cache()} ...")
        _download(missing)
    return tuple(jars.cache() / jar.file_name for jar in locked)


def _download(missing: list[TestJar]) -> None:
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


def _keep(jar: TestJar, fetched: Path, output: str) -> None:
    if not fetched.exists():
        errors = [line.strip() for line in output.splitlines() if "ERROR" in line or "not found" in line]
        raise EnvironmentMissing(
            f"{jar.file_name} could not be downloaded: {'; '.join(errors[:2]) or 'no reason given'}"
        )
    digest = hashlib.sha256(fetched.read_bytes()).hexdigest()
    if digest != jar.sha256:
        raise EnvironmentMissing(f"{jar.file_name} has SHA-256 {digest}, jars.lock says {jar.sha256}")
    fetched.replace(jars.cache() / jar.file_name)


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
    digest = _digest([*sources, *(path for path in class_path if path.name != "*")])
    classes = cache / f"classes-{digest[:16]}"
    if classes.exists():
        return classes
    say(f"compiling {len(sources)} Scala files ...")
    cache.mkdir(parents=True, exist_ok=True)
    compiler = next(str(path) for path in class_path if path.name == "*")
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        out = Path(folder) / "classes"
        out.mkdir()
        options = ["-release", "17", "-nowarn", "-d", str(out), "-cp", join_paths(class_path)]
        command = ["java", "-Xss8m", "-Xmx2g", "-cp", compiler, "scala.tools.nsc.Main", *options, *map(str, sources)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise EnvironmentMissing(f"the Scala sources do not compile:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        shutil.move(out, classes)
    return classes


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        content = file.name.encode() if file.suffix == ".jar" else file.read_bytes()
        digest.update(str(file.name).encode() + b"\0" + content)
    return digest.hexdigest()
