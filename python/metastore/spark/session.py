"""Asking the shim through SQL, and preparing sessions for it."""

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
_KEY_END = re.compile(r"\s*[=:]\s*|\s+")
"""As in Java's properties: the first white space, `=` or `:`; what is behind it may hold more of them."""
_SUBJECT = {**dict.fromkeys(("explain", "filtered_summary", "estimates", "whatif"), "query"), "tables": "database"}


def call_function(
    spark: SparkSession, function: str, subject: str | None, arguments: Mapping[str, object], kind: type[A]
) -> A:
    """Calls a SQL function of the shim and wraps its rows."""
    check_session(spark)
    named = {_SUBJECT.get(function, "table"): subject, **arguments}
    asked = {name: value for name, value in named.items() if value is not None or name == "value"}  # NULL is one
    given = {name: value if value is None else str(value) for name, value in asked.items()}
    call = ", ".join(f"{name} => :{name}" for name in given)
    with translate_errors(subject or function, spark):
        frame = spark.sql(f"SELECT * FROM metastore_{function}({call})", args=given)
        names, collected = frame.columns, frame.collect()
    zone = read_time_zone(spark)
    found = [_row(row) for row in collected]
    first = found[0] if found and issubclass(kind, Summary) else {}
    schema = FUNCTIONS[function]
    if function == "summary":
        names, found, schema = _with_own_columns(names, found)
    return kind(
        *(function, subject or "", tuple(names), tuple(found), schema),
        snapshot=first.get("snapshot"),
        current=first.get("current"),
        analyzed_at=first.get("analyzed_at"),
        zone=zone,
        column_name=None if "column_name" in names else given.get("column"),
    )


def require_session(verb: Callable[P, R]) -> Callable[P, R]:
    """Makes a verb that takes a session first tell those who leave it out what to type."""

    @wraps(verb)
    def checking(*args: P.args, **kwargs: P.kwargs) -> R:
        first = args[0] if args else kwargs.get("table")
        if isinstance(first, str | PathLike) and "spark" not in kwargs:
            _refuse(verb.__name__, str(first), args[1:], kwargs)
        return verb(*args, **kwargs)

    return checking


def _refuse(verb: str, subject: str, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    from metastore.reading.table_answers import Statistics  # noqa: PLC0415 - slow to import

    more = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items() if name != "table")]
    if is_location(subject) and hasattr(Statistics, verb):
        hint = f"Say metastore.open({subject!r}).{verb}({', '.join(more)}), without Spark."
    else:
        hint = f"Say metastore.{verb}({', '.join(['spark', repr(subject), *more])})."
    raise InvalidArgument("spark", f"a Spark session is expected, not {subject!r}", hint)


def check_session(spark: SparkSession) -> None:
    """Tells a session that lives from anything else."""
    if not hasattr(spark, "sql"):
        raise InvalidArgument("spark", f"a Spark session is expected, not {type(spark).__name__}")
    if jvm_session.is_stopped(spark):
        raise NoSpark("This Spark session has been stopped", "Get a new one: SparkSession.builder.getOrCreate().")


def list_settings(spark: SparkSession | None) -> Answer:
    """Every setting as the session and this process see it."""
    from metastore import configuration  # noqa: PLC0415 - slow to import

    if spark is not None:
        check_session(spark)
    rows = configuration.list_settings(spark)
    return Answer("settings", "", tuple(rows[0]), rows)


def configure(builder: B) -> B:
    """Prepares a `SparkSession.builder` for the Metastore: appends, never overwrites.

    With Spark 4 from `pip` there is nothing to prepare but the settings of `metastore.toml`: the wheel put the jar
    beside Spark's own and it registers itself. With a Spark elsewhere (SPARK_HOME) the jar is added to `spark.jars`, on
    Spark 3.5 the extension to `spark.sql.extensions`. A Connect builder is returned as it is: its server has jar and
    settings.
    """
    from metastore import configuration  # noqa: PLC0415 - slow to import

    options = {**read_spark_defaults(), **getattr(builder, "_options", {})}
    if "spark.remote" in options or "SPARK_REMOTE" in os.environ:
        return builder
    wanted = {one.setting.key: one.text for one in configuration.resolve() if one.source == "file"}
    added = {key: text for key, text in wanted.items() if key not in options}
    jar = jars.shim()
    home = Path(os.environ.get("SPARK_HOME") or jars.pyspark_jars().parent)
    if not (home / "jars" / jar.name).exists():
        added["spark.jars"] = append_entry(options.get("spark.jars"), str(jar))
    if metadata.version("pyspark").startswith("3."):  # its sessions do not register extensions by themselves
        added["spark.sql.extensions"] = append_entry(options.get("spark.sql.extensions"), EXTENSION)
    for key, text in added.items():
        builder.config(key, text)  # type: ignore[attr-defined]
    return builder


def read_spark_defaults() -> dict[str, str]:
    """The settings of `spark-defaults.conf`, where Spark looks for it."""
    home = os.environ.get("SPARK_HOME") or str(jars.pyspark_jars().parent)
    file = Path(os.environ.get("SPARK_CONF_DIR") or Path(home) / "conf") / "spark-defaults.conf"
    if not file.is_file():
        return {}
    settings = {}
    for line in file.read_text("utf-8").splitlines():
        entry = line.strip()
        if entry.startswith(("#", "!")):
            continue
        key, *value = _KEY_END.split(entry, maxsplit=1)
        if value:
            settings[key] = value[0]
    return settings


def append_entry(present: object, added: str) -> str:
    """A comma list with one more entry, unless it has it."""
    entries = list(filter(None, str(present or "").split(",")))
    if added not in entries:
        entries.append(added)
    return ",".join(entries)


def _with_own_columns(
    names: list[str], found: list[dict[str, Any]]
) -> tuple[list[str], list[dict[str, Any]], pa.Schema]:
    """The rows of `summary` with a column for each user-defined statistic in place of the map of all."""
    import pyarrow as pa  # noqa: PLC0415 - an answer that is only shown does without

    values = [extra_columns.from_json_texts(row.pop(extra_columns.COLUMN, None)) for row in found]
    names = [name for name in names if name != extra_columns.COLUMN]
    known = [{name: pa.scalar(value) for name, value in one.items()} for one in values]
    fields = extra_columns.infer_fields(known, names)
    schema = [field for field in FUNCTIONS["summary"] if field.name != extra_columns.COLUMN]
    rows = [
        {**row, **{field.name: extra_columns.cast_scalar(one.get(field.name), field) for field in fields}}
        for row, one in zip(found, known, strict=True)
    ]
    return [*names, *(field.name for field in fields)], rows, pa.schema([*schema, *fields])


def _row(row: Row) -> dict[str, Any]:
    values = row.asDict()
    return {name: _utc(value) if isinstance(value, datetime) else value for name, value in values.items()}


def _utc(value: datetime | None) -> datetime | None:
    # Spark hands out naive datetimes in the local time of this process.
    return value.astimezone(timezone.utc) if value is not None else None
