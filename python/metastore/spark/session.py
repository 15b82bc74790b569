"""SQL functions of the shim, and sessions that are prepared for it."""

from __future__ import annotations

import os
import re
from datetime import datetime, timezone
from functools import wraps
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from metastore import jars, jvm_session
from metastore.adapters.shim_calls import translate_errors
from metastore.adapters.spark_versions import read_time_zone
from metastore.answers import Answer, Summary
from metastore.errors import InvalidArgument, NoSpark
from metastore.path_names import is_location
from metastore.reading import extra_columns
from metastore.reading.views import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Row, SparkSession


A = TypeVar("A", bound=Answer)
B = TypeVar("B")
P = ParamSpec("P")
R = TypeVar("R")

EXTENSION = "org.metastore.spark.MetastoreExtensions"
_SPACE = r"[^\S\n]"
_ENTRY = re.compile(
    rf"^{_SPACE}*([^\s=:#!][^\s=:]*)(?:{_SPACE}*[=:]{_SPACE}*|{_SPACE}+(?=\S))(.*?){_SPACE}*$", re.MULTILINE
)
"""As in Java's properties: the first white space, `=` or `:` ends the key; the value may contain more of them."""
_SUBJECT = {**dict.fromkeys(("explain", "filtered_summary", "estimates", "whatif"), "query"), "tables": "database"}


def call_function(
    spark: SparkSession, function: str, subject: str | None, arguments: Mapping[str, object], kind: type[A]
) -> A:
    """Call a SQL function of the shim and wrap its rows."""
    check_session(spark)
    texts = _to_texts({_SUBJECT.get(function, "table"): subject, **arguments})
    parameters = ", ".join(f"{name} => :{name}" for name in texts)
    with translate_errors(subject or function, spark):
        frame = spark.sql(f"SELECT * FROM metastore_{function}({parameters})", args=texts)
        names = frame.columns
        spark_rows = frame.collect()
    rows = list(map(_to_answer_row, spark_rows))
    schema = FUNCTIONS[function]
    if function == "summary":
        names, rows, schema = _spread_user_defined(names, rows)
    first = next(iter(rows), {}) if issubclass(kind, Summary) else {}
    return kind(
        kind=function,
        subject=subject or "",
        columns=tuple(names),
        rows=tuple(rows),
        schema=schema,
        snapshot=first.get("snapshot"),
        current=first.get("current"),
        analyzed_at=first.get("analyzed_at"),
        zone=read_time_zone(spark),
        column_name=None if "column_name" in names else texts.get("column"),
    )


def _to_texts(arguments: Mapping[str, object]) -> dict[str, str | None]:
    """Return the arguments of a function as texts, without those that are left out; of a value, None means NULL."""
    texts: dict[str, str | None] = {}
    for name, value in arguments.items():
        if value is not None:
            texts[name] = str(value)
        elif name == "value":
            texts[name] = None
    return texts


def require_session(verb: Callable[P, R]) -> Callable[P, R]:
    """Make a verb refuse a table as its first argument in place of a session, with a hint what to type."""

    @wraps(verb)
    def checking(*args: P.args, **kwargs: P.kwargs) -> R:
        first = (*args, kwargs.get("table"))[0]
        if isinstance(first, str | PathLike) and "spark" not in kwargs:
            _refuse_table(verb.__name__, str(first), args[1:], kwargs)
        return verb(*args, **kwargs)

    return checking


def _refuse_table(verb: str, subject: str, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    from metastore.reading.table_answers import Statistics  # noqa: PLC0415 - slow to import

    named = dict(kwargs)
    named.pop("table", None)
    arguments = [*map(repr, args), *(f"{name}={value!r}" for name, value in named.items())]
    if is_location(subject) and hasattr(Statistics, verb):
        call = f"metastore.open({subject!r}).{verb}({', '.join(arguments)}), without Spark"
    else:
        call = f"metastore.{verb}({', '.join(['spark', repr(subject), *arguments])})"
    raise InvalidArgument("spark", f"a Spark session is expected, not {subject!r}", f"Say {call}.")


def check_session(spark: SparkSession) -> None:
    """Refuse anything but a session that is running."""
    if not hasattr(spark, "sql"):
        raise InvalidArgument("spark", f"a Spark session is expected, not {type(spark).__name__}")
    if jvm_session.is_stopped(spark):
        raise NoSpark("This Spark session has been stopped", "Get a new one: SparkSession.builder.getOrCreate().")


def list_settings(spark: SparkSession | None) -> Answer:
    """Return every setting as the session and this process see it."""
    from metastore import configuration  # noqa: PLC0415 - slow to import

    if spark is not None:
        check_session(spark)
    rows = configuration.list_settings(spark)
    return Answer(kind="settings", subject="", columns=tuple(rows[0]), rows=rows)


def configure(builder: B) -> B:
    """Prepare a `SparkSession.builder` for the Metastore: appends, never overwrites.

    With Spark 4 from `pip` there is nothing to prepare but the settings of `metastore.toml`: the wheel put the jar
    beside Spark's own and it registers itself. With a Spark elsewhere (SPARK_HOME) the jar is added to `spark.jars`, on
    Spark 3.5 the extension to `spark.sql.extensions`. A Connect builder is returned as it is: its server has jar and
    settings.
    """
    options = {**read_spark_defaults(), **getattr(builder, "_options", {})}
    if "spark.remote" in options or "SPARK_REMOTE" in os.environ:
        return builder
    additions = {**_list_file_settings(options), **_list_registrations(options)}
    for key, text in additions.items():
        builder.config(key, text)  # type: ignore[attr-defined]
    return builder


def _list_file_settings(options: Mapping[str, object]) -> dict[str, str]:
    """List the settings of `metastore.toml` that the options of a session do not have."""
    from metastore import configuration  # noqa: PLC0415 - slow to import

    settings = {}
    for resolved in configuration.resolve():
        key = resolved.setting.key
        if resolved.source == "file" and key not in options:
            settings[key] = resolved.text
    return settings


def _list_registrations(options: Mapping[str, object]) -> dict[str, str]:
    """List the settings by which a Spark finds the jar and the extension, where it does not find them by itself."""
    registrations = {}
    jar = jars.shim()
    if not (_find_spark_home() / "jars" / jar.name).exists():
        registrations["spark.jars"] = append_entry(options.get("spark.jars"), str(jar))
    if metadata.version("pyspark").startswith("3."):  # its sessions do not register extensions by themselves
        registrations["spark.sql.extensions"] = append_entry(options.get("spark.sql.extensions"), EXTENSION)
    return registrations


def _find_spark_home() -> Path:
    return Path(os.environ.get("SPARK_HOME") or jars.pyspark_jars().parent)


def read_spark_defaults() -> dict[str, str]:
    """Read the settings of `spark-defaults.conf`, in the folder where Spark looks for it."""
    folder = os.environ.get("SPARK_CONF_DIR") or _find_spark_home() / "conf"
    file = Path(folder) / "spark-defaults.conf"
    return dict(_ENTRY.findall(file.read_text("utf-8"))) if file.is_file() else {}


def append_entry(present: object, added: str) -> str:
    """Append an entry to a comma-separated list that does not have it yet."""
    entries = list(filter(None, str(present or "").split(",")))
    if added not in entries:
        entries.append(added)
    return ",".join(entries)


def _spread_user_defined(
    names: list[str], rows: list[dict[str, Any]]
) -> tuple[list[str], list[dict[str, Any]], pa.Schema]:
    """Names, rows and schema of `summary` with a column for each user-defined statistic in place of their map."""
    import pyarrow as pa  # noqa: PLC0415 - an answer that is only shown does without

    scalars_of_rows = list(map(_take_user_defined, rows))
    built_in_names = [name for name in names if name != extra_columns.COLUMN]
    fields = extra_columns.infer_fields(scalars_of_rows, built_in_names)
    for row, scalars in zip(rows, scalars_of_rows, strict=True):
        for field in fields:
            row[field.name] = extra_columns.cast_scalar(scalars.get(field.name), field)
    schema = FUNCTIONS["summary"]
    built_in_schema = schema.remove(schema.get_field_index(extra_columns.COLUMN))
    user_defined_names = [field.name for field in fields]
    return [*built_in_names, *user_defined_names], rows, pa.schema([*built_in_schema, *fields])


def _take_user_defined(row: dict[str, Any]) -> dict[str, pa.Scalar]:
    """Remove the map of user-defined statistics from a row, and return its values by name."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    values = extra_columns.from_json_texts(row.pop(extra_columns.COLUMN, None))
    return {name: pa.scalar(value) for name, value in values.items()}


def _to_answer_row(row: Row) -> dict[str, Any]:
    return {name: _to_utc(value) for name, value in row.asDict().items()}


def _to_utc(value: Any) -> Any:
    # Spark returns naive datetimes in the local time of this process.
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc)
    return value
