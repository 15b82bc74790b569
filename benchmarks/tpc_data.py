"""Writes TPC-H or TPC-DS as Parquet files and its queries as JSON; `tpc.py` runs it in the group `tpc`'s environment.

uv run --isolated --only-group tpc python benchmarks/tpc_data.py ds FOLDER --scale 1
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from importlib.metadata import files
from pathlib import Path

import duckdb

LARGE_FILES = 16


@dataclass(frozen=True)
class Benchmark:
    """How DuckDB generates it, and which of its tables have many files: by a column, or in no order at all."""

    extension: str
    generator: str
    ordered: dict[str, str]
    scattered: tuple[str, ...]


BENCHMARKS = {
    "h": Benchmark(
        "tpch",
        "dbgen",
        {"lineitem": "l_shipdate", "orders": "o_orderdate"},
        ("customer", "part", "partsupp", "supplier"),
    ),
    "ds": Benchmark(
        "tpcds",
        "dsdgen",
        {"store_sales": "ss_sold_date_sk", "store_returns": "sr_returned_date_sk", "inventory": "inv_date_sk"},
        ("catalog_sales", "catalog_returns", "web_sales", "web_returns", "customer", "customer_demographics"),
    ),
}


def generate(benchmark: Benchmark, folder: Path, scale: float) -> None:
    """Writes every table: large ones in files by date or in no order at all, the others in one file."""
    package = files(f"duckdb-extension-{benchmark.extension}") or ()
    extension = next(f for f in package if f.suffix == ".duckdb_extension")
    duck = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    duck.execute(f"LOAD '{extension.locate()}'")
    duck.execute(f"CALL {benchmark.generator}(sf={scale})")
    for (table,) in duck.execute("SHOW TABLES").fetchall():
        order = benchmark.ordered.get(table) or ("hash(rowid)" if table in benchmark.scattered else None)
        (folder / table).mkdir(parents=True)
        if order is None:
            duck.execute(f"COPY {table} TO '{folder}/{table}/0.parquet'")
            continue
        parts = f"SELECT *, ntile({LARGE_FILES}) OVER (ORDER BY {order}, rowid) AS part FROM {table}"
        duck.execute(f"CREATE TEMP TABLE parts AS {parts}")
        for part in range(1, LARGE_FILES + 1):
            rows = f"SELECT * EXCLUDE part FROM parts WHERE part = {part}"
            duck.execute(f"COPY ({rows}) TO '{folder}/{table}/{part:02}.parquet'")
        duck.execute("DROP TABLE parts")
    queries = duck.execute(f"SELECT query_nr, query FROM {benchmark.extension}_queries() ORDER BY 1").fetchall()
    (folder / "queries.json").write_text(json.dumps(dict(queries), indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmark", choices=BENCHMARKS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1)
    given = parser.parse_args()
    generate(BENCHMARKS[given.benchmark], given.folder, given.scale)
