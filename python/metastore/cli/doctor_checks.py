"""What `metastore doctor` looks at: each check is a function that gives one finding, with one line to fix it.

Checks of statistics are in `doctor_store_checks`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from metastore import __version__, jars
from metastore.errors import MetastoreError
from metastore.spark.session import EXTENSION, read_spark_defaults

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Row

OK, WARNING, BROKEN = "ok", "warning", "broken"
LINES = {
    "4.3": ((17, 21), "no release of Iceberg, Delta or Hudi yet"),
    "4.2": ((17, 21), "no release of Iceberg or Hudi yet"),
    "4.1": ((17, 21), ""),
    "4.0": ((17, 21), ""),
    "3.5": ((11, 17), "no data source `metastore`, extensions must be listed in spark.sql.extensions"),
}
"""The lines of Spark that the jar serves: versions of Java that they are tested on, and what they lack."""
_PROPERTIES = "metastore-shim.properties"
_SECONDS = 60
_REINSTALL = (
    "pip install --force-reinstall pyspark-metastore (in a clone: uv sync --reinstall-package pyspark-metastore)"
)
_LIST = 'spark-submit --jars "$(metastore jar)", or metastore.configure(builder) in Python'


@dataclass(frozen=True)
class CheckResult:
    """The result of one check.

    Attributes:
        check: What was looked at.
        state: `ok`, `warning` or `broken`.
        detail: What was found.
        fix: What to do; empty where nothing is to be done.
    """

    check: str
    state: str
    detail: str
    fix: str = ""


def check_java() -> CheckResult:
    """Java is there and of a version that Spark runs on."""
    installed = _line_of_pyspark()
    line = installed if installed in LINES else next(iter(LINES))
    javas = LINES[line][0]
    versions = " or ".join(map(str, javas))
    install = f"Install Java {versions} (for example openjdk-17-jdk) or set JAVA_HOME to one."
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not found or not Path(found).exists():
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on the PATH"
        return CheckResult("java", BROKEN, where, install)
    said = _run([found, "-version"])
    match = re.search(r'version "(\d+)([^"]*)"', said)
    if match is None:
        return CheckResult("java", BROKEN, f"{found} does not tell its version: {said.strip()[:80]}", install)
    version = f"{match[1]}{match[2]} ({found})"
    if int(match[1]) in javas:
        return CheckResult("java", OK, version)
    state = BROKEN if line != "3.5" and int(match[1]) < min(javas) else WARNING
    return CheckResult("java", state, f"{version}; Spark {line} is tested on {versions}", install)


def check_pyspark() -> CheckResult:
    """Pyspark is installed and of a line that jars are built for."""
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        client = importlib.util.find_spec("pyspark") is not None
        if client:
            return CheckResult("pyspark", WARNING, "only the Connect client is installed", "Its server needs the jar.")
        return CheckResult("pyspark", BROKEN, "not installed", "pip install 'pyspark-metastore[spark]'")
    line = _line_of_pyspark()
    if line in LINES:
        lacks = LINES[line][1]
        return CheckResult("pyspark", OK, f"{version}; on this line: {lacks}" if lacks else version)
    told = jars.explain_missing_shim(version)
    return CheckResult("pyspark", BROKEN, told.message, told.hint)


def check_jar() -> CheckResult:
    """The jar lies beside Spark's own, alone, belongs to this package and has a build for this Spark."""
    try:
        shim = jars.shim()
        beside = jars.pyspark_jars()
    except MetastoreError as error:
        return CheckResult("jar", BROKEN, error.message, error.hint)
    others = [one for one in beside.glob("metastore-shim*.jar") if one != shim]
    if others:
        return CheckResult("jar", BROKEN, f"there is a second one: {others[0]}", f"rm {others[0]}")
    facts = read_shim_properties(shim)
    problem = _jar_problem(facts) if facts else f"{shim} is no jar of ours"
    if facts is None or problem:
        return CheckResult("jar", BROKEN, problem, _REINSTALL)
    if shim.parent != beside:
        return CheckResult("jar", WARNING, f"{shim} is not beside the jars of pyspark, {beside}", _LIST)
    return CheckResult("jar", OK, _told(facts))


def _jar_problem(facts: Mapping[str, str]) -> str:
    line = _line_of_pyspark()
    if facts["version"] != __version__:
        return f"the jar is {facts['version']}, the package {__version__}"
    if line not in LINES:
        return ""
    if line not in facts["lines"].split():
        return f"{_told(facts)} only, and pyspark is {metadata.version('pyspark')}"
    for key, digest in facts.items():
        build = key.removeprefix("source-")
        if build != key and digest != (_source_digest(build) or digest):
            return "the jar is older than its sources in this clone"
    return ""


def _told(facts: Mapping[str, str]) -> str:
    return f"{facts['version']} for Spark {jars.join_names(tuple(facts['lines'].split()))}"


def check_spark_home() -> CheckResult:
    """SPARK_HOME, where it is set, is a Spark that has the jar."""
    home = os.environ.get("SPARK_HOME")
    if not home or Path(home).resolve() == jars.pyspark_jars().parent.resolve():
        return CheckResult("SPARK_HOME", OK, home or "not set: Spark is the one of this Python")
    if (Path(home) / "jars" / jars.SHIM).exists():
        return CheckResult("SPARK_HOME", OK, home)
    if not Path(home).is_dir():
        return CheckResult("SPARK_HOME", BROKEN, f"there is no folder {home}", "unset SPARK_HOME, or name a Spark")
    return CheckResult("SPARK_HOME", WARNING, f"{home} does not have the jar", _LIST)


def check_extension() -> CheckResult:
    """Where spark-defaults.conf names the extension its jar is there, of this version; where it has to, it does."""
    defaults = read_spark_defaults()
    named = _name_shims(defaults)
    for jar in (Path(one) for one in named if "://" not in one):
        facts = read_shim_properties(jar)
        if facts is None or facts["version"] != __version__:
            found = f"is {facts['version']}, the package {__version__}" if facts else "is no jar of ours"
            fix = "Name the one that metastore jar prints, or none where Spark is pip's."
            return CheckResult("extension", BROKEN, f"{jar}, which spark-defaults.conf names, {found}", fix)
    home = Path(os.environ.get("SPARK_HOME") or jars.pyspark_jars().parent)
    is_listed = EXTENSION in map(str.strip, defaults.get("spark.sql.extensions", "").split(","))
    if is_listed and not named and not (home / "jars" / jars.SHIM).exists():
        detail = f"spark-defaults.conf lists it, and {home} does not have the jar: Spark starts without it"
        return CheckResult("extension", BROKEN, detail, _LIST)
    if not is_listed and _line_of_pyspark() == "3.5":
        detail = "Spark 3.5 needs it in spark-defaults.conf, which does not list it"
        fix = f"spark.sql.extensions={EXTENSION} there, or metastore.configure(builder) in Python"
        return CheckResult("extension", WARNING, detail, fix)
    return CheckResult("extension", OK, "listed in spark-defaults.conf" if is_listed else "it registers itself")


def _name_shims(defaults: Mapping[str, str]) -> list[str]:
    """The jars of ours that settings put on Spark's class path."""
    ways = (("spark.jars", ","), ("spark.driver.extraClassPath", os.pathsep))
    listed = (
        one.strip().removeprefix("file://").removeprefix("file:")
        for key, by in ways
        for one in defaults.get(key, "").split(by)
    )
    return [one for one in listed if Path(one).name.startswith("metastore-shim")]


def check_workers_python() -> CheckResult:
    """The Python that Spark starts for its workers has the driver's version and what ANALYZE imports."""
    named = os.environ.get("PYSPARK_PYTHON") or read_spark_defaults().get("spark.pyspark.python")
    state, whose = _of_sessions(named)
    found = shutil.which(named or "python3")
    fix = f"export PYSPARK_PYTHON={sys.executable}"
    if found is None:
        return CheckResult("workers' python", state, f"{named or 'python3'} is not on the PATH{whose}", fix)
    said = _run([found, "-c", "import sys, numpy, pyarrow; print('%d.%d' % sys.version_info[:2])"])
    mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if said.strip() == mine:
        return CheckResult("workers' python", OK, f"{mine} ({found})")
    detail = said.strip().splitlines()[-1] if said.strip() else "it says nothing"
    return CheckResult("workers' python", state, f"{found}: {detail}; the driver's is {mine}{whose}", fix)


def _of_sessions(named: str | None) -> tuple[str, str]:
    """How bad a wrong Python is, and for whom: where none is named, commands of ours start Spark with their own."""
    return (BROKEN, "") if named else (WARNING, " (for sessions that are not started by this program)")


def check_data_sources() -> CheckResult:
    """Every `pyspark_*` module can be imported, one that cannot hides all Python data sources; Spark finds ours."""
    if _line_of_pyspark().startswith("3."):
        return CheckResult("data sources", OK, "Spark has data sources in Python since 4.0")
    names = sorted(module.name for module in pkgutil.iter_modules() if module.name.startswith("pyspark_"))
    for name in names:
        said = _run([sys.executable, "-c", f"import {name}; print('imported')"])
        if not said.strip().endswith("imported"):
            reason = said.strip().splitlines()[-1] if said.strip() else "it ended without a word"
            return CheckResult(
                "data sources", BROKEN, f"{name}: {reason}", f"Repair or uninstall the package of {name}."
            )
    ours = _run([sys.executable, "-c", "import pyspark_metastore; print(pyspark_metastore.DefaultSource.name())"])
    if ours.strip() != "metastore":
        return CheckResult("data sources", BROKEN, f"ours is not there: {ours.strip().splitlines()[-1:]}", _REINSTALL)
    named = "PYSPARK_DRIVER_PYTHON" if os.environ.get("PYSPARK_DRIVER_PYTHON") else "PYSPARK_PYTHON"
    asked = os.environ.get(named) or "python3"
    said = _run([shutil.which(asked) or asked, "-c", "import pyspark_metastore; print('imported')"])
    if not said.strip().endswith("imported"):
        state, whose = _of_sessions(os.environ.get(named))
        detail = f"Spark asks {asked} for them, which does not have ours: format('metastore') is not found{whose}"
        return CheckResult("data sources", state, detail, f"export {named}={sys.executable}")
    return CheckResult("data sources", OK, ", ".join(names))


def check_settings() -> CheckResult:
    """Settings have values that they can have, and names that exist."""
    from metastore import configuration  # noqa: PLC0415 - slow to import
    from metastore.configuration import find_misspelt_variables  # noqa: PLC0415 - as above

    defaults = {key: text for key, text in read_spark_defaults().items() if key.startswith(configuration.PREFIX)}
    try:
        found = configuration.resolve(arguments=defaults)
    except MetastoreError as error:
        return CheckResult("settings", BROKEN, error.message, error.hint or "metastore config lists every setting.")
    left_out = [f"{one.setting.key} is left out: {one.left_out}" for one in found if one.left_out]
    if left_out:
        fix = "Own the file and its folders, and let nobody else write them (chmod go-w), or use the environment."
        return CheckResult("settings", WARNING, "; ".join(left_out), fix)
    changed = [f"{one.setting.key}={one.text} ({one.file or one.source})" for one in found if one.source != "default"]
    values = {one.setting.key: one.value for one in found}
    for name, hint in find_misspelt_variables(os.environ).items():
        return CheckResult("settings", WARNING, f"the environment variable {name} is no setting", hint)
    if not values["spark.metastore.enabled"]:
        return CheckResult("settings", WARNING, "spark.metastore.enabled is false", "Unset it to have files pruned.")
    return CheckResult("settings", OK, ", ".join(changed) or "all at their defaults")


def check_spark() -> list[CheckResult]:
    """A Spark starts and has the extension, and table formats that it can be used with."""
    import metastore  # noqa: PLC0415 - as above
    from metastore.spark.local_session import start_local_spark  # noqa: PLC0415 - as above

    try:
        with start_local_spark({}) as session:
            facts = metastore.version(session)
            formats = session.sql("SELECT * FROM metastore_formats()").collect()
    except MetastoreError as error:
        return [CheckResult("spark", BROKEN, error.message, error.hint)]
    told = f"Spark {facts['spark']} has the extension {facts['version']} from {facts['jar']}"
    return [CheckResult("spark", OK, told), _formats(formats)]


def _formats(found: Sequence[Row]) -> CheckResult:
    told = ", ".join(one.refusal or f"{one.format} {one.found or 'of an unknown release'}" for one in found)
    refused = [f"{one.format} {one.oldest}" for one in found if one.refusal]
    if refused:
        fix = f"Use {' and '.join(refused)} or newer; until then queries on such tables run as without us."
        return CheckResult("table formats", WARNING, told, fix)
    return CheckResult("table formats", OK, told or "none in spark.jars or Spark's own folder")


QUICK: tuple[Callable[[], CheckResult], ...] = (
    check_java,
    check_pyspark,
    check_jar,
    check_spark_home,
    check_extension,
    check_workers_python,
    check_data_sources,
    check_settings,
)
"""Checks that start no Spark, in the order in which one depends on the other."""


def read_shim_properties(shim: Path) -> dict[str, str] | None:
    """What the build noted inside a jar of ours: version, lines, and each line's source; None for another jar."""
    try:
        with zipfile.ZipFile(shim) as opened:
            lines = opened.read(_PROPERTIES).decode().splitlines()
    except (zipfile.BadZipFile, KeyError, OSError):
        return None
    facts = dict(line.split("=", 1) for line in lines if "=" in line)
    return facts if {"version", "lines"} <= facts.keys() else None


def _line_of_pyspark() -> str:
    try:
        return jars.spark_line_of(metadata.version("pyspark"))
    except metadata.PackageNotFoundError:
        return ""


def _source_digest(build: str) -> str | None:
    """Digest of the sources of a build of the shim, where this package is used from a clone."""
    script = Path(__file__).resolve().parents[3] / "jvm-shim" / "hatch_build.py"
    if not script.is_file():
        return None
    code = f"import sys; sys.path.insert(0, {str(script.parent)!r}); import hatch_build, json; "
    said = _run([sys.executable, "-c", f"{code}print(json.dumps(hatch_build.source_digest({build!r})))"])
    try:
        return str(json.loads(said))
    except ValueError:
        return None


def _run(command: list[str]) -> str:
    """What a program says on both channels; its failure is part of that.

    Python is told not to look for modules in the working folder, which may be anybody's, nor to write any.
    """
    if command[1:2] == ["-c"]:
        command = [command[0], "-B", "-c", f"import sys; sys.path[:] = filter(None, sys.path); {command[2]}"]
    try:
        done = subprocess.run(  # noqa: S603 - programs named by the user's own settings
            command, check=False, capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout + done.stderr
