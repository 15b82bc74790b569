"""Runs a query with and without the Metastore and counts what really happened."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore.demo.executed_plan import find_scan_nodes, iterate_plan_nodes, node_class, read_scan_metrics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from metastore.demo.questions import Question


WITHOUT = {
    "spark.metastore.enabled": "false",
    "spark.sql.cbo.enabled": "false",  # as in a Spark that never heard of us
    "spark.sql.cbo.joinReorder.enabled": "false",
}
_RUNS = 3
_STATISTICS = re.compile(r"Statistics\(sizeInBytes=([\d.]+) (\w+)(?:, rowCount=([\d.E+]+))?")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50, "EiB": 1 << 60}
_JOINS = {
    "BroadcastHashJoinExec": "broadcast",
    "SortMergeJoinExec": "shuffle and sort",
    "ShuffledHashJoinExec": "shuffle",
}


@dataclass(frozen=True)
class Measurement:
    """One way of running a query.

    Attributes:
        files: Data files that its scans read.
        rows: Rows that its scans read.
        expected: Rows that the optimizer expected to find, None where it had no idea.
        expected_bytes: Bytes that it expected.
        join: How it planned the join, empty where there is none.
        seconds: The quickest of three runs.
    """

    files: int
    rows: int
    expected: int | None
    expected_bytes: int
    join: str
    seconds: float
    answer: tuple[tuple[Any, ...], ...]


def measure_query(spark: SparkSession, question: Question, settings: dict[str, str]) -> Measurement:
    """Runs a query in a session of its own."""
    session = spark.newSession()
    for key, value in settings.items():
        session.conf.set(key, value)
    expected_bytes, expected = _expectation(session, question)
    seconds, frame, rows = min((_timed(session, question.sql) for _ in range(_RUNS)), key=lambda run: run[0])
    read = [read_scan_metrics(scan) for scan in find_scan_nodes(frame)]
    return Measurement(
        files=sum(scan["numSplits"] for scan in read),
        rows=sum(scan["numOutputRows"] for scan in read),
        expected=expected,
        expected_bytes=expected_bytes,
        join=_join(session.sql(question.sql)),
        seconds=seconds,
        answer=tuple(sorted(tuple(row) for row in rows)),
    )


def count_matching_rows(spark: SparkSession, question: Question) -> int:
    """How many rows the query is really about."""
    return int(spark.sql(f"SELECT count(*) {question.rows}").collect()[0][0])


def _timed(session: SparkSession, sql: str) -> tuple[float, DataFrame, list[Any]]:
    started = time.perf_counter()
    frame = session.sql(sql)
    rows = frame.collect()
    return time.perf_counter() - started, frame, rows


def _expectation(session: SparkSession, question: Question) -> tuple[int, int | None]:
    """Size and rows that the optimizer expects before anything is counted or grouped."""
    told = session.sql(f"EXPLAIN COST SELECT * {question.rows}").collect()[0][0]
    match = _STATISTICS.search(told)
    if match is None:
        return 0, None
    return int(float(match[1]) * _UNITS[match[2]]), int(float(match[3])) if match[3] else None


def _join(frame: DataFrame) -> str:
    """The join as it was planned, before anything ran."""
    return next((_JOINS[node_class(node)] for node in iterate_plan_nodes(frame) if node_class(node) in _JOINS), "")
