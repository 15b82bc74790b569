"""Table level of 65,536 data files: adding and removing the statistics of one, against merging all from scratch.

Ten columns of 64-bit integers, merged as ANALYZE merges them, with all partial merges in memory; nothing is read or
committed. The files' statistics are drawn from a pool, for 65,536 x 10 full sketches would take 21 GB: each file's
sketch is made when it is merged, from one of the pool and unlike all others. Making it, which stands for reading it, is
not counted.
"""

from __future__ import annotations

import argparse
import bisect
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from common import median, report, seconds

from metastore.format.object_schemas import SUMMARY
from metastore.format.table_column import Column
from metastore.kernel.column_statistics import ColumnStatistics
from metastore.kernel.distinct_sketch import DistinctSketch, parse_sketches
from metastore.kernel.reducer import count_distinct, merge_column
from metastore.kernel.statistic_rows import partial_aggregate_row, summary_rows
from metastore.kernel.theta_sketch import ALL, NOMINAL, ThetaSketch
from metastore.table_level.column_groups import ColumnGroups, GroupAggregate, ReductionInput, aggregate_schema
from metastore.table_level.group_tree import FAN_OUT, FileGroups, GroupTree, digest_of_facts

SCALARS = ["rows", "nulls", "nans", "lo_long", "hi_long", "distinct", "distinct_error"]
FIELDS = pa.schema([field for field in SUMMARY if field.name not in ("column", "file", "extra")])
ROWS, POOL, TARGET = 1_000_000, 2_048, 0.050


def file_statistics(random: np.random.Generator) -> ColumnStatistics:
    """Make the statistics of a column of near-unique values in a file of a million rows."""
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
        numbers={"max_len": 8},
        compressed_bytes=8 * ROWS,
        uncompressed_bytes=8 * ROWS,
        percentiles=values.tolist(),
        theta=ThetaSketch(hashes, threshold).to_bytes(),
    )


class Sketches(Sequence[DistinctSketch]):
    """The sketches of some files, made on access."""

    seconds = 0.0
    """How long making them took so far."""

    def __init__(self, pool: list[DistinctSketch], sketch_numbers: np.ndarray, turns: np.ndarray) -> None:
        """Of each file, which of the pool its sketch is made from, and how often that was taken before."""
        self._pool, self._which, self._turns = pool, sketch_numbers.tolist(), turns.tolist()

    def __len__(self) -> int:
        return len(self._which)

    def __getitem__(self, positions: slice) -> list[DistinctSketch]:
        start = time.perf_counter()
        drawn = [
            (self._pool[of].theta, turn)
            for of, turn in zip(self._which[positions], self._turns[positions], strict=True)
        ]
        shifted = [
            DistinctSketch(ThetaSketch(sketch.hashes + np.uint64(turn), sketch.threshold)) for sketch, turn in drawn
        ]
        Sketches.seconds += time.perf_counter() - start
        return shifted


class MemoryCache(dict[bytes, GroupAggregate]):
    """Merged groups in memory, in place of a store's cache."""

    def make_tree(self, groups: FileGroups, order: np.ndarray, cache_key: bytes) -> GroupTree:
        """The groups of a column's data files."""
        return GroupTree(groups, order, cache_key, self)

    def merge(self, tree: GroupTree, files: Any, merge: Any, _codec: Any) -> Sequence[GroupAggregate]:
        """Merge the data files of a column."""
        parts, made = tree.merge(files, self, merge)
        self |= made
        return parts


class Table:
    """The statistics of a table's files, and their merged groups."""

    def __init__(self, columns: list[Column], sample_files: list[list[ColumnStatistics]], files: int) -> None:
        """Make so many files of the known statistics, each of them many times."""
        self.columns, self.paths = columns, [f"data/{i:06}.parquet" for i in range(files)]
        self.turns, self.which = np.divmod(np.arange(files), len(sample_files))
        self.words = np.stack([words(path) for path in self.paths])
        rows = [[summary_rows([(0, 0, file[ordinal])]) for file in sample_files] for ordinal in range(len(columns))]
        self.rows = [
            pa.concat_tables(of).select(aggregate_schema(column).names).combine_chunks()
            for column, of in zip(columns, rows, strict=True)
        ]
        self.pool = [parse_sketches(file[ordinal].theta for file in sample_files) for ordinal in range(len(columns))]
        self.scalars = [pa.concat_tables(of).select(SCALARS).combine_chunks().take(self.which) for of in rows]
        self.nodes = [MemoryCache() for _ in columns]

    def add(self, path: str, file: list[ColumnStatistics]) -> list[ColumnStatistics]:
        """The statistics of the table with one more file."""
        at = bisect.bisect(self.paths, path)
        self.paths.insert(at, path)
        self.which = np.insert(self.which, at, self.rows[0].num_rows)
        self.turns = np.insert(self.turns, at, 0)
        self.words = np.insert(self.words, at, words(path), axis=0)
        for ordinal, column_statistics in enumerate(file):
            new, scalars = partial_aggregate_row(column_statistics, FIELDS), self.scalars[ordinal]
            self.rows[ordinal] = pa.concat_tables([self.rows[ordinal], new.select(self.rows[ordinal].column_names)])
            self.pool[ordinal] += parse_sketches([column_statistics.theta])
            with_it = [scalars.slice(0, at), new.select(SCALARS), scalars.slice(at)]
            self.scalars[ordinal] = pa.concat_tables(with_it)
        return self.merged()

    def remove(self, path: str) -> list[ColumnStatistics]:
        """The statistics of the table without a file."""
        at = bisect.bisect_left(self.paths, path)
        del self.paths[at]
        self.which, self.turns = np.delete(self.which, at), np.delete(self.turns, at)
        self.words = np.delete(self.words, at, axis=0)
        without_it = ([rows.slice(0, at), rows.slice(at + 1)] for rows in self.scalars)
        self.scalars = [pa.concat_tables(parts) for parts in without_it]
        return self.merged()

    def merged(self) -> list[ColumnStatistics]:
        """The statistics of the table."""
        merged, groups = [], FileGroups(self.words)
        for ordinal, column in enumerate(self.columns):
            merge = ColumnGroups(column, groups, self.nodes[ordinal])
            rows = self.rows[ordinal].take(pa.array(self.which[merge.files_to_read]))
            merged.append(
                merge.reduce(ReductionInput(self.scalars[ordinal], rows, self.sketches(ordinal, merge.files_to_read)))
            )
        return merged

    def sketches(self, ordinal: int, files: np.ndarray) -> Sketches:
        """The sketches of a column of some files."""
        return Sketches(self.pool[ordinal], self.which[files], self.turns[files])

    def at_once(self) -> tuple[list[ColumnStatistics], float]:
        """The statistics of the table without groups, and how long their merging took."""
        merged: list[ColumnStatistics] = []
        took = 0.0
        for ordinal, (column, summary_parts) in enumerate(zip(self.columns, self.rows, strict=True)):
            rows = summary_parts.combine_chunks().take(self.which)
            sketches = self.sketches(ordinal, np.arange(len(self.which)))[:]
            every = self.scalars[ordinal]
            took += seconds(lambda: merged.append(at_once(column, rows, every, sketches)))  # noqa: B023 - called at once
        return merged, took


def at_once(column: Column, rows: pa.Table, every: pa.Table, sketches: list[DistinctSketch]) -> ColumnStatistics:
    """The statistics of a column without groups."""
    reduced = merge_column(column, rows, sketches)
    return replace(reduced, **count_distinct(column, every, reduced.sketch))


def words(path: str) -> np.ndarray:
    """Return the digest that identifies a file."""
    return np.frombuffer(digest_of_facts(path), np.uint64)


def merging(step: Callable[[], object]) -> float:
    """How long something took but for making sketches."""
    before = Sketches.seconds
    return seconds(step) - (Sketches.seconds - before)


def main() -> None:
    """Measures and reports."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--files", type=int, default=65_536)
    arguments.add_argument("--columns", type=int, default=10)
    arguments.add_argument("--runs", type=int, default=30)
    options = arguments.parse_args()
    random = np.random.default_rng(1)
    columns = [Column(key=str(i), path=(f"c{i}",), type="bigint", encoding="long") for i in range(options.columns)]
    pool = [[file_statistics(random) for _ in columns] for _ in range(POOL)]
    table = Table(columns, pool, options.files)
    build = merging(table.merged)
    adding, removing = [], []
    for run in range(options.runs):
        path = f"data/{random.integers(options.files):06}-{run}.parquet"
        new_file = [file_statistics(random) for _ in columns]
        adding.append(merging(lambda path=path, file=new_file: table.add(path, file)))
        gone = table.paths[int(random.integers(len(table.paths)))]
        removing.append(merging(lambda gone=gone: table.remove(gone)))
    scratch, took = table.at_once()
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
        files=options.files,
        columns=options.columns,
        fan_out=FAN_OUT,
    )


def check(grouped: list[ColumnStatistics], scratch: list[ColumnStatistics]) -> None:
    """Refuses groups that tell something else."""
    for merged, other in zip(grouped, scratch, strict=True):
        for name in ("rows", "nulls", "lo", "hi", "sum_exact", "max_len", "theta", "distinct"):
            assert getattr(merged, name) == getattr(other, name), name
        assert np.isclose(merged.m2, other.m2)
        spread = np.array(merged.percentiles) - np.array(other.percentiles)
        assert abs(spread).max() < 0.02 * (1 << 40), spread


if __name__ == "__main__":
    main()
