"""Where each value lives: a Spark job that makes lists of a table's values with their frequency in each data file.

Tasks read the values, a shuffle by hash brings equal ones together, tasks write the lists: none is ever in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.object_layout import ROW_GROUPS, find_run_starts
from metastore.format.object_schemas import TABLE_FREQUENCIES, TABLE_PLACED, fill_schema
from metastore.format.objects import ObjectRef, decode_object
from metastore.format.sortable_values import is_wide_decimal, make_comparison_key
from metastore.format.value_postings import (
    STARTS_KEY,
    choose_part,
    encode_hash_starts,
    hash_column_values,
    read_postings,
)
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
from metastore.table_level.value_rows import VALUE_ROWS, find_pair_starts, iterate_columns, make_equality_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark import SparkContext

    from metastore.format.table_column import Column
    from metastore.spark_jobs.task_store import ReadContent, TaskStore
    from metastore.table_level.value_sources import ValueSource

    Longs = NDArray[np.int64]


@dataclass(frozen=True)
class EarlierIndex:
    """An object of the lists of an earlier snapshot: of files that are still there it tells all.

    Attributes:
        ordinals: Place of a column then, to its place now.
        files: For each data file of then its place now; -1: it is gone.
    """

    object: ObjectRef
    ordinals: Mapping[int, int]
    files: Longs

    is_summed: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.object.name

    @property
    def columns(self) -> frozenset[int]:
        return frozenset(self.ordinals.values())

    def read_values(self, content: ReadContent) -> Iterator[pa.Table]:
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
        return fill_schema(VALUE_ROWS, {**{name: chosen[name] for name in VALUE_ROWS.names[1:4]}, **changed}, len(row))


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
        return RoutedRows(rows, choose_part(hash_column_values(rows, self.columns[ordinal]), self.partitions))

    def finish(self, store: TaskStore, partition: int, rows: Sequence[pa.Table], facts: TaskFacts) -> PartitionResult:
        sent = pa.concat_tables([VALUE_ROWS.empty_table(), *rows])
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
    """The list of a column, each value once; `listed` of the rows is the place of their data file."""
    values = rows[f"value_{column.encoding}"].combine_chunks()
    keys, _ = make_equality_keys(values)
    where, counts = rows["listed"].to_numpy(), rows["frequency"].to_numpy()
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
    return fill_schema(TABLE_FREQUENCIES, filled, len(starts)).take(pa.array(ranked))


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


_VALUES_OF_AN_OBJECT = 1 << 18
_MOST_OBJECTS = 64
_VALUES_OF_A_GROUP = 1 << 14


def choose_object_count(values: int, most_values: int) -> int:
    """Into how many objects lists are cut: into small ones, while these are not too many for a manifest."""
    return max(1, -(-values // most_values), min(_MOST_OBJECTS, -(-values // _VALUES_OF_AN_OBJECT)))


def lay_out_postings(
    lists: Sequence[pa.Table], columns: Sequence[Column]
) -> tuple[pa.Table, list[int], dict[str, str]]:
    """Lay lists out in one object."""
    most = max(ROW_GROUPS // len(lists), 1)
    cut = [_of_column(rows, column, most) for rows, column in zip(lists, columns, strict=True)]
    starts = np.concatenate([one[2] for one in cut])
    return (
        pa.concat_tables([one[0] for one in cut]),
        [n for one in cut for n in one[1]],
        {STARTS_KEY: encode_hash_starts(starts)},
    )


def _of_column(rows: pa.Table, column: Column, most: int) -> tuple[pa.Table, list[int], NDArray[np.uint64]]:
    hashes = hash_column_values(rows, column)
    number = len(hashes)
    size = -(-number // min(most, -(-number // _VALUES_OF_A_GROUP)))
    ranked = np.argsort(hashes, kind="stable")
    group = np.empty(number, np.int64)
    group[ranked] = np.arange(number) // size
    by_group = np.lexsort((rank_by_value(rows[f"value_{column.encoding}"].combine_chunks(), column), group))
    sizes = [min(size, number - at) for at in range(0, number, size)]
    return rows.take(pa.array(by_group)), sizes, hashes[ranked[::size]]


def rank_by_value(values: pa.Array, column: Column) -> Longs:
    """Numbers that are ordered as the values of a column are."""
    if is_wide_decimal(column):
        ranks = np.empty(len(values), np.int64)
        numbers = list(map(make_comparison_key(column), values.to_pylist()))
        ranks[sorted(range(len(numbers)), key=numbers.__getitem__)] = np.arange(len(numbers))
        return ranks
    return make_equality_keys(values)[1]


def count_indexed_rows(rows: pa.Table, files: int) -> Longs:
    """Of how many rows of each data file a list tells."""
    told = np.zeros(files, np.int64)
    _, file, count = read_postings(rows)
    np.add.at(told, file, count)
    return told


def index_coverage_rows(told: Mapping[int, Longs]) -> tuple[pa.Table, list[int]]:
    """Rows of `table-placed`, and their row groups."""
    tables = []
    for ordinal, rows in sorted(told.items()):
        ordinals, files = np.full(len(rows), ordinal, np.int32), np.arange(len(rows), dtype=np.int32)
        tables.append(pa.table([ordinals, files, rows], schema=TABLE_PLACED))
    sizes = [table.num_rows for table in tables]
    if len(sizes) > ROW_GROUPS:
        each = -(-len(sizes) // ROW_GROUPS)
        sizes = [sum(sizes[at : at + each]) for at in range(0, len(sizes), each)]
    return pa.concat_tables(tables), sizes
