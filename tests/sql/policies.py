"""A plug-in that hides rows, masks a column or refuses to read, as those for Ranger do: in rules of Spark's session."""

from __future__ import annotations

import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakes import SPARK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

SETTING = "tests.policy"
EXTENSION = "PolicyExtension"
POINTS = ("resolution", "posthoc", "check", "optimizer", "precbo", "strategy", "columnar")
EFFECTS = ("refuse", "filter", "mask")
POLICIES = [f"{point} {effect}" for point in POINTS for effect in EFFECTS if point != "check" or effect == "refuse"]
DIAGONAL = ["resolution mask", "posthoc filter", "check refuse", "optimizer mask", "precbo filter", "strategy mask"]
"""Of each point one."""

_sessions: dict[int, SparkSession] = {}


def session_with_rule(spark: SparkSession) -> SparkSession:
    """A session with the rules, which do nothing until the session's `tests.policy` says where and what.

    `resolution once` filters rows and leaves its sign on the relation, which it passes over then, as plug-ins do;
    `posthoc limit` adds a LIMIT to every query that shows the column; `optimizer mark` leaves the rows and the name of
    a row filter in the plan; `optimizer exhaust` needs more memory than there is.
    """
    if id(spark) not in _sessions:
        extension = _compiled(spark).getClassLoader().loadClass(EXTENSION).getDeclaredConstructors()[0]
        extension.newInstance(spark.sparkContext._gateway.new_array(spark._jvm.Object, 0)).apply(
            spark._jsparkSession.extensions()
        )
        _sessions[id(spark)] = spark.newSession()
    return _sessions[id(spark)]


def jar_with_rule(spark: SparkSession, folder: Path) -> Path:
    """A jar with the same rules, for the class path of a Spark that lists `EXTENSION`."""
    path = folder / "policies.jar"
    with zipfile.ZipFile(path, "w") as jar:
        for name, code in _compiled(spark).getBytecodes().items():
            jar.writestr(f"{name}.class", bytes(code))
    return path


def _compiled(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    seq = "scala.collection.immutable.Seq" if SPARK.startswith("4") else "scala.collection.Seq"
    compiler.cook(Path(__file__).with_name("policies.java").read_text().replace("SEQ ", f"{seq} "))
    return compiler


@contextmanager
def under(session: SparkSession, policy: str) -> Iterator[SparkSession]:
    """The session while a policy is in force."""
    session.conf.set(SETTING, policy)
    try:
        yield session
    finally:
        session.conf.unset(SETTING)
