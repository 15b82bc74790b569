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


@dataclass(frozen=True)
class Comparison:
    """A query, run both ways.

    Attributes:
        number: 1, 2, 3.
        question: The query.
        files_total: Data files of its tables.
        found: Rows that it is really about.
        without: The measurements without the Metastore.
        with_us: Those with it.
        reason: The statistic by which the planner skipped one of the files; empty where it skipped none.
    """

    number: int
    question: Question
    files_total: int
    found: int
    without: Measurement
    with_us: Measurement
    reason: str


def tell_story(scale: float, keep: Path | None) -> Iterator[StoryLine | Comparison | Answer]:
    """Runs the demonstration."""
    if not 0 < scale <= LARGEST_SCALE:
        raise InvalidArgument("--scale", f"{scale:g} is not between 0 and {LARGEST_SCALE:g}")
    if keep is not None and (keep / "tpch").exists():
        raise InvalidArgument("--keep", f"{keep} already has tables of a demonstration", "Name another folder.")
    with _folder(keep) as warehouse, tempfile.TemporaryDirectory(prefix="metastore-demo-") as scratch:
        yield StoryLine(_step(1, f"TPC-H data, scale {scale:g}"), heading=True)
        tpch_tables.generate_tpch(scale, Path(scratch))
        yield StoryLine(_step(2, "Spark with Iceberg"), heading=True)
        with start_local_spark(tpch_tables.catalog_settings(warehouse, jars.fetch("iceberg-4.1"))) as spark:
            yield from _with_tables(spark, Path(scratch))
        yield from _farewell(warehouse, kept=keep is not None)


def _step(number: int, text: str) -> str:
    return f"[{number}/{STEPS}] {text}"


def _with_tables(spark: SparkSession, generated: Path) -> Iterator[StoryLine | Comparison | Answer]:
    yield StoryLine(
        _step(3, f"Two Iceberg tables of {tpch_tables.FILES} files each, in the order in which rows arrive: by date"),
        heading=True,
    )
    tpch_tables.write_tables(spark, generated)
    yield StoryLine(
        _step(
            4, f"ANALYZE TABLE {tpch_tables.LINEITEM} COMPUTE STATISTICS FOR ALL COLUMNS, and the same for the orders"
        ),
        heading=True,
    )
    began = time.perf_counter()
    reports = [metastore.analyze(spark, table) for table in (tpch_tables.LINEITEM, tpch_tables.ORDERS)]
    seconds = time.perf_counter() - began
    rows, columns = sum(report.rows or 0 for report in reports), sum(report.columns for report in reports)
    yield StoryLine(
        f"{rows:,} rows, {columns} columns, {sum(r.files_read for r in reports)} files read in {seconds:.1f} s"
    )
    yield StoryLine(_step(5, f"SELECT * FROM metastore.summary('{tpch_tables.LINEITEM}')"), heading=True)
    yield metastore.summary(spark, tpch_tables.LINEITEM)
    yield StoryLine(_step(6, "Three queries, without and with the Metastore"), heading=True)
    for number, question in enumerate(QUESTIONS, 1):
        yield _compared(spark, number, question)


def _compared(spark: SparkSession, number: int, question: Question) -> Comparison:
    without, with_us = measure_query(spark, question, WITHOUT), measure_query(spark, question, {})
    if without.answer != with_us.answer:
        raise MetastoreError("A query gave two answers.", f"Please report this: {question.sql}")
    explained = metastore.explain(spark, question.sql)
    reasons = [row for row in explained if row["statistic"] and not row["kept"]]
    said = str(reasons[0]["statistic"]) if reasons else ""
    tables = sum(name in question.rows for name in (tpch_tables.LINEITEM, tpch_tables.ORDERS))
    return Comparison(
        number, question, tables * tpch_tables.FILES, count_matching_rows(spark, question), without, with_us, said
    )


def _farewell(warehouse: Path, *, kept: bool) -> Iterator[StoryLine]:
    yield StoryLine("What this means", heading=True)
    yield StoryLine(
        "With statistics of every column of every file, Spark reads only the files that can hold an answer and plans "
        "with true numbers; the answers stay the same."
    )
    again = f"metastore summary {warehouse}/tpch/lineitem" if kept else "metastore demo --keep shop"
    does = "shows the summary again, without Spark" if kept else "keeps these tables, to look around"
    yield StoryLine("What to type next", heading=True)
    yield StoryLine(
        f"`{again}` {does}; in your own Spark, after `pip install pyspark-metastore`, it is "
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
