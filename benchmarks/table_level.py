"""Table level of 65,536 data files: adding and removing the statistics of one, against merging all from scratch.

Ten columns of 64-bit integers, everything in memory, nothing read or committed. The files' statistics are drawn from a
pool, for 65,536 x 10 full sketches would take 21 GB.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import median, report, seconds

from metastore._analyze.kernel import ColumnStatistics, reduce_column, summary_table
from metastore._analyze.kernel.theta import ALL, NOMINAL, Theta
from metastore._analyze.tree import FAN_OUT, Tree
from metastore._format.columns import Column

ROWS, POOL, TARGET = 1_000_000, 2_048, 0.050


def file_statistics(random: np.random.Generator) -> ColumnStatistics:
    """What a file of a million near-unique values would have."""
    values = np.sort(random.integers(0, 1 << 40, 101))
    threshold = ALL // ROWS * NOMINAL
    hashes = np.unique(random.integers(1, threshold, NOMINAL, dtype=np.uint64))
    total = int(values.mean() * ROWS)
    facts = {"rows": ROWS, "nulls": 0, "nans": 0, "distinct": ROWS, "distinct_error": 0.0}
    return ColumnStatistics(
        encoding="long",
        **facts,
        lo=int(values[0]),
        hi=int(values[-1]),
        lo_exact=True,
        hi_exact=True,
        sum_exact=total,
        sum=float(total),
        mean=total / ROWS,
        m2=float(values.var() * ROWS),
        avg_len=8.0,
        max_len=8,
        compressed_bytes=8 * ROWS,
        uncompressed_bytes=8 * ROWS,
        percentiles=values.tolist(),
        theta=Theta(hashes, threshold).to_bytes(),
    )


def main() -> None:
    """Measures and reports."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--files", type=int, default=65_536)
    arguments.add_argument("--columns", type=int, default=10)
    arguments.add_argument("--runs", type=int, default=30)
    asked = arguments.parse_args()
    random = np.random.default_rng(1)
    columns = [Column(str(i), (f"c{i}",), "bigint", "long") for i in range(asked.columns)]
    pool = [[file_statistics(random) for _ in columns] for _ in range(POOL)]
    files = {(f"data/{i}.parquet", i): pool[i % POOL] for i in range(asked.files)}
    made: list[Tree] = []
    build = seconds(lambda: made.append(Tree(columns, files)))
    tree = made[0]
    adding, removing, reading = [], [], []
    for run in range(asked.runs):
        key, one = (f"data/new-{run}.parquet", run), [file_statistics(random) for _ in columns]
        adding.append(seconds(lambda key=key, one=one: tree.add(key, one)))
        reading.append(seconds(tree.root))
        if run:
            removing.append(seconds(lambda key=key: tree.remove(key)))
            continue
        files[key] = one
    removing.append(seconds(lambda: tree.remove(("data/0.parquet", 0))))
    del files["data/0.parquet", 0]
    rows, scratch = scratch_of(columns, files)
    check(tree, rows)
    added, removed, root = median(adding), median(removing), median(reading)
    report(
        "table_level",
        [
            {"measure": "merge all from scratch", "seconds": scratch, "target": "", "met": ""},
            {"measure": "make the tree, once", "seconds": build, "target": "", "met": ""},
            {"measure": "add a file", "seconds": added + root, "target": TARGET, "met": added + root < TARGET},
            {"measure": "remove a file", "seconds": removed + root, "target": TARGET, "met": removed + root < TARGET},
            {"measure": "speed-up of adding", "seconds": scratch / (added + root), "target": "", "met": ""},
        ],
        files=asked.files,
        columns=asked.columns,
        fan_out=FAN_OUT,
    )


def scratch_of(
    columns: list[Column], files: dict[tuple[str, int], list[ColumnStatistics]]
) -> tuple[list[ColumnStatistics], float]:
    """The statistics of the table without a tree, and how long their merging took."""
    found, took = [], 0.0
    for place, column in enumerate(columns):
        known = [statistics[place] for statistics in files.values()]
        rows, thetas = summary_table((0, i, one) for i, one in enumerate(known)), [one.theta for one in known]
        merged: list[ColumnStatistics] = []
        took += seconds(lambda: merged.append(reduce_column(column, rows, thetas)))  # noqa: B023 - called at once
        found += merged
    return found, took


def check(tree: Tree, scratch: list[ColumnStatistics]) -> None:
    """Refuses a tree that tells something else."""
    for one, other in zip(tree.root(), scratch, strict=True):
        for name in ("rows", "nulls", "lo", "hi", "sum_exact", "max_len", "theta"):
            assert getattr(one, name) == getattr(other, name), name
        assert np.isclose(one.m2, other.m2)
        spread = np.array(one.percentiles) - np.array(other.percentiles)
        assert abs(spread).max() < 0.02 * (1 << 40), spread


if __name__ == "__main__":
    main()
