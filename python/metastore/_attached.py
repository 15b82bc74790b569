"""The process that a Spark driver starts to run its `ANALYZE TABLE` statements in Python.

The driver's JVM runs `python -m metastore._attached`, lends it the session of each statement over py4j and sends one
line a statement on standard input: a key, a blank, the statement as JSON. The answer goes back over py4j; what is
printed is only ever quoted when the process dies. It ends with its standard input.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TextIO, cast

from metastore.errors import AnalyzeFailed, MetastoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

log = logging.getLogger("metastore")


class Attached:
    """The lent JVM, and the statements that it sends.

    Args:
        gateway: The connection to the JVM; its entry point is the shim's `PythonEntry`.
    """

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._entry = gateway.entry_point
        self._properties: dict[str, str] = {}
        self._context: SparkContext | None = None

    def serve(self, lines: Iterable[str]) -> None:
        """Answers statements until there are no more.

        Args:
            lines: One statement each: a key, a blank, JSON.
        """
        self._entry.attached()
        for line in lines:
            key, _, statement = line.partition(" ")
            self._entry.answer(key, json.dumps(self._answer(key, statement)))

    def _answer(self, key: str, statement: str) -> dict[str, Any]:
        wanted = json.loads(statement)
        try:
            return {"report": _run(self._session(key), wanted)}
        except MetastoreError as error:
            return {"error": {"code": error.code, "message": str(error)}}
        except Exception as error:
            # The statement must end whatever went wrong; what did goes to the driver's log in full.
            log.exception("ANALYZE of %s failed", wanted["table"])
            failed = AnalyzeFailed(wanted["table"], _first_line(error))
            return {"error": {"code": failed.code, "message": str(failed)}}

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
            # The shell that a Ctrl-C is meant for cancels the jobs; the context's handler would end this process too.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return self._context

    def _take_properties(self, context: Any, properties: dict[str, str]) -> None:
        # Job tags, job group and pool of the statement: what cancels the statement cancels its jobs.
        gone: dict[str, Any] = dict.fromkeys(self._properties.keys() - properties.keys())
        for name, value in {**gone, **properties}.items():
            context.setLocalProperty(name, value)
        self._properties = properties


def _run(spark: SparkSession, statement: dict[str, Any]) -> dict[str, Any]:
    from metastore import _analyze  # noqa: PLC0415 - slow to import, and the JVM waits for the first sign of life

    report = _analyze.run(
        spark,
        statement["table"],
        columns=statement.get("columns"),
        all_columns=statement["all_columns"],
        noscan=statement["noscan"],
        partition=statement["partition"],
        partition_columns=statement["partition_columns"],
        progress=False,
    )
    return report.to_dict()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _requests() -> TextIO:
    """Standard input as the channel of statements; from here on everything printed goes to standard error."""
    channel = os.fdopen(os.dup(sys.stdin.fileno()), encoding="utf-8")
    with open(os.devnull) as nothing:  # noqa: PTH123 - workers that Spark forks must not read statements
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return channel


def main() -> None:
    """Attaches to the JVM named in the environment and serves it."""
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - see above

    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    requests = _requests()
    Attached(launch_gateway()).serve(requests)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
