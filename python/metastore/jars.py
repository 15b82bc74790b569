"""Jars: ours, which the wheel carries, and those of others, which the demo, the tests and the build of a wheel fetch.

Foreign jars are named in `jars.lock` with their SHA-256 and come through Apache Ivy, which every pyspark carries, from
the repository that Ivy itself has as default. `METASTORE_IVY_SETTINGS` may name an Ivy settings file for a mirror.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import metadata, resources
from itertools import islice
from pathlib import Path

from metastore.contract import read_contract
from metastore.errors import JarNotFound
from metastore.suggestions import suggest_names

SHIM = "metastore-shim.jar"
_IVY_ERROR = re.compile(r".*(?:ERROR|not found).*")
LINES: tuple[str, ...] = tuple(sorted({line for build in read_contract("spark_builds") for line in build["serves"]}))
"""The lines of Spark that a released shim serves, oldest first."""
_RELEASED = re.compile(r"(\d+)\.(\d+)\.\d+(?!.*(SNAPSHOT|preview|rc\d|dev\d)).*")
"""As the shim's entry reads Spark's version."""
_LOCKED = re.compile(r"^([^#\s]+) ([^:\s]+):([^:\s]+):([^:\s]+) (\w+)$", re.MULTILINE)
"""A line of `jars.lock`: name, Maven's group, artifact and version, SHA-256."""
IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="default"/>
  <resolvers><ibiblio name="default" m2compatible="true"/></resolvers>
</ivysettings>
"""


@dataclass(frozen=True)
class LockedJar:
    """A jar of `jars.lock`."""

    name: str
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Name of the file in the cache."""
        return f"{self.artifact}-{self.version}.jar"


def shim() -> Path:
    """Return the path of the Spark shim, for `spark-submit --jars`: one jar serves every line of Spark.

    It is the one beside Spark's own jars, or else the one that was installed with this package: pip installs the two in
    different places where pyspark is in another environment, or nowhere.

    Raises:
        JarNotFound: There is none.

    Example:
        >>> import metastore.jars
        >>> metastore.jars.shim().name
        'metastore-shim.jar'
    """
    candidates = _installed_shims()
    pyspark = _installed_pyspark()
    if pyspark is not None:
        candidates.insert(0, pyspark / "jars" / SHIM)
    for candidate in candidates:
        if candidate.exists():
            return candidate
    candidates.append(Path("pyspark", "jars", SHIM))
    raise JarNotFound(f"{candidates[0]} does not exist", hint="pip install --force-reinstall pyspark-metastore")


def explain_missing_shim(spark: str) -> JarNotFound:
    """Return the error of a session that does not have the shim's functions.

    Args:
        spark: The session's version of Spark.

    Example:
        >>> explain_missing_shim("3.4.1").message
        'this is Spark 3.4.1; the Metastore is built for Spark 3.5, 4.0, 4.1, 4.2 and 4.3 and adds nothing to others.'
    """
    if spark_line_of(spark) not in LINES:
        return JarNotFound(
            f"this is Spark {spark}; the Metastore is built for Spark {join_names(LINES)} and adds nothing to others",
            hint=f"pip install 'pyspark~={LINES[-1]}.0'",
        )
    return JarNotFound(
        f"{SHIM}: the Spark of this session does not have it",
        hint='Install pyspark-metastore beside that Spark, or start it with --jars "$(metastore jar)".',
    )


def spark_line_of(spark: str) -> str:
    """Return the line that a version of Spark belongs to; the version itself if it is a preview or a snapshot.

    Vendors add to the version of the release that theirs is made from.

    Example:
        >>> spark_line_of("3.5.6-amzn-1")
        '3.5'
    """
    released = _RELEASED.fullmatch(spark)
    return f"{released[1]}.{released[2]}" if released else spark


def join_names(names: tuple[str, ...]) -> str:
    """Return names as a sentence has them.

    Example:
        >>> join_names(("3.5", "4.0", "4.1"))
        '3.5, 4.0 and 4.1'
    """
    *first_names, last_name = names
    if not first_names:
        return last_name
    return f"{', '.join(first_names)} and {last_name}"


def _installed_shims() -> list[Path]:
    try:
        files = metadata.files("pyspark-metastore") or []
    except metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in files if file.name == SHIM]


def _installed_pyspark() -> Path | None:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent


def pyspark_jars() -> Path:
    """Return the `jars` folder of this Python's pyspark.

    Raises:
        JarNotFound: pyspark is not installed for this Python.
    """
    folder = _installed_pyspark()
    if folder is None:
        raise JarNotFound("pyspark is not installed for this Python", hint="pip install 'pyspark-metastore[spark]'")
    return folder / "jars"


def read_lock() -> dict[str, LockedJar]:
    """Return the jars of `jars.lock` by name."""
    text = resources.files("metastore").joinpath("jars.lock").read_text("utf-8")
    return {fields[0]: LockedJar(*fields) for fields in _LOCKED.findall(text)}


def cache() -> Path:
    """Return the folder that holds fetched jars: `METASTORE_JAR_CACHE`, or one in the user's cache."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyspark-metastore" / "jars"
    return Path(os.environ.get("METASTORE_JAR_CACHE") or default)


def fetch(name: str) -> Path:
    """Return a jar of `jars.lock`, downloading it at its first use.

    Args:
        name: first word of a line of `jars.lock`, such as `iceberg-4.1`.

    Raises:
        JarNotFound: no such name, no network, or what came is not what the lock names.
    """
    jars = read_lock()
    if name not in jars:
        hint = suggest_names(name, jars) or f"It has {', '.join(sorted(jars))}."
        raise JarNotFound(f"jars.lock has no jar {name!r}", hint=hint)
    jar = jars[name]
    file = cache() / jar.file_name
    if not file.exists() or _sha256(file) != jar.sha256:
        _download(jar, file)
    return file


def fetch_all(name: str) -> list[Path]:
    """Return a jar of `jars.lock` and those that it needs, whose names begin with its name and a dash.

    Args:
        name: such as `delta-4.1`.

    Raises:
        JarNotFound: as `fetch`.

    Example:
        >>> [jar.name for jar in fetch_all("delta-4.1")][:1]  # doctest: +SKIP
        ['delta-spark_4.1_2.13-4.4.0.jar']
    """
    required = [other_name for other_name in read_lock() if other_name.startswith(f"{name}-")]
    return [fetch(name), *map(fetch, required)]


def _download(jar: LockedJar, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        file = _retrieve(jar, Path(scratch))
        digest = _sha256(file)
        if digest != jar.sha256:
            raise JarNotFound(
                f"{jar.file_name} has SHA-256 {digest}, jars.lock says {jar.sha256}",
                hint="check the repository or mirror it came from",
            )
        file.replace(target)


def _retrieve(jar: LockedJar, scratch: Path) -> Path:
    """Let Ivy download a jar into a folder."""
    process = _run_ivy(jar, scratch)
    file = scratch / jar.file_name
    if process.returncode or not file.exists():
        raise JarNotFound(
            f"{jar.group}:{jar.artifact}:{jar.version} could not be downloaded: {_find_reason(process.stdout)}",
            hint=f"check the network, or put {jar.file_name} into {cache()}",
        )
    return file


def _run_ivy(jar: LockedJar, scratch: Path) -> subprocess.CompletedProcess[str]:
    settings = os.environ.get("METASTORE_IVY_SETTINGS") or str(scratch / "ivysettings.xml")
    (scratch / "ivysettings.xml").write_text(IVY_SETTINGS, "utf-8")
    java = find_java(os.environ.get("JAVA_HOME"))
    if java is None:
        raise JarNotFound("Java was not found", hint="install Java 17 or 21 (openjdk-17-jdk) or set JAVA_HOME")
    command = [
        *(java, "-cp", f"{pyspark_jars()}/*", "org.apache.ivy.Main", "-settings", settings),
        *("-cache", str(scratch / "ivy"), "-notransitive", "-types", "jar"),
        *("-dependency", jar.group, jar.artifact, jar.version),
        *("-retrieve", str(scratch / "[artifact]-[revision].[ext]")),
    ]
    return subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - arguments of the lock


def _find_reason(output: str) -> str:
    """Return the first two errors that Ivy printed."""
    errors = map(str.strip, _IVY_ERROR.findall(output))
    return "; ".join(islice(errors, 2)) or "no reason given"


def find_java(home: str | None) -> str | None:
    """Return the path of Java: in the folder of JAVA_HOME if that is set, else on the PATH; None if it is not there."""
    if not home:
        return shutil.which("java")
    java = Path(home) / "bin" / "java"
    return str(java) if java.exists() else None


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
