"""Checks of `metastore doctor`: each is a function that returns a result, with one line to fix a problem.

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
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from metastore import __version__, jars
from metastore.errors import MetastoreError
from metastore.spark.session import EXTENSION, read_spark_defaults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import Row

    from metastore.configuration import ResolvedSetting

OK = "ok"
WARNING = "warning"
BROKEN = "broken"


_JAVAS_OF_3_5 = (11, 17)
_JAVAS = (17, 21)
"""The versions of Java that the lines of Spark are tested on, those of Spark 3.5 and of the others."""
_LIMITS = {
    "4.3": "no release of Iceberg, Delta or Hudi yet",
    "4.2": "no release of Iceberg or Hudi yet",
    "3.5": "no data source `metastore`, extensions must be listed in spark.sql.extensions",
}
"""A remark on missing features, for lines of Spark that have fewer than others."""
_PROPERTIES = "metastore-shim.properties"
_SECONDS = 60
_REINSTALL = (
    "pip install --force-reinstall pyspark-metastore (in a clone: uv sync --reinstall-package pyspark-metastore)"
)
_LIST = 'spark-submit --jars "$(metastore jar)", or metastore.configure(builder) in Python'
_JAVA_VERSION = re.compile(r'version "(\d+)([^"]*)"')
_IMPORTED = "imported"


@dataclass(frozen=True)
class CheckResult:
    """The result of one check.

    Attributes:
        check: The subject of the check.
        state: `ok`, `warning` or `broken`.
        detail: The finding.
        fix: The advice; empty if nothing is to be done.
    """

    check: str
    state: str
    detail: str
    fix: str = ""


def check_java() -> CheckResult:
    """Check that Java is there, of a version that Spark runs on."""
    line = _pyspark_line()
    if line not in jars.LINES:
        line = jars.LINES[-1]
    versions = " or ".join(map(str, _tested_javas(line)))
    fix = f"Install Java {versions} (for example openjdk-17-jdk) or set JAVA_HOME to one."
    home = os.environ.get("JAVA_HOME")
    java = jars.find_java(home)
    if java is None:
        return CheckResult("java", BROKEN, _explain_missing_java(home), fix)
    output = _run([java, "-version"])
    match = _JAVA_VERSION.search(output)
    if match is None:
        return CheckResult("java", BROKEN, f"{java} does not tell its version: {output.strip()[:80]}", fix)
    detail = f"{match[1]}{match[2]} ({java})"
    state = _rate_java(int(match[1]), line)
    if state == OK:
        return CheckResult("java", OK, detail)
    return CheckResult("java", state, f"{detail}; Spark {line} is tested on {versions}", fix)


def _explain_missing_java(home: str | None) -> str:
    if home:
        return f"JAVA_HOME is {home}, which has no bin/java"
    return "there is no java on the PATH"


def _tested_javas(line: str) -> tuple[int, ...]:
    return _JAVAS_OF_3_5 if line == "3.5" else _JAVAS


def _rate_java(version: int, line: str) -> str:
    javas = _tested_javas(line)
    if version in javas:
        return OK
    if version < min(javas) and line != "3.5":  # Spark 3.5 runs on older ones, too
        return BROKEN
    return WARNING


def check_pyspark() -> CheckResult:
    """Check that pyspark is installed, of a line that jars are built for."""
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return _missing_pyspark()
    line = _pyspark_line()
    if line not in jars.LINES:
        error = jars.explain_missing_shim(version)
        return CheckResult("pyspark", BROKEN, error.message, error.hint)
    if line in _LIMITS:
        return CheckResult("pyspark", OK, f"{version}; on this line: {_LIMITS[line]}")
    return CheckResult("pyspark", OK, version)


def _missing_pyspark() -> CheckResult:
    has_client = importlib.util.find_spec("pyspark") is not None
    if has_client:
        return CheckResult("pyspark", WARNING, "only the Connect client is installed", "Its server needs the jar.")
    return CheckResult("pyspark", BROKEN, "not installed", "pip install 'pyspark-metastore[spark]'")


def check_jar() -> CheckResult:
    """Check that the jar lies beside Spark's own, alone, belongs to this package and has a build for this Spark."""
    try:
        shim = jars.shim()
        folder = jars.pyspark_jars()
    except MetastoreError as error:
        return CheckResult("jar", BROKEN, error.message, error.hint)
    other_jars = set(folder.glob("metastore-shim*.jar")) - {shim}
    if other_jars:
        jar = min(other_jars)
        return CheckResult("jar", BROKEN, f"there is a second one: {jar}", f"rm {jar}")
    facts = read_shim_properties(shim)
    if facts is None:
        return CheckResult("jar", BROKEN, f"{shim} is no jar of ours", _REINSTALL)
    problem = _find_jar_problem(facts)
    if problem:
        return CheckResult("jar", BROKEN, problem, _REINSTALL)
    if shim.parent != folder:
        return CheckResult("jar", WARNING, f"{shim} is not beside the jars of pyspark, {folder}", _LIST)
    return CheckResult("jar", OK, _describe_jar(facts))


def _find_jar_problem(facts: Mapping[str, str]) -> str:
    if facts["version"] != __version__:
        return f"the jar is {facts['version']}, the package {__version__}"
    line = _pyspark_line()
    if line not in jars.LINES:
        return ""
    if line not in facts["lines"].split():
        return f"{_describe_jar(facts)} only, and pyspark is {metadata.version('pyspark')}"
    if _has_newer_sources(facts):
        return "the jar is older than its sources in this clone"
    return ""


def _has_newer_sources(facts: Mapping[str, str]) -> bool:
    """Whether a build in the jar is of other sources than those in this clone."""
    for key, digest in facts.items():
        build = key.removeprefix("source-")
        if build != key and _source_digest(build) not in (None, digest):
            return True
    return False


def _describe_jar(facts: Mapping[str, str]) -> str:
    lines = tuple(facts["lines"].split())
    return f"{facts['version']} for Spark {jars.join_names(lines)}"


def check_spark_home() -> CheckResult:
    """Check that SPARK_HOME, if it is set, is a Spark that has the jar."""
    home = os.environ.get("SPARK_HOME")
    if not home:
        return CheckResult("SPARK_HOME", OK, "not set: Spark is the one of this Python")
    folder = Path(home)
    if folder.resolve() == jars.pyspark_jars().parent.resolve() or _has_jar(folder):
        return CheckResult("SPARK_HOME", OK, home)
    if not folder.is_dir():
        return CheckResult("SPARK_HOME", BROKEN, f"there is no folder {home}", "unset SPARK_HOME, or name a Spark")
    return CheckResult("SPARK_HOME", WARNING, f"{home} does not have the jar", _LIST)


def _has_jar(spark_home: Path) -> bool:
    return (spark_home / "jars" / jars.SHIM).exists()


def check_extension() -> CheckResult:
    """Check that spark-defaults.conf lists the extension where it has to, and only jars of this version."""
    defaults = read_spark_defaults()
    shims = _list_shims(defaults)
    wrong_jar = _check_listed_jars(shims)
    if wrong_jar is not None:
        return wrong_jar
    if _lists_extension(defaults):
        return _check_listed_extension(shims)
    if _pyspark_line() == "3.5":
        detail = "Spark 3.5 needs it in spark-defaults.conf, which does not list it"
        fix = f"spark.sql.extensions={EXTENSION} there, or metastore.configure(builder) in Python"
        return CheckResult("extension", WARNING, detail, fix)
    return CheckResult("extension", OK, "it registers itself")


def _list_shims(defaults: Mapping[str, str]) -> list[str]:
    """The jars of ours that settings put on Spark's class path."""
    entries = defaults.get("spark.jars", "").split(",")
    entries += defaults.get("spark.driver.extraClassPath", "").split(os.pathsep)
    paths = [entry.strip().removeprefix("file://").removeprefix("file:") for entry in entries]
    return [path for path in paths if Path(path).name.startswith("metastore-shim")]


def _check_listed_jars(shims: Iterable[str]) -> CheckResult | None:
    """The problem of the first wrong jar that settings name, or None."""
    for shim in shims:
        problem = _find_listed_jar_problem(shim)
        if problem:
            detail = f"{Path(shim)}, which spark-defaults.conf names, {problem}"
            fix = "Name the one that metastore jar prints, or none where Spark is pip's."
            return CheckResult("extension", BROKEN, detail, fix)
    return None


def _find_listed_jar_problem(path: str) -> str:
    if "://" in path:
        return ""  # only Spark can read it
    facts = read_shim_properties(Path(path))
    if facts is None:
        return "is no jar of ours"
    if facts["version"] != __version__:
        return f"is {facts['version']}, the package {__version__}"
    return ""


def _lists_extension(defaults: Mapping[str, str]) -> bool:
    extensions = defaults.get("spark.sql.extensions", "").split(",")
    return EXTENSION in map(str.strip, extensions)


def _check_listed_extension(shims: Sequence[str]) -> CheckResult:
    home = Path(os.environ.get("SPARK_HOME") or jars.pyspark_jars().parent)
    if shims or _has_jar(home):
        return CheckResult("extension", OK, "listed in spark-defaults.conf")
    detail = f"spark-defaults.conf lists it, and {home} does not have the jar: Spark starts without it"
    return CheckResult("extension", BROKEN, detail, _LIST)


def check_workers_python() -> CheckResult:
    """Check that Spark's workers get a Python of the driver's version, with the libraries of ANALYZE."""
    setting = os.environ.get("PYSPARK_PYTHON") or read_spark_defaults().get("spark.pyspark.python")
    name = setting or "python3"
    state, scope = _rate_wrong_python(setting)
    fix = f"export PYSPARK_PYTHON={sys.executable}"
    path = shutil.which(name)
    if path is None:
        return CheckResult("workers' python", state, f"{name} is not on the PATH{scope}", fix)
    code = "import sys, numpy, pyarrow; print('%d.%d' % sys.version_info[:2])"
    output = _run_python(path, code).strip()
    driver_version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if output == driver_version:
        return CheckResult("workers' python", OK, f"{driver_version} ({path})")
    detail = _last_line(output, "it says nothing")
    return CheckResult("workers' python", state, f"{path}: {detail}; the driver's is {driver_version}{scope}", fix)


def _last_line(output: str, default: str) -> str:
    return output.splitlines()[-1] if output else default


def _rate_wrong_python(setting: str | None) -> tuple[str, str]:
    """The state that a wrong Python means, and for which sessions."""
    if setting:
        return BROKEN, ""
    # Commands of ours start Spark with their own Python then.
    return WARNING, " (for sessions that are not started by this program)"


def check_data_sources() -> CheckResult:
    """Check that every `pyspark_*` module can be imported and Spark finds ours: a broken one hides all of them."""
    if _pyspark_line().startswith("3."):
        return CheckResult("data sources", OK, "Spark has data sources in Python since 4.0")
    names = _list_data_source_modules()
    problem = _check_imports(names) or _check_our_source() or _check_driver_python()
    return problem or CheckResult("data sources", OK, ", ".join(names))


def _list_data_source_modules() -> list[str]:
    names = map(attrgetter("name"), pkgutil.iter_modules())
    return sorted(name for name in names if name.startswith("pyspark_"))


def _check_imports(names: Iterable[str]) -> CheckResult | None:
    """The problem of the first module that cannot be imported, or None."""
    for name in names:
        problem = _find_import_problem(name)
        if problem:
            fix = f"Repair or uninstall the package of {name}."
            return CheckResult("data sources", BROKEN, f"{name}: {problem}", fix)
    return None


def _check_our_source() -> CheckResult | None:
    """The problem of our own data source, or None."""
    code = "import pyspark_metastore; print(pyspark_metastore.DefaultSource.name())"
    output = _run_python(sys.executable, code).strip()
    if output == "metastore":
        return None
    detail = f"ours is not there: {_last_line(output, 'it says nothing')}"
    return CheckResult("data sources", BROKEN, detail, _REINSTALL)


def _find_import_problem(name: str) -> str:
    output = _import_module(sys.executable, name)
    if output.endswith(_IMPORTED):
        return ""
    return _last_line(output, "it ended without a word")


def _import_module(python: str, name: str) -> str:
    code = f"import {name}; print('{_IMPORTED}')"
    return _run_python(python, code).strip()


def _check_driver_python() -> CheckResult | None:
    """The problem of the Python that Spark asks for data sources, or None."""
    variable = "PYSPARK_DRIVER_PYTHON"
    if not os.environ.get(variable):
        variable = "PYSPARK_PYTHON"
    setting = os.environ.get(variable)
    name = setting or "python3"
    output = _import_module(shutil.which(name) or name, "pyspark_metastore")
    if output.endswith(_IMPORTED):
        return None
    state, scope = _rate_wrong_python(setting)
    detail = f"Spark asks {name} for them, which does not have ours: format('metastore') is not found{scope}"
    return CheckResult("data sources", state, detail, f"export {variable}={sys.executable}")


def check_settings() -> CheckResult:
    """Check that settings exist and have valid values."""
    from metastore import configuration  # noqa: PLC0415 - slow to import

    defaults = {key: text for key, text in read_spark_defaults().items() if key.startswith(configuration.PREFIX)}
    try:
        settings = configuration.resolve(arguments=defaults)
    except MetastoreError as error:
        return CheckResult("settings", BROKEN, error.message, error.hint or "metastore config lists every setting.")
    left_out = _list_left_out(settings)
    if left_out:
        fix = "Own the file and its folders, and let nobody else write them (chmod go-w), or use the environment."
        return CheckResult("settings", WARNING, left_out, fix)
    for name, hint in configuration.find_misspelt_variables(os.environ).items():
        return CheckResult("settings", WARNING, f"the environment variable {name} is no setting", hint)
    return _check_enabled(settings)


def _check_enabled(settings: Sequence[ResolvedSetting]) -> CheckResult:
    values = {resolved.setting.key: resolved.value for resolved in settings}
    if not values["spark.metastore.enabled"]:
        return CheckResult("settings", WARNING, "spark.metastore.enabled is false", "Unset it to have files pruned.")
    changes = [_describe_change(resolved) for resolved in settings if resolved.source != "default"]
    return CheckResult("settings", OK, ", ".join(changes) or "all at their defaults")


def _describe_change(resolved: ResolvedSetting) -> str:
    return f"{resolved.setting.key}={resolved.text} ({resolved.file or resolved.source})"


def _list_left_out(settings: Iterable[ResolvedSetting]) -> str:
    left_out = [
        f"{resolved.setting.key} is left out: {resolved.left_out}" for resolved in settings if resolved.left_out
    ]
    return "; ".join(left_out)


def check_spark() -> list[CheckResult]:
    """Check that a Spark starts and has the extension, and the releases of its table formats."""
    import metastore  # noqa: PLC0415 - slow to import
    from metastore.spark.local_session import start_local_spark  # noqa: PLC0415 - as above

    try:
        with start_local_spark({}) as session:
            facts = metastore.version(session)
            formats = session.sql("SELECT * FROM metastore_formats()").collect()
    except MetastoreError as error:
        return [CheckResult("spark", BROKEN, error.message, error.hint)]
    detail = f"Spark {facts['spark']} has the extension {facts['version']} from {facts['jar']}"
    return [CheckResult("spark", OK, detail), _check_formats(formats)]


def _check_formats(formats: Sequence[Row]) -> CheckResult:
    detail = ", ".join(map(_describe_format, formats))
    required = [f"{row.format} {row.oldest}" for row in formats if row.refusal]
    if required:
        fix = f"Use {' and '.join(required)} or newer; until then queries on such tables run as without us."
        return CheckResult("table formats", WARNING, detail, fix)
    return CheckResult("table formats", OK, detail or "none in spark.jars or Spark's own folder")


def _describe_format(row: Row) -> str:
    release = row.found or "of an unknown release"
    return row.refusal or f"{row.format} {release}"


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
    """Read the notes of the build in a jar of ours: version, lines, digests of sources; None for another jar."""
    try:
        with zipfile.ZipFile(shim) as archive:
            text = archive.read(_PROPERTIES).decode()
    except (zipfile.BadZipFile, KeyError, OSError):
        return None
    facts = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            facts[key] = value
    return facts if {"version", "lines"} <= facts.keys() else None


def _pyspark_line() -> str:
    try:
        return jars.spark_line_of(metadata.version("pyspark"))
    except metadata.PackageNotFoundError:
        return ""


def _source_digest(build: str) -> str | None:
    """The digest of the sources of a build of the shim; None if this package is not used from a clone."""
    script = Path(__file__).resolve().parents[3] / "jvm-shim" / "hatch_build.py"
    if not script.is_file():
        return None
    imports = f"import sys; sys.path.insert(0, {str(script.parent)!r}); import hatch_build, json"
    code = f"{imports}; print(json.dumps(hatch_build.source_digest({build!r})))"
    output = _run_python(sys.executable, code)
    try:
        return str(json.loads(output))
    except ValueError:
        return None


def _run_python(python: str, code: str) -> str:
    # It does not look for modules in the working folder, which may be anybody's, nor writes any.
    return _run([python, "-B", "-c", f"import sys; sys.path[:] = filter(None, sys.path); {code}"])


def _run(command: list[str]) -> str:
    """The output of a program on both channels, or the reason why it could not run."""
    try:
        process = subprocess.run(  # noqa: S603 - programs named by the user's own settings
            command, check=False, capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return process.stdout + process.stderr
