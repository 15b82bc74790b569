"""The process that a Spark driver starts to run its `ANALYZE TABLE` statements in Python.

The driver's JVM runs this module as `python -m` would, but with nothing imported from the working folder. It lends the
session of each statement and sends one line a statement on standard input: a key, a blank, the statement as JSON. The
answer goes back over py4j; printed text is only ever quoted when the process dies.

It ends with its standard input, which ends with the JVM, for whatever reason: at once, even in the middle of a job, a
merge or a store that hangs. A write appears as a whole or not at all, so that nothing is half done.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from queue import SimpleQueue
from threading import Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TextIO, cast

from metastore.errors import AnalyzeFailed, MetastoreError
from metastore.spark_jobs.progress import NoProgress, Progress, ProgressLine
from metastore.visible_text import VisibleFormatter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark import SparkContext
    from pyspark.sql import SparkSession


log = logging.getLogger("metastore")


class StatementServer:
    """A server of the statements that the lent JVM sends.

    Args:
        gateway: The connection to the JVM; its entry point is the shim's `PythonEntry`.
    """

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._entry = gateway.entry_point
        self._properties: dict[str, str] = {}
        self._context: SparkContext | None = None

    def serve(self, lines: Iterable[str]) -> None:
        """Answer statements until there are no more."""
        self._entry.attached()
        for line in lines:
            key, _, statement = line.partition(" ")
            self._entry.answer(key, json.dumps(self._answer(key, statement)))

    def _answer(self, key: str, text: str) -> dict[str, Any]:
        statement = json.loads(text)
        try:
            return {"report": _run(self._session(key), statement, self._progress(statement))}
        except MetastoreError as error:
            return {"error": {"code": error.code, "message": str(error)}}
        except Exception as error:
            from metastore.adapters.spark_errors import find_cause  # noqa: PLC0415 - see `_run`

            # The statement must end whatever went wrong; the driver's log gets the whole error.
            log.exception("ANALYZE of %s failed", statement["table"])
            failure = AnalyzeFailed(statement["table"], find_cause(error))
            return {"error": {"code": failure.code, "message": str(failure)}}

    def _progress(self, statement: dict[str, Any]) -> Progress:
        if not statement["progress"]:
            return NoProgress()
        return ProgressLine(statement["table"], _DriverStderr(self._entry))

    def _session(self, key: str) -> SparkSession:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - the driver's Spark, found by the environment

        jsession = self._entry.session(key)
        context = self._lent_context(jsession)
        # Were there no session yet, the constructor would make the lent one the default of the whole driver.
        SparkSession._instantiatedSession = cast("SparkSession", SimpleNamespace(_sc=context))  # noqa: SLF001
        session = SparkSession(context, jsession)
        SparkSession._instantiatedSession = session  # noqa: SLF001
        self._take_properties(context, dict(self._entry.properties(key)))
        return session

    def _lent_context(self, jsession: Any) -> SparkContext:
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - see above

        if self._context is None:
            jsc = self._gateway.jvm.org.apache.spark.api.java.JavaSparkContext(jsession.sparkContext())
            conf = SparkConf(_jvm=self._gateway.jvm, _jconf=jsc.getConf())
            self._context = SparkContext(gateway=self._gateway, jsc=jsc, conf=conf)
        return self._context

    def _take_properties(self, context: Any, properties: dict[str, str]) -> None:
        # Job tags, job group and pool of the statement: cancelling the statement cancels its jobs.
        for name in self._properties.keys() - properties.keys():
            context.setLocalProperty(name, None)
        for name, value in properties.items():
            context.setLocalProperty(name, value)
        self._properties = properties


class _DriverStderr:
    """Standard error of the driver's JVM, for lines that a person reads there."""

    def __init__(self, entry: Any) -> None:
        self._entry = entry

    def isatty(self) -> bool:
        return False  # Spark's own progress overwrites itself there

    def write(self, text: str) -> None:
        self._entry.say(text)

    def flush(self) -> None:
        pass


def _run(spark: SparkSession, statement: dict[str, Any], progress: Progress) -> Any:
    if "filtered" in statement:
        # Slow to import, and the JVM waits for the first sign of life.
        from metastore.spark.filtered_summary import summarize_query  # noqa: PLC0415 - see above

        return summarize_query(spark, statement["filtered"])
    if "snapshots" in statement:
        return _compare_snapshots(spark, statement)
    return _analyze(spark, statement, progress)


def _compare_snapshots(spark: SparkSession, statement: dict[str, Any]) -> list[Any]:
    from metastore.adapters.spark_versions import read_time_zone  # noqa: PLC0415 - see `_run`
    from metastore.reading.table_answers import measure_distributions  # noqa: PLC0415 - see `_run`
    from metastore.spark.discovery_by_name import open_by_name  # noqa: PLC0415 - see `_run`

    before, after = statement["snapshots"]
    statistics = open_by_name(spark, statement["table"], read_time_zone(spark))
    if statement["added"]:
        return list(statistics.diff(before, after, distributions=statement["distributions"], added=True))
    return measure_distributions(before, after, [statistics])


def _analyze(spark: SparkSession, statement: dict[str, Any], progress: Progress) -> dict[str, Any] | None:
    from metastore.pipeline.request import AnalyzeStatement  # noqa: PLC0415 - see `_run`
    from metastore.pipeline.rounds import run_in_turn, run_statement  # noqa: PLC0415 - see `_run`

    columns = statement.get("columns")
    request = AnalyzeStatement(
        table=statement["table"],
        columns=None if columns is None else tuple(columns),
        partition=statement["partition"],
        depth=_choose_depth(statement),
        partition_columns=tuple(statement["partition_columns"]),
    )
    run = run_in_turn if statement.get("in_turn") else run_statement
    report = run(spark, request, progress)
    return report.to_dict() if report else None


def _choose_depth(statement: dict[str, Any]) -> str:
    if statement["noscan"]:
        return "files"
    if statement["all_columns"] or statement.get("columns") is not None:
        return "full"
    return "footer"


def _requests() -> TextIO:
    """Standard input as the channel of statements; from now on printed text goes to standard error."""
    channel = os.fdopen(os.dup(sys.stdin.fileno()), encoding="utf-8")
    with open(os.devnull) as nothing:  # noqa: PTH123 - workers that Spark forks must not read statements
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return channel


def _serve(requests: SimpleQueue[str]) -> None:
    """Serve until the process ends; an error of the service ends the process."""
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - see above

    try:
        StatementServer(launch_gateway()).serve(iter(requests.get, None))  # type: ignore[no-untyped-call]
    except BaseException:
        log.exception("the service ends")
        _end(1)


def _end(code: int) -> None:
    """End the process at once, even if a thread waits for a job."""
    sys.stderr.flush()
    os._exit(code)


def run_process() -> None:
    """Attach to the JVM named in the environment and serve it."""
    # A Ctrl-C is meant for the shell, which cancels the jobs. It stays ignored: a context that another thread than the
    # main one makes does not change signals.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log_to_errors = logging.StreamHandler(sys.stderr)
    log_to_errors.setFormatter(VisibleFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[log_to_errors])
    logging.getLogger("py4j").setLevel(logging.WARNING)
    lines = _requests()
    requests: SimpleQueue[str] = SimpleQueue()
    Thread(target=_serve, args=(requests,), name="metastore-statements", daemon=True).start()
    for line in lines:
        requests.put(line)
    _end(0)


if __name__ == "__main__":
    run_process()
