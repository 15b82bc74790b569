"""Writes TPC-DS as Parquet files and its 99 queries as JSON; `tpcds.py` runs it in the group `tpcds`' own environment.

uv run --isolated --only-group tpcds python benchmarks/tpcds_data.py FOLDER --scale 1
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import files
from pathlib import Path

import duckdb

FACT_FILES = 16
CLUSTERED = {"store_sales": "ss_sold_date_sk", "store_returns": "sr_returned_date_sk", "inventory": "inv_date_sk"}
SCATTERED = ("catalog_sales", "catalog_returns", "web_sales", "web_returns", "customer", "customer_demographics")


def generate(folder: Path, scale: float) -> None:
    """Writes every table: facts in files by date or in no order at all, dimensions in one file."""
    extension = next(f for f in files("duckdb-extension-tpcds") or () if f.suffix == ".duckdb_extension")
    duck = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    duck.execute(f"LOAD '{extension.locate()}'")
    duck.execute(f"CALL dsdgen(sf={scale})")
    for (table,) in duck.execute("SHOW TABLES").fetchall():
        order = CLUSTERED.get(table) or ("hash(rowid)" if table in SCATTERED else None)
        (folder / table).mkdir(parents=True)
        if order is None:
            duck.execute(f"COPY {table} TO '{folder}/{table}/0.parquet'")
            continue
        parts = f"SELECT *, ntile({FACT_FILES}) OVER (ORDER BY {order}, rowid) AS part FROM {table}"
        duck.execute(f"CREATE TEMP TABLE parts AS {parts}")
        for part in range(1, FACT_FILES + 1):
            rows = f"SELECT * EXCLUDE part FROM parts WHERE part = {part}"
            duck.execute(f"COPY ({rows}) TO '{folder}/{table}/{part:02}.parquet'")
        duck.execute("DROP TABLE parts")
    queries = duck.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY 1").fetchall()
    (folder / "queries.json").write_text(json.dumps(dict(queries), indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1)
    given = parser.parse_args()
    generate(given.folder, given.scale)
