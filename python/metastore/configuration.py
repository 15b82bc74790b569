"""The one registry of settings, and where each value comes from.

A setting has one name in four places: `spark.metastore.pruning.enabled` as a Spark conf, `METASTORE_PRUNING_ENABLED`
in the environment, `pruning.enabled` in `metastore.toml` or in `[tool.metastore]` of a pyproject. The first of
argument, Spark conf, environment, file and default that has it wins; an empty or false value is a value. What names a
program or a place for statistics is taken from a file only where nobody but the user and root can have written it.
The settings are declared in `metastore/contract/settings.json`, which the shim's are compared with.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError, create_model
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PyprojectTomlConfigSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from metastore.contract import read_contract
from metastore.errors import InvalidArgument, InvalidSetting, phrase_suggestion
from metastore.file_ownership import describe_foreign_access
from metastore.setting_types import annotate_setting
from metastore.suggestions import find_similar_names, suggest_names
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession


_PREFIX = "METASTORE_"
_PROPERTY_PREFIX = "metastore."


def find_misspelt_variables(variables: Iterable[str]) -> dict[str, str]:
    """Variables that are near to a setting and are none, each with the hint that names the setting."""
    names = {setting.environment.removeprefix(_PREFIX) for setting in REGISTRY.values()}
    hints = {}
    for variable in variables:
        name = variable.upper().removeprefix(_PREFIX)
        if not variable.upper().startswith(_PREFIX) or name in names:
            continue
        similar = find_similar_names(name, names, cutoff=0.75)  # other software has variables that begin so
        if similar:
            hints[variable] = phrase_suggestion([_PREFIX + one for one in similar])
    return hints


def is_property_name(name: str) -> bool:
    """Return whether a table property begins as those of the Metastore do."""
    return name.casefold().startswith(_PROPERTY_PREFIX)


def find_wrong_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Table properties that begin as ours do and say nothing, each with what is wrong with it."""
    problems = {}
    for name, value in properties.items():
        if not is_property_name(name):
            continue
        setting = _TABLE_PROPERTIES.get(name)
        if setting is None:
            similar = suggest_names(name, _TABLE_PROPERTIES)
            problems[name] = f"there is no such table property. {similar or _list_properties()}"
        elif setting.property_choices and value.strip().casefold() not in setting.property_choices:
            problems[name] = f"{value!r} is none of {', '.join(setting.property_choices)}"
    return problems


def _list_properties() -> str:
    return f"Known: {', '.join(_TABLE_PROPERTIES)}."


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


@dataclass(frozen=True)
class Setting:
    """One setting: what it is called, what it means, what it is when nobody sets it.

    `own` is true where it is taken only from files that nobody but the user and root can have written. `users` are the
    parts that use it: `analyze`, `read` (table functions, the data source) and `plan`. A table property is called as
    the setting, without `spark.`, and may have other values.
    """

    key: str
    field: str
    default: str
    meaning: str
    own: bool = False
    users: tuple[str, ...] = ()
    is_table_property: bool = False
    property_choices: tuple[str, ...] = ()

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
    """The nearest file with settings.

    `values` are those of settings, by field; `left_out` says why some fields are not taken from it; `unknown` are the
    values of names that are no settings.
    """

    path: Path
    values: Mapping[str, object]
    left_out: Mapping[str, str]
    unknown: Mapping[str, object]


def _field_of(key: str) -> str:
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", key.removeprefix(PREFIX)).replace(".", "_").lower()


_TYPES = {one["key"]: annotate_setting(one) for one in read_contract("settings")}

_SEPARATORS = {one["key"]: "; " for one in read_contract("settings") if one["type"] == "expressions"}


def _read_registry() -> dict[str, Setting]:
    settings = {}
    for declared in read_contract("settings"):
        key = declared["key"]
        settings[key] = Setting(
            key=key,
            field=_field_of(key),
            default=declared["default"],
            meaning=declared["meaning"],
            own=declared.get("own_file", False),
            users=tuple(declared["used_by"]),
            is_table_property=declared.get("table_property", False),
            property_choices=tuple(declared.get("property_choices", ())),
        )
    return settings


REGISTRY: Mapping[str, Setting] = _read_registry()
_TABLE_PROPERTIES = {
    key.removeprefix("spark."): setting for key, setting in REGISTRY.items() if setting.is_table_property
}


class _Outside(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, extra="ignore", pyproject_toml_table_header=("tool", "metastore")
    )


_FIELDS: dict[str, Any] = {one.field: (_TYPES[one.key], one.default) for one in REGISTRY.values()}
_OUTSIDE = create_model("_Settings", __base__=_Outside, **_FIELDS)
"""The settings as pydantic looks for them outside of Python."""


def resolve(
    spark: SparkSession | None = None, arguments: Mapping[str, object] | None = None, user: str | None = None
) -> tuple[ResolvedSetting, ...]:
    """Returns settings with value and source.

    Args:
        spark: the session whose conf is asked, classic or Connect.
        arguments: values given by a caller, by key; they win.
        user: `analyze`, `read` or `plan` for the settings that this part uses; all if None.

    Raises:
        InvalidSetting: a value fails its check.
        InvalidArgument: a name is no setting.

    Example:
        >>> from metastore import configuration
        >>> bins = {found.setting.key: found for found in configuration.resolve()}["spark.metastore.histogram.bins"]
        >>> bins.value, bins.source
        (1000, 'default')
    """
    by_field = {_find_setting(key, "asked for").field: value for key, value in (arguments or {}).items()}
    wanted = [setting for setting in REGISTRY.values() if user is None or user in setting.users]
    sources = _read_sources(by_field, spark, wanted)
    return tuple(_resolve_one(setting, sources) for setting in wanted)


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
        >>> from metastore import configuration
        >>> configuration.get("spark.metastore.snapshots.keep", argument=3)
        3
    """
    setting = _find_setting(key, "asked for")
    arguments = {} if argument is None else {setting.field: argument}
    return _resolve_one(setting, _read_sources(arguments, spark, [setting])).value


def list_settings(spark: SparkSession | None = None) -> tuple[dict[str, Any], ...]:
    """Returns a row for each setting, and one for each name that is near to a setting and is none.

    `problem` says what is wrong with what is set: nothing is raised for that. The value is the one in force.

    Args:
        spark: the session whose conf is asked.

    Raises:
        InvalidArgument: a file of settings is no TOML.
    """
    sources = _read_sources({}, spark, REGISTRY.values(), strict=False)
    rows = [_describe(setting, sources) for setting in REGISTRY.values()]
    if sources.file is not None:
        for name, value in sources.file.unknown.items():
            key = name if name.startswith(PREFIX) else PREFIX + name
            row = _describe_unknown(name, value, "file", _phrase_unknown(_hint(key)))
            rows.append({**row, "file": str(sources.file.path)})
    session = _read_unknown_keys(spark)
    for key, problem in find_unknown_settings(spark).items():
        rows.append(_describe_unknown(key, session[key], "spark", problem))
    for name, hint in find_misspelt_variables(os.environ).items():
        rows.append(_describe_unknown(name, os.environ[name], "environment", _phrase_unknown(hint)))
    return tuple(rows)


def find_unknown_settings(spark: SparkSession | None) -> dict[str, str]:
    """Keys of a session's conf that begin as our settings do and are none, each with what is wrong with it."""
    return {key: _phrase_unknown(_hint(key)) for key in sorted(_read_unknown_keys(spark))}


@dataclass(frozen=True)
class _Sources:
    """The values of each source, by field, and the file that some of them come from."""

    values: Mapping[str, Mapping[str, object]]
    file: SettingsFile | None


def _read_sources(
    arguments: Mapping[str, object],
    spark: SparkSession | None,
    wanted: Iterable[Setting],
    *,
    strict: bool = True,
) -> _Sources:
    """Reads all places that may have settings; where strict, a file may not have other names."""
    file = _from_file(Path.cwd())
    if strict and file is not None:
        for name in file.unknown:
            _find_setting(name, f"in {file.path}")
    values = {
        "argument": arguments,
        "spark": _from_spark(spark, wanted),
        "environment": _from_environment(),
        "file": file.values if file else {},
    }
    return _Sources(values, file)


def _resolve_one(setting: Setting, sources: _Sources) -> ResolvedSetting:
    source = _find_source(setting, sources)
    value = setting.default if source == "default" else sources.values[source][setting.field]
    text = _write(setting, value)
    try:
        checked = TypeAdapter(_TYPES[setting.key]).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise InvalidSetting(setting.key, text, f"{reason} (it comes from: {source})") from error
    file = sources.file
    return ResolvedSetting(
        setting=setting,
        value=checked,
        text=text.lower() if isinstance(value, bool) else text,
        source=source,
        file=str(file.path) if file and source == "file" else None,
        left_out=file.left_out.get(setting.field) if file else None,
    )


def _find_source(setting: Setting, sources: _Sources) -> str:
    """The first source that has the setting."""
    for source in SOURCES:
        if setting.field in sources.values[source]:
            return source
    return "default"


def _write(setting: Setting, value: object) -> str:
    """The value as the text that a Spark conf would have."""
    if isinstance(value, list | tuple):
        return _SEPARATORS.get(setting.key, ",").join(map(str, value))
    return str(value)


def _describe(setting: Setting, sources: _Sources) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": setting.key,
        "value": setting.default,
        "source": "default",
        "default": setting.default,
        "meaning": setting.meaning,
        "problem": None,
        "file": None,
        "left_out": None,
    }
    try:
        resolved = _resolve_one(setting, sources)
    except InvalidSetting as error:
        row["problem"] = f"{error.value!r}: {error.reason}; the default is in force"
        return row
    row.update(value=resolved.text, source=resolved.source, file=resolved.file, left_out=resolved.left_out)
    return row


def _phrase_unknown(hint: str) -> str:
    return f"there is no such setting. {hint}".rstrip()


def _describe_unknown(name: str, value: object, source: str, problem: str) -> dict[str, Any]:
    return {
        "name": name,
        "value": str(value),
        "source": source,
        "default": None,
        "meaning": None,
        "problem": problem,
        "file": None,
        "left_out": None,
    }


def _from_environment() -> Mapping[str, object]:
    warn_of_misspelt_variables(os.environ)
    return EnvSettingsSource(_OUTSIDE)()


def _find_setting(key: str, source: str) -> Setting:
    found = REGISTRY.get(key) or REGISTRY.get(PREFIX + key)
    if found is None:
        raise InvalidArgument(
            key, f"no such setting ({source})", _hint(key) or "`metastore config` lists every setting."
        )
    return found


def _hint(key: str) -> str:
    """Names the settings that are near to a name that is none."""
    similar = find_similar_names(key.removeprefix(PREFIX), [name.removeprefix(PREFIX) for name in REGISTRY])
    return phrase_suggestion([PREFIX + name for name in similar])


def _from_spark(spark: SparkSession | None, wanted: Iterable[Setting]) -> dict[str, object]:
    if spark is None:
        return {}
    values = {setting.field: spark.conf.get(setting.key, None) for setting in wanted}
    return {field: value for field, value in values.items() if value is not None}


def _read_unknown_keys(spark: SparkSession | None) -> dict[str, str]:
    """What a session has set that begins as our settings do and is none of them."""
    if spark is None:
        return {}
    rows = spark.sql("SET").collect()
    return {row.key: row.value for row in rows if row.key.startswith(PREFIX) and row.key not in REGISTRY}


def _from_file(folder: Path) -> SettingsFile | None:
    readers: dict[str, type[TomlConfigSettingsSource]] = {
        "metastore.toml": TomlConfigSettingsSource,
        "pyproject.toml": PyprojectTomlConfigSettingsSource,
    }
    for directory in (folder, *folder.parents):
        for name, reader in readers.items():
            file = directory / name
            values = _toml(reader, file) if file.is_file() else {}
            if values:
                return _vetted(file, dict(_flat(values)))
    return None


def _vetted(file: Path, values: Mapping[str, object]) -> SettingsFile:
    """Leaves out what names programs or places where others may have written it."""
    settings: dict[Setting, object] = {}
    unknown: dict[str, object] = {}
    for name, value in values.items():
        setting = REGISTRY.get(name) or REGISTRY.get(PREFIX + name)
        if setting is None:
            unknown[name] = value
        else:
            settings[setting] = value
    reason = describe_foreign_access(file) if any(setting.own for setting in settings) else ""
    left_out = {setting: f"{file} has it, but {reason}" for setting in settings if setting.own and reason}
    for setting, sentence in left_out.items():
        _warn_once(f"{setting.key} is left out: {sentence}.")
    return SettingsFile(
        path=file,
        values={setting.field: value for setting, value in settings.items() if setting not in left_out},
        left_out={setting.field: sentence for setting, sentence in left_out.items()},
        unknown=unknown,
    )


@lru_cache(maxsize=64)
def _warn_once(line: str) -> None:
    _LOG.warning("%s", line)


def _toml(reader: type[TomlConfigSettingsSource], file: Path) -> Mapping[str, Any]:
    try:
        return reader(_OUTSIDE, file).toml_data
    except ValueError as error:  # that of the TOML library, or of text that is no UTF-8
        raise InvalidArgument(str(file), f"it is not valid TOML: {error}".rstrip(".")) from None


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for key, value in values.items():
        pairs += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, value)]
    return pairs
