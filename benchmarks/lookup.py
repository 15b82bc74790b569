"""One column's summary, ten most frequent values and histogram of a table with 1,000 columns, from the store alone.

The manifest and the objects' footers are read once, as by a program that keeps the table open; every look-up reads and
verifies its row group. `--cold` opens the table for every look-up, manifest and footers included.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from common import median, report, seconds

import metastore
from metastore.format.manifest import Manifest, Snapshot, SummaryRef, TableIdentity
from metastore.format.object_layout import HISTOGRAM_GROUPS, split_evenly, table_lists_layout
from metastore.format.object_schemas import TABLE_FILES, TABLE_FREQUENCIES, TABLE_HISTOGRAMS, TABLE_SUMMARY
from metastore.format.table_column import Column
from metastore.store import Store

COLUMNS, VALUES, BINS, LOOK_UPS, TARGET = 1_000, 1_000, 1_000, 200, 0.005
ENCODINGS = ("long", "double", "binary")


def columns() -> tuple[Column, ...]:
    """A third of each encoding."""
    kinds = {"long": "bigint", "double": "double", "binary": "string"}
    names = (ENCODINGS[i % 3] for i in range(COLUMNS))
    return tuple(
        Column(key=str(i), path=(f"column_{i}",), type=kinds[name], encoding=name) for i, name in enumerate(names)
    )


def values(column: Column, number: int, seed: int) -> list[object]:
    """Ascending values as they are stored."""
    drawn = np.unique(np.random.default_rng(seed).integers(0, 1 << 40, number + 10))[:number]
    if column.encoding == "long":
        return drawn.tolist()
    return (drawn / 7).tolist() if column.encoding == "double" else [f"customer {v:013d}".encode() for v in drawn]


def table(schema: pa.Schema, rows: list[dict[str, object]]) -> pa.Table:
    """Rows of an object."""
    return pa.table([pa.array([row.get(kind.name) for row in rows], kind.type) for kind in schema], schema=schema)


def write(folder: Path) -> int:
    """Writes the table level of such a table; returns its bytes."""
    store, table_columns = Store.open(str(folder), writable=True), columns()
    identity = TableIdentity("iceberg", "00000000-0000-4000-8000-000000000001", "/w/t", "db.t")
    summary, lists, bars = [], [], []
    for ordinal, column in enumerate(table_columns):
        listed, edges = values(column, VALUES, ordinal), values(column, BINS + 1, ordinal)
        name = str(column.encoding)
        facts = {"rows": 10**6, "nulls": 0, "nans": 0, "files": 8, "frequencies": "complete", "distinct": VALUES}
        ends = {f"lo_{name}": edges[0], f"hi_{name}": edges[-1], "lo_exact": True, "hi_exact": True}
        summary.append({"column": ordinal, **facts, **ends, f"percentiles_{name}": edges[:101]})
        lists += [{"column": ordinal, f"value_{name}": v, "frequency": VALUES - i} for i, v in enumerate(listed)]
        counts = [1000] * BINS
        bars.append(
            {"column": ordinal, "kind": "equi_height", f"edges_{name}": edges, "counts": counts, "distincts": counts}
        )
    ordered, groups = table_lists_layout(table(TABLE_FREQUENCIES, lists), TABLE_FREQUENCIES.empty_table())
    groups_of_bars = split_evenly(COLUMNS, HISTOGRAM_GROUPS)
    put = {
        "summary": store.put("table-summary", table(TABLE_SUMMARY, summary), split_evenly(COLUMNS, 16)),
        "histograms": store.put("table-histograms", table(TABLE_HISTOGRAMS, bars), groups_of_bars),
        "table_files": store.put("table-files", TABLE_FILES.empty_table(), []),
    }
    frequencies_ref = SummaryRef(store.put("table-frequencies", ordered, groups), tuple(range(COLUMNS)))
    facts = {"exact": True, "files": 8, "files_total": 8, "rows": 10**6, "physical_rows": 10**6}
    snapshot = Snapshot(
        id="1",
        analyzed_at="2026-01-31T12:00:00Z",
        computed="full",
        columns=table_columns,
        size_bytes=1,
        live_size_bytes=1,
        frequencies=(frequencies_ref,),
        **facts,
        **put,
    )
    store.commit(identity, lambda _: Manifest(table=identity, blocks=(), snapshots=(snapshot,)))
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cold", action="store_true", help="open the table for every look-up")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        size, chosen = write(folder), random.Random(1)  # noqa: S311 - which columns are asked about
        open_table = metastore.open(str(folder))
        opened = (lambda: metastore.open(str(folder))) if options.cold else (lambda: open_table)
        questions = {
            "summary": lambda name: opened().details(name),
            "ten most frequent": lambda name: opened().frequencies(name, 10),
            "histogram, 20 bins": lambda name: opened().histogram(name, 20),
            "histogram, all bins": lambda name: opened().histogram(name),
            "all values": lambda name: opened().frequencies(name),
        }
        rows = []
        for name, ask in questions.items():
            ask("column_0")
            names = [f"column_{chosen.randrange(COLUMNS)}" for _ in range(LOOK_UPS)]
            times = [seconds(lambda name=name, ask=ask: ask(name)) for name in names]
            rows.append({"what": name, "seconds": median(times), "max": max(times), "target": TARGET})
    report("lookup_cold" if options.cold else "lookup", rows, store_bytes=size)


if __name__ == "__main__":
    main()
