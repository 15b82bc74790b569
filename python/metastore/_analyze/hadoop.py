"""Hadoop's settings of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


def hadoop_settings(spark: SparkSession) -> Callable[[str], str | None]:
    """Looks up settings as Hadoop's file systems see them: secrets may lie in a credential provider.

    Args:
        spark: A classic session.

    Returns:
        The value of a setting, None where it is not set.

    Example:
        >>> hadoop_settings(spark)("fs.defaultFS")  # doctest: +SKIP
        'file:///'
    """
    conf = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - the only way to Hadoop's settings

    def lookup(key: str) -> str | None:
        found = conf.getPassword(key)
        return None if found is None else "".join(found)

    return lookup
