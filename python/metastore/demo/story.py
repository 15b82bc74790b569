"""The demonstration from beginning to end, as a sequence of things to show."""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import metastore
from metastore import jars
from metastore.demo import tpch_tables
from metastore.demo.measurement import WITHOUT, Measurement, count_matching_rows, measure_query
from metastore.demo.questions import QUESTIONS, Question
from metastore.errors import InvalidArgument, MetastoreError
from metastore.spark.local_session import start_local_spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from metastore.answers import Answer


LARGEST_SCALE = 10.0
STEPS = 6


@dataclass(frozen=True)
class StoryLine:
    """A line of the story."""

    text: str
    heading: bool = False


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A query, run both ways.

    Attributes:
        number: 1, 2, 3.
        files_total: Data files of its tables.
        matching_rows: The rows that match its condition.
        without: The measurements without the Metastore.
        with_us: The measurements with it.
        reason: The statistic by which the planner skipped one of the files; empty if it skipped none.
    """

    number: int
    question: Question
    files_total: int
    matching_rows: int
    without: Measurement
    with_us: Measurement
    reason: str

    def explain_difference(self) -> str:
        """Explain why the numbers differ, if they do: at other scales they may be the same."""
        reads_fewer_files = self.without.files > self.with_us.files
        if reads_fewer_files or self.without.join != self.with_us.join:
            return self.question.explanation
        return "At this scale both ways read the same files and plan the same join."


def tell_story(scale: float, keep: Path | None) -> Iterator[StoryLine | Comparison | Answer]:
    """Run the demonstration."""
    if not 0 < scale <= LARGEST_SCALE:
        raise InvalidArgument("--scale", f"{scale:g} is not between 0 and {LARGEST_SCALE:g}")
    if keep is not None and (keep / "tpch").exists():
        raise InvalidArgument("--keep", f"{keep} already has tables of a demonstration", "Name another folder.")
    with _folder(keep) as warehouse, tempfile.TemporaryDirectory(prefix="metastore-demo-") as scratch:
        yield _step(1, f"TPC-H data, scale {scale:g}")
        tpch_tables.generate_tpch(scale, Path(scratch))
        yield _step(2, "Spark with Iceberg")
        with start_local_spark(tpch_tables.catalog_settings(warehouse, jars.fetch("iceberg-4.1"))) as spark:
            yield from _tell_of_tables(spark, Path(scratch))
        yield from _farewell(warehouse, has_tables=keep is not None)


def _step(number: int, text: str) -> StoryLine:
    return StoryLine(f"[{number}/{STEPS}] {text}", heading=True)


def _tell_of_tables(spark: SparkSession, folder: Path) -> Iterator[StoryLine | Comparison | Answer]:
    lineitem = tpch_tables.LINEITEM
    yield _step(3, f"Two Iceberg tables of {tpch_tables.FILES} files each, in the order in which rows arrive: by date")
    tpch_tables.write_tables(spark, folder)
    yield _step(4, f"ANALYZE TABLE {lineitem} COMPUTE STATISTICS FOR ALL COLUMNS, and the same for the orders")
    yield _analyze_tables(spark)
    yield _step(5, f"SELECT * FROM metastore.summary('{lineitem}')")
    yield metastore.summary(spark, lineitem)
    yield _step(6, "Three queries, without and with the Metastore")
    for number, question in enumerate(QUESTIONS, 1):
        yield _compare(spark, number, question)


def _analyze_tables(spark: SparkSession) -> StoryLine:
    start = time.perf_counter()
    reports = [metastore.analyze(spark, table) for table in (tpch_tables.LINEITEM, tpch_tables.ORDERS)]
    seconds = time.perf_counter() - start
    rows = sum(report.rows or 0 for report in reports)
    columns = sum(report.columns for report in reports)
    files = sum(report.files_read for report in reports)
    return StoryLine(f"{rows:,} rows, {columns} columns, {files} files read in {seconds:.1f} s")


def _compare(spark: SparkSession, number: int, question: Question) -> Comparison:
    without = measure_query(spark, question, WITHOUT)
    with_us = measure_query(spark, question, {})
    if without.answer != with_us.answer:
        raise MetastoreError("A query gave two answers.", f"Please report this: {question.sql}")
    tables = [table for table in (tpch_tables.LINEITEM, tpch_tables.ORDERS) if table in question.rows]
    return Comparison(
        number=number,
        question=question,
        files_total=len(tables) * tpch_tables.FILES,
        matching_rows=count_matching_rows(spark, question),
        without=without,
        with_us=with_us,
        reason=_find_reason(spark, question),
    )


def _find_reason(spark: SparkSession, question: Question) -> str:
    for row in metastore.explain(spark, question.sql):
        if row["statistic"] and not row["kept"]:
            return str(row["statistic"])
    return ""


def _farewell(warehouse: Path, *, has_tables: bool) -> Iterator[StoryLine]:
    yield StoryLine("What this means", heading=True)
    yield StoryLine(
        "With statistics of every column of every file, Spark reads only the files that can hold an answer and plans "
        "with true numbers; the answers stay the same."
    )
    command = "metastore demo --keep shop"
    effect = "keeps these tables, to look around"
    if has_tables:
        command = f"metastore summary {warehouse}/tpch/lineitem"
        effect = "shows the summary again, without Spark"
    yield StoryLine("What to type next", heading=True)
    yield StoryLine(
        f"`{command}` {effect}; in your own Spark, after `pip install pyspark-metastore`, it is "
        "`ANALYZE TABLE db.t COMPUTE STATISTICS FOR ALL COLUMNS`."
    )


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="metastore-demo-") as scratch:
            yield Path(scratch)
    else:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
