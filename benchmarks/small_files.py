"""Statistics of small files and of wide ones: how near their numbers are, and what they cost.

    uv run python benchmarks/small_files.py --scale 1

1,000 data files of 1 MB and 5,000 of 100 kB, each of 17 columns such as TPC-H's lineitem has, and 8 files of 2,000
columns and 500 rows. Errors are against the sorted values themselves: of quantiles as shares of rank, of the tails
(0.01 %, 0.1 % and their mirror images) apart; beside them those of DuckDB's `approx_quantile` (of numbers) and
`approx_count_distinct` on the same data. Stored bytes are those of everything that is kept of data files.
"""

from __future__ import annotations

import argparse
import datetime as dt
import math
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from common import median, report, seconds, spark_session

import metastore
from metastore.format.table_column import Column, encoding_of
from metastore.kernel.parquet_file import analyze_parquet
from metastore.kernel.parquet_schema import FileColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from metastore import Statistics

TAILS = (0.0001, 0.001, 0.999, 0.9999)
PROBABILITIES = (*TAILS, 0.01, *(i / 20 for i in range(1, 20)), 0.99)
WORDS = pa.array(["slyly", "quickly", "ironic", "pending", "final", "express", "regular", "bold", "even", "silent"])
LOOK_UPS, WIDE_ASKED, SETTLED = 20, 40, 2.5
COUNTED = ("files", "summary", "sketches", "frequencies", "histograms")


@dataclass(frozen=True)
class Shape:
    """A table: its name, how many data files it has, rows of each, and columns (0: the 17)."""

    name: str
    files: int
    rows: int
    columns: int = 0


SHAPES = (Shape("1 MB", 1_000, 10_000), Shape("100 kB", 5_000, 1_000), Shape("2,000 columns", 8, 500, 2_000))


def cents(values: np.ndarray) -> pa.Array:
    """Integers as decimals of two digits behind the point."""
    halves = np.stack([values, values >> 63], axis=1)  # of 128 bits, the low ones first
    return pa.Array.from_buffers(
        pa.decimal128(12, 2), len(values), [None, pa.py_buffer(halves.astype("<i8").tobytes())]
    )


def words(random: np.random.Generator, rows: int, number: int) -> pa.Array:
    """Texts of so many words."""
    chosen = [WORDS.take(pa.array(random.integers(0, len(WORDS), rows))) for _ in range(number)]
    return pc.binary_join_element_wise(*chosen, " ")


def identifiers(random: np.random.Generator, rows: int) -> pa.Array:
    """Texts of 32 random hexadecimal digits."""
    offsets = pa.py_buffer(np.arange(0, 32 * rows + 1, 32, dtype=np.int32))
    return pa.StringArray.from_buffers(rows, offsets, pa.py_buffer(random.bytes(16 * rows).hex().encode()))


def lines(random: np.random.Generator, first: int, rows: int) -> dict[str, pa.Array]:
    """The 17 columns of a data file.

    Args:
        random: Gives its values.
        first: The number of its first row.
        rows: How many it has.
    """
    order_day = random.integers(8036, 10_500, rows)
    modes = pa.array(["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"])
    flags = pa.array(["A", "N", "R"])
    return {
        "order": pa.array(first // 4 + np.arange(rows) // 4),
        "part": pa.array(random.integers(0, 200_000, rows)),
        "supplier": pa.array(random.integers(0, 10_000, rows)),
        "line": pa.array(random.integers(1, 8, rows).astype(np.int32)),
        "quantity": cents(random.integers(1, 51, rows) * 100),
        "price": cents(random.integers(90_000, 10_500_000, rows)),
        "discount": cents(random.integers(0, 11, rows)),
        "score": pa.array(random.lognormal(3, 1.5, rows)),
        "returned": pa.array(random.random(rows) < 0.1),
        "flag": flags.take(pa.array(random.choice(3, rows, p=[0.25, 0.5, 0.25]))),
        "shipped": pa.array((order_day + random.integers(1, 122, rows)).astype(np.int32), pa.date32()),
        "committed": pa.array((order_day + random.integers(30, 91, rows)).astype(np.int32), pa.date32()),
        "mode": modes.take(pa.array(random.integers(0, 7, rows))),
        "clicks": pa.array(np.minimum(random.zipf(1.3, rows), 1 << 40)),
        "ratio": pa.array(np.where(random.random(rows) < 0.7, 0.0, random.exponential(size=rows))),
        "comment": words(random, rows, 6),
        "identifier": identifiers(random, rows),
    }


def measures(random: np.random.Generator, rows: int, columns: int) -> dict[str, pa.Array]:
    """Columns of a wide data file: numbers near unique, numbers that repeat, few values, texts."""
    make = (
        lambda: pa.array(random.normal(size=rows)),
        lambda: pa.array(random.integers(0, 400, rows)),
        lambda: pa.array(random.integers(0, 1 << 40, rows)),
        lambda: WORDS.take(pa.array(random.integers(0, len(WORDS), rows))),
    )
    return {f"c{number}": make[number % len(make)]() for number in range(columns)}


def write(folder: Path, shape: Shape, number: int) -> None:
    """Writes one data file."""
    random = np.random.default_rng(number)
    if shape.columns:
        arrays = measures(random, shape.rows, shape.columns)
    else:
        arrays = lines(random, number * shape.rows, shape.rows)
    pq.write_table(pa.table(arrays), folder / f"{number:06d}.parquet", compression="zstd")


def comparable(values: pa.ChunkedArray) -> np.ndarray:
    """Values as numpy sorts them."""
    if pa.types.is_decimal(values.type):
        return np.asarray(pc.multiply(values, pa.scalar(Decimal(100))).cast(pa.int64(), safe=False).to_numpy())
    kind = pa.types.is_date32(values.type) or pa.types.is_boolean(values.type)
    return np.asarray((values.cast(pa.int32()) if kind else values).to_numpy())


def parsed(text: str, kind: pa.DataType) -> Any:
    """A value that an answer shows, as `comparable` has it."""
    if pa.types.is_decimal(kind):
        return int(Decimal(text) * 100)
    if pa.types.is_date32(kind):
        return (dt.date.fromisoformat(text) - dt.date(1970, 1, 1)).days
    if pa.types.is_boolean(kind):
        return int(text == "true")
    return text if pa.types.is_string(kind) else float(text) if pa.types.is_floating(kind) else int(text)


def rank_errors(ordered: np.ndarray, estimated: list[Any]) -> Iterator[tuple[bool, float]]:
    """For each probability whether it is one of the tails, and how far the value's rank is from its own."""
    for probability, value in zip(PROBABILITIES, estimated, strict=True):
        rank = max(1, math.ceil(probability * len(ordered)))
        first, last = np.searchsorted(ordered, value, "left") + 1, np.searchsorted(ordered, value, "right")
        yield probability in TAILS, max(first - rank, rank - last, 0) / len(ordered)


def errors(opened: Statistics, folder: Path, names: list[str]) -> dict[str, float]:
    """The largest errors among some columns, ours and DuckDB's."""
    worst = dict.fromkeys(("rank", "tail", "said", "distinct", "duckdb_rank", "duckdb_tail", "duckdb_distinct"), 0.0)
    summary = {row["column_name"]: row for row in opened.summary()}

    def note(kind: str, error: float) -> None:
        worst[kind] = max(worst[kind], error)

    for name in names:
        values = pq.read_table(folder, columns=[name])[name]
        ordered, kind = np.sort(comparable(values)), values.type
        distinct = 1 + int((ordered[1:] != ordered[:-1]).sum())
        rows = opened.quantiles(name, PROBABILITIES)
        note("said", max(row["error"] for row in rows))
        for is_tail, error in rank_errors(ordered, [parsed(row["value"], kind) for row in rows]):
            note("tail" if is_tail else "rank", error)
        note("distinct", abs(summary[name]["approx_unique"] / distinct - 1))
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        percentile_column = f', approx_quantile("{name}", {list(PROBABILITIES)})' if numeric else ""
        theirs = duckdb.sql(
            f"SELECT approx_count_distinct(\"{name}\"){percentile_column} FROM '{folder}/*.parquet'"
        ).fetchall()[0]
        assert theirs is not None
        note("duckdb_distinct", abs(theirs[0] / distinct - 1))
        for is_tail, error in rank_errors(ordered, theirs[1]) if numeric else ():
            note("duckdb_tail" if is_tail else "duckdb_rank", error)
    return worst


def one_column(opened: Statistics, folder: Path, names: list[str]) -> dict[str, float]:
    """Processor time of one column of one data file: analyzed among all columns, and looked up alone."""
    path = str(next(iter(sorted(folder.glob("*.parquet")))))
    kinds = {row["column_name"]: row["column_type"] for row in opened.summary()}
    file_columns = [
        FileColumn(Column(key=name, path=(name,), type=kind, encoding=encoding_of(kind)))
        for name, kind in kinds.items()
    ]
    start = time.process_time()
    analyze_parquet(path, file_columns)
    analyzed = (time.process_time() - start) / len(file_columns)
    file = next(row["path"] for row in opened.files() if path.endswith(row["path"].rsplit("/", 1)[-1]))
    taken = []
    for number in range(LOOK_UPS):
        start = time.process_time()
        opened.histogram(names[number % len(names)], file=file)
        taken.append(time.process_time() - start)
    return {"analyze_ms": 1000 * analyzed, "look_up_ms": 1000 * median(taken)}


def measured(work: Path, shape: Shape, spark: Any) -> dict[str, Any]:
    """Makes a table, analyzes it, and judges the answers."""
    folder = work / shape.name.replace(" ", "_").replace(",", "")
    folder.mkdir()
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        list(
            pool.map(
                write, *zip(*((folder, shape, number) for number in range(shape.files)), strict=True), chunksize=50
            )
        )
    time.sleep(SETTLED)  # files modified just now are not analyzed
    taken = seconds(lambda: metastore.analyze(spark, f"parquet.`{folder}`", progress=False))
    opened = metastore.open(str(folder))
    size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    objects = (folder / "_metastore" / "objects").iterdir()
    stored = sum(path.stat().st_size for path in objects if path.name.startswith(tuple(f"{kind}-" for kind in COUNTED)))
    names = [row["column_name"] for row in opened.summary()]
    asked_names = names if not shape.columns else names[:WIDE_ASKED]
    return {
        "shape": shape.name,
        "files": shape.files,
        "columns": len(names),
        "data_mb": size / 1e6,
        "store_mb": stored / 1e6,
        "share": stored / size,
        "bytes_a_column_and_file": stored / shape.files / len(names),
        **errors(opened, folder, asked_names),
        "unknown_distinct": sum(row["approx_unique"] is None for row in opened.summary()),
        "largest_distinct_error": max(row["distinct_error"] or 0.0 for row in opened.summary()),
        "analyze_s": taken,
        **one_column(opened, folder, asked_names),
    }


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the data files, and of the wide columns")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        with spark_session(work) as spark:
            rows = [measured(work, scaled(shape, options.scale), spark) for shape in SHAPES]
    report("small_files", rows, scale=options.scale)


def scaled(shape: Shape, scale: float) -> Shape:
    """A shape with a share of its data files, or of its columns."""
    if shape.columns:
        return Shape(shape.name, shape.files, shape.rows, max(round(shape.columns * scale), 8))
    return Shape(shape.name, max(round(shape.files * scale), 2), shape.rows)


if __name__ == "__main__":
    main()
