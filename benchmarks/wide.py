"""Questions about wide tables, by CPU seconds: layout and report of all columns, and what concerns one column of many.

Tables are directories of 4 Parquet files, analyzed once. Python's figures are of processes without Spark, Spark's of
table functions in a driver that has answered once for a narrow table.

    uv run python benchmarks/wide.py --work FOLDER --columns 200 1500 5000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyze import wide_files
from common import cpu_seconds, report, spark_session, work_folder

import metastore
from metastore.errors import MetastoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    Row = dict[str, Any]

FILES, ROWS = 4, 5_000
COLUMN = "c3"  # of integers
CONDITION, OTHER_CONDITION = f"{COLUMN} = 17", f"{COLUMN} > 999990"
CALLS = {
    "layout": "metastore.layout('{table}')",
    "layout of a column": "metastore.layout('{table}', '" + COLUMN + "')",
    "histogram of a column": "metastore.histogram('{table}', '" + COLUMN + "')",
    "summary": "metastore.summary('{table}')",
    "summary, LIMIT 1": "metastore.summary('{table}') LIMIT 1",
    "columns, LIMIT 1": "metastore.columns('{table}') LIMIT 1",
}


def measure_python(location: str) -> Iterator[Row]:
    """Measure questions to a location, each twice."""
    start = time.process_time()
    opened = metastore.open(location)
    yield {"question": "open", "first": time.process_time() - start}
    questions: dict[str, Callable[[], Any]] = {
        "prune": lambda: opened.prune(CONDITION),
        "prune otherwise": lambda: opened.prune(OTHER_CONDITION),
        "locate": lambda: opened.locate(COLUMN, 17),
        "locate another": lambda: opened.locate(COLUMN, 18),
        "histogram of a column": lambda: opened.histogram(COLUMN),
        "layout of a column": lambda: opened.layout(COLUMN),
        "layout": opened.layout,
        "report": lambda: metastore.report(location),
    }
    for name, ask in questions.items():
        start = time.process_time()
        answer = ask()
        first = time.process_time() - start
        start = time.process_time()
        ask()
        again = time.process_time() - start
        page = len(answer.html.encode()) if name == "report" else None
        yield {"question": name, "first": first, "again": again, "bytes": page}


def measure_spark(spark: SparkSession, location: str) -> Iterator[Row]:
    """Measure table functions, each called twice; an error stands in the place of the time."""
    table = f"parquet.`{location}`"
    for name, call in CALLS.items():
        row: Row = {"question": name}
        for run in ("first", "again"):
            start = cpu_seconds()
            try:
                spark.sql(f"SELECT * FROM {call.format(table=table)}").collect()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                row["error"] = str(error).splitlines()[0]
            row[run] = cpu_seconds() - start
        yield row


def analyze_tables(spark: SparkSession, work: Path, columns: list[int]) -> dict[int, str]:
    """Makes and analyzes the tables that the folder does not have; their locations by their number of columns."""
    locations = {}
    for number in columns:
        folder = wide_files(work, FILES, ROWS, number)
        locations[number] = str(folder)
        try:
            metastore.open(str(folder)).summary()
        except MetastoreError:
            metastore.analyze(spark, f"parquet.`{folder}`", progress=False)
    return locations


@contextmanager
def open_work(folder: Path | None) -> Iterator[Path]:
    """The folder of data, or one that is deleted at the end."""
    if folder:
        yield folder
        return
    with tempfile.TemporaryDirectory() as scratch:
        yield Path(scratch)


def main() -> None:
    """Measures, prints and saves."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=work_folder, help="folder of the data, kept for the next run")
    parser.add_argument("--columns", type=int, nargs="+", default=[200, 1_500, 5_000])
    parser.add_argument("--python", metavar="LOCATION", help="print Python's figures of one table, as JSON")
    options = parser.parse_args()
    if options.python:
        for row in measure_python(options.python):
            print(json.dumps(row))
        return
    rows: list[Row] = []
    with open_work(options.work) as work:
        with spark_session(work) as spark:
            locations = analyze_tables(spark, work, options.columns)
            narrow = analyze_tables(spark, work, [6])[6]
            list(measure_spark(spark, narrow))
            for number, location in locations.items():
                rows += describe(number, "spark", measure_spark(spark, location))
        for number, location in locations.items():
            command = [sys.executable, __file__, "--python", location]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            rows += describe(number, "python", map(json.loads, done.stdout.splitlines()))
    report("wide", rows, files=FILES, rows_per_file=ROWS)


def describe(columns: int, engine: str, rows: Iterator[Row]) -> Iterator[Row]:
    """Yield rows of the result as they come: CPU seconds of the first and the second time."""
    for row in rows:
        sys.stderr.write(f"{columns} columns, {engine}: {row}\n")
        yield {
            "columns": columns,
            "engine": engine,
            "question": row["question"],
            "first": row.get("first"),
            "again": row.get("again"),
            "page_bytes": row.get("bytes"),
            "error": row.get("error", ""),
        }


if __name__ == "__main__":
    main()
