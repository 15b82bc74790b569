"""Classes of the shim in the JVM of a driver."""

from __future__ import annotations

from typing import Any

from metastore.errors import JarNotFound


def shim_class(jvm: Any, name: str) -> Any:
    """A class of the shim that Python calls.

    Args:
        jvm: The driver's.
        name: Its name.

    Raises:
        JarNotFound: The Spark of this session does not have the shim.

    Example:
        >>> shim_class(spark._jvm, "HadoopFolder")  # doctest: +SKIP
    """
    found = getattr(jvm.org.metastore.spark.analyze, name)
    if type(found).__name__ == "JavaPackage":  # what py4j takes an unknown name for
        raise JarNotFound(
            "metastore-shim.jar: the Spark of this session does not have it",
            hint='Install pyspark-metastore beside that Spark, or start it with --jars "$(metastore jar)".',
        )
    return found
