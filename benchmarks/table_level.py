"""Table level of 65,536 data files: adding and removing the statistics of one, against merging all from scratch.

Ten columns of 64-bit integers, merged as ANALYZE merges them, with all partial merges in memory; nothing is read or
committed. The files' statistics are drawn from a pool, for 65,536 x 10 full sketches would take 21 GB.
"""

from __future__ import annotations

import argparse
import bisect

import numpy as np
import pyarrow as pa
from common import median, report, seconds

from metastore._analyze.kernel import ColumnStatistics, reduce_column, summary_table
from metastore._analyze.kernel.theta import ALL, NOMINAL, Theta
from metastore._analyze.nodes import FAN_OUT, Merge, Node, identity
from metastore._format.columns import Column

SCALARS = ["rows", "nulls", "nans", "lo_long", "hi_long", "distinct", "distinct_error"]
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


class Table:
    """What is known of the files of a table, and what was merged of it."""

    def __init__(self, columns: list[Column], paths: list[str], files: list[list[ColumnStatistics]]) -> None:
        """Take all files."""
        self.columns, self.paths, self.files = columns, paths, files
        self.words = np.stack([words(path) for path in paths])
        self.scalars = [
            summary_table((0, i, file[place]) for i, file in enumerate(files)).select(SCALARS)
            for place in range(len(columns))
        ]
        self.nodes: list[dict[bytes, Node]] = [{} for _ in columns]

    def add(self, path: str, file: list[ColumnStatistics]) -> list[ColumnStatistics]:
        """The statistics of the table with one more file."""
        at = bisect.bisect(self.paths, path)
        self.paths.insert(at, path)
        self.files.insert(at, file)
        self.words = np.insert(self.words, at, words(path), axis=0)
        for place, one in enumerate(file):
            rows, new = self.scalars[place], summary_table([(0, 0, one)]).select(SCALARS)
            self.scalars[place] = pa.concat_tables([rows.slice(0, at), new, rows.slice(at)])
        return self.merged()

    def remove(self, path: str) -> list[ColumnStatistics]:
        """The statistics of the table without a file."""
        at = self.paths.index(path)
        del self.paths[at], self.files[at]
        self.words = np.delete(self.words, at, axis=0)
        self.scalars = [pa.concat_tables([rows.slice(0, at), rows.slice(at + 1)]) for rows in self.scalars]
        return self.merged()

    def merged(self) -> list[ColumnStatistics]:
        """The statistics of the table."""
        found = []
        for place, column in enumerate(self.columns):
            merge = Merge(column, self.words, self.nodes[place])
            wanted = [self.files[file][place] for file in merge.wanted]
            rows = summary_table((0, i, one) for i, one in enumerate(wanted))
            found.append(merge.reduced(self.scalars[place], rows, [one.theta for one in wanted]))
            self.nodes[place] |= merge.made
        return found


def words(path: str) -> np.ndarray:
    """What tells a file from others."""
    return np.frombuffer(identity(path), np.uint64)


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
    files = [pool[i % POOL] for i in range(asked.files)]
    table = Table(columns, [f"data/{i:06}.parquet" for i in range(asked.files)], files)
    build = seconds(table.merged)
    adding, removing = [], []
    for run in range(asked.runs):
        path = f"data/{random.integers(asked.files):06}-{run}.parquet"
        one = [file_statistics(random) for _ in columns]
        adding.append(seconds(lambda path=path, one=one: table.add(path, one)))
        gone = table.paths[int(random.integers(len(table.paths)))]
        removing.append(seconds(lambda gone=gone: table.remove(gone)))
    scratch, took = scratch_of(columns, table.files)
    check(table.merged(), scratch)
    added, removed = median(adding), median(removing)
    report(
        "table_level",
        [
            {"measure": "merge all at once", "seconds": took, "target": "", "met": ""},
            {"measure": "merge all by groups, once", "seconds": build, "target": "", "met": ""},
            {"measure": "add a file", "seconds": added, "target": TARGET, "met": added < TARGET},
            {"measure": "remove a file", "seconds": removed, "target": TARGET, "met": removed < TARGET},
            {"measure": "speed-up of adding", "seconds": took / added, "target": "", "met": ""},
        ],
        files=asked.files,
        columns=asked.columns,
        fan_out=FAN_OUT,
    )


def scratch_of(columns: list[Column], files: list[list[ColumnStatistics]]) -> tuple[list[ColumnStatistics], float]:
    """The statistics of the table without groups, and how long their merging took."""
    found, took = [], 0.0
    for place, column in enumerate(columns):
        known = [statistics[place] for statistics in files]
        rows, thetas = summary_table((0, i, one) for i, one in enumerate(known)), [one.theta for one in known]
        merged: list[ColumnStatistics] = []
        took += seconds(lambda: merged.append(reduce_column(column, rows, thetas)))  # noqa: B023 - called at once
        found += merged
    return found, took


def check(found: list[ColumnStatistics], scratch: list[ColumnStatistics]) -> None:
    """Refuses groups that tell something else."""
    for one, other in zip(found, scratch, strict=True):
        for name in ("rows", "nulls", "lo", "hi", "sum_exact", "max_len", "theta", "distinct"):
            assert getattr(one, name) == getattr(other, name), name
        assert np.isclose(one.m2, other.m2)
        spread = np.array(one.percentiles) - np.array(other.percentiles)
        assert abs(spread).max() < 0.02 * (1 << 40), spread


if __name__ == "__main__":
    main()
