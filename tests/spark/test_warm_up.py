"""The classes that plan queries are loaded beside the start of a session, not by its first query."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path

import pyspark
import pytest

from metastore import jars
from patience import ends_within

pytestmark = pytest.mark.spark

ROOMS = ("conf", "estimates", "pruning", "reason", "scan", "statistics", "tables")


@pytest.fixture
def is_loaded(spark):
    """Tells whether Spark's JVM has loaded a class of ours."""
    jvm = spark.sparkContext._jvm
    types = spark.sparkContext._gateway.new_array(jvm.java.lang.Class, 1)
    types[0] = jvm.java.lang.Class.forName("java.lang.String")
    find_loaded = jvm.java.lang.Class.forName("java.lang.ClassLoader").getDeclaredMethod("findLoadedClass", types)
    find_loaded.setAccessible(True)
    loader = jvm.java.lang.Class.forName("org.metastore.spark.MetastoreExtensions").getClassLoader()

    def ask(name: str) -> bool:
        arguments = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 1)
        arguments[0] = name
        return find_loaded.invoke(loader, arguments) is not None

    return ask


def test_every_class_of_planning_is_loaded(spark, is_loaded):
    package = f"org.metastore.spark.{spark.sparkContext._jvm.org.metastore.spark.MetastoreExtensions.packageName()}"
    with zipfile.ZipFile(Path(pyspark.__file__).parent / "jars" / jars.SHIM) as jar:
        classes = [name.removesuffix(".class").replace("/", ".") for name in jar.namelist()]
    of_planning = [name for name in classes if name.startswith(tuple(f"{package}.{room}." for room in ROOMS))]
    assert {name.removeprefix(f"{package}.").split(".")[0] for name in of_planning} == {*ROOMS}
    with ends_within(60):
        while not all(map(is_loaded, of_planning)):
            time.sleep(0.1)
