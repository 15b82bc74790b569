"""Runs of a query with and without the Metastore, with the counts of what really happened."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from operator import attrgetter
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


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One way of running a query.

    Attributes:
        files: Data files that its scans read.
        rows: Rows that its scans read.
        expected: Rows that the optimizer expected, or None if unknown.
        expected_bytes: Bytes that it expected.
        join: The kind of join that it planned; empty without a join.
        seconds: The time of the quickest of three runs.
        answer: The rows, sorted.
    """

    files: int
    rows: int
    expected: int | None
    expected_bytes: int
    join: str
    seconds: float
    answer: tuple[tuple[Any, ...], ...]


def measure_query(spark: SparkSession, question: Question, settings: dict[str, str]) -> Measurement:
    """Run a query in a session of its own."""
    session = spark.newSession()
    for key, value in settings.items():
        session.conf.set(key, value)
    expected_bytes, expected = _expectation(session, question)
    runs = [_run(session, question.sql) for _ in range(_RUNS)]
    quickest = min(runs, key=attrgetter("seconds"))
    metrics = [read_scan_metrics(scan) for scan in find_scan_nodes(quickest.frame)]
    return Measurement(
        files=sum(scan["numSplits"] for scan in metrics),
        rows=sum(scan["numOutputRows"] for scan in metrics),
        expected=expected,
        expected_bytes=expected_bytes,
        join=_join(session.sql(question.sql)),
        seconds=quickest.seconds,
        answer=tuple(sorted(map(tuple, quickest.rows))),
    )


def count_matching_rows(spark: SparkSession, question: Question) -> int:
    """Count the rows that match the query's condition."""
    return int(spark.sql(f"SELECT count(*) {question.rows}").collect()[0][0])


@dataclass(frozen=True)
class _Run:
    seconds: float
    frame: DataFrame
    rows: list[Any]


def _run(session: SparkSession, sql: str) -> _Run:
    start = time.perf_counter()
    frame = session.sql(sql)
    rows = frame.collect()
    return _Run(time.perf_counter() - start, frame, rows)


def _expectation(session: SparkSession, question: Question) -> tuple[int, int | None]:
    """Return the bytes and rows that the optimizer expects before rows are grouped."""
    plan = session.sql(f"EXPLAIN COST SELECT * {question.rows}").collect()[0][0]
    match = _STATISTICS.search(plan)
    if match is None:
        return 0, None
    size = int(float(match[1]) * _UNITS[match[2]])
    rows = int(float(match[3])) if match[3] else None
    return size, rows


def _join(frame: DataFrame) -> str:
    """Return the join as it was planned, before the query ran."""
    for node in iterate_plan_nodes(frame):
        if node_class(node) in _JOINS:
            return _JOINS[node_class(node)]
    return ""
