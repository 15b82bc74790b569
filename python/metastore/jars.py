"""Jars: ours, which the wheel carries, and those of table formats, which the demo and the tests fetch.

Foreign jars are named in `jars.lock` with their SHA-256 and come through Apache Ivy, which every pyspark carries, from
the repository that Ivy itself has as default. `METASTORE_IVY_SETTINGS` may name an Ivy settings file for a mirror.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from metastore.errors import JarNotFound

SHIM = "metastore-shim.jar"
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
    """Returns the path of the Spark shim, for `spark-submit --jars`.

    Raises:
        JarNotFound: pyspark is not installed for this Python, or its `jars` folder has no shim.

    Example:
        >>> import metastore.jars
        >>> metastore.jars.shim().name
        'metastore-shim.jar'
    """
    jar = pyspark_jars() / SHIM
    if not jar.exists():
        raise JarNotFound(f"{jar} does not exist", hint="pip install --force-reinstall pyspark-metastore")
    return jar


def pyspark_jars() -> Path:
    """Returns the `jars` folder of this Python's pyspark.

    Raises:
        JarNotFound: pyspark is not installed for this Python.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarNotFound("pyspark is not installed for this Python", hint="pip install 'pyspark-metastore[spark]'")
    return Path(spec.origin).parent / "jars"


def locked() -> dict[str, LockedJar]:
    """Returns the jars of `jars.lock` by name."""
    lines = resources.files("metastore").joinpath("jars.lock").read_text("utf-8").splitlines()
    jars = [_parse(line) for line in lines if line and not line.startswith("#")]
    return {jar.name: jar for jar in jars}


def _parse(line: str) -> LockedJar:
    name, coordinate, sha256 = line.split()
    group, artifact, version = coordinate.split(":")
    return LockedJar(name, group, artifact, version, sha256)


def cache() -> Path:
    """Returns the folder that holds fetched jars: `METASTORE_JAR_CACHE`, or one in the user's cache."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyspark-metastore" / "jars"
    return Path(os.environ.get("METASTORE_JAR_CACHE") or default)


def fetch(name: str) -> Path:
    """Returns a jar of `jars.lock`, downloading it at its first use.

    Args:
        name: first word of a line of `jars.lock`, such as `iceberg-4.1`.

    Raises:
        JarNotFound: no such name, no network, or what came is not what the lock names.
    """
    jars = locked()
    if name not in jars:
        raise JarNotFound(f"jars.lock has no jar {name!r}; it has {', '.join(sorted(jars))}", hint="check the name")
    jar = jars[name]
    kept = cache() / jar.file_name
    if not kept.exists() or _sha256(kept) != jar.sha256:
        _download(jar, kept)
    return kept


def fetch_all(name: str) -> list[Path]:
    """Returns a jar of `jars.lock` and those that it needs, whose names begin with its name and a dash.

    Args:
        name: such as `delta-4.1`.

    Raises:
        JarNotFound: as `fetch`.

    Example:
        >>> [jar.name for jar in fetch_all("delta-4.1")][:1]  # doctest: +SKIP
        ['delta-spark_4.1_2.13-4.4.0.jar']
    """
    return [fetch(name), *(fetch(other) for other in locked() if other.startswith(f"{name}-"))]


def _download(jar: LockedJar, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
        fetched = _retrieve(jar, Path(scratch))
        found = _sha256(fetched)
        if found != jar.sha256:
            raise JarNotFound(
                f"{jar.file_name} has SHA-256 {found}, jars.lock says {jar.sha256}",
                hint="check the repository or mirror it came from",
            )
        fetched.replace(kept)


def _retrieve(jar: LockedJar, scratch: Path) -> Path:
    settings = os.environ.get("METASTORE_IVY_SETTINGS") or str(scratch / "ivysettings.xml")
    (scratch / "ivysettings.xml").write_text(IVY_SETTINGS, "utf-8")
    fetched = scratch / jar.file_name
    command = [
        *(_java(), "-cp", f"{pyspark_jars()}/*", "org.apache.ivy.Main", "-settings", settings),
        *("-cache", str(scratch / "ivy"), "-notransitive", "-types", "jar"),
        *("-dependency", jar.group, jar.artifact, jar.version),
        *("-retrieve", str(scratch / "[artifact]-[revision].[ext]")),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - arguments of the lock
    if done.returncode or not fetched.exists():
        said = [line.strip() for line in done.stdout.splitlines() if "ERROR" in line or "not found" in line]
        raise JarNotFound(
            f"{jar.group}:{jar.artifact}:{jar.version} could not be downloaded: "
            f"{'; '.join(said[:2]) or 'no reason given'}",
            hint=f"check the network, or put {jar.file_name} into {cache()}",
        )
    return fetched


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java or not Path(java).exists():
        raise JarNotFound("Java was not found", hint="install Java 17 or 21 (openjdk-17-jdk) or set JAVA_HOME")
    return java


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
