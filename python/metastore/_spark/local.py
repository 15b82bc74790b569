"""A Spark of our own, for verbs of the command line that need one."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from metastore._spark.session import configure, spark_defaults
from metastore.errors import NoSpark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

QUIET_LOG = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


@contextmanager
def started(conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A Spark with the user's spark-defaults.conf and these settings; stopped at the end.

    What its JVM writes to stderr goes to a file, which is named when the start fails: at every start Java and Spark
    print warnings that are nobody's mistake.

    Args:
        conf: Settings that win over spark-defaults.conf.

    Raises:
        NoSpark: pyspark is missing, or Spark does not start.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers would run whatever python3 is on the PATH
    with tempfile.TemporaryDirectory(prefix="metastore-") as scratch:
        log = Path(scratch) / "spark.log"
        spark = _start({**_quiet(Path(scratch)), **spark_defaults(), **conf}, log)
        try:
            yield spark
        finally:
            spark.stop()


def _quiet(scratch: Path) -> dict[str, str]:
    log4j = scratch / "log4j2.properties"
    log4j.write_text(QUIET_LOG, "utf-8")
    return {
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j} -Dderby.system.home={scratch}",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }


def _start(conf: Mapping[str, str], log: Path) -> SparkSession:
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - Spark is optional
    except ImportError as error:
        raise NoSpark("pyspark is not installed", "Run: pip install 'pyspark-metastore[spark]'") from error
    builder = configure(SparkSession.builder.appName("metastore").config(map=dict(conf)))
    try:
        with _stderr_in(log):
            return builder.getOrCreate()
    except Exception as error:  # whatever it is, the user needs Spark's own words
        said = log.read_text("utf-8", "replace").strip().splitlines() or [str(error)]
        raise NoSpark(f"Spark does not start: {said[-1].strip()}") from error


@contextmanager
def _stderr_in(log: Path) -> Iterator[None]:
    """Lets processes that start now write their stderr to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
