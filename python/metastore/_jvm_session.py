"""The JVM behind a classic session: PySpark's own members that are not public are used here and nowhere else.

Through Connect there is no such JVM: then each function raises `AttributeError`.
"""

from __future__ import annotations

from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any

from metastore import jars

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, SparkSession

# ruff: noqa: SLF001

_LAST_SECONDS = 10.0


def analyzed(spark: SparkSession, identifier: str) -> Any:
    """The analyzed plan of reading a table: what its catalog has loaded.

    Args:
        spark: A classic session.
        identifier: The table's name as SQL.

    Raises:
        AnalysisException: There is no such table.

    Example:
        >>> analyzed(spark, "cat.db.sales").getClass().getSimpleName()  # doctest: +SKIP
        'SubqueryAlias'
    """
    return spark._jsparkSession.table(identifier).queryExecution().analyzed()


def executed(frame: DataFrame) -> Any:
    """The executed plan of a query.

    Example:
        >>> executed(spark.range(1)).nodeName()  # doctest: +SKIP
        'Range'
    """
    return frame._jdf.queryExecution().executedPlan()


def estimated(frame: DataFrame) -> tuple[int, int | None]:
    """How many bytes and rows Spark expects of a query before it runs.

    Returns:
        Bytes, and rows where their number is known, as that of a cached DataFrame is.

    Example:
        >>> estimated(spark.range(3))  # doctest: +SKIP
        (24, 3)
    """
    found = frame._jdf.queryExecution().optimizedPlan().stats()
    rows = found.rowCount()
    return int(found.sizeInBytes()), int(rows.get()) if rows.isDefined() else None


def hadoop_configuration(spark: SparkSession) -> Any:
    """Hadoop's settings as the session has them, credentials among them.

    Example:
        >>> hadoop_configuration(spark).get("fs.defaultFS")  # doctest: +SKIP
        'file:///'
    """
    return spark._jsparkSession.sessionState().newHadoopConf()


def qualified(spark: SparkSession, path: str) -> str:
    """A path with the scheme of the file system that it is in.

    Example:
        >>> qualified(spark, "/w/t")  # doctest: +SKIP
        'file:/w/t'
    """
    jvm: Any = spark._jvm
    found = jvm.org.apache.hadoop.fs.Path(path)
    return str(found.getFileSystem(hadoop_configuration(spark)).makeQualified(found).toString())


def shim_class(spark: SparkSession | SparkContext, name: str) -> Any:
    """A class of the shim that Python calls.

    Args:
        spark: A classic session, or its context.
        name: The name of the class.

    Raises:
        JarNotFound: This Spark does not have the shim.

    Example:
        >>> shim_class(spark, "HadoopFolder")  # doctest: +SKIP
    """
    found = getattr(shim_package(spark).analyze, name)
    if type(found).__name__ == "JavaPackage":  # what py4j takes an unknown name for
        raise jars.not_in(spark.version)
    return found


def shim_package(spark: SparkSession | SparkContext) -> Any:
    """The package of the shim's build for the line of a Spark: classes of two lines never meet.

    Example:
        >>> shim_package(spark).statistics.cache.StatisticsCache.clear()  # doctest: +SKIP
    """
    jvm: Any = spark._jvm
    return getattr(jvm.org.metastore.spark, f"v{jars.line_of(spark.version).replace('.', '')}")


def rows_in_jvm(frame: DataFrame) -> Any:
    """A DataFrame as the shim takes it.

    Example:
        >>> rows_in_jvm(spark.range(1)).count()  # doctest: +SKIP
        1
    """
    return frame._jdf


def bytes_in_jvm(records: RDD[bytes]) -> Any:
    """Records as the shim takes them: bytes as they are.

    Example:
        >>> bytes_in_jvm(spark.sparkContext.parallelize([b"a"])).count()  # doctest: +SKIP
        1
    """
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415 - not needed to import this module

    return records._reserialize(NoOpSerializer())._jrdd


def bytes_from_jvm(records: Any, context: SparkContext) -> RDD[bytes]:
    """Records that the shim gave, back as bytes.

    Example:
        >>> bytes_from_jvm(bytes_in_jvm(records), spark.sparkContext).collect()  # doctest: +SKIP
        [b'a']
    """
    from pyspark import RDD  # noqa: PLC0415 - as above
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415 - as above

    return RDD(records, context, NoOpSerializer())


def end_jvm(spark: SparkSession) -> None:
    """End the JVM that a session's Python started, with the jobs in it: by the pipe that it reads, over no connection.

    Example:
        >>> end_jvm(spark)  # doctest: +SKIP
    """
    gateway: Any = spark.sparkContext._gateway
    process = gateway.proc
    process.stdin.close()
    try:
        process.wait(_LAST_SECONDS)
    except TimeoutExpired:
        process.kill()
