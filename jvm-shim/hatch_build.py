"""Compiles the Scala shim into the wheel: one jar with a build for each line of Spark.

As a hatchling hook it runs at every build (`uv sync`, `pip install`, `uv build`) and puts the jar at
`pyspark/jars/metastore-shim.jar`. An editable install has the build for the Spark beside it alone, and a second
jar with what only tests and benchmarks ask of it. A wheel has a build for every line: the pyspark that it is built with
has the compiler and the newest line, for the others the modules are fetched that `metastore/jars.lock` names.
By hand, for any installed pyspark:

    python jvm-shim/hatch_build.py --pyspark <pyspark folder> --out <jar>

Classes of two lines may not meet, so each line's sources are compiled into packages of their own: `org.metastore.spark`
becomes `org.metastore.spark.v41` for Spark 4.1. Only the entry, which chooses between them, is the same for all.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand, where hatchling is not needed
    BuildHookInterface = object  # type: ignore[assignment,misc]

SHIM = Path(__file__).resolve().parent
SOURCES = SHIM / "src/main"
ENTRY = "entry"
TESTS = "-tests"  # what is asked of the shim by tests and benchmarks alone: `4.1-tests`
PROPERTIES = "metastore-shim.properties"
SCALAC_OPTIONS = ["-deprecation", "-feature", "-unchecked", "-Xlint", "-encoding", "UTF-8"]
# One source serves Scala 2.12 and 2.13, so it uses the collections' older names.
CROSS_BUILD = "cat=deprecation&origin=scala\\.collection\\.JavaConverters.*:s"
OPTIONS_OF_SCALA = {
    "2.12": ["-Xfatal-warnings", f"-Wconf:{CROSS_BUILD}", "-target:jvm-1.8"],
    "2.13": ["-Werror", f"-Wconf:{CROSS_BUILD}", "-release", "17"],
}
# The entry runs on every Java that any Spark runs on.
OPTIONS_OF_ENTRY = {"2.12": OPTIONS_OF_SCALA["2.12"], "2.13": ["-Werror", "-Xunchecked-java-output-version:8"]}
# Our packages where the sources use them; a name in quotes is one that people read or write, and stays.
PACKAGES = re.compile(r'(?<!")\borg\.(metastore\.spark|apache\.spark\.metastore|apache\.spark\.sql\.metastore)\b')


class ShimBuildError(Exception):
    """The shim could not be compiled; the message says what to do."""


class ClassPath(NamedTuple):  # hatchling runs this file without making it a module, which dataclasses need
    """What one line of Spark is compiled with: exact versions, the compiler's jars and those of Spark."""

    spark: str
    scala: str
    compiler: list[Path]
    jars: list[Path]

    @property
    def line(self) -> str:
        """The line of Spark, such as `4.1`."""
        return self.spark.rsplit(".", 1)[0]

    @property
    def binary(self) -> str:
        """The Scala that its classes fit, such as `2.13`."""
        return self.scala.rsplit(".", 1)[0]


def lines() -> list[str]:
    """Returns the lines of Spark that the shim has sources for, oldest first."""
    return sorted(folder.name.rsplit("-", 1)[1] for folder in SOURCES.glob("scala-spark-*"))


def source_files(*folders: str) -> list[Path]:
    """Returns the Scala sources below folders of `src/main`."""
    return sorted(file for folder in folders for file in (SOURCES / folder).resolve().rglob("*.scala"))


def sources_of(line: str) -> list[Path]:
    """Returns the sources of the build for a line of Spark, of its tests, or of the entry."""
    if line.endswith(TESTS):
        return source_files("../test/scala")
    return source_files("scala-entry") if line == ENTRY else source_files("scala", f"scala-spark-{line}")


def resources() -> dict[str, bytes]:
    """Returns the files that go into the jar as they are, by their name in the jar."""
    root = SOURCES / "resources"
    own = {f.relative_to(root).as_posix(): f for f in sorted(root.rglob("*")) if f.is_file()}
    contract = {
        f"metastore-contract/{f.name}": f for f in sorted((SHIM.parent / "python/metastore/contract").glob("*.json"))
    }
    return {name: f.read_bytes() for name, f in (own | contract).items()}


def source_digest(line: str) -> str:
    """Returns the SHA-256 of everything that a line's build is made from: it tells a stale jar."""
    digest = hashlib.sha256()
    tests = sources_of(line) if line.endswith(TESTS) else []
    for file in sources_of(ENTRY) + sources_of(line.removesuffix(TESTS)) + tests:
        digest.update(file.relative_to(SHIM).as_posix().encode() + b"\0" + file.read_bytes())
    for name, content in resources().items():
        digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()


def java() -> str:
    """Returns the Java launcher, from JAVA_HOME or the PATH."""
    home = os.environ.get("JAVA_HOME")
    candidate = str(Path(home) / "bin/java") if home else shutil.which("java")
    if not candidate or not Path(candidate).exists():
        raise ShimBuildError("Java was not found. Install Java 17 or 21 (for example openjdk-17-jdk) or set JAVA_HOME.")
    return candidate


def pyspark_folder() -> Path:
    """Returns the folder of the pyspark that this Python imports."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ShimBuildError(
            "pyspark is not installed for this Python: it carries the Scala compiler. pip install pyspark"
        )
    return Path(spec.origin).parent


def installed(pyspark: Path) -> ClassPath:
    """Returns the class path of an installed pyspark, whose jars hold the compiler too.

    Raises:
        ShimBuildError: it is no pyspark, or one of a Spark that the shim has no sources for.
    """
    jars = sorted(jar for jar in (pyspark / "jars").glob("*.jar") if not jar.name.startswith("metastore-"))
    core = next((jar for jar in jars if jar.name.startswith("spark-core_")), None)
    library = next((jar for jar in jars if jar.name.startswith("scala-library-")), None)
    if core is None or library is None:
        raise ShimBuildError(f"{pyspark}/jars holds no spark-core and scala-library: is this the folder of a pyspark?")
    found = ClassPath(core.stem.rsplit("-", 1)[1], library.stem.removeprefix("scala-library-"), jars, jars)
    if found.line not in lines():
        raise ShimBuildError(f"The shim has sources for Spark {', '.join(lines())}; {pyspark} is {found.spark}.")
    return found


def published(line: str, host: ClassPath) -> ClassPath:
    """Returns the class path of a line that is not installed: Spark's published modules, the rest from the host's jars.

    Raises:
        ShimBuildError: a module can be neither found nor fetched.
    """
    sys.path.insert(0, str(SHIM.parent / "python"))
    from metastore import jars  # noqa: PLC0415 - of this checkout, which is not installed yet
    from metastore.errors import JarNotFound  # noqa: PLC0415 - as above

    try:
        fetched = jars.fetch_all(f"spark-{line}")
    except JarNotFound as error:
        raise ShimBuildError(f"{error.message} {error.hint}") from error
    finally:
        sys.path.remove(str(SHIM.parent / "python"))
    scala = [jar for jar in fetched if jar.name.startswith("scala-")] or _named(host.jars, "scala-")
    library = next(jar for jar in scala if jar.name.startswith("scala-library-")).stem.removeprefix("scala-library-")
    binary = library.rsplit(".", 1)[0]
    others = [jar for jar in host.jars if not jar.name.startswith(("spark-", "scala-"))]
    fitting = [jar for jar in others if f"_{binary}-" in jar.name or "_2." not in jar.name]
    compiler = scala if binary != host.binary else host.compiler
    return ClassPath(jars.read_lock()[f"spark-{line}"].version, library, compiler, [*fetched, *scala, *fitting])


def _named(jars: list[Path], prefix: str) -> list[Path]:
    return [jar for jar in jars if jar.name.startswith(prefix)]


def all_lines(host: ClassPath) -> list[ClassPath]:
    """Returns the class paths of every line, for a wheel.

    Raises:
        ShimBuildError: the host is not of the newest line, whose modules are nowhere else.
    """
    *older, newest = lines()
    if host.line != newest:
        raise ShimBuildError(
            f"A wheel is built with Spark {newest}, this is {host.spark}: pip install pyspark~={newest}.0"
        )
    return [*(published(line, host) for line in older), host]


def compile_shim(class_paths: list[ClassPath], out: Path, version: str) -> Path:
    """Compiles the shim for lines of Spark and writes the jar that serves them.

    Args:
        class_paths: one a line.
        out: the jar to write.
        version: version of the project, kept in the jar.

    Raises:
        ShimBuildError: Java is missing, or the sources do not compile.
    """
    folders = [compile_classes(ENTRY, class_paths[-1]), *(compile_classes(one.line, one) for one in class_paths)]
    facts = {"version": version, "lines": " ".join(one.line for one in class_paths)}
    for one in class_paths:
        named = {"spark": one.spark, "scala": one.scala, "source": source_digest(one.line)}
        facts |= {f"{key}-{one.line}": value for key, value in named.items()}
    properties = "".join(f"{key}={value}\n" for key, value in facts.items())
    write_jar(folders, out, resources() | {PROPERTIES: properties.encode()})
    return out


def compile_tests(class_path: ClassPath, out: Path) -> Path:
    """Compiles what only tests and benchmarks ask of the shim, in its packages, into a jar beside it."""
    shim = compile_classes(class_path.line, class_path)
    beside = class_path._replace(jars=[shim, *class_path.jars])
    write_jar([compile_classes(f"{class_path.line}{TESTS}", beside)], out, {})
    return out


def compile_classes(line: str, class_path: ClassPath) -> Path:
    """Compiles the build for a line, or the entry, and returns the folder of its classes; once for equal sources."""
    kept = SHIM / "target/classes" / line
    made_from = f"{class_path.spark} {class_path.scala} {source_digest(line)} {_digest(Path(__file__))}"
    note = kept / ".made-from"
    if note.exists() and note.read_text() == made_from:
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
        made = Path(scratch) / "classes"
        made.mkdir()
        _run_scalac(line, class_path, made, Path(scratch))
        (made / note.name).write_text(made_from)
        shutil.rmtree(kept, ignore_errors=True)
        made.replace(kept)
    return kept


def _run_scalac(line: str, class_path: ClassPath, out: Path, scratch: Path) -> None:
    options = (OPTIONS_OF_ENTRY if line == ENTRY else OPTIONS_OF_SCALA)[class_path.binary]
    sources = sources_of(ENTRY) if line == ENTRY else relocate(line, scratch / f"spark-{line}")
    arguments = scratch / "scalac.args"
    jars = os.pathsep.join(map(str, class_path.jars))
    arguments.write_text("\n".join([*SCALAC_OPTIONS, *options, "-d", str(out), "-cp", jars, *map(str, sources)]))
    compiler = os.pathsep.join(map(str, class_path.compiler))
    command = [java(), "-Xss8m", "-cp", compiler, "scala.tools.nsc.Main", f"@{arguments}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        said = (done.stdout + done.stderr).replace(str(scratch / f"spark-{line}"), str(SOURCES.parent))
        raise ShimBuildError(f"The shim does not compile for Spark {class_path.spark}:\n{said}")


def relocate(line: str, folder: Path) -> list[Path]:
    """Copies a line's sources into a folder, in packages of their own, and returns the copies."""
    digits = line.removesuffix(TESTS).replace(".", "")
    copies = []
    for source in sources_of(line):
        copy = folder / source.relative_to(SOURCES.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(PACKAGES.sub(rf"\g<0>.v{digits}", source.read_text("utf-8")), "utf-8")
        copies.append(copy)
    return copies


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def write_jar(folders: list[Path], out: Path, others: dict[str, bytes]) -> None:
    """Packs compiled classes and other files; equal input gives equal bytes."""
    entries = dict(others)
    for classes in folders:
        entries |= {f.relative_to(classes).as_posix(): f.read_bytes() for f in classes.rglob("*.class")}
    out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as jar:
        for name in sorted(entries):
            jar.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), entries[name], zipfile.ZIP_DEFLATED)


class ShimBuildHook(BuildHookInterface):  # type: ignore[type-arg,misc]
    """Puts the compiled shim at `pyspark/jars/` of the wheel, editable or not."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles before the wheel is packed; a failure ends the build."""
        if self.target_name != "wheel":
            return
        jar = Path(self.root) / "jvm-shim/target/metastore-shim.jar"
        host = installed(pyspark_folder())
        compile_shim([host] if version == "editable" else all_lines(host), jar, self.metadata.version)
        key = "force_include_editable" if version == "editable" else "force_include"
        build_data[key] = {**build_data.get(key, {}), str(jar): "pyspark/jars/metastore-shim.jar"}
        if version == "editable":
            tests = compile_tests(host, jar.with_name("metastore-tests.jar"))
            build_data[key][str(tests)] = f"pyspark/jars/{tests.name}"


def main() -> None:
    """Compiles by hand, as the example at the top of this file."""
    parser = argparse.ArgumentParser(description="Compile the Metastore's Spark shim.")
    parser.add_argument(
        "--pyspark", type=Path, help="folder of the pyspark to compile against (default: this Python's)"
    )
    parser.add_argument("--out", type=Path, required=True, help="jar to write")
    parser.add_argument("--every-line", action="store_true", help="for every line of Spark, as in a wheel")
    parser.add_argument("--version", default="0.1.0", help="version kept in the jar")
    given = parser.parse_args()
    try:
        host = installed(given.pyspark or pyspark_folder())
        compile_shim(all_lines(host) if given.every_line else [host], given.out, given.version)
    except ShimBuildError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
