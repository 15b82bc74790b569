"""DuckDB and Polars on a folder of Parquet files, with the files that `prune` leaves and with all of them.

Both engines skip row groups by the footers of the files that they are given; to do so they open every file. The times
with `prune` hold all of it: opening the statistics, judging the files, the query; "again" are those of a program that
keeps the statistics open. Answers are compared.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from common import alternate, median, report, spark_session

import metastore

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTRIES = np.array([f"C{number:02d}" for number in range(40)])


def write(folder: Path, files: int, rows: int) -> None:
    """Files with ascending identifiers, random customers, few countries each and random amounts."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(1)
    for number in range(files):
        ids = np.arange(number * rows, (number + 1) * rows)
        customers = random.integers(0, 1 << 62, rows)
        table = pa.table(
            {
                "id": ids,
                "customer": pa.array([f"{customer:016x}" for customer in customers]),
                "country": COUNTRIES[random.integers(0, 3, rows) + number % 37],
                "day": pa.array(19_000 + number // 10 + np.zeros(rows, np.int32), pa.int32()).cast(pa.date32()),
                "amount": random.random(rows) * 1000,
                "note": pa.array([f"note {row_id % 9973}" for row_id in ids]),
            }
        )
        pq.write_table(table, folder / f"{number:05d}.parquet")


def filters(folder: Path, files: int, rows: int) -> dict[str, str]:
    """The filters, by their description."""
    middle = files // 2
    customer = pq.read_table(folder / f"{middle:05d}.parquet", columns=["customer"])["customer"][rows // 2].as_py()
    return {
        "one id": f"id = {middle * rows + 7}",
        "one customer": f"customer = '{customer}'",
        "a hundredth of the ids": f"id >= {middle * rows} AND id < {middle * rows + max(files * rows // 100, 1)}",
        "a country, large amounts": "country = 'C07' AND amount > 999.5",
        "no row": "id < 0",
        "half of the amounts": "amount > 500",
    }


def count_by_duckdb(paths: list[str], condition: str) -> tuple[int, float]:
    """Rows, and the sum of their amounts."""
    matching = duckdb.read_parquet(paths).filter(condition)
    ((rows, amount),) = matching.aggregate("count(*), coalesce(sum(amount), 0)").fetchall()
    return int(rows), round(float(amount), 3)


def count_by_polars(paths: list[str], condition: str) -> tuple[int, float]:
    """Rows, and the sum of their amounts."""
    matching = pl.scan_parquet(paths).filter(pl.sql_expr(condition))
    totals = matching.select(pl.len().alias("rows"), pl.col("amount").sum()).collect().row(0)
    return int(totals[0]), round(float(totals[1]), 3)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=10_000, help="of each file")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "sales")
        write(folder, options.files, options.rows)
        time.sleep(2.1)  # files that were just written are not analyzed
        with spark_session(Path(scratch)) as spark:
            metastore.analyze(spark, f"parquet.`{folder}`", progress=False)
        everything = sorted(str(path) for path in folder.glob("*.parquet"))
        rows = []
        for description, condition in filters(folder, options.files, options.rows).items():
            rows += [
                measure(
                    description=description,
                    engine=engine,
                    count=count,
                    folder=folder,
                    everything=everything,
                    condition=condition,
                    runs=options.runs,
                )
                for engine, count in {"DuckDB": count_by_duckdb, "Polars": count_by_polars}.items()
            ]
    report("engines", rows, files=options.files, rows_of_file=options.rows)


def measure(
    description: str,
    engine: str,
    count: Callable[[list[str], str], tuple[int, float]],
    folder: Path,
    everything: list[str],
    condition: str,
    runs: int,
) -> dict[str, object]:
    """One row of the table."""
    answers: dict[str, tuple[int, float]] = {}
    pruning: list[float] = []

    def with_prune() -> None:
        start = time.perf_counter()
        files = metastore.open(folder).prune(condition)
        pruning.append(time.perf_counter() - start)
        answers["with"] = count(files.scan_paths, condition)

    kept_open = metastore.open(folder)

    def again() -> None:
        answers["again"] = count(kept_open.prune(condition).scan_paths, condition)

    def without() -> None:
        answers["without"] = count(everything, condition)

    times = alternate({"without": without, "with": with_prune, "again": again}, runs)
    assert len(set(answers.values())) == 1, (description, engine, answers)
    kept_files = len(metastore.open(folder).prune(condition))
    before, after, later = (median(times[way]) for way in ("without", "with", "again"))
    return {
        "condition": description,
        "engine": engine,
        "files": kept_files,
        "of": len(everything),
        "without_s": before,
        "with_s": after,
        "prune_s": median(pruning[1:]),
        "again_s": later,
        "times_faster": before / later,
    }


if __name__ == "__main__":
    main()
