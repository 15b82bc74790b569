"""Compiles the Scala shim into the wheel, with the compiler that ships inside pyspark.

As a hatchling hook it runs at every build (`uv sync`, `pip install`, `uv build`) and puts the jar at
`pyspark/jars/metastore-shim.jar`. By hand, for any installed pyspark:

    python jvm-shim/hatch_build.py --pyspark <pyspark folder> --out <jar>
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand, where hatchling is not needed
    BuildHookInterface = object  # type: ignore[assignment,misc]

SHIM = Path(__file__).resolve().parent
SCALAC_OPTIONS = ["-deprecation", "-feature", "-unchecked", "-Xlint", "-encoding", "UTF-8"]
# One source serves Scala 2.12 and 2.13, so it uses the collections' older names.
CROSS_BUILD = "cat=deprecation&origin=scala\\.collection\\.JavaConverters.*:s"
OPTIONS_OF_SCALA = {
    "2.12": ["-Xfatal-warnings", f"-Wconf:{CROSS_BUILD}", "-target:jvm-1.8"],
    "2.13": ["-Werror", f"-Wconf:{CROSS_BUILD}", "-release", "17"],
}


class ShimBuildError(Exception):
    """The shim could not be compiled; the message says what to do."""


def source_files(spark: str) -> list[Path]:
    """Returns the shim's Scala and Java sources for a Spark line such as `4.1`."""
    folders = [SHIM / "src/main/scala", SHIM / f"src/main/scala-spark-{spark}"]
    return sorted(file for folder in folders for file in folder.rglob("*.scala"))


def resources() -> dict[str, bytes]:
    """Returns the files that go into the jar as they are, by their name in the jar."""
    root = SHIM / "src/main/resources"
    return {f.relative_to(root).as_posix(): f.read_bytes() for f in sorted(root.rglob("*")) if f.is_file()}


def source_digest(spark: str) -> str:
    """Returns the SHA-256 of everything that the jar is made from: it tells a stale jar."""
    digest = hashlib.sha256()
    for file in source_files(spark):
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


def versions(jars: Path) -> tuple[str, str]:
    """Returns the Spark and Scala versions of a pyspark's jars, read off their names."""
    core = next(jars.glob("spark-core_*.jar"), None)
    library = next(jars.glob("scala-library-*.jar"), None)
    if core is None or library is None:
        raise ShimBuildError(f"{jars} holds no spark-core and scala-library: is this the jars folder of a pyspark?")
    return core.stem.rsplit("-", 1)[1], library.stem.removeprefix("scala-library-")


def compile_shim(pyspark: Path, out: Path, version: str) -> Path:
    """Compiles the shim against the jars of one pyspark and writes the jar.

    Args:
        pyspark: folder of an installed pyspark; its `jars/` hold compiler and class path.
        out: the jar to write.
        version: version of the project, kept in the jar.

    Raises:
        ShimBuildError: Java or pyspark is missing, or the sources do not compile.
    """
    jars = pyspark / "jars"
    spark, scala = versions(jars)
    line = spark.rsplit(".", 1)[0]
    class_path = os.pathsep.join(
        str(jar) for jar in sorted(jars.glob("*.jar")) if not jar.name.startswith("metastore-")
    )
    with tempfile.TemporaryDirectory() as scratch:
        arguments = Path(scratch) / "scalac.args"
        options = [*SCALAC_OPTIONS, *OPTIONS_OF_SCALA[scala.rsplit(".", 1)[0]], "-d", scratch, "-cp", class_path]
        arguments.write_text("\n".join([*options, *(str(f) for f in source_files(line))]))
        command = [java(), "-Xss8m", "-cp", f"{jars}/*", "scala.tools.nsc.Main", f"@{arguments}"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise ShimBuildError(f"The shim does not compile for Spark {spark}:\n{done.stdout}{done.stderr}")
        arguments.unlink()
        facts = {"version": version, "spark": spark, "scala": scala, "source": source_digest(line)}
        write_jar(Path(scratch), out, "".join(f"{key}={value}\n" for key, value in facts.items()))
    return out


def write_jar(classes: Path, out: Path, properties: str) -> None:
    """Packs compiled classes, resources and the build's properties; equal input gives equal bytes."""
    entries = {f.relative_to(classes).as_posix(): f.read_bytes() for f in classes.rglob("*") if f.is_file()}
    entries |= resources() | {"metastore-shim.properties": properties.encode()}
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
        compile_shim(pyspark_folder(), jar, self.metadata.version)
        key = "force_include_editable" if version == "editable" else "force_include"
        build_data[key] = {**build_data.get(key, {}), str(jar): "pyspark/jars/metastore-shim.jar"}


def main() -> None:
    """Compiles by hand, as the examples at the top of this file."""
    parser = argparse.ArgumentParser(description="Compile the Metastore's Spark shim.")
    parser.add_argument(
        "--pyspark", type=Path, help="folder of the pyspark to compile against (default: this Python's)"
    )
    parser.add_argument("--out", type=Path, required=True, help="jar to write")
    parser.add_argument("--version", default="0.1.0", help="version kept in the jar")
    given = parser.parse_args()
    try:
        compile_shim(given.pyspark or pyspark_folder(), given.out, given.version)
    except ShimBuildError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
