"""ANALYZE of every column, ours against Spark's own without and with histograms, and a bare read of the same files.

    uv run python benchmarks/analyze.py            # TPC-H lineitem, scale 1, 4 data files
    uv run python benchmarks/analyze.py --on s3    # Iceberg, Delta and Parquet on an S3 server, 8 files; --delay 20
    uv run python benchmarks/analyze.py --wide     # 2 data files x 20,000 rows x 1,500 columns; --columns for fewer

The same rows stand in an Iceberg table (ours) and in a Parquet table of the session catalog (Spark's), as the same
number of files; all are timed in turn in one Spark after a round of warming up. Appends come last. Of 1,500 columns
Spark's ANALYZE takes minutes: it is timed once, without a round before, and given up after `--limit` seconds; with
`--limit 0` not at all, and no result is written.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import analyze_on_s3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import alternate, median, report, seconds, spark_session, tpch, work_folder

import metastore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession


def wide_files(work: Path, files: int = 2, rows: int = 20_000, columns: int = 1_500) -> Path:
    """Writes Parquet files of integer, double and string columns in equal parts."""
    folder = work / f"wide-{columns}"
    if folder.exists():
        return folder
    folder.mkdir()
    random, texts = np.random.default_rng(1), pa.array([f"v{i}" for i in range(5_000)])
    for file in range(files):
        kinds = [
            lambda: pa.array(random.integers(0, 1_000_000, rows)),
            lambda: pa.array(random.normal(size=rows)),
            lambda: texts.take(pa.array(random.integers(0, len(texts), rows))),
        ]
        data = {f"c{i}": kinds[i % 3]() for i in range(columns)}
        pq.write_table(pa.table(data), folder / f"part-{file}.parquet")
    return folder


def create_tables(spark: SparkSession, source: Path, *, wide: bool) -> list[Path]:
    """Makes `ice.db.t` and its Parquet copy `t` with one data file each a source file; returns the Iceberg files."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    first, *later_files = sorted(str(f) for f in source.glob("*.parquet"))
    spark.read.parquet(first).coalesce(1).writeTo("ice.db.t").create()
    for file in later_files:
        spark.read.parquet(file).coalesce(1).writeTo("ice.db.t").append()
    if wide:  # the source itself
        spark.catalog.createTable("t", str(source), "parquet")
    else:
        for mode, file in (("overwrite", first), *(("append", file) for file in later_files)):
            spark.read.parquet(file).coalesce(1).write.saveAsTable("t", format="parquet", mode=mode)
    return [Path(urlparse(row.file_path).path) for row in spark.table("ice.db.t.files").collect()]


def after_appends(spark: SparkSession, runs: int) -> list[float]:
    """Seconds of ANALYZE after a hundredth of the rows was appended, in a table that was analyzed before."""
    share = spark.table("t").limit(spark.table("t").count() // 100).coalesce(1).cache()
    times = []
    for _ in range(runs):
        share.writeTo("ice.db.t").append()
        times.append(seconds(lambda: metastore.analyze(spark, "ice.db.t", progress=False)))
    return times


def within(spark: SparkSession, limit: float, action: Callable[[], object]) -> float | None:
    """Seconds of one call; None where it is not done by the limit, and its jobs are cancelled."""
    took: list[float] = []
    thread = Thread(target=lambda: took.append(seconds(action)), daemon=True)
    thread.start()
    thread.join(limit)
    if thread.is_alive():
        spark.sparkContext.cancelAllJobs()
        return None
    return took[0]


def once(spark: SparkSession, limit: float, slow: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Times each action once; one that is given up has the limit as its time, and those that do even more are left."""
    spark.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS c0, c1, c2")  # warms up
    times: dict[str, list[float]] = {}
    for name, action in slow.items():
        took = within(spark, limit, action)
        if took is None:
            return {**times, f"{name}, given up": [limit]}
        times[name] = [took]
    return times


def actions(spark: SparkSession, work: Path, files: list[Path]) -> dict[str, Callable[[], object]]:
    """The four things to time."""

    def ours() -> None:
        shutil.rmtree(work / "ice/db/t/_metastore", ignore_errors=True)
        metastore.analyze(spark, "ice.db.t", progress=False)

    def sparks(histograms: str) -> None:
        spark.conf.set("spark.sql.statistics.histogram.enabled", histograms)
        spark.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")

    def bare_read() -> None:
        for file in files:
            pq.read_table(file)

    return {
        "metastore": ours,
        "spark": lambda: sparks("false"),
        "spark with histograms": lambda: sparks("true"),
        "bare pyarrow read": bare_read,
    }


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wide", action="store_true", help="1,500 columns instead of lineitem")
    parser.add_argument("--columns", type=int, default=1_500, help="columns of --wide (default 1,500)")
    parser.add_argument("--limit", type=float, default=300, help="of each of Spark's with --wide (default 300)")
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H scale factor (default 1)")
    parser.add_argument("--runs", type=int, default=3, help="counted runs (default 3)")
    parser.add_argument("--work", type=work_folder, help="folder that keeps the generated data")
    parser.add_argument("--on", choices=["disk", "s3"], default="disk", help="where the tables lie (default disk)")
    parser.add_argument("--delay", type=float, default=0, help="milliseconds that each request to S3 waits (default 0)")
    return parser.parse_args()


def make_work_folder(options: argparse.Namespace) -> Path:
    """Make the folder for data and tables; tables of an earlier run are removed."""
    work = options.work or Path(tempfile.mkdtemp(prefix="metastore-benchmark-"))
    for made_anew in ("ice", "warehouse"):
        shutil.rmtree(work / made_anew, ignore_errors=True)
    return work


def main() -> None:
    """Runs one of the two shapes."""
    options = parse_options()
    work = make_work_folder(options)
    if options.on == "s3":
        analyze_on_s3.run(options, work)
        return
    source = wide_files(work, columns=options.columns) if options.wide else tpch(work, "lineitem", options.scale, 4)
    with spark_session(work) as spark:
        files = create_tables(spark, source, wide=options.wide)
        timed = actions(spark, work, files)
        slow = take_slow_actions(timed) if options.wide else {}
        times = alternate(timed, options.runs)
        store_bytes = total_size(path for path in (work / "ice/db/t/_metastore").rglob("*") if path.is_file())
        times["metastore after appending 1 %"] = after_appends(spark, options.runs)
        if slow and options.limit:
            times |= once(spark, options.limit, slow)
    if slow and not options.limit:
        print({name: [round(seconds, 2) for seconds in took] for name, took in times.items()})
        return
    ours = median(times["metastore"])
    rows = [
        {"what": name, "seconds": median(t), "min": min(t), "max": max(t), "times ours": median(t) / ours}
        for name, t in times.items()
    ]
    name = "analyze"
    columns = {}
    if options.wide:
        name = "analyze-wide"
        columns = {"columns": options.columns}
    report(name, rows, **columns, data_bytes=total_size(files), store_bytes=store_bytes)


def take_slow_actions(timed: dict[str, Callable[[], object]]) -> dict[str, Callable[[], object]]:
    """Take Spark's own actions out of those that are timed in turn."""
    names = [name for name in timed if name.startswith("spark")]
    return {name: timed.pop(name) for name in names}


def total_size(files: Iterable[Path]) -> int:
    """The size of files in bytes."""
    return sum(file.stat().st_size for file in files)


if __name__ == "__main__":
    main()
