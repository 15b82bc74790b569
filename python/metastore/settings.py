"""The one registry of settings, and where each value comes from.

A setting has one name in four places: `spark.metastore.pruning.enabled` as a Spark conf, `METASTORE_PRUNING_ENABLED`
in the environment, `pruning.enabled` in `metastore.toml` or in `[tool.metastore]` of a pyproject. The first of
argument, Spark conf, environment, file and default that has it wins; an empty or false value is a value. What names a
program or a place for statistics is taken from a file only where nobody but the user and root can have written it.
`python -m metastore.settings <file>` writes the registry as documentation.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PyprojectTomlConfigSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from metastore.errors import InvalidArgument, InvalidSetting, phrase_suggestion
from metastore.file_ownership import describe_foreign_access
from metastore.setting_types import (
    MOST_WHOLE,
    Algorithm,
    Duration,
    Flag,
    Formats,
    Names,
    Size,
    Text,
    WholeNumber,
    strip_blanks,
)
from metastore.suggestions import find_similar_names
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession


_PREFIX = "METASTORE_"


def find_misspelt_variables(variables: Iterable[str]) -> dict[str, str]:
    """Those that are near to a setting, each with the hint that names it."""
    known = {one.environment.removeprefix(_PREFIX) for one in REGISTRY.values()}
    given = {name: name[len(_PREFIX) :].upper() for name in variables if name.upper().startswith(_PREFIX)}
    found = {name: find_similar_names(rest, known, cutoff=0.75) for name, rest in given.items() if rest not in known}
    return {name: phrase_suggestion([_PREFIX + one for one in alike]) for name, alike in found.items() if alike}


def warn_of_misspelt_variables(variables: Iterable[str]) -> None:
    """Names them in the log, each once."""
    for name, hint in find_misspelt_variables(variables).items():
        _warn(name, hint)


@cache
def _warn(name: str, hint: str) -> None:
    _LOG.warning("the environment variable %s is no setting. %s", name, hint)


_LOG = get_logger(__name__)

PREFIX = "spark.metastore."
SOURCES = ("argument", "spark", "environment", "file")


def _setting(key: str, default: str, meaning: str, *, own: bool = False, **check: Any) -> Any:
    """Declares a setting; its default is text, read by the same rules as any other source."""
    return Field(default=default, description=meaning, json_schema_extra={"key": PREFIX + key, "own": own}, **check)


class Settings(BaseModel):
    """Every setting, typed and checked."""

    model_config = ConfigDict(frozen=True, validate_default=True)

    enabled: Flag = _setting(
        "enabled",
        "true",
        "false: as if not installed (no pruning, no statistics to the optimizer); table functions still read",
    )
    pruning_enabled: Flag = _setting("pruning.enabled", "true", "file pruning alone")
    cbo_enabled: Flag = _setting(
        "cbo.enabled",
        "true",
        "statistics to the optimizer alone; also switches on `spark.sql.cbo.enabled` and "
        "`spark.sql.cbo.joinReorder.enabled` for the SparkContext where the user has set neither",
    )
    prune_inside_writes: Flag = _setting(
        "pruneInsideWrites", "false", "prune the reads of INSERT .. SELECT, MERGE sources, CTAS"
    )
    hudi_bypass_skipping: Flag = _setting(
        "hudi.bypassSkipping", "true", "Hudi's own skipping is not asked where our statistics cover the table"
    )
    store: Text = _setting("store", "", "root URI for all statistics; not set: beside each table", own=True)
    analyze_formats: Formats = _setting(
        "analyze.formats",
        "iceberg,delta,hudi",
        "formats whose `ANALYZE TABLE` is ours; add `parquet` to take over session-catalog Parquet tables too",
    )
    histogram_bins: WholeNumber = _setting("histogram.bins", "1000", "bins of a histogram, 2..10000", ge=2, le=10000)
    histogram_kind: Annotated[Literal["equi_height", "equi_width"], BeforeValidator(strip_blanks)] = _setting(
        "histogram.kind", "equi_height", "bins that hold equally many values, or `equi_width`: bins equally wide"
    )
    frequencies_top: WholeNumber = _setting(
        "frequencies.top",
        "1000",
        "most frequent values kept per column and file when not complete",
        ge=1,
        le=MOST_WHOLE,
    )
    frequencies_algorithm: Algorithm = _setting(
        "frequencies.algorithm",
        "auto",
        "how a table's frequencies are made of those of its files: `auto` and `exact` take `reduce`, `duplicates` or "
        "`scatter` by the number of values; `exact`, and `duplicates` or `scatter` where asked for, read those columns "
        "again of which some file does not keep all values",
    )
    frequencies_threshold: WholeNumber = _setting(
        "frequencies.threshold",
        "1000000",
        "number of distinct (or repeated) values from which they are many",
        ge=0,
        le=MOST_WHOLE - 1,
    )
    ranks_columns: Names = _setting(
        "ranks.columns", "", "columns that also get exact ranks; also as table property `metastore.ranks.columns`"
    )
    distribution_columns: Names = _setting(
        "distribution.columns",
        "",
        "columns that also get the distribution of values over files; also as table property "
        "`metastore.distribution.columns`",
    )
    python: Text = _setting(
        "python",
        "",
        "interpreter that runs ANALYZE on the driver host; not set: found; a session cannot change it",
        own=True,
    )
    snapshots_keep: WholeNumber = _setting("snapshots.keep", "10", "analyzed snapshots kept in the manifest", ge=1)
    cache_size: Size = _setting("cache.size", "256m", "decoded statistics and lists of data files kept in the driver")
    planning_timeout: Duration = _setting("planning.timeout", "2s", "past it a scan is planned without us")
    read_timeout: Duration = _setting(
        "read.timeout",
        "30s",
        "past it a table function, or the data source asked for a table's name, ends with an error",
    )


class _Outside(BaseSettings, Settings):
    """The same settings where they are read from outside of Python."""

    model_config = SettingsConfigDict(
        env_prefix="METASTORE_", extra="ignore", pyproject_toml_table_header=("tool", "metastore")
    )


@dataclass(frozen=True)
class Setting:
    """One setting: what it is called, what it means, what it is when nobody sets it.

    `own` is true where it is taken only from files that nobody but the user and root can have written.
    """

    key: str
    field: str
    default: str
    meaning: str
    own: bool = False

    @property
    def environment(self) -> str:
        """Name of the environment variable."""
        return "METASTORE_" + self.field.upper()


@dataclass(frozen=True)
class ResolvedSetting:
    """A setting with its value and where that was found.

    `value` is typed (sizes in bytes, durations in milliseconds); `text` is what was written; `source` is `argument`,
    `spark`, `environment`, `file` or `default`; `file` is the path where that is the source. `left_out` says which file
    has the setting and why it is not taken from there.
    """

    setting: Setting
    value: Any
    text: str
    source: str
    file: str | None = None
    left_out: str | None = None


@dataclass(frozen=True)
class SettingsFile:
    """The nearest file with settings: its path, its values by field, and why some fields are not taken from it."""

    path: Path
    values: Mapping[str, object]
    left_out: Mapping[str, str]


def _field_of(key: str) -> str:
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", key.removeprefix(PREFIX)).replace(".", "_").lower()


def _declared() -> dict[str, Setting]:
    found = {}
    for field, info in Settings.model_fields.items():
        extra = info.json_schema_extra
        facts = extra if isinstance(extra, dict) else {}
        key = str(facts["key"])
        found[key] = Setting(key, field, str(info.default), info.description or "", bool(facts["own"]))
    return found


REGISTRY: Mapping[str, Setting] = _declared()


def resolve(
    spark: SparkSession | None = None, arguments: Mapping[str, object] | None = None
) -> tuple[ResolvedSetting, ...]:
    """Returns every setting with value and source.

    Args:
        spark: the session whose conf is asked, classic or Connect.
        arguments: values given by a caller, by key; they win.

    Raises:
        InvalidSetting: a value fails its check.
        InvalidArgument: a name is no setting.

    Example:
        >>> from metastore import settings
        >>> bins = {found.setting.key: found for found in settings.resolve()}["spark.metastore.histogram.bins"]
        >>> bins.value, bins.source
        (1000, 'default')
    """
    asked = {_known(key, "asked for").field: value for key, value in (arguments or {}).items()}
    given, file = _given(asked, spark, REGISTRY.values())
    return tuple(_resolved(setting, given, file) for setting in REGISTRY.values())


def get(key: str, spark: SparkSession | None = None, argument: object = None) -> Any:
    """Returns the typed value of one setting.

    Args:
        key: as a Spark conf, such as `spark.metastore.store`.
        spark: the session whose conf is asked.
        argument: a caller's own value, which wins unless it is None.

    Raises:
        InvalidSetting: its value fails its check.
        InvalidArgument: no such setting.

    Example:
        >>> from metastore import settings
        >>> settings.get("spark.metastore.snapshots.keep", argument=3)
        3
    """
    wanted = _known(key, "asked for")
    given, file = _given({} if argument is None else {wanted.field: argument}, spark, [wanted])
    return _resolved(wanted, given, file).value


def render_settings_page() -> str:
    """Returns the registry as the page `docs/settings.md`."""
    rows = [
        f"| `{one.key}` | `{one.environment}` | {f'`{one.default}`' if one.default else '(none)'} | {one.meaning} |"
        for one in REGISTRY.values()
    ]
    return "\n".join([_PAGE, *rows]) + "\n"


_PAGE = """# Settings

Made from the registry in `python/metastore/settings.py` by `python -m metastore.settings docs/settings.md`.

The first place that has a setting wins: an argument, the Spark conf, the environment, the nearest `metastore.toml` (or
`[tool.metastore]` of a `pyproject.toml`) at or above the working folder, the default. In TOML a setting is called what
follows `spark.metastore.`: `pruning.enabled = false`. `metastore config` shows every value and where it comes from.
`spark.metastore.python` and `spark.metastore.store` are taken only from a file that you or root own and nobody else can
write, in folders of which the same holds; from any other file they are left out, with one line that says so
([security.md](security.md)).
The planner inside a running Spark reads the Spark conf and the environment of the driver;
`metastore.configure(builder)` hands it the settings of a file. `spark.metastore.python` is read from the conf that
Spark was started with, never from a session's: it names a program that runs as the driver's user.

A setting that there is not is refused in a file and as an argument; in the conf, `metastore.settings()` names it. A
variable that is near to one of these and none of them is named there, by `metastore config`, `metastore doctor` and in
the log.

Where Spark is started with neither `spark.sql.cbo.enabled` nor `spark.sql.cbo.joinReorder.enabled` set, both are
switched on in the conf of the SparkContext, and with them `spark.sql.iceberg.report-column-stats` is set to false
unless it is set: from Iceberg's own distinct counts, which come without bounds, Spark estimates zero rows. These are
defaults that any session may change. They stay when a session sets `spark.metastore.enabled` or
`spark.metastore.cbo.enabled` to false: its plans are then those of a Spark without the Metastore and with the same
three settings. Where one of the two is false from the start, none of the three is touched. Where the user has
switched cost-based optimization on, Iceberg's setting is left alone, and the Metastore itself keeps Iceberg's counts
from the optimizer, in every batch read and in the targets of UPDATE, DELETE and MERGE, as long as both of its
settings are true.

| Spark conf | environment | default | meaning |
|---|---|---|---|"""


def _given(
    asked: Mapping[str, object], spark: SparkSession | None, wanted: Iterable[Setting]
) -> tuple[Mapping[str, Mapping[str, object]], SettingsFile | None]:
    """The values of each source, by field, and the file that they come from."""
    file = _from_file(Path.cwd())
    outside = {"environment": _from_environment(), "file": file.values if file else {}}
    return {"argument": asked, "spark": _from_spark(spark, wanted), **outside}, file


def _resolved(
    setting: Setting, given: Mapping[str, Mapping[str, object]], file: SettingsFile | None
) -> ResolvedSetting:
    source = next((name for name in SOURCES if setting.field in given[name]), "default")
    value = given[source][setting.field] if source in given else setting.default
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    try:
        checked = Settings.model_validate({setting.field: value})
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise InvalidSetting(setting.key, text, f"{reason} (it comes from: {source})") from error
    written = text.lower() if isinstance(value, bool) else text
    path = str(file.path) if file and source == "file" else None
    left_out = file.left_out.get(setting.field) if file else None
    return ResolvedSetting(setting, getattr(checked, setting.field), written, source, path, left_out)


def _from_environment() -> Mapping[str, object]:
    warn_of_misspelt_variables(os.environ)
    return EnvSettingsSource(_Outside)()


def _known(key: str, source: str) -> Setting:
    found = REGISTRY.get(key) or REGISTRY.get(PREFIX + key)
    if found is None:
        alike = find_similar_names(key.removeprefix(PREFIX), (one.removeprefix(PREFIX) for one in REGISTRY))
        hint = phrase_suggestion([PREFIX + name for name in alike])
        raise InvalidArgument(key, f"no such setting ({source})", hint or "`metastore config` lists every setting.")
    return found


def _from_spark(spark: SparkSession | None, wanted: Iterable[Setting]) -> dict[str, object]:
    if spark is None:
        return {}
    found = {one.field: spark.conf.get(one.key, None) for one in wanted}
    return {field: value for field, value in found.items() if value is not None}


def _from_file(folder: Path) -> SettingsFile | None:
    readers: dict[str, type[TomlConfigSettingsSource]] = {
        "metastore.toml": TomlConfigSettingsSource,
        "pyproject.toml": PyprojectTomlConfigSettingsSource,
    }
    for place in (folder, *folder.parents):
        for name, reader in readers.items():
            file = place / name
            values = _toml(reader, file) if file.is_file() else {}
            if values:
                return _vetted(file, {_known(key, f"in {file}"): value for key, value in _flat(values)})
    return None


def _vetted(file: Path, values: Mapping[Setting, object]) -> SettingsFile:
    """Leaves out what names programs or places where others may have written it."""
    reason = describe_foreign_access(file) if any(one.own for one in values) else ""
    left_out = {one: f"{file} has it, but {reason}" for one in values if one.own and reason}
    for one, why in left_out.items():
        _warn_once(f"{one.key} is left out: {why}.")
    taken = {one.field: value for one, value in values.items() if one not in left_out}
    return SettingsFile(file, taken, {one.field: why for one, why in left_out.items()})


@lru_cache(maxsize=64)
def _warn_once(line: str) -> None:
    _LOG.warning("%s", line)


def _toml(reader: type[TomlConfigSettingsSource], file: Path) -> Mapping[str, Any]:
    try:
        return reader(_Outside, file).toml_data
    except ValueError as error:  # that of the TOML library, or of text that is no UTF-8
        raise InvalidArgument(str(file), f"it is no TOML: {error}".rstrip(".")) from None


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for key, value in values.items():
        pairs += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, value)]
    return pairs


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render_settings_page(), "utf-8")
