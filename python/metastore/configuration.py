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


_TYPES = {one["key"]: annotate_setting(one) for one in read_contract("settings")}

_SEPARATORS = {one["key"]: "; " for one in read_contract("settings") if one["type"] == "expressions"}

REGISTRY: Mapping[str, Setting] = {
    one["key"]: Setting(one["key"], _field_of(one["key"]), one["default"], one["meaning"], one.get("own_file", False))
    for one in read_contract("settings")
}


class _Outside(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, extra="ignore", pyproject_toml_table_header=("tool", "metastore")
    )


_FIELDS: dict[str, Any] = {one.field: (_TYPES[one.key], one.default) for one in REGISTRY.values()}
_OUTSIDE = create_model("_Settings", __base__=_Outside, **_FIELDS)
"""The settings as pydantic looks for them outside of Python."""


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
        >>> from metastore import configuration
        >>> bins = {found.setting.key: found for found in configuration.resolve()}["spark.metastore.histogram.bins"]
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
        >>> from metastore import configuration
        >>> configuration.get("spark.metastore.snapshots.keep", argument=3)
        3
    """
    wanted = _known(key, "asked for")
    given, file = _given({} if argument is None else {wanted.field: argument}, spark, [wanted])
    return _resolved(wanted, given, file).value


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
    text = _SEPARATORS.get(setting.key, ",").join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    try:
        checked = TypeAdapter(_TYPES[setting.key]).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise InvalidSetting(setting.key, text, f"{reason} (it comes from: {source})") from error
    written = text.lower() if isinstance(value, bool) else text
    path = str(file.path) if file and source == "file" else None
    left_out = file.left_out.get(setting.field) if file else None
    return ResolvedSetting(setting, checked, written, source, path, left_out)


def _from_environment() -> Mapping[str, object]:
    warn_of_misspelt_variables(os.environ)
    return EnvSettingsSource(_OUTSIDE)()


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
        return reader(_OUTSIDE, file).toml_data
    except ValueError as error:  # that of the TOML library, or of text that is no UTF-8
        raise InvalidArgument(str(file), f"it is not valid TOML: {error}".rstrip(".")) from None


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for key, value in values.items():
        pairs += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, value)]
    return pairs
