"""The registry of settings, and the sources of their values.

A setting has one name in four places: `spark.metastore.pruning.enabled` as a Spark conf, `METASTORE_PRUNING_ENABLED`
in the environment, `pruning.enabled` in `metastore.toml` or in `[tool.metastore]` of a pyproject. The first of
argument, Spark conf, environment, file and default that has it wins; an empty or false value is a value. A setting
that names a program or a store is taken from a file only if nobody but the user and root can have written the file.
The settings are declared in `metastore/contract/settings.json`, which the shim's are compared with.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
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
    """List variables whose names are near to a setting's, each with the hint that names the setting."""
    settings = {setting.environment for setting in REGISTRY.values()}
    hints = {}
    for variable in variables:
        name = variable.upper()
        if name.startswith(_PREFIX) and name not in settings:
            similar = _find_similar_variables(name, settings)
            if similar:
                hints[variable] = phrase_suggestion(similar)
    return hints


def _find_similar_variables(variable: str, settings: Iterable[str]) -> list[str]:
    """Return the settings' variables whose names are near; other software has variables that begin so."""
    names = [name.removeprefix(_PREFIX) for name in settings]
    similar = find_similar_names(variable.removeprefix(_PREFIX), names, cutoff=0.75)
    return [_PREFIX + name for name in similar]


def is_property_name(name: str) -> bool:
    """Return whether a table property begins as those of the Metastore do."""
    return name.casefold().startswith(_PROPERTY_PREFIX)


def find_wrong_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """List table properties that begin as ours do and have no effect, each with its problem."""
    problems = {name: _find_property_problem(name, properties[name]) for name in filter(is_property_name, properties)}
    return {name: problem for name, problem in problems.items() if problem}


def _find_property_problem(name: str, value: str) -> str:
    setting = _TABLE_PROPERTIES.get(name)
    if setting is None:
        similar = suggest_names(name, _TABLE_PROPERTIES)
        return f"there is no such table property. {similar or _list_properties()}"
    if setting.property_choices and value.strip().casefold() not in setting.property_choices:
        return f"{value!r} is none of {', '.join(setting.property_choices)}"
    return ""


def _list_properties() -> str:
    return f"Known: {', '.join(_TABLE_PROPERTIES)}."


def warn_of_misspelt_variables(variables: Iterable[str]) -> None:
    """Log misspelt variables, each once."""
    for name, hint in find_misspelt_variables(variables).items():
        _warn(name, hint)


@cache
def _warn(name: str, hint: str) -> None:
    _LOG.warning("the environment variable %s is no setting. %s", name, hint)


_LOG = get_logger(__name__)

PREFIX = "spark.metastore."
_SEPARATORS = {"expressions": "; "}
"""What stands between the items of a list, where it is no comma."""
SOURCES = ("argument", "spark", "environment", "file")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting: its names, meaning and default.

    Attributes:
        key: Its name as a Spark conf.
        field: Its name in the environment, in lower case and without the prefix.
        default: Its default, as text.
        meaning: A sentence for people.
        needs_own_file: Whether it is taken only from files that nobody but the user and root can have written.
        users: The parts that use it: `analyze`, `read` (table functions, the data source) and `plan`.
        is_table_property: Whether a table property has its name, without `spark.`.
        property_choices: The values of that property, if it has others than the setting.
    """

    key: str
    field: str
    default: str
    meaning: str
    needs_own_file: bool = False
    users: tuple[str, ...] = ()
    is_table_property: bool = False
    property_choices: tuple[str, ...] = ()

    @property
    def environment(self) -> str:
        """Name of the environment variable."""
        return "METASTORE_" + self.field.upper()


@dataclass(frozen=True, kw_only=True)
class ResolvedSetting:
    """A setting with its value and the source of the value.

    `value` is typed (sizes in bytes, durations in milliseconds); `text` is the value as written; `source` is
    `argument`, `spark`, `environment`, `file` or `default`; `file` is the path of a file that is the source. `left_out`
    names a file whose value is not taken, with the reason.
    """

    setting: Setting
    value: Any
    text: str
    source: str
    file: str | None = None
    left_out: str | None = None


@dataclass(frozen=True)
class SettingsFile:
    """The nearest file with settings; an empty one if there is none.

    `values` are the values of settings, by field; `left_out` are the reasons why some fields are not taken from it;
    `unknown` are the values of names that are no settings.
    """

    path: Path
    values: Mapping[str, object] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, object] = field(default_factory=dict)


def _field_of(key: str) -> str:
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", key.removeprefix(PREFIX)).replace(".", "_").lower()


_DECLARATIONS: Mapping[str, Mapping[str, Any]] = {entry["key"]: entry for entry in read_contract("settings")}
_TYPES = {key: annotate_setting(declaration) for key, declaration in _DECLARATIONS.items()}


def _make_setting(key: str) -> Setting:
    declaration = _DECLARATIONS[key]
    return Setting(
        key=key,
        field=_field_of(key),
        default=declaration["default"],
        meaning=declaration["meaning"],
        needs_own_file=declaration.get("own_file", False),
        users=tuple(declaration["used_by"]),
        is_table_property=declaration.get("table_property", False),
        property_choices=tuple(declaration.get("property_choices", ())),
    )


REGISTRY: Mapping[str, Setting] = {key: _make_setting(key) for key in _DECLARATIONS}
_TABLE_PROPERTIES = {
    key.removeprefix("spark."): setting for key, setting in REGISTRY.items() if setting.is_table_property
}


class _Outside(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, extra="ignore", pyproject_toml_table_header=("tool", "metastore")
    )


_FIELDS: dict[str, Any] = {setting.field: (_TYPES[setting.key], setting.default) for setting in REGISTRY.values()}
_OUTSIDE = create_model("_Settings", __base__=_Outside, **_FIELDS)
"""The settings as pydantic looks for them outside of Python."""


def resolve(
    spark: SparkSession | None = None, arguments: Mapping[str, object] | None = None, user: str | None = None
) -> tuple[ResolvedSetting, ...]:
    """Return settings with value and source.

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
    argument_fields = {_find_setting(key, "asked for").field: value for key, value in (arguments or {}).items()}
    settings = [setting for setting in REGISTRY.values() if user is None or user in setting.users]
    sources = _read_sources(argument_fields, spark, settings)
    return tuple(_resolve_one(setting, sources) for setting in settings)


def get(key: str, spark: SparkSession | None = None, argument: object = None) -> Any:
    """Return the typed value of one setting.

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
    """Return a row for each setting, and one for each name that is near to a setting and is none.

    `problem` describes a wrong value or name: nothing is raised for it. The value is the one in force.

    Args:
        spark: the session whose conf is asked.

    Raises:
        InvalidArgument: a file of settings is no TOML.
    """
    sources = _read_sources({}, spark, REGISTRY.values(), strict=False)
    rows = [_describe(setting, sources) for setting in REGISTRY.values()]
    for name, value in sources.file.unknown.items():
        row = _describe_unknown(name, value, "file", _phrase_unknown(_hint(name)))
        rows.append({**row, "file": str(sources.file.path)})
    session = _read_unknown_keys(spark)
    for key, problem in find_unknown_settings(spark).items():
        rows.append(_describe_unknown(key, session[key], "spark", problem))
    for name, hint in find_misspelt_variables(os.environ).items():
        rows.append(_describe_unknown(name, os.environ[name], "environment", _phrase_unknown(hint)))
    return tuple(rows)


def find_unknown_settings(spark: SparkSession | None) -> dict[str, str]:
    """List keys of a session's conf that begin as our settings do and are none, each with its problem."""
    return {key: _phrase_unknown(_hint(key)) for key in sorted(_read_unknown_keys(spark))}


@dataclass(frozen=True)
class _Sources:
    """The values of each source, by field, and the file that some of them come from."""

    values: Mapping[str, Mapping[str, object]]
    file: SettingsFile


def _read_sources(
    arguments: Mapping[str, object],
    spark: SparkSession | None,
    settings: Iterable[Setting],
    *,
    strict: bool = True,
) -> _Sources:
    """Read all sources of settings; if strict, an unknown name in a file is an error."""
    file = _read_file(Path.cwd())
    if strict:
        for name in file.unknown:
            _find_setting(name, f"in {file.path}")
    values = {
        "argument": arguments,
        "spark": _read_conf(spark, settings),
        "environment": _read_environment(),
        "file": file.values,
    }
    return _Sources(values, file)


def _resolve_one(setting: Setting, sources: _Sources) -> ResolvedSetting:
    source = _find_source(setting, sources)
    value: object = setting.default
    if source != "default":
        value = sources.values[source][setting.field]
    text = _write(setting, value)
    try:
        checked = TypeAdapter(_TYPES[setting.key]).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise InvalidSetting(setting.key, text, f"{reason} (it comes from: {source})") from error
    return ResolvedSetting(
        setting=setting,
        value=checked,
        text=text.lower() if isinstance(value, bool) else text,
        source=source,
        file=str(sources.file.path) if source == "file" else None,
        left_out=sources.file.left_out.get(setting.field),
    )


def _find_source(setting: Setting, sources: _Sources) -> str:
    """Return the first source that has the setting."""
    for source in SOURCES:
        if setting.field in sources.values[source]:
            return source
    return "default"


def _write(setting: Setting, value: object) -> str:
    """Return the value as the text that a Spark conf would have."""
    if not isinstance(value, list | tuple):
        return str(value)
    separator = _SEPARATORS.get(_DECLARATIONS[setting.key]["type"], ",")
    return separator.join(map(str, value))


def _describe(setting: Setting, sources: _Sources) -> dict[str, Any]:
    row = _make_row(
        name=setting.key,
        value=setting.default,
        source="default",
        default=setting.default,
        meaning=setting.meaning,
    )
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
    return _make_row(name=name, value=str(value), source=source, problem=problem)


def _make_row(**values: str | None) -> dict[str, Any]:
    """Return a row of the settings, in the order of its columns."""
    return {**dict.fromkeys(_COLUMNS), **values}


_COLUMNS = ("name", "value", "source", "default", "meaning", "problem", "file", "left_out")


def _read_environment() -> Mapping[str, object]:
    warn_of_misspelt_variables(os.environ)
    return EnvSettingsSource(_OUTSIDE)()


def _find_setting(key: str, source: str) -> Setting:
    setting = _get_setting(key)
    if setting is None:
        hint = _hint(key) or "`metastore config` lists every setting."
        raise InvalidArgument(key, f"no such setting ({source})", hint)
    return setting


def _get_setting(name: str) -> Setting | None:
    return REGISTRY.get(name) or REGISTRY.get(PREFIX + name)


def _hint(key: str) -> str:
    """Return the hint that names the settings near to an unknown name."""
    short_names = [name.removeprefix(PREFIX) for name in REGISTRY]
    similar = find_similar_names(key.removeprefix(PREFIX), short_names)
    return phrase_suggestion([PREFIX + name for name in similar])


def _read_conf(spark: SparkSession | None, settings: Iterable[Setting]) -> dict[str, object]:
    if spark is None:
        return {}
    values: dict[str, object] = {}
    for setting in settings:
        value = spark.conf.get(setting.key, None)
        if value is not None:
            values[setting.field] = value
    return values


def _read_unknown_keys(spark: SparkSession | None) -> dict[str, str]:
    """Return keys and values of a session's conf that begin as our settings do and are none of them."""
    if spark is None:
        return {}
    rows = spark.sql("SET").collect()
    return {row.key: row.value for row in rows if row.key.startswith(PREFIX) and row.key not in REGISTRY}


def _read_file(folder: Path) -> SettingsFile:
    readers: dict[str, type[TomlConfigSettingsSource]] = {
        "metastore.toml": TomlConfigSettingsSource,
        "pyproject.toml": PyprojectTomlConfigSettingsSource,
    }
    for directory in (folder, *folder.parents):
        for name, reader in readers.items():
            file = directory / name
            values = _read_toml(reader, file)
            if values:
                return _vet(file, _flatten(values))
    return SettingsFile(folder)


def _vet(file: Path, values: Mapping[str, object]) -> SettingsFile:
    """Divide the values of a file; settings of programs and stores are left out if others may have written it."""
    settings: dict[Setting, object] = {}
    unknown: dict[str, object] = {}
    for name, value in values.items():
        setting = _get_setting(name)
        if setting is None:
            unknown[name] = value
        else:
            settings[setting] = value
    left_out = _find_left_out(file, settings)
    return SettingsFile(
        path=file,
        values={setting.field: value for setting, value in settings.items() if setting.field not in left_out},
        left_out=left_out,
        unknown=unknown,
    )


def _find_left_out(file: Path, settings: Iterable[Setting]) -> dict[str, str]:
    """Return the settings that are not taken from a file, by field, each with the reason."""
    own_settings = [setting for setting in settings if setting.needs_own_file]
    if not own_settings:
        return {}
    access = describe_foreign_access(file)
    if not access:
        return {}
    reason = f"{file} has it, but {access}"
    left_out = {}
    for setting in own_settings:
        left_out[setting.field] = reason
        _warn_once(f"{setting.key} is left out: {reason}.")
    return left_out


@lru_cache(maxsize=64)
def _warn_once(line: str) -> None:
    _LOG.warning("%s", line)


def _read_toml(reader: type[TomlConfigSettingsSource], file: Path) -> Mapping[str, Any]:
    if not file.is_file():
        return {}
    try:
        return reader(_OUTSIDE, file).toml_data
    except ValueError as error:  # of the TOML library, or of text that is no UTF-8
        raise InvalidArgument(str(file), f"it is not valid TOML: {error}".rstrip(".")) from None


def _flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Return the values by their names with dots."""
    flat: dict[str, object] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
