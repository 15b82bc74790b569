"""Where each value lives: a Spark job that makes lists of a table's values with their frequency in each data file.

Tasks read the values, a shuffle by hash brings equal ones together, tasks write the lists: none is ever in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.object_layout import find_run_starts
from metastore.format.object_schemas import TABLE_FREQUENCIES
from metastore.format.objects import ObjectRef, decode_object
from metastore.format.value_postings import choose_part, hash_column_values, read_postings
from metastore.table_level.count_jobs import ROWS_PER_PARTITION, CountTarget, gather_results
from metastore.table_level.shuffle_job import (
    JobResult,
    PartitionCounts,
    PartitionResult,
    RoutedRows,
    ShuffleStrategy,
    TaskFacts,
    distribute_sources,
    run_shuffle,
    write_lists,
)
from metastore.table_level.value_index_layout import (
    choose_object_count,
    count_indexed_rows,
    lay_out_postings,
    rank_by_value,
)
from metastore.table_level.value_rows import VALUE_ROWS, find_pair_starts, iterate_columns, make_equality_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark import SparkContext

    from metastore.format.table_column import Column
    from metastore.spark_jobs.task_store import ReadContent, TaskStore
    from metastore.table_level.value_sources import ValueSource

    Longs = NDArray[np.int64]


POSTING_ROWS = pa.schema(
    [
        pa.field("column", pa.int32(), nullable=False),
        pa.field("value_long", pa.int64()),
        pa.field("value_double", pa.float64()),
        pa.field("value_binary", pa.binary()),
        pa.field("frequency", pa.int64()),
        pa.field("file", pa.int32()),
    ]
)
"""Values of columns in a data file."""


@dataclass(frozen=True)
class EarlierIndex:
    """An object of the lists of an earlier snapshot: of files that are still there it tells all.

    Attributes:
        object: The object.
        ordinals: Place of a column then, to its place now.
        files: For each data file of then its place now; -1: it is gone.
    """

    object: ObjectRef
    ordinals: Mapping[int, int]
    files: Longs

    is_summed: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """See `ValueSource`."""
        return self.object.name

    @property
    def columns(self) -> frozenset[int]:
        """See `ValueSource`."""
        return frozenset(self.ordinals.values())

    def read_values(self, content: ReadContent) -> Iterator[pa.Table]:
        """See `ValueSource`."""
        yield self.carry_over(decode_object(self.object, content()))

    def carry_over(self, rows: pa.Table) -> pa.Table:
        """What it says of files that are still there, with their places in `listed`."""
        there = pa.array(list(self.ordinals), pa.int32())
        has_files = pc.or_(pc.is_valid(rows["files_sparse"]), pc.is_valid(rows["files_dense"]))
        rows = rows.filter(pc.and_(pc.is_in(rows["column"], there), has_files))
        now = np.zeros(max(self.ordinals) + 1, np.int32)
        now[list(self.ordinals)] = list(self.ordinals.values())
        row, file, count = read_postings(rows)
        place = self.files[file]
        keep = (place >= 0) & (count > 0)
        row, place, count = row[keep], place[keep], count[keep]
        chosen = rows.take(pa.array(row))
        changed = {
            "column": pa.array(now[chosen["column"].to_numpy()]),
            "frequency": pa.array(count),
            "listed": pa.array(place, pa.int64()),
        }
        arrays = [changed[one.name] if one.name in changed else chosen[one.name] for one in VALUE_ROWS]
        return pa.table(arrays, schema=VALUE_ROWS)


def run_index_job(
    context: SparkContext,
    store: TaskStore,
    sources: Sequence[ValueSource],
    targets: Mapping[int, CountTarget],
    files: int,
) -> JobResult:
    """Make the lists; the number that goes with a source's values is the place of their data file."""
    partitions = choose_object_count(sum(target.number for target in targets.values()), ROWS_PER_PARTITION)
    distributed = distribute_sources(context, store, sources, max(4 * context.defaultParallelism, partitions))
    strategy = ValueIndexing({ordinal: target.column for ordinal, target in targets.items()}, partitions, files)
    found = run_shuffle(store, distributed, strategy)
    indexed = {ordinal: np.zeros(files, np.int64) for ordinal in targets}
    for one in found:
        for ordinal, rows in one.indexed_rows.items():
            indexed[ordinal] += rows.astype(np.int64)
    return replace(gather_results(found, targets), indexed_rows=indexed)


@dataclass(frozen=True)
class ValueIndexing(ShuffleStrategy["Column"]):
    """Equal values meet in one partition, by their hash, with the data files that they are in.

    Attributes:
        files: How many data files the snapshot has.
    """

    files: int

    sums_values: ClassVar[bool] = False

    def route(self, ordinal: int, rows: pa.Table) -> RoutedRows:
        """See `ShuffleStrategy`."""
        arrays = [rows["listed"].cast(pa.int32()) if one.name == "file" else rows[one.name] for one in POSTING_ROWS]
        hashed = hash_column_values(rows, self.columns[ordinal])
        return RoutedRows(pa.table(arrays, schema=POSTING_ROWS), choose_part(hashed, self.partitions))

    def finish(self, store: TaskStore, partition: int, rows: Sequence[pa.Table], facts: TaskFacts) -> PartitionResult:
        """See `ShuffleStrategy`."""
        sent = pa.concat_tables([POSTING_ROWS.empty_table(), *rows])
        lists = {
            ordinal: make_postings(of_column, self.columns[ordinal], self.files)
            for ordinal, of_column in sorted(iterate_columns(sent), key=lambda one: one[0])
        }
        if not lists:
            return PartitionResult(facts)
        counts = {
            ordinal: PartitionCounts(one.num_rows, int((one["frequency"].to_numpy() == 1).sum()))
            for ordinal, one in lists.items()
        }
        indexed = {ordinal: _narrow(count_indexed_rows(one, self.files)) for ordinal, one in lists.items()}
        layout = lay_out_postings(list(lists.values()), [self.columns[ordinal] for ordinal in lists])
        written = write_lists(store, pa.concat_tables(lists.values()), layout, (partition, self.partitions))
        return PartitionResult(facts, *written, counts=counts, indexed_rows=indexed)


def make_postings(rows: pa.Table, column: Column, files: int) -> pa.Table:
    """The list of a column, each value once."""
    values = rows[f"value_{column.encoding}"].combine_chunks()
    keys, _ = make_equality_keys(values)
    where, counts = rows["file"].to_numpy(), rows["frequency"].to_numpy()
    order = np.lexsort((where, keys))
    pairs = find_pair_starts(keys[order], where[order])
    counts, where, first = np.add.reduceat(counts[order], pairs), where[order][pairs], order[pairs]
    starts = find_run_starts(keys[first])
    lengths = np.diff(starts, append=len(first))
    totals = np.add.reduceat(counts, starts)
    kept = values.take(pa.array(first[starts]))
    ranked = np.lexsort((rank_by_value(kept, column), -totals))
    dense = 2 * lengths >= files
    filled: dict[str, pa.Array] = {
        "column": pa.array(np.full(len(starts), rows["column"][0].as_py(), np.int32)),
        f"value_{column.encoding}": kept,
        "frequency": pa.array(totals),
        "files_sparse": _sparse(where, counts, np.where(dense, 0, lengths), np.repeat(~dense, lengths), dense),
        "files_dense": _dense(where, counts, lengths, dense, files),
    }
    arrays = [filled.get(one.name, pa.nulls(len(starts), one.type)) for one in TABLE_FREQUENCIES]
    return pa.table(arrays, schema=TABLE_FREQUENCIES).take(pa.array(ranked))


def _sparse(where: NDArray[Any], counts: Longs, lengths: Longs, of_maps: Any, absent: Any) -> pa.Array:
    kind = TABLE_FREQUENCIES.field("files_sparse").type
    maps = pa.MapArray.from_arrays(
        _offsets(lengths, absent), pa.array(where[of_maps], pa.int32()), pa.array(counts[of_maps])
    )
    return maps.cast(kind)


def _dense(where: NDArray[Any], counts: Longs, lengths: Longs, dense: Any, files: int) -> pa.Array:
    line = np.cumsum(dense) - 1
    matrix = np.zeros((int(dense.sum()), files), np.int64)
    of_lists = np.repeat(dense, lengths)
    matrix[np.repeat(line, lengths)[of_lists], where[of_lists]] = counts[of_lists]
    return pa.ListArray.from_arrays(_offsets(np.where(dense, files, 0), ~dense), pa.array(matrix.reshape(-1)))


def _offsets(lengths: Longs, absent: Any) -> pa.Array:
    """Offsets of lists; those that are absent begin with null."""
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32(), mask=np.append(absent, False))


def _narrow(counts: Longs) -> NDArray[Any]:
    """Counts in as few bytes as they need on their way to the driver."""
    return counts.astype(np.min_scalar_type(counts.max(initial=0)))
