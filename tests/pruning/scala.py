"""The shim's Scala objects, seen from Python through py4j."""

from __future__ import annotations

from typing import Any

from metastore.jvm_session import find_shim_package

OURS = "org.metastore.spark."


def module(spark, name: str) -> Any:
    """The Scala object of that full name; ours is in the package of the Spark that runs."""
    ours = name.startswith(OURS)
    package = find_shim_package(spark) if ours else spark._jvm
    *parts, last = name.removeprefix(OURS).split(".")
    for part in parts:
        package = getattr(package, part)
    return getattr(getattr(package, f"{last}$"), "MODULE$")


def option(value: Any) -> Any:
    return value.get() if value.isDefined() else None


def items(seq: Any) -> list[Any]:
    return [seq.apply(i) for i in range(seq.size())]


def pairs(scala_map: Any) -> dict[Any, Any]:
    entries = scala_map.toSeq()
    return {entry._1(): entry._2() for entry in items(entries)}


def open_store(spark, folder) -> Any:
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    return module(spark, "org.metastore.spark.statistics.StatisticsStore").open(str(folder), conf)


def no_limits(spark) -> Any:
    return module(spark, "scala.None")
