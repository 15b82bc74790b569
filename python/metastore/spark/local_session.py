"""A local Spark, for commands that need one."""

from __future__ import annotations

import os
import sys
import tempfile
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, TextIO

from metastore import jvm_session
from metastore.errors import NoSpark
from metastore.spark.session import configure, read_spark_defaults
from metastore.spark_jobs.progress import ProgressLine, show_stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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
def start_local_spark(conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Start a Spark with the user's spark-defaults.conf and these settings; it is stopped at the end.

    Its JVM writes stderr to a file, which the error quotes if the start fails: at every start Java and Spark print
    warnings that are nobody's mistake. A Ctrl-C is raised as in any Python, at once, and ends that JVM.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers would run whatever python3 is on the PATH
    with tempfile.TemporaryDirectory(prefix="metastore-") as scratch:
        log = Path(scratch) / "spark.log"
        settings = {**_quiet_settings(Path(scratch)), **read_spark_defaults(), **conf}
        spark = _start(settings, log)
        stop = spark.stop
        try:
            yield spark
        except KeyboardInterrupt:
            # A call that was interrupted still waits for its answer from the JVM: no other call is possible.
            stop = partial(jvm_session.end_jvm, spark)
            raise
        finally:
            stop()


def _quiet_settings(scratch: Path) -> dict[str, str]:
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
        with _redirect_stderr(log) as stderr, show_stage(ProgressLine("metastore", stderr), "starting Spark"):
            return _call_in_thread(builder.getOrCreate)
    except Exception as error:  # whatever it is, the user needs Spark's own words
        lines = log.read_text("utf-8", "replace").strip().splitlines()
        reason = lines[-1].strip() if lines else str(error).strip()
        raise NoSpark(f"Spark does not start: {reason}") from error


def _call_in_thread(start: Callable[[], SparkSession]) -> SparkSession:
    """Start Spark in another thread: the main one keeps its signals, and can stop waiting at any moment.

    A JVM that is starting then ends with this process, whose pipe it reads.
    """
    answer: Future[SparkSession] = Future()

    def run() -> None:
        try:
            answer.set_result(start())
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            answer.set_exception(error)

    Thread(target=run, name="metastore-spark-start", daemon=True).start()
    return answer.result()


@contextmanager
def _redirect_stderr(log: Path) -> Iterator[TextIO]:
    """Let processes that start now write their stderr to a file; yields the real one."""
    sys.stderr.flush()
    with os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace") as stderr, log.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield stderr
        finally:
            os.dup2(stderr.fileno(), 2)
