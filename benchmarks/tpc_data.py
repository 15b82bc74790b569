"""Writes TPC-H, TPC-DS or JOB as Parquet files and its queries as JSON; `tpc.py` runs it in group `tpc`'s environment.

uv run --isolated --only-group tpc python benchmarks/tpc_data.py ds FOLDER --scale 1
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import files
from pathlib import Path

import duckdb

LARGE_FILES = 16
JOB_NAMES = {"titles": "t.title", "persons": "n.name", "characters": "chn.name", "companies": "cn.name"}
Queries = dict[str, str]
Fill = Callable[[duckdb.DuckDBPyConnection, float], Queries]


@dataclass(frozen=True)
class Benchmark:
    """How DuckDB generates it, and which of its tables have many files: by a column, or in no order at all."""

    fill: Fill
    ordered: dict[str, str]
    scattered: tuple[str, ...]


def by_extension(name: str, generator: str, duck: duckdb.DuckDBPyConnection, scale: float) -> Queries:
    """Fills the tables of TPC-H or TPC-DS; returns the queries."""
    package = files(f"duckdb-extension-{name}") or ()
    extension = next(f for f in package if f.suffix == ".duckdb_extension")
    duck.execute(f"LOAD '{extension.locate()}'")
    duck.execute(f"CALL {generator}(sf={scale})")
    return dict(duck.execute(f"SELECT query_nr, query FROM {name}_queries() ORDER BY 1").fetchall())


def job(duck: duckdb.DuckDBPyConnection, scale: float) -> Queries:
    """Fills the tables of JOB; returns the queries, whose literals occur in the tables."""
    from benchbox.core.joinorder.queries import JoinOrderQueryManager  # noqa: PLC0415 - needs Python 3.11
    from benchbox.core.joinorder.schema import JoinOrderSchema  # noqa: PLC0415

    queries = JoinOrderQueryManager().get_all_queries()
    duck.execute(JoinOrderSchema().get_create_tables_sql("duckdb"))
    duck.execute(f"SET VARIABLE scale = {scale}")
    for variable, column in {"keywords": "k.keyword", **JOB_NAMES}.items():
        duck.execute(f"SET VARIABLE {variable} = ?", [looked_for(queries, column)])
    duck.execute(Path(__file__).with_name("job.sql").read_text())
    return queries


def looked_for(queries: Queries, column: str) -> list[str]:
    """Values that fit what the queries compare a column with, most often used first."""
    condition = re.compile(rf"\b{re.escape(column)}\s*(?:=|LIKE|IN)\s*('[^']+'|\([^)]+\))")
    written: Counter[str] = Counter()
    for query in queries.values():
        literals = re.findall("'([^']+)'", " ".join(condition.findall(query)))
        written.update(literal.strip("%").replace("%", " ") for literal in literals)
    return [value for value, _ in written.most_common() if len(value) > 2]  # two letters are in many names


BENCHMARKS = {
    "h": Benchmark(
        partial(by_extension, "tpch", "dbgen"),
        {"lineitem": "l_shipdate", "orders": "o_orderdate"},
        ("customer", "part", "partsupp", "supplier"),
    ),
    "ds": Benchmark(
        partial(by_extension, "tpcds", "dsdgen"),
        {"store_sales": "ss_sold_date_sk", "store_returns": "sr_returned_date_sk", "inventory": "inv_date_sk"},
        ("catalog_sales", "catalog_returns", "web_sales", "web_returns", "customer", "customer_demographics"),
    ),
    "job": Benchmark(
        job,
        {"cast_info": "role_id", "movie_info": "info_type_id"},
        ("title", "name", "char_name", "movie_companies", "movie_info_idx", "movie_keyword", "person_info", "aka_name"),
    ),
}


def generate(benchmark: Benchmark, folder: Path, scale: float) -> None:
    """Writes every table: large ones in files by a column or in no order at all, the others in one file."""
    duck = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    queries = benchmark.fill(duck, scale)
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
    (folder / "queries.json").write_text(json.dumps(queries, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmark", choices=BENCHMARKS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1)
    options = parser.parse_args()
    generate(BENCHMARKS[options.benchmark], options.folder, options.scale)
