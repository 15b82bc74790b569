"""The JVM behind a classic session: PySpark's own members that are not public are used here and nowhere else.

Through Connect there is no such JVM: then each function raises `AttributeError`.
"""

from __future__ import annotations

from contextlib import suppress
from subprocess import TimeoutExpired
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from metastore import jars
from metastore.errors import JarNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, SparkSession


# ruff: noqa: SLF001

_LAST_SECONDS = 10.0
_ROWS_AT_ONCE = 100_000  # one text of py4j holds them


def get_executed_plan(frame: DataFrame) -> Any:
    """Return the executed plan of a query."""
    return frame._jdf.queryExecution().executedPlan()


def estimate_size(frame: DataFrame) -> tuple[int, int | None]:
    """Return the bytes and rows that Spark expects of a query before it runs; None for unknown rows."""
    statistics = frame._jdf.queryExecution().optimizedPlan().stats()
    rows = statistics.rowCount()
    return int(statistics.sizeInBytes()), int(rows.get()) if rows.isDefined() else None


def encode_local_rows(frame: DataFrame, flags: Sequence[bool]) -> Iterator[bytes] | None:
    """Encode rows that a query has in the driver already as Arrow streams, without a job; None for other queries.

    Rules of the optimizer would look at every row.

    Args:
        frame: The query.
        flags: The last arguments of Spark's method, which differ between its versions.
    """
    if not hasattr(frame, "_jdf"):  # of Spark Connect
        return None
    plan = frame._jdf.queryExecution().analyzed()
    if plan.nodeName() == "Project" and plan.output().equals(plan.child().output()):
        plan = plan.child()
    if plan.nodeName() != "LocalRelation":
        return None
    jvm: Any = frame.sparkSession._jvm
    converters = getattr(getattr(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters$"), "MODULE$")
    most_bytes = 0  # no limit
    arguments = [plan.data().iterator(), plan.schema(), _ROWS_AT_ONCE, most_bytes, "UTC", *flags]
    return _iterate_jvm(converters.toBatchWithSchemaIterator(*arguments))


def _iterate_jvm(elements: Any) -> Iterator[Any]:
    while elements.hasNext():
        yield elements.next()


def get_hadoop_configuration(spark: SparkSession, settings: Mapping[str, str] = MappingProxyType({})) -> Any:
    """Return Hadoop's settings of the session with its credentials; `settings` come before the session's."""
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    for name, value in settings.items():
        conf.set(name, value)
    return conf


def to_text(spark: SparkSession, characters: Any) -> str:
    """Return an array of characters as a text, by one call: py4j reads an element by two."""
    return str(spark._jvm.java.lang.String(characters))  # type: ignore[union-attr]


def to_jvm_session(spark: SparkSession) -> Any:
    """Return the JVM's session, as the shim takes it."""
    return spark._jsparkSession


def read_storage_properties(
    spark: SparkSession, table: str, uuid: str, location: str, *, uncached: bool = False
) -> dict[str, str]:
    """Return a table's own settings and keys for a location, as its format calls them; none if it has none.

    Fails if the name stands for a table of another uuid by now. The session may keep the table with keys that end
    soon: `uncached` asks its catalog.
    Over py4j, not by SQL: answers of SQL are shown to people.
    """
    shim = load_shim_class(spark, "TableStorage")
    return dict(shim.properties(to_jvm_session(spark), table, uuid, location, uncached))


def list_storage_prefixes(spark: SparkSession, table: str, uuid: str) -> list[str]:
    """Return the beginnings of locations for which a table has keys apart."""
    shim = load_shim_class(spark, "TableStorage")
    return list(shim.prefixes(to_jvm_session(spark), table, uuid))


def find_folder_access(spark: SparkSession, table: str, uuid: str, uri: str) -> Any:
    """Find a table's own way to write to a folder, which the JVM has."""
    shim = load_shim_class(spark, "TableStorage")
    return shim.folderAccess(to_jvm_session(spark), table, uuid, uri)


def make_hadoop_access(spark: SparkSession, uri: str) -> Any:
    """Make access to a folder by Hadoop's file system, with the settings of the session."""
    return load_shim_class(spark, "HadoopAccess")(uri, get_hadoop_configuration(spark))


def ask_hadoop_for_keys(spark: SparkSession, location: str, settings: dict[str, str]) -> dict[str, str]:
    """Return the keys that Hadoop's file system of a location has now, as Iceberg's S3FileIO calls them.

    Args:
        spark: The session.
        location: The location.
        settings: Hadoop's settings of a table, beside those of the session.
    """
    shim = load_shim_class(spark, "HadoopKeys")
    return dict(shim.find(to_jvm_session(spark), location, settings))


def note_new_statistics(spark: SparkSession) -> None:
    """Make the next query of this driver look for statistics that were written just now."""
    with suppress(JarNotFound):  # without the shim nobody reads them here
        load_shim_class(spark, "TableStorage").noteChange()


def load_shim_class(spark: SparkSession | SparkContext, name: str) -> Any:
    """Load a class of the shim that Python calls."""
    return getattr(find_shim_package(spark).analyze, name)


def find_shim_package(spark: SparkSession | SparkContext) -> Any:
    """Find the package of the shim's build for this Spark and Scala: classes of two builds never meet.

    Raises:
        JarNotFound: The session's Spark does not have the shim, or the shim has no build for it.
    """
    jvm: Any = spark._jvm
    entry = jvm.org.metastore.spark.MetastoreExtensions
    is_missing = type(entry).__name__ == "JavaPackage"  # py4j takes an unknown name for a package
    package = "" if is_missing else entry.packageName()
    if not package:
        raise jars.explain_missing_shim(spark.version)
    return getattr(jvm.org.metastore.spark, package)


def to_jvm_rows(frame: DataFrame) -> Any:
    """Return the JVM's DataFrame, as the shim takes it."""
    return frame._jdf


def from_jvm_rows(rows: Any, like: DataFrame) -> DataFrame:
    """Return a DataFrame of the JVM as one of Python, in the session of another one."""
    return type(like)(rows, like.sparkSession)


def to_jvm_bytes(records: RDD[bytes]) -> Any:
    """Return the JVM's records, as the shim takes them: bytes without a serialization of Python's."""
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415 - not needed to import this module

    return records._reserialize(NoOpSerializer())._jrdd


def from_jvm_bytes(records: Any, context: SparkContext) -> RDD[bytes]:
    """Return records of the shim as bytes in Python."""
    from pyspark import RDD  # noqa: PLC0415 - as above
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415 - as above

    return RDD(records, context, NoOpSerializer())


def is_stopped(spark: SparkSession) -> bool:
    """Return whether a session has ended, by `stop` or with its JVM; a Connect client knows by itself."""
    context: Any = getattr(spark, "_sc", None)
    if context is None:
        return bool(getattr(spark, "is_stopped", False))
    from py4j.protocol import Py4JError  # type: ignore[import-untyped] # noqa: PLC0415 - no types

    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except Py4JError:  # nobody answers
        return True


def end_jvm(spark: SparkSession) -> None:
    """End the JVM that a session's Python started, with the jobs in it: by the pipe that it reads."""
    gateway: Any = spark.sparkContext._gateway
    process = gateway.proc
    process.stdin.close()
    try:
        process.wait(_LAST_SECONDS)
    except TimeoutExpired:
        process.kill()
