"""Compiles the Scala shim into the wheel: one jar whose builds serve every line of Spark.

As a hatchling hook it runs at every build (`uv sync`, `pip install`, `uv build`) and puts the jar at
`pyspark/jars/metastore-shim.jar`. An editable install has the build for the Spark beside it alone, and a second
jar with what only tests and benchmarks ask of it. A wheel has all builds: the pyspark that it is built with has the
compiler, and the modules of other lines are fetched that `metastore/jars.lock` names.
By hand, for any installed pyspark:

    python jvm-shim/hatch_build.py --pyspark <pyspark folder> --out <jar>

`contract/spark_builds.json` lists the builds and the lines of Spark that each serves. A build serves later lines, too,
where its classes find all members of Spark that they use; `tests/versions/links.py` checks it.
Classes of two builds may not meet, so each build is compiled into packages of its own: `org.metastore.spark` becomes
`org.metastore.spark.v41` in the build for Spark 4.1. Only the entry, which chooses between them, is the same for all.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
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
CONTRACT = SHIM.parent / "python/metastore/contract"
ENTRY = "entry"
TESTS = "-tests"  # the classes that only tests and benchmarks use: `4.1-tests`
PROPERTIES = "metastore-shim.properties"
# Stack traces need lines; the names of local variables would make the jar larger.
SCALAC_OPTIONS = ["-deprecation", "-feature", "-unchecked", "-Xlint", "-encoding", "UTF-8", "-g:line"]
# One source serves Scala 2.12 and 2.13, so it uses the collections' older names.
CROSS_BUILD = "cat=deprecation&origin=scala\\.collection\\.JavaConverters.*:s"
OPTIONS_OF_SCALA = {
    "2.12": ["-Xfatal-warnings", f"-Wconf:{CROSS_BUILD}", "-target:jvm-1.8"],
    "2.13": ["-Werror", f"-Wconf:{CROSS_BUILD}", "-release", "17"],
}
# Spark 3.5 runs on Java 11, too.
OPTIONS_OF_BUILD = {"3.5_2.13": ["-Werror", f"-Wconf:{CROSS_BUILD}", "-release", "11"]}
# The entry runs on every Java that any Spark runs on.
OPTIONS_OF_ENTRY = {"2.12": OPTIONS_OF_SCALA["2.12"], "2.13": ["-Werror", "-Xunchecked-java-output-version:8"]}
# Our packages where the sources use them; a name in quotes is one that people read or write, and stays.
PACKAGES = re.compile(r'(?<!")\borg\.(metastore\.spark|apache\.spark\.metastore|apache\.spark\.sql\.metastore)\b')


class ShimBuildError(Exception):
    """The shim could not be compiled; the message says what to do."""


class SparkBuild(NamedTuple):  # hatchling runs this file without making it a module, which dataclasses need
    """A build of the shim: its name, the Scala it is compiled for, the lines of Spark that it serves."""

    name: str
    scala: str
    serves: tuple[str, ...]

    @property
    def line(self) -> str:
        """The line of Spark that it is compiled for, such as `4.1`."""
        return self.name.split("_")[0]

    @property
    def package(self) -> str:
        """The last part of its packages' names, such as `v41`."""
        return "v" + self.name.replace(".", "")


class ClassPath(NamedTuple):
    """What one build is compiled with: exact versions, the compiler's jars and those of Spark."""

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


def builds() -> list[SparkBuild]:
    """Returns the builds of the shim, oldest first."""
    entries = json.loads((CONTRACT / "spark_builds.json").read_text("utf-8"))
    return [SparkBuild(entry["name"], entry["scala"], tuple(entry["serves"])) for entry in entries]


def find_build(host: ClassPath) -> SparkBuild:
    """Returns the build that serves an installed Spark.

    Raises:
        ShimBuildError: no build serves it.
    """
    for build in builds():
        if host.line in build.serves and host.binary == build.scala:
            return build
    lines = ", ".join(sorted({line for build in builds() for line in build.serves}))
    raise ShimBuildError(f"The shim is built for Spark {lines}; this is Spark {host.spark} with Scala {host.scala}.")


def source_files(*folders: str) -> list[Path]:
    """Returns the Scala sources below folders of `src/main`."""
    return sorted(file for folder in folders for file in (SOURCES / folder).resolve().rglob("*.scala"))


def sources_of(build: str) -> list[Path]:
    """Returns the sources of a build, of its tests (`4.1-tests`), or of the entry."""
    if build == ENTRY:
        return source_files("scala-entry")
    if build.endswith(TESTS):
        return source_files("../test/scala")
    line = build.split("_", maxsplit=1)[0]
    major = line.split(".", maxsplit=1)[0]
    return source_files("scala", f"scala-spark-{major}", f"scala-spark-{line}")


def resources() -> dict[str, bytes]:
    """Returns the files that go into the jar as they are, by their name in the jar."""
    root = SOURCES / "resources"
    own = {f.relative_to(root).as_posix(): f for f in sorted(root.rglob("*")) if f.is_file()}
    contract = {f"metastore-contract/{f.name}": f for f in sorted(CONTRACT.glob("*.json"))}
    return {name: f.read_bytes() for name, f in (own | contract).items()}


def source_digest(build: str) -> str:
    """Returns the SHA-256 of everything that a build is made from: it tells a stale jar."""
    digest = hashlib.sha256()
    tests = sources_of(build) if build.endswith(TESTS) else []
    for file in sources_of(ENTRY) + sources_of(build.removesuffix(TESTS)) + tests:
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
        ShimBuildError: it is no pyspark.
    """
    jars = sorted(jar for jar in (pyspark / "jars").glob("*.jar") if not jar.name.startswith("metastore-"))
    core = next((jar for jar in jars if jar.name.startswith("spark-core_")), None)
    library = next((jar for jar in jars if jar.name.startswith("scala-library-")), None)
    if core is None or library is None:
        raise ShimBuildError(f"{pyspark}/jars holds no spark-core and scala-library: is this the folder of a pyspark?")
    return ClassPath(core.stem.rsplit("-", 1)[1], library.stem.removeprefix("scala-library-"), jars, jars)


def published(build: SparkBuild, host: ClassPath) -> ClassPath:
    """Returns the class path of a build: Spark's published modules, the rest from the host's jars.

    Raises:
        ShimBuildError: a module can be neither found nor fetched.
    """
    sys.path.insert(0, str(SHIM.parent / "python"))
    from metastore import jars  # noqa: PLC0415 - of this checkout, which is not installed yet
    from metastore.errors import JarNotFound  # noqa: PLC0415 - as above

    try:
        fetched = jars.fetch_all(f"spark-{build.name}")
    except JarNotFound as error:
        raise ShimBuildError(f"{error.message} {error.hint}") from error
    finally:
        sys.path.remove(str(SHIM.parent / "python"))
    scala = _named(fetched, "scala-") or _named(host.jars, "scala-")
    library = _named(scala, "scala-library-")[0].stem.removeprefix("scala-library-")
    others = [jar for jar in host.jars if not jar.name.startswith(("spark-", "scala-"))]
    fitting = [jar for jar in others if f"_{build.scala}-" in jar.name or "_2." not in jar.name]
    compiler = scala if build.scala != host.binary else host.compiler
    version = jars.read_lock()[f"spark-{build.name}"].version
    return ClassPath(version, library, compiler, [*fetched, *scala, *fitting])


def _named(jars: list[Path], prefix: str) -> list[Path]:
    return [jar for jar in jars if jar.name.startswith(prefix)]


def class_path_of(build: SparkBuild, host: ClassPath) -> ClassPath:
    """Returns what a build is compiled with: the host's jars where they are of its line, else published ones."""
    if host.line == build.line and host.binary == build.scala:
        return host
    return published(build, host)


def compile_shim(chosen: list[SparkBuild], host: ClassPath, out: Path, version: str) -> Path:
    """Compiles builds of the shim and writes the jar that holds them.

    Args:
        chosen: the builds.
        host: the installed Spark, whose compiler is used.
        out: the jar to write.
        version: version of the project, kept in the jar.

    Raises:
        ShimBuildError: Java is missing, or the sources do not compile.
    """
    folders = [compile_classes(ENTRY, host)]
    lines = sorted({line for build in chosen for line in build.serves})
    facts = {"version": version, "lines": " ".join(lines)}
    for build in chosen:
        class_path = class_path_of(build, host)
        folders.append(compile_classes(build.name, class_path))
        facts |= {f"package-{line}-{build.scala}": build.package for line in build.serves}
        facts |= {
            f"spark-{build.name}": class_path.spark,
            f"scala-{build.name}": class_path.scala,
            f"source-{build.name}": source_digest(build.name),
        }
    properties = "".join(f"{key}={value}\n" for key, value in facts.items())
    write_jar(folders, out, resources() | {PROPERTIES: properties.encode()})
    return out


def compile_tests(build: SparkBuild, host: ClassPath, out: Path) -> Path:
    """Compiles the classes that only tests and benchmarks use, in the packages of a build, into a jar beside it."""
    class_path = class_path_of(build, host)
    shim = compile_classes(build.name, class_path)
    beside = class_path._replace(jars=[shim, *class_path.jars])
    write_jar([compile_classes(f"{build.name}{TESTS}", beside)], out, {})
    return out


def compile_classes(build: str, class_path: ClassPath) -> Path:
    """Compiles a build, its tests or the entry and returns the folder of its classes; once for equal sources."""
    classes = SHIM / "target/classes" / build
    made_from = f"{class_path.spark} {class_path.scala} {source_digest(build)} {_digest(Path(__file__))}"
    note = classes / ".made-from"
    if note.exists() and note.read_text() == made_from:
        return classes
    classes.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=classes.parent) as scratch:
        made = Path(scratch) / "classes"
        made.mkdir()
        _run_scalac(build, class_path, made, Path(scratch))
        (made / note.name).write_text(made_from)
        shutil.rmtree(classes, ignore_errors=True)
        made.replace(classes)
    return classes


def _run_scalac(build: str, class_path: ClassPath, out: Path, scratch: Path) -> None:
    sources = sources_of(ENTRY) if build == ENTRY else relocate(build, scratch / "sources")
    options = OPTIONS_OF_ENTRY if build == ENTRY else OPTIONS_OF_SCALA
    of_build = OPTIONS_OF_BUILD.get(build.removesuffix(TESTS), options[class_path.binary])
    arguments = scratch / "scalac.args"
    jars = os.pathsep.join(map(str, class_path.jars))
    arguments.write_text("\n".join([*SCALAC_OPTIONS, *of_build, "-d", str(out), "-cp", jars, *map(str, sources)]))
    compiler = os.pathsep.join(map(str, class_path.compiler))
    command = [java(), "-Xss8m", "-cp", compiler, "scala.tools.nsc.Main", f"@{arguments}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        output = (done.stdout + done.stderr).replace(str(scratch / "sources"), str(SOURCES.parent))
        raise ShimBuildError(f"The shim does not compile for Spark {class_path.spark}:\n{output}")


def relocate(build: str, folder: Path) -> list[Path]:
    """Copies the sources of a build into a folder, in packages of their own, and returns the copies."""
    name = build.removesuffix(TESTS).replace(".", "")
    copies = []
    for source in sources_of(build):
        copy = folder / source.relative_to(SOURCES.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(PACKAGES.sub(rf"\g<0>.v{name}", source.read_text("utf-8")), "utf-8")
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
        chosen = [find_build(host)] if version == "editable" else builds()
        compile_shim(chosen, host, jar, self.metadata.version)
        key = "force_include_editable" if version == "editable" else "force_include"
        build_data[key] = {**build_data.get(key, {}), str(jar): "pyspark/jars/metastore-shim.jar"}
        if version == "editable":
            tests = compile_tests(chosen[0], host, jar.with_name("metastore-tests.jar"))
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
        compile_shim(builds() if given.every_line else [find_build(host)], host, given.out, given.version)
    except ShimBuildError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
